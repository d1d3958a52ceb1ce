#!/usr/bin/env bash
# Checks the English of comments and of the pages. No comment and no item of a page's lists begins with a word of a clipped sentence
# ("Of step t"), and none has a word that docs/glossary.md lists as not to be used; the pages' prose has none of $page_words. Pages are
# README.md, docs/ without docs/decisions/, datasets/, bench/README.md, bench/results/ and src/*/README.md; scripts are those of tests/,
# tools/ and jobs/. The folders of C whose comments are still to be rewritten are counted in tools/words_left, a folder and its number a
# line: more than that fails, and so does a number that is too high. Folders that are not listed there must have none.
# usage: check_words.sh [--left | --pages | FOLDER...]      --left: prints tools/words_left as it should be; --pages: checks pages and scripts only;
#        FOLDER: prints what is left there
set -u
cd "$(dirname "$0")/.." || exit 70
first='of|to|as|likewise|so many|what|whose'
words=$(sed -n '/^## Words not to use/,$s/^| \([^|]*[^| ]\) *| .*/\1/p' docs/glossary.md | grep -vE '^(word|-+)$' | sed 's/, /|/g' | paste -sd'|')
[ -n "$words" ] || { echo "docs/glossary.md: no list under \"Words not to use\""; exit 1; }
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
    mapfile -t files < <(git ls-files -co --exclude-standard 'tests/*.sh' 'tests/*.bash' 'tools/*.sh' 'jobs/*.sh')
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
folders() { { echo include; echo bench; find src tests -mindepth 1 -maxdepth 1 -type d; } | sort; }
if [ "${1:-}" = --left ]; then
    while read -r folder; do
        found=$(bad_comments "$folder" | wc -l)
        [ "$found" = 0 ] || echo "$folder $found"
    done < <(folders)
    exit 0
elif [ "${1:-}" = --pages ]; then
    bad_pages
    bad_script_comments
    exit 0
elif [ $# -gt 0 ]; then
    for folder in "$@"; do bad_comments "$folder"; done
    exit 0
fi
failed=0 sum=0
found=$(bad_pages; bad_script_comments)
if [ -n "$found" ]; then
    echo "$found"
    echo "the lines above are to be rewritten: docs/glossary.md lists words not to use"
    failed=1
fi
while read -r folder; do
    left=$(awk -v f="$folder" '$1 == f { print $2 }' tools/words_left)
    found=$(bad_comments "$folder" | wc -l)
    sum=$((sum + found))
    if [ "$found" -gt "${left:-0}" ]; then
        echo "$folder: $found comments are to be rewritten, ${left:-0} were left: tools/check_words.sh $folder"
        failed=1
    elif [ "$found" -lt "${left:-0}" ]; then
        echo "$folder: $found comments are left, tools/words_left says $left: tools/check_words.sh --left >tools/words_left"
        failed=1
    fi
done < <(folders)
echo "check-words: $sum comments are left to be rewritten"
exit $failed
