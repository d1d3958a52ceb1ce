#!/usr/bin/env bash
# The documents. Every relative link of every *.md leads to a file (and, behind #, to a heading); every path of this
# repository that stands in `backticks` is there. Every page of docs/ opens with a picture or an example, has fewer than
# 150 lines and is in an index. Every block of docs/ that is marked ```sh runnable runs to its end, and no line of another
# block begins with `weft `. The README has at most 100 lines, its picture is what the program draws today, and the ten
# files that it lists to be read first are there. Blocks of a page run one after the other in a folder with jobs/ and small data sets in place
# of those that jobs/ names. DOCS: another tree whose pages are tested.
here=$(cd "$(dirname "$0")/../.." && pwd)
docs=${DOCS:-$here}
. "$here/tests/cli/images.bash"
. "$here/tests/cli/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

pages() { (cd "$docs" && find . -name '*.md' -not -path './.git/*' -not -path './build*' -not -path './datasets/*/*' -not -path './runs/*' | sed 's|^\./||' | sort); }
# Prints what the checks need to know of all pages, a line each: KIND, PAGE and VALUE, separated by tabs. anchor: the anchor of a
# heading; link: the target of a link; path: a word in backticks that looks like a path from the root of the repository; lines: the
# number of lines; opens: 1 if a picture or an example (fenced or indented) comes after the title and at most one paragraph.
facts() {
    (cd "$docs" && pages | xargs awk '
        function put(kind, value) { print kind "\t" page "\t" value }
        function end_page() { if (page != "") { put("lines", lines); put("opens", opens == 1) } }
        FNR == 1 { end_page(); page = FILENAME; fenced = paragraphs = inside = 0; opens = /^# / ? "" : 0 }
        { lines = FNR }
        FNR > 1 && opens == "" {
            if (/^```/ || /^    / || /^!\[/) opens = 1
            else if (/^#/ || /^[|]/) opens = 0
            else if (/^ *$/) inside = 0
            else if (!inside) { inside = 1; if (++paragraphs > 1) opens = 0 }
        }
        /^ *```/ { fenced = !fenced; next }
        fenced { next }
        /^#+ / {
            text = tolower($0)
            sub(/^#+ */, "", text); gsub(/[^a-z0-9 _-]/, "", text); gsub(/ /, "-", text)
            put("anchor", text)
        }
        {
            text = $0
            while (match(text, /`(src|include|tests|docs|jobs|bench|tools)\/[A-Za-z0-9_.\/*-]+`/)) {
                put("path", substr(text, RSTART + 1, RLENGTH - 2)); text = substr(text, RSTART + RLENGTH)
            }
            text = $0
            gsub(/`[^`]*`/, "", text)
            while (match(text, /\]\([^) ]+\)/)) {
                put("link", substr(text, RSTART + 2, RLENGTH - 3)); text = substr(text, RSTART + RLENGTH)
            }
        }
        END { end_page() }')
}
declare -A anchor=() index=() # headings as PAGE#ANCHOR; links as PAGE LINK
check_link() { # PAGE TARGET
    local file=${2%%#*} to=$1 folder=${1%/*}
    case $2 in *://*|mailto:*) return;; esac
    [ "$folder" != "$1" ] || folder=.
    [ -z "$file" ] || to=$folder/$file
    holds "$1: link to $2" test -e "$docs/$to"
    local name path=
    while IFS= read -rd / name; do
        case $name in .) ;; ..) path=${path%/*};; *) path+=/$name;; esac
    done <<<"$to/"
    case $2 in *'#'*) holds "$1: heading of $2" test -n "${anchor[${path#/}#${2#*#}]:-}";; esac
}
exists() { compgen -G "$1" >/dev/null || [ -e "$1.c" ]; } # test programs are named without a folder
# The index of the page's folder, or of docs/, links to it.
is_indexed() { # PAGE
    local of=docs/README.md
    [ "$1" = docs/README.md ] && return
    case $1 in docs/decisions/README.md) ;; docs/decisions/*) of=docs/decisions/README.md;; esac
    test -n "${index["$of ${1#"${of%/*}"/}"]:-}"
}
# Prints the lines of pages' blocks, fenced or indented after an empty line, that this test does not run.
unmarked() { # PAGE...
    awk 'FNR == 1 { fence = ""; block = blank = 0 }
        /^```/ { fence = fence == "" ? $0 : ""; next }
        fence != "" { if (fence !~ /^```sh runnable/ && /^ *weft /) print FILENAME ": " $0; next }
        /^    / { if ((blank || block) && /^    *weft /) print FILENAME ": " $0; block = blank || block; next }
        { block = 0; blank = /^ *$/ }' "$@"
}
blocks() { # PAGE -> block-1, block-2, ... in the current folder
    awk '/^```sh runnable/ { file = "block-" ++n; printf "" >file; next } /^```/ { file = "" } file != "" { print >file }' "$docs/$1"
}

facts >facts
while IFS=$'\t' read -r kind page value; do
    case $kind in
    anchor) anchor[$page#$value]=1;;
    link) index["$page $value"]=1;;
    esac
done <facts
while IFS=$'\t' read -r kind page value; do
    case $kind in
    link) check_link "$page" "$value";;
    path) [ "$page" = CHANGELOG.md ] || holds "$page: path $value" exists "$docs/$value";;
    opens) case $page in docs/*) holds "$page opens with a picture or an example" test "$value" = 1;; esac;;
    lines) case $page in docs/*)
        holds "$page has fewer than 150 lines" test "$value" -lt 150
        holds "$page is in its folder's index, else in docs/README.md" is_indexed "$page";;
    esac;;
    esac
done <facts

holds 'README.md has at most 100 lines' test "$(wc -l <"$docs/README.md")" -le 100
holds 'README.md lists ten files to read first' test "$(grep -c '^[0-9]*[.] `[a-z_/]*[.][ch]`: ' "$docs/README.md")" = 10
check 0 'schedule zb-v' "$WEFT" plan "$docs/jobs/gpt-text.yaml" --input tokens model.vocab=256 --ranks 2 grid.pp=2 grid.pipeline_schedule=zb-v \
    train.batch=32 train.micro_batch=4 --svg schedule.svg
holds 'docs/schedule.svg is what the command above this line writes' cmp schedule.svg "$docs/docs/schedule.svg"

make_images
mkdir -p small/jobs small/datasets/fashion-mnist small/datasets/kjv bin
ln -s "$WEFT" bin/weft
PATH=$PWD/bin:$PATH
cp images.h5 small/datasets/fashion-mnist/train.h5; cp images.h5 small/datasets/fashion-mnist/test.h5
for ((i = 0; i < 300; ++i)); do echo "the quick brown fox jumps over the lazy dog$((i % 10))"; done >text
check 0 wrote "$WEFT" data import text text -o small/datasets/kjv/train.h5 --test small/datasets/kjv/test.h5
for job in "$docs"/jobs/*.yaml; do
    sed 's/epochs: [0-9]*/epochs: 1/; s/batch: 128, micro_batch: 32/batch: 32, micro_batch: 8, threads: 1/; s/steps: 1000,/steps: 4,/
        s/width: 192/width: 48/; s/context: 128/context: 32/' "$job" >"small/jobs/${job##*/}"
done
ran=0
mapfile -t lines < <(cd "$docs" && unmarked docs/*.md)
for line in ${lines[@]+"${lines[@]}"}; do holds "in a block that is not marked runnable: $line" false; done
while read -r page; do
    cp -r small page; cd page
    blocks "$page"
    for ((i = 1; ; ++i)); do
        [ -f "block-$i" ] || break
        before=$failed
        check 0 '' timeout 60 bash -eu "block-$i"
        [ "$failed" = "$before" ] || echo "  $page, block $i"
        ran=$((ran + 1))
    done
    cd ..; rm -rf page
done < <(cd "$docs" && grep -l '^```sh runnable' docs/*.md)
holds 'some blocks ran' test $ran -gt 0
finish
