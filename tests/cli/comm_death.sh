#!/usr/bin/env bash
# A rank that is killed between the sums of endless steps ends the whole job, with an error, and leaves no process and no shared
# memory.
set -u
weft=${WEFT:-build/weft} work=$(mktemp -d) bad=0
out=$work/out
trap 'rm -rf "$work"' EXIT
fail() { echo "comm_death: $*"; sed 's/^/    /' "$out"; bad=1; }
segments() { find /dev/shm -maxdepth 1 -name '*weft*' 2>/dev/null | wc -l; }

before=$(segments)
cat >"$work/job.yaml" <<Y
model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 16, vocab: 64}
train: {batch: 4, micro_batch: 2, threads: 1}
Y
TMPDIR=$work mpirun --bind-to none -n 2 "$weft" bench step "$work/job.yaml" --input tokens --steps 1000000 >"$out" 2>&1 &
job=$!
for _ in $(seq 600); do
    ranks=$(pgrep -P "$job" -f 'bench step' | tr '\n' ' ')
    [ "$(wc -w <<<"$ranks")" = 2 ] && break
    sleep 0.05
done
[ "$(wc -w <<<"$ranks")" = 2 ] || fail "two ranks did not start"
in_sums() { local r; for r in $ranks; do grep -q memfd:weft-arena "/proc/$r/maps" 2>/dev/null || return 1; done; }
for _ in $(seq 1200); do in_sums && break; sleep 0.05; done
in_sums || fail "the ranks have no memory for sums"
kill -KILL "${ranks%% *}" || fail "the job ended before a rank could be killed"
for _ in $(seq 1200); do kill -0 "$job" 2>/dev/null || break; sleep 0.05; done
kill -0 "$job" 2>/dev/null && { fail "still running a minute after a rank died"; kill -KILL "$job"; }
wait "$job" && fail "exit code 0 although a rank died"
for rank in $ranks; do # mpirun may be gone a moment before its ranks are
    for _ in $(seq 600); do kill -0 "$rank" 2>/dev/null || break; sleep 0.05; done
    kill -0 "$rank" 2>/dev/null && fail "rank with process $rank lives on"
done
[ "$(segments)" = "$before" ] || fail "shared memory was left behind"
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
