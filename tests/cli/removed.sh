#!/usr/bin/env bash
# What happens to a run's files while it trains: lines that are removed, renamed or replaced, a disk that is full at the end,
# a folder that is renamed.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\310\0\0\0\034\0\0\0\034'; head -c $((200 * 784)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\310'; for i in $(seq 200); do printf "\\00$((i % 8))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r, heartbeat_s: 1}
model: {name: lenet}
data: {train: data.h5}
train: {steps: 100000, batch: 20, micro_batch: 20, log_every: 1, threads: 1}
checkpoint: {every_steps: 20}
X
steps() { grep '"loss"' "$1" | sed 's/{"step":\([0-9]*\),.*/\1/'; }
in_order() { steps "$1" | awk '$1 != ++n { bad = 1 } END { exit bad || !n }'; }
many() { [ "$(wc -l <"$1")" -ge "$2" ]; }
begin() {
    "$WEFT" train job.yaml "run.name=$1" >out 2>&1 </dev/null &
    job=$!
    soon many "runs/$1/metrics.jsonl" 10 2>/dev/null
}
stop() { kill -TERM $job; rc=0; wait $job || rc=$?; }

for how in removed renamed; do
    begin $how
    case $how in removed) rm runs/$how/metrics.jsonl runs/$how/events.*;; renamed) mv runs/$how/metrics.jsonl old.jsonl;; esac
    soon many runs/$how/metrics.jsonl 30 2>/dev/null
    stop
    holds "a run goes on behind lines that were $how ($rc)" test $rc = 75
    holds "all its lines are there ($how)" in_order runs/$how/metrics.jsonl
    holds 'and it says so, once' test "$(grep -c 'metrics.jsonl: was removed or renamed, and has been written again' out)" = 1
done
holds 'events are there again' test -n "$(find runs/removed -name 'events.*' -size +1k)"
begin replaced
sed -i 's/"lr"/"rate"/' runs/replaced/metrics.jsonl
soon grep -q '"lr"' runs/replaced/metrics.jsonl
stop
holds 'it goes on in the file that took its place' in_order runs/replaced/metrics.jsonl
holds 'and says so' grep -q 'has been replaced by another file' out

# A folder that is renamed: the run notices, and writes nothing under the old name.
begin moved
soon test -e runs/moved/checkpoints/step-00000020.h5
mv runs/moved runs/elsewhere
moved=$SECONDS
rc=0
wait $job || rc=$?
holds "it ends: 74, not $rc" test $rc = 74
holds "within seconds, not $((SECONDS - moved))" test $((SECONDS - moved)) -le 8
holds 'and says why' grep -q "runs/moved: the run's folder has been renamed, replaced or removed" out
holds 'nothing is under the old name' test ! -e runs/moved
mv runs/elsewhere runs/moved
begin moved
soon grep -q resuming out
stop
holds 'put back, it goes on' grep -q 'resuming from runs/moved/checkpoints/step-' out
holds 'with all lines' in_order runs/moved/metrics.jsonl
timeout 120 "$WEFT" run -n 2 -- weft train job.yaml run.name=watched >out 2>&1 </dev/null &
job=$!
soon test -e runs/watched/checkpoints/step-00000020.h5
mv runs/watched runs/aside
rc=0
wait $job || rc=$?
holds "weft run does not begin anew ($rc)" test $rc = 74 -a ! -e runs/watched
holds 'and says why' grep -q "not started again: the run's folder has been renamed or removed" out

# A disk that is full when the last lines are written, though the checkpoint is there.
if strace -f -o /dev/null true 2>/dev/null; then
    for when in 1..3 1+; do
        rc=0
        timeout 120 strace -f -qq -o trace -P "$dir/runs/full$when/metrics.jsonl" -e trace=write -e "inject=write:error=ENOSPC:when=$when" \
            "$WEFT" train job.yaml run.name=full$when train.steps=4 >out 2>&1 </dev/null || rc=$?
        holds 'a line could not be written' grep -q INJECTED trace
        case $when in
        1..3) holds "the run waits for space ($rc)" test $rc = 0; holds 'and loses no line' in_order runs/full$when/metrics.jsonl ;;
        *) holds "it ends with 74 where there is none ($rc)" test $rc = 74; holds 'and prints the lines' test "$(grep -c '^{"step":' out)" = 4 ;;
        esac
    done
else
    echo '  skipped: strace is not there or may not trace'
fi
finish
