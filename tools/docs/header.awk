# A public header with its comments as Doxygen takes them: the first is the file's, one at the beginning of a line belongs to what
# follows, one behind code to that code, or, behind a brace, to what the brace opens; a heading between dashes belongs to nothing.
function escaped(text) {
    gsub(/[\\@<>#%&]/, "\\\\&", text)
    return text
}
{
    line = $0
    out = ""
    while (line != "") {
        if (inside) {
            end = index(line, "*/")
            if (end) {
                out = out escaped(substr(line, 1, end - 1)) "*/" behind
                line = substr(line, end + 2)
                behind = ""
                inside = 0
            } else {
                out = out escaped(line)
                line = ""
            }
            continue
        }
        at = index(line, "/*")
        if (!at) {
            out = out line
            break
        }
        before = substr(line, 1, at - 1)
        rest = substr(line, at + 2)
        if (rest ~ /^ ----/) mark = "/*"
        else if (!seen++) mark = "/** \\file\n *"
        else mark = out before ~ /^[ \t]*$/ ? "/**" : "/**<"
        if (mark == "/**<" && match(before, /[ \t]*};[ \t]*$/) && before ~ /enum/) {
            behind = " };" # an enum of one line: its comment is its last word's
            before = substr(before, 1, RSTART - 1) " "
        } else if (mark == "/**<" && before ~ /{[ \t]*$/) { # behind a brace it is of what the brace opens
            mark = "/**"
            behind = "\n" out before
            out = before = ""
        }
        out = out before mark
        line = rest
        inside = 1
    }
    print out
}
