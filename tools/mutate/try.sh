#!/usr/bin/env bash
# Runs a mutant against the tests that reach its lines, those of the least processor time first, until one fails: by an assertion, a
# signal, or by taking longer than three times its seconds and 5 more. The same test must then pass without the mutant, or what failed
# is the machine: the test is tried once more. Adds a line to OUT/results: number, killed, survived or unreached, the test that killed
# it and how, the number of tests that reach it, and of those that were left out. Tests that a mutant survived are noted in OUT/lived
# and not tried again.
# usage: OUT=FOLDER try.sh NUMBER      OUT: as mutate.sh has made it
set -u
number=$1
IFS=$'\t' read -r _ file _ first last _ < <(awk -F'\t' -v n="$number" '$1 == n' "$OUT/mutants")
cd "$OUT/tree" || exit 70
export WEFT=$PWD/build/weft
ulimit -v $((8 << 20)) -f $((4 << 20)) # a mutant may ask for all memory
log=$(mktemp)
trap 'rm -f "$log"' EXIT

reaches() { # FILE of lines
    awk -F: -v file="$file" -v a="$first" -v b="$last" '$1 == file && $2 >= a && $2 <= b { found = 1; exit } END { exit !found }' "$1"
}
passes() { # MUTANT TEST SECONDS
    local program=build/tests/$2
    case $2 in *.sh) program=./tests/$2;; esac
    MUTANT=$1 TEST_TIMEOUT=$3 tests/run.sh "$program" >"$log" 2>&1
}
tests=0 left=0 verdict=unreached killer='' how=''
while read -r test seconds busy; do
    lines=$OUT/lines/${test/\//.}
    [ -e "$lines" ] && reaches "$lines" || continue
    tests=$((tests + 1)) verdict=survived
    ! grep -qx "$number $test" "$OUT/lived" || continue
    awk -v a="$busy" -v most="${MOST:-1e9}" 'BEGIN { exit !(a <= most) }' || { left=$((left + 1)); continue; }
    limit=$(awk -v s="$seconds" -v slow="${SLOW:-1}" 'BEGIN { print int((3 * s + 6) * slow) }')
    for _ in 1 2; do
        passes "$number" "$test" "$limit" && { echo "$number $test" >>"$OUT/lived"; continue 2; }
        how=failed
        ! grep -q "time limit of" "$log" || how="took longer than $limit s"
        ! passes 0 "$test" "$limit" || { verdict=killed killer=$test; break 2; }
    done
    left=$((left + 1)) # it fails without the mutant, too
done < <(sort -k3,3n "$OUT/seconds")
[ "$verdict" = killed ] || how=''
printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$verdict" "$killer" "$how" "$tests" "$left" | tee -a "$OUT/results"
