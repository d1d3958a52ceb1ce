# The man page (weft help --man) as a page for Doxygen, in HTML of its own. It takes the requests that weft writes and stops at any
# other, which it names.
function text(line) {
    gsub(/\\-/, "-", line)
    gsub(/\\&/, "", line)
    gsub(/\\e/, "\\", line)
    gsub(/&/, "\\&amp;", line)
    gsub(/</, "\\&lt;", line)
    gsub(/>/, "\\&gt;", line)
    return line
}
# .BR, .RI and the like: words in two fonts by turns; one in quotes holds spaces.
function turns(line, first, second,    word, n, out) {
    out = ""
    for (n = 0; line != ""; ++n) {
        sub(/^ +/, "", line)
        if (line ~ /^"/) {
            match(line, /^"[^"]*"/)
            word = substr(line, 2, RLENGTH - 2)
        } else {
            match(line, /^[^ ]+/)
            word = substr(line, 1, RLENGTH)
        }
        line = substr(line, RSTART + RLENGTH)
        out = out font(n % 2 ? second : first, text(word))
    }
    return out
}
function font(name, word) { return name == "" ? word : "<" name ">" word "</" name ">" }
function put(line) {
    if (term) { # the line behind .TP
        if (!list[depth]) { print "<dl>"; list[depth] = 1 }
        print "<dt>" line "</dt><dd>"
        term = 0
    } else
        print line
}
function end_list() { if (list[depth]) print "</dl>"; list[depth] = 0 }
function head(tag, title) {
    while (depth > 0) {
        end_list()
        --depth
    }
    end_list()
    gsub(/"/, "", title)
    print font(tag, text(title))
}
BEGIN { print "# The man page {#p_man}\n\n\\htmlonly[block]" }
{ rest = $0; sub(/^[^ ]+ */, "", rest) }
/^\.(TH|ad|hy|na|nh)/ { next } # of the page's head and of lines on paper
/^\.S[HS]/ { head(/^\.SH/ ? "h2" : "h3", rest); next }
/^\.TP/ { term = 1; next }
/^\.B / { put(font("b", text(rest))); next }
/^\.I / { put(font("i", text(rest))); next }
/^\.BR / { put(turns(rest, "b", "")); next }
/^\.RI / { put(turns(rest, "", "i")); next }
/^\.IR / { put(turns(rest, "i", "")); next }
/^\.br/ { print "<br>"; next }
/^\.RS/ { ++depth; list[depth] = 0; next }
/^\.RE/ { end_list(); --depth; next }
/^\.nf/ { print "<pre>"; next }
/^\.fi/ { print "</pre>"; next }
/^\./ { print "man.awk: unknown request: " $0 >"/dev/stderr"; bad = 1; exit 1 }
{ put(text($0)) }
END { if (!bad) { end_list(); print "\\endhtmlonly" } }
