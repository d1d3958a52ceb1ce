#!/usr/bin/env bash
# A rank that is killed inside a sum ends the whole job soon, with an error, and leaves no process and no shared memory.
set -u
weft=${WEFT:-build/weft} out=$(mktemp) bad=0
trap 'rm -f "$out"' EXIT
fail() { echo "comm_death: $*"; sed 's/^/    /' "$out"; bad=1; }
segments() { find /dev/shm -maxdepth 1 -name '*weft*' 2>/dev/null | wc -l; }

before=$(segments)
mpirun --bind-to none -n 2 "$weft" bench comm --mb 200 >"$out" 2>&1 &
job=$!
for _ in $(seq 600); do
    ranks=$(pgrep -P "$job" -f 'bench comm' | tr '\n' ' ')
    [ "$(wc -w <<<"$ranks")" = 2 ] && break
    sleep 0.05
done
[ "$(wc -w <<<"$ranks")" = 2 ] || fail "two ranks did not start"
sleep 0.5
kill -KILL "${ranks%% *}" || fail "the job ended before a rank could be killed"
for _ in $(seq 200); do kill -0 "$job" 2>/dev/null || break; sleep 0.05; done
kill -0 "$job" 2>/dev/null && { fail "still running 10 s after a rank died"; kill -KILL "$job"; }
wait "$job" && fail "exit code 0 although a rank died"
for rank in $ranks; do # mpirun may be gone a moment before its ranks are
    for _ in $(seq 100); do kill -0 "$rank" 2>/dev/null || break; sleep 0.05; done
    kill -0 "$rank" 2>/dev/null && fail "rank with process $rank lives on"
done
[ "$(segments)" = "$before" ] || fail "shared memory was left behind"
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
