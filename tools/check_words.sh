#!/usr/bin/env bash
# Checks the English of comments and of the pages. No comment and no item of a page's lists begins with a word of a clipped sentence
# ("Of step t"), and none has a word that docs/glossary.md lists as not to be used; the pages' prose has none of $page_words. Pages are
# README.md, docs/ without docs/decisions/, datasets/, bench/README.md, bench/results/ and src/*/README.md. The glossary's list only
# grows: a word of the commit before that it lacks fails.
# usage: check_words.sh [FOLDER...]      FOLDER: prints the comments of its C files that are to be rewritten
set -u
cd "$(dirname "$0")/.." || exit 70
rows() { sed -n '/^## Words not to use/,$s/^| \([^|]*[^| ]\) *| .*/\1/p' | grep -vE '^(word|-+)$' | sed 's/, /\n/g'; } # prints the words of a glossary, a line each
first=$(sed -n '/^## Words not to use/,/^|/s/^\(of, .*\)\.$/\1/p' docs/glossary.md | sed 's/, /|/g')
words=$(rows <docs/glossary.md | paste -sd'|')
[ -n "$words" ] && [ -n "$first" ] || { echo "docs/glossary.md: no list under \"Words not to use\""; exit 1; }
script_first=$first'|Of|To|As|Likewise|So many|What|Whose' # capitals are names of arguments
script_words=${words/|of these/}
page_words=${words/|of these/}"|apart|gone|what is said" # "of these" is plain English in a page

bad_pages() { # lines of the pages' prose, without code, that are to be rewritten
    local pages
    mapfile -t pages < <(git ls-files -co --exclude-standard README.md 'docs/*.md' 'datasets/*.md' bench/README.md 'bench/results/*.md' 'src/*/README.md' |
        grep -v '^docs/decisions/')
    awk '
    FNR == 1 { fence = skip = 0; blank = 1 }
    /^ *```/ { fence = !fence; next }
    fence { next }
    /^## / { skip = /^## Words not to use/ }
    skip { next }
    /^ *$/ { blank = 1; next }
    /^    / && blank { next }
    { blank = 0; gsub(/`[^`]*`/, "``"); gsub(/\]\([^)]*\)/, "]"); print FILENAME ":" FNR ": " $0 }' "${pages[@]}" |
        grep -iE "^[^ ]+: ([*-] ($first)\b|.*\b($page_words)\b)"
}
comments() { # FILE... : a line for each comment, FILE:LINE: TEXT
    awk '
    function put() { gsub(/[ \t*]+/, " ", text); sub(/^ /, "", text); print FILENAME ":" line ": " text; text = "" }
    FNR == 1 { inside = 0 }
    {
        rest = $0
        while (1) {
            if (!inside) {
                gsub(/"([^"\\]|\\.)*"/, "\"\"", rest)
                i = index(rest, "/*"); j = index(rest, "//")
                if (j && (!i || j < i)) { text = substr(rest, j + 2); line = FNR; put(); break }
                if (!i) break
                rest = substr(rest, i + 2); inside = 1; line = FNR; text = ""
            }
            k = index(rest, "*/")
            if (!k) { text = text " " rest; break }
            text = text substr(rest, 1, k - 1); rest = substr(rest, k + 2); inside = 0; put()
        }
    }' "$@"
}
bad_comments() { # FOLDER: its comments that are to be rewritten
    local files
    mapfile -t files < <(git ls-files -co --exclude-standard "$1/*.c" "$1/*.h" "$1/*.cu" "$1/*.cuh" "$1/*.cc")
    [ ${#files[@]} -eq 0 ] || comments "${files[@]}" | grep -iE "^[^ ]+: (($first)\b|.*\b($words)\b)"
}
bad_script_comments() { # comments of scripts, a block of lines as one, that are to be rewritten; NAME WORDS of a function is no sentence
    local files
    mapfile -t files < <(git ls-files -co --exclude-standard '*.sh' '*.bash' '*.py' Makefile .ci/run)
    awk '
    function put() { if (text != "") print file ":" line ": " text; text = "" }
    FNR == 1 { put() }
    /^[ \t]*#(!|[ \t]*(shellcheck|SBATCH))/ { put(); next }
    /^[ \t]*#/ {
        sub(/^[ \t]*#+[ \t]*/, "")
        if (text == "") { line = FNR; file = FILENAME }
        text = text == "" ? $0 : text " " $0
        next
    }
    { put() }
    match($0, /[ \t]# [^"\047]*$/) { print FILENAME ":" FNR ": " substr($0, RSTART + 3) }
    END { put() }' "${files[@]}" | grep -E "^[^ ]+: (($script_first)\b|.*\b($script_words)\b)"
}
folders() { { echo include; echo bench; echo tools; find src tests -mindepth 1 -maxdepth 1 -type d; } | sort; }
if [ $# -gt 0 ]; then
    for folder in "$@"; do bad_comments "$folder"; done
    exit 0
fi
failed=0
while read -r word; do
    echo "docs/glossary.md: '$word' has left the list of words not to use, which only grows"
    failed=1
done < <(git show HEAD~1:docs/glossary.md 2>/dev/null | rows | sort | comm -23 - <(rows <docs/glossary.md | sort))
found=$(bad_pages; bad_script_comments; while read -r folder; do bad_comments "$folder"; done < <(folders))
if [ -n "$found" ]; then
    echo "$found"
    echo "the lines above are to be rewritten: docs/glossary.md lists words not to use"
    failed=1
fi
[ $failed = 1 ] || echo "check-words: no comment and no page has a word that is not to be used"
exit $failed
