#!/usr/bin/env bash
# Notes which lines of src/ a test reaches (OUT/lines/MODULE.TEST: FILE:LINE a line), and the seconds that it takes in the build with
# mutants when none runs (OUT/seconds: MODULE/TEST SECONDS PROCESSOR-SECONDS). Does nothing where both are there and the lines are newer than the test.
# usage: OUT=FOLDER COVER=FOLDER measure.sh MODULE/TEST      OUT: that of mutate.sh; COVER: the build with gcov
set -eu
test=$1 root=$PWD lines=$OUT/lines/${1/\//.} counts=$OUT/counts/$1
log=$(mktemp)
trap 'rm -rf "$log" "$counts"' EXIT
if [ ! -s "$lines" ] || [ "$lines" -ot "$COVER/tests/$test" ]; then
    GCOV_PREFIX=$counts GCOV_PREFIX_STRIP=$(tr -cd / <<<"$root" | wc -c) tests/run.sh "$COVER/tests/$test" >"$log" || { cat "$log"; exit 255; }
    mapfile -t data < <(cd "$counts" && find . -name '*.gcda' | sed 's#^\./##; s#\.gcda$##')
    for file in "${data[@]}"; do ln -s "$root/$file.gcno" "$counts/$file.gcno"; done
    gcov -t "${data[@]/#/$counts/}" 2>/dev/null | awk -F: '
        $2 + 0 == 0 && $3 == "Source" { wanted = $4 ~ /^src\/.*\.c$/; file = $4 }
        wanted && $1 + 0 > 0 { print file ":" $2 + 0 }' | sort -u >"$lines.part"
    mv "$lines.part" "$lines"
fi
grep -q "^$test " "$OUT/seconds" && exit 0
cd "$OUT/tree"
tests/run.sh "build/tests/$test" >"$log" || { cat "$log"; exit 255; }
awk '$1 == "ok" { print $2, $3 + 0, $4 + 0 }' "$log" >>"$OUT/seconds"
grep '^ok' "$log"
