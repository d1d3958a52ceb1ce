# Links of HTML pages that lead nowhere, one a line; exits with 1 where there are any. Arguments: the pages, by their names in the
# folder that this runs in. others: a file with the names of all files, one a line.
function name_of(file) { sub(/^\.\//, "", file); return file }
BEGIN { while ((getline file <others) > 0) there[name_of(file)] = 1 }
{
    line = $0
    while (match(line, /(id|name|href)="[^"]*"/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        value = word
        sub(/^[a-z]+="/, "", value)
        sub(/"$/, "", value)
        gsub(/&amp;/, "\\&", value)
        if (word !~ /^href/) id[name_of(FILENAME) "#" value] = 1
        else if (value !~ /^(https?|mailto|javascript):/) link[name_of(FILENAME) " " value] = 1
    }
}
END {
    for (l in link) {
        split(l, part, " ")
        at = index(part[2], "#")
        file = at ? substr(part[2], 1, at - 1) : part[2]
        anchor = at ? substr(part[2], at + 1) : ""
        if (file == "") file = part[1]
        if ((file in there) && (anchor == "" || file !~ /\.html$/ || (file "#" anchor) in id)) continue
        print part[1] ": " part[2] " leads nowhere"
        bad = 1
    }
    exit bad
}
