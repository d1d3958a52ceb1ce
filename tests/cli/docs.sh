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
prose() { awk '/^ *```/ { inside = !inside; next } !inside' "$1"; }
# Prints the anchors of a page's headings.
anchors() { prose "$1" | sed -n 's/^##* *//p' | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

check_links() { # PAGE
    local target file anchor
    while read -r target; do
        case $target in *://*|mailto:*) continue;; esac
        file=${target%%#*} anchor=""
        case $target in *'#'*) anchor=${target#*#};; esac
        if [ -n "$file" ]; then file=$(dirname "$docs/$1")/$file; else file=$docs/$1; fi
        holds "$1: link to $target" test -e "$file"
        [ -z "$anchor" ] || holds "$1: heading of $target" grep -qx -- "$anchor" <(anchors "$file")
    done < <(prose "$docs/$1" | sed 's/`[^`]*`//g' | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' || true)
}
exists() { compgen -G "$1" >/dev/null || [ -e "$1.c" ]; } # test programs are named without a folder
check_paths() { # PAGE: prints everything that looks like a path from the root of the repository
    local path
    while read -r path; do
        holds "$1: path $path" exists "$docs/$path"
    done < <(prose "$docs/$1" | grep -oE '`(src|include|tests|docs|jobs|bench|tools)/[A-Za-z0-9_./*-]+`' | tr -d '`' || true)
}
# After the title and at most one paragraph comes a picture or an example, fenced or indented.
opens_with_example() { # PAGE
    awk 'NR == 1 { if (!/^# /) exit 1; next }
        /^```/ || /^    / || /^!\[/ { good = 1; exit }
        /^#/ || /^[|]/ { exit }
        /^ *$/ { inside = 0; next }
        !inside { inside = 1; if (++paragraphs > 1) exit }
        END { exit !good }' "$1"
}
is_short() { test "$(wc -l <"$1")" -lt 150; }
# The index of the page's folder, or of docs/, links to it.
is_indexed() { # PAGE
    local index=docs/README.md
    [ "$1" = docs/README.md ] && return
    case $1 in docs/decisions/README.md) ;; docs/decisions/*) index=docs/decisions/README.md;; esac
    grep -qF "](${1#"${index%/*}"/})" "$docs/$index"
}
# Prints the lines of blocks, fenced or indented after an empty line, that this test does not run.
unmarked() { # PAGE
    awk '/^```/ { fence = fence == "" ? $0 : ""; next }
        fence != "" { if (fence !~ /^```sh runnable/ && /^ *weft /) print FILENAME ": " $0; next }
        /^    / { if ((blank || block) && /^    *weft /) print FILENAME ": " $0; block = blank || block; next }
        { block = 0; blank = /^ *$/ }' "$docs/$1"
}
blocks() { # PAGE -> block-1, block-2, ... in the current folder
    awk '/^```sh runnable/ { file = "block-" ++n; printf "" >file; next } /^```/ { file = "" } file != "" { print >file }' "$docs/$1"
}

while read -r page; do
    check_links "$page"
    [ "$page" = CHANGELOG.md ] || check_paths "$page"
    case $page in docs/*)
        holds "$page opens with a picture or an example" opens_with_example "$docs/$page"
        holds "$page has fewer than 150 lines" is_short "$docs/$page"
        holds "$page is in its folder's index, else in docs/README.md" is_indexed "$page";;
    esac
done < <(pages)

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
for page in $(cd "$docs" && ls docs/*.md); do
    lines=$(unmarked "$page")
    holds "$page: in a block that is not marked runnable: $lines" test -z "$lines"
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
done
holds 'some blocks ran' test $ran -gt 0
finish
