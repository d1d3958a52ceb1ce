# A page in Markdown as Doxygen takes it: an id for the page and each heading, links by the names of the files that Doxygen writes,
# and, in a README.md, the pages below its folder as its children. Variables: self, the page's path from the root; list, a file with
# the paths of all pages, one a line; files, where paths of other files that are linked to are added; taken, a file with the pages
# that have a parent, which grows.
function html(path) { # "docs/how-to/x.md" -> "p_docs_how_to_x"
    sub(/\.md$/, "", path)
    gsub(/[^A-Za-z0-9]/, "_", path)
    return path == "README" ? "index" : "p_" path
}
function slug(heading) {
    heading = tolower(heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}
function folder(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/)) : "" }
function resolve(path,    part, n, i, out) { # without . and ..
    n = split(path, part, "/")
    out = ""
    for (i = 1; i <= n; ++i) {
        if (part[i] == "." || part[i] == "") continue
        if (part[i] == "..") sub(/[^\/]*\/$/, "", out)
        else out = out part[i] "/"
    }
    sub(/\/$/, "", out)
    return out
}
function where(target,    at, anchor, path) { # what a link to target becomes
    if (target ~ /^[a-z]+:/) return target
    at = index(target, "#")
    anchor = at ? substr(target, at + 1) : ""
    path = at ? substr(target, 1, at - 1) : target
    path = path == "" ? self : resolve(folder(self) path)
    if (!(path in page)) {
        print path >>files
        return "files/" path
    }
    return html(path) ".html" (anchor == "" ? "" : "#" html(path) "_" anchor)
}
# Is the page that target names one below this README.md, and without a parent so far?
function child(target,    path) {
    if (self !~ /README\.md$/ || target ~ /[#:]/) return ""
    path = resolve(folder(self) target)
    if (!(path in page) || path in parent || path == self) return ""
    if (self == "README.md" ? path !~ /^[a-z]+\/README\.md$/ : index(path, folder(self)) != 1) return ""
    return path
}
function links(line,    out, target, text, path, from, chars) {
    out = ""
    while (match(line, /\]\([^) ]+\)/)) {
        from = RSTART
        chars = RLENGTH
        target = substr(line, from + 2, chars - 3)
        text = substr(line, 1, from - 1)
        line = substr(line, from + chars)
        path = child(target)
        if (path != "" && match(text, /\[[^][]*$/)) {
            out = out substr(text, 1, RSTART - 1) "\\subpage " html(path) " \"" substr(text, RSTART + 1) "\""
            parent[path] = 1
            print path >>taken
        } else
            out = out text "](" where(target) ")"
    }
    return out line
}
BEGIN {
    while ((getline line <list) > 0) page[line] = 1
    while ((getline line <taken) > 0) parent[line] = 1
    close(taken)
}
/^ *```/ { inside = !inside; sub(/```.*/, "```"); print; next }
inside { print; next }
/^    / && !item { print; next }
/^#+ / {
    title = $0
    sub(/^#+ /, "", title)
    if (titled++) print $0 " {#" html(self) "_" slug(title) "}"
    else print "# " title " {#" (self == "README.md" ? "mainpage" : html(self)) "}"
    next
}
/^ *$/ { item = 0; print; next }
/^ *([*-]|[0-9]+\.) / { item = 1 }
{ gsub(/@/, "\\@"); print links($0) }
