#!/usr/bin/env bash
# Converts the pages in Markdown, the man page and the public headers to static HTML by Doxygen. A warning of Doxygen fails the build,
# and so does a broken link in the HTML.
# usage: docs.sh WEFT OUT      writes OUT/html; OUT is emptied first
set -euo pipefail
weft=$1 out=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
command -v doxygen >/dev/null || {
    echo "weft: doxygen is missing: apt-get install --no-install-recommends doxygen (other systems: the package of that name)" >&2
    exit 1
}
case $weft in /*) ;; *) weft=$PWD/$weft;; esac
rm -rf "$out"
mkdir -p "$out/pages" "$out/html/files"
out=$(cd "$out" && pwd)
cd "$here"

# A README.md comes before the pages of its folder, the root's last: its children are all pages without another parent.
{
    find docs bench datasets -mindepth 1 -maxdepth 3 -name README.md | sort
    find docs bench -name '*.md' ! -name README.md | sort
    printf '%s\n' CHANGELOG.md README.md
} >"$out/list"
: >"$out/files"
: >"$out/taken"
while read -r page; do
    name=${page//[^A-Za-z0-9.]/_}
    awk -v self="$page" -v list="$out/list" -v files="$out/files" -v taken="$out/taken" -f tools/docs/page.awk "$page" >"$out/pages/$name"
done <"$out/list"
cat >>"$out/pages/docs_README.md" <<'TEXT'

## Reference {#p_docs_README_reference}

\subpage p_man "The man page": all verbs, flags and keys. [The public headers](files.html), a module each.
TEXT
"$weft" help --man | awk -f tools/docs/man.awk >"$out/pages/man.md"
while read -r header; do
    mkdir -p "$out/${header%/*}"
    awk -f tools/docs/header.awk "$header" >"$out/$header"
done < <(find include -name '*.h')
sort -u "$out/files" | while read -r file; do
    [ -f "$file" ] || { echo "docs.sh: a page links to $file, which is no file" >&2; exit 1; }
    install -D -m 644 "$file" "$out/html/files/$file"
done

cat >"$out/Doxyfile" <<TEXT
PROJECT_NAME = weft
PROJECT_NUMBER = $(cat VERSION)
PROJECT_BRIEF = "neural networks on HPC clusters"
OUTPUT_DIRECTORY = "$out"
STRIP_FROM_PATH = "$out"
INPUT = "$out/pages" "$out/include"
RECURSIVE = YES
FILE_PATTERNS = *.md *.h
USE_MDFILE_AS_MAINPAGE = "$out/pages/README.md"
OPTIMIZE_OUTPUT_FOR_C = YES
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
AUTOLINK_SUPPORT = NO
TOC_INCLUDE_HEADINGS = 0
TYPEDEF_HIDES_STRUCT = YES
CASE_SENSE_NAMES = YES
SORT_MEMBER_DOCS = NO
VERBATIM_HEADERS = NO
GENERATE_TREEVIEW = YES
GENERATE_LATEX = NO
HAVE_DOT = NO
HTML_TIMESTAMP = NO
QUIET = YES
WARN_NO_PARAMDOC = NO
TEXT
doxygen "$out/Doxyfile" >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
if [ -s "$out/log" ]; then
    cat "$out/log" >&2
    exit 1
fi
cd "$out/html"
# A text like file:line is not a link.
sed -i 's|<a href="file:[^"]*">\([^<]*\)</a>|\1|g' ./*.html
find . -type f >"$out/all"
awk -v others="$out/all" -f "$here/tools/docs/links.awk" ./*.html >&2
echo "$out/html/index.html"
