#!/usr/bin/env bash
# A rank is killed between the sums of endless steps. The whole job ends with an error and leaves no process and no shared memory, both
# with sums in shared memory and with five ranks that sum by messages in rounds.
# cores: 0.2
set -u
weft=${WEFT:-build/weft} work=$(mktemp -d) bad=0
out=$work/out
trap 'rm -rf "$work"' EXIT
fail() { echo "comm_death: $*"; sed 's/^/    /' "$out"; bad=1; }
cat >"$work/job.yaml" <<Y
model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 16, vocab: 64}
train: {batch: 10, micro_batch: 2, threads: 1}
Y
# Memory without a name in /dev/shm ends with the ranks; the file of Open MPI is mpirun's.
in_memory() { grep -q memfd:weft-arena "/proc/$1/maps" 2>/dev/null && ! grep -vE 'vader_segment|sm_segment' "/proc/$1/maps" | grep -q /dev/shm/; }
# after half a second of processor time the rank is past its start
by_messages() { awk '{ exit $14 + $15 < 50 }' "/proc/$1/stat" 2>/dev/null; }
# RANKS TEST OVERRIDES...: TEST PROCESS: does the rank sum?
dies() {
    local ranks=$1 sums=$2 job alive
    shift 2
    TMPDIR=$work mpirun --bind-to none --oversubscribe -n "$ranks" "$weft" bench step "$work/job.yaml" --input tokens --steps 1000000 "$@" >"$out" 2>&1 &
    job=$!
    for _ in $(seq 600); do
        alive=$(pgrep -P "$job" -f 'bench step' | tr '\n' ' ')
        [ "$(wc -w <<<"$alive")" = "$ranks" ] && break
        sleep 0.05
    done
    [ "$(wc -w <<<"$alive")" = "$ranks" ] || fail "$ranks ranks did not start"
    all_sum() { local r; for r in $alive; do $sums "$r" || return 1; done; }
    for _ in $(seq 1200); do all_sum && break; sleep 0.05; done
    all_sum || fail "the ranks do not sum"
    sleep "$delay"
    kill -KILL "${alive%% *}" || fail "the job ended before a rank could be killed"
    for _ in $(seq 1200); do kill -0 "$job" 2>/dev/null || break; sleep 0.05; done
    kill -0 "$job" 2>/dev/null && { fail "still running a minute after a rank died"; kill -KILL "$job"; }
    wait "$job" && fail "exit code 0 although a rank died"
    for rank in $alive; do # mpirun may end shortly before its ranks
        for _ in $(seq 600); do kill -0 "$rank" 2>/dev/null || break; sleep 0.05; done
        kill -0 "$rank" 2>/dev/null && fail "rank with process $rank lives on"
    done
}
delay=0
dies 2 in_memory train.batch=4
# each time the kill comes at another time, in any of the rounds
for delay in 0.3 0.41 0.53; do dies 5 by_messages grid.transport=mpi grid.sums=halving; done
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
