#!/usr/bin/env bash
# Runs a mutant against the tests that reach its lines, those of the least processor time first, until one fails: by an assertion, a signal, or by taking
# longer than three times its seconds and 5 more. The same test must then pass without the mutant, or what failed is the machine: the
# test is tried once more. Adds a line to OUT/results: number, killed, survived or unreached, the test that killed it and how, number
# of tests that reach it.
# usage: OUT=FOLDER try.sh NUMBER      OUT: as mutate.sh has made it
set -u
number=$1
IFS=$'\t' read -r _ file _ first last _ < <(awk -F'\t' -v n="$number" '$1 == n' "$OUT/mutants")
cd "$OUT/tree" || exit 70
ulimit -v $((8 << 20)) -f $((4 << 20)) # a mutant may ask for all memory
log=$(mktemp)
trap 'rm -f "$log"' EXIT

reaches() { # FILE of lines
    awk -F: -v file="$file" -v a="$first" -v b="$last" '$1 == file && $2 >= a && $2 <= b { found = 1; exit } END { exit !found }' "$1"
}
passes() { # MUTANT TEST SECONDS
    MUTANT=$1 TEST_TIMEOUT=$3 tests/run.sh "build/tests/$2" >"$log" 2>&1
}
tests=0 verdict=unreached killer='' how=''
while read -r test seconds _; do
    lines=$OUT/lines/${test/\//.}
    [ -e "$lines" ] && reaches "$lines" || continue
    tests=$((tests + 1)) verdict=survived
    limit=$(awk -v s="$seconds" 'BEGIN { print int(3 * s + 6) }')
    for _ in 1 2; do
        passes "$number" "$test" "$limit" && continue 2
        how=failed
        ! grep -q "time limit of" "$log" || how="took longer than $limit s"
        ! passes 0 "$test" "$limit" || { verdict=killed killer=$test; break 2; }
    done
done < <(sort -k3,3n "$OUT/seconds")
[ "$verdict" = killed ] || how=''
printf '%s\t%s\t%s\t%s\t%s\n' "$number" "$verdict" "$killer" "$how" "$tests" | tee -a "$OUT/results"
