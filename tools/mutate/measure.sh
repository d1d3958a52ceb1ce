#!/usr/bin/env bash
# Runs a test with the build that counts lines. Notes the seconds and processor seconds that it takes (OUT/seconds: MODULE/TEST and
# both), and which lines of src/ it reaches (OUT/lines/MODULE.TEST: FILE:LINE a line). Does nothing if these are newer than the test.
# usage: OUT=FOLDER COVER=FOLDER measure.sh MODULE/TEST      OUT: that of mutate.sh; COVER: the build with gcov
set -eu
test=$1 root=$PWD lines=$OUT/lines/${1/\//.} counts=$OUT/counts/$1 program=$COVER/tests/$1 built=$COVER/tests/$1
case $test in *.sh) program=./tests/$test built=$COVER/weft;; esac
[ ! -s "$lines" ] || [ "$lines" -ot "$program" ] || [ "$lines" -ot "$built" ] || exit 0
log=$(mktemp)
trap 'rm -rf "$log" "$counts"' EXIT
export GCOV_PREFIX=$counts GCOV_PREFIX_STRIP=$(tr -cd / <<<"$root" | wc -c) WEFT=$root/$COVER/weft
tests/run.sh "$program" >"$log" || { cat "$log"; exit 255; }
mapfile -t data < <(cd "$counts" && find . -name '*.gcda' | sed 's#^\./##; s#\.gcda$##')
for file in "${data[@]}"; do ln -s "$root/$file.gcno" "$counts/$file.gcno"; done
gcov -t "${data[@]/#/$counts/}" 2>/dev/null | awk -F: '
    $2 + 0 == 0 && $3 == "Source" { wanted = $4 ~ /^src\/.*\.c$/; file = $4 }
    wanted && $1 + 0 > 0 { print file ":" $2 + 0 }' | sort -u >"$lines.part"
mv "$lines.part" "$lines"
awk '$1 == "ok" { print $2, $3 + 0, $4 + 0 }' "$log" >>"$OUT/seconds"
grep '^ok' "$log"
