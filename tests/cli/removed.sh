#!/usr/bin/env bash
# Files of a run that are removed, renamed or replaced while it trains, a disk that is full at the end, and a folder that is renamed.
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
    background out "$WEFT" train job.yaml "run.name=$1"
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

# A renamed folder: the run notices, and writes nothing under the old name.
begin moved
soon test -e runs/moved/checkpoints/step-00000020.h5
mv runs/moved runs/elsewhere
moved=$(wc -l <runs/elsewhere/metrics.jsonl)
rc=0
wait $job || rc=$?
holds "it ends: 74, not $rc" test $rc = 74
later=$(($(wc -l <runs/elsewhere/metrics.jsonl) - moved)) # the run checks once a second; a step takes more than 0.1 ms
holds "soon, not after $later steps" test $later -le 20000
holds 'and says why' grep -q "runs/moved: the run's folder has been renamed, replaced or removed" out
holds 'nothing is under the old name' test ! -e runs/moved
mv runs/elsewhere runs/moved
begin moved
soon grep -q resuming out
stop
holds 'put back, it goes on' grep -q 'resuming from runs/moved/checkpoints/step-' out
holds 'with all lines' in_order runs/moved/metrics.jsonl
background out timeout 120 "$WEFT" run -n 2 -- weft train job.yaml run.name=watched
job=$!
soon test -e runs/watched/checkpoints/step-00000020.h5
mv runs/watched runs/aside
rc=0
wait $job || rc=$?
holds "weft run does not begin anew ($rc)" test $rc = 74 -a ! -e runs/watched
holds 'and says why' grep -q "not started again: the run's folder has been renamed or removed, or is another run's" out

# A folder is renamed, and its run is started again under the old name: the first process ends and does not touch the second one's
# files.
fresh="run.seed=7 train.steps=200 checkpoint.every_steps=50 checkpoint.keep=1"
check 0 '' "$WEFT" train job.yaml run.name=quiet $fresh
for turn in 1 2; do
    begin twice
    first=$job
    soon test -e "$(at twice 20)"
    mv runs/twice runs/twice.$turn
    rc=0
    "$WEFT" train job.yaml run.name=twice $fresh >second 2>&1 </dev/null || rc=$?
    holds "the second run is not disturbed ($rc)" test $rc = 0
    ! grep -q 'warning:\|error:' second || { failed=$((failed + 1)); echo 'FAILED: it has something to say'; cat second; }
    rc=0
    wait $first || rc=$?
    holds "the first one ends: 74, not $rc" test $rc = 74
    holds 'and says why' grep -q "runs/twice: the run's folder has been renamed, replaced or removed" out
    same 200 quiet twice
    holds 'one checkpoint is kept, its own' test "$(ls runs/twice/checkpoints)" = step-00000200.h5
    holds 'each step has one line' test "$(steps runs/twice/metrics.jsonl)" = "$(seq 200)"
    holds 'of its own losses' test "$(cut -d, -f1-4 runs/twice/metrics.jsonl)" = "$(cut -d, -f1-4 runs/quiet/metrics.jsonl)"
    holds 'the log is its own' test "$(grep -c '^----\|renamed' runs/twice/log.txt)" = 1
    holds 'the lease is its own' grep -q '"ended":true' runs/twice/owner-1
    holds 'nothing else is there' test "$(ls runs/twice | sed 's/events.*/events/' | tr '\n' ' ')" = 'checkpoints config.yaml events ledger.jsonl log.txt metrics.jsonl owner-1 topo.json '
    rm -r runs/twice
done

# Files cut short while the run goes on: what is lost is said, and later lines are whole.
whole() { ! grep -qv '^{"step":[0-9]*,.*}$' "$1"; }
for how in empty torn; do
    begin $how
    m=runs/$how/metrics.jsonl
    case $how in empty) size=0;; torn) size=$(head -n 5 $m | wc -c); size=$((size + 20));; esac
    truncate -s $size $m
    truncate -s 100 runs/$how/events.*
    soon grep -q 'metrics.jsonl: was cut short' out
    soon grep -q 'events.* was cut short: its last [0-9]* of [0-9]* bytes are lost; events continue in' out
    last=$(sed -n 's/.*metrics.jsonl: was cut short: its last \([0-9]*\) of \([0-9]*\) bytes are lost; the last lost line is of step \([0-9]*\);.*/\1 \2 \3/p' out)
    lines=$(wc -l <$m)
    soon many $m $((lines + 20))
    stop
    set -- $last
    holds "it says how much is lost ($how: $last)" test $(($2 - $1)) = $size
    holds "all lines are whole ($how)" whole $m
    holds "none is missing behind the cut ($how)" test "$(steps $m | sed -n "/^$(($3 + 1))\$/,\$p" | awk -v n="$3" '$1 != ++n { bad = 1 } END { print bad || n < 20 }')" = 0
    holds "and those before it that are left ($how)" test "$(steps $m | sed "/^$(($3 + 1))\$/,\$d" | tr '\n' ' ')" = "$([ $how = empty ] || seq 5 | tr '\n' ' ')"
    holds "events continue in another file ($how)" test "$(ls runs/$how/events.* | wc -l)" = 2
done

# log.txt
begin log
for how in removed renamed replaced cut; do
    l=runs/log/log.txt
    kill -STOP $job
    case $how in
    removed) rm $l; want='log.txt: was removed or renamed, and has been written again';;
    renamed) mv $l runs/log/old.txt; want='log.txt: was removed or renamed, and has been written again';;
    replaced) echo other >new.txt; mv new.txt $l; want='log.txt: has been replaced by another file';;
    cut) truncate -s 0 $l; want='log.txt: was cut short';;
    esac
    : >out
    kill -CONT $job
    soon grep -q "$want" out
    holds "log.txt is there again ($how)" soon grep -q "$want" $l # a message is written to stderr first
    case $how in removed|renamed) holds "from its first line ($how)" sh -c "head -n 1 $l | grep -q '^---- '";; esac
done
stop
holds 'its last line is in it, too' grep -q '^  continue ' runs/log/log.txt
begin nolog
kill -STOP $job
rm runs/nolog/log.txt
mkdir runs/nolog/log.txt
kill -CONT $job
soon grep -q 'log.txt: was removed, renamed or replaced, and cannot be opened again' out
stop
holds 'the end does not name what is not there' sh -c "grep -q '^  metrics .*metrics.jsonl, and' out && exit 1; test $rc = 75"

# A disk that is full when the last lines are written, though the checkpoint is there.
if strace -f -o /dev/null true 2>/dev/null; then
    for when in 1..7 1+; do
        rc=0
        timeout 120 strace -f -qq -o trace -P "$dir/runs/full$when/metrics.jsonl" -e trace=write -e "inject=write:error=ENOSPC:when=$when" \
            "$WEFT" train job.yaml run.name=full$when train.steps=4 >out 2>&1 </dev/null || rc=$?
        ! [ $when = 1..7 ] || holds 'the last lines wait' grep -q 'trying again for' out
        holds 'a line could not be written' grep -q INJECTED trace
        case $when in
        1..7) holds "the run waits for space ($rc)" test $rc = 0; holds 'and loses no line' in_order runs/full$when/metrics.jsonl ;;
        *) holds "it ends with 74 where there is none ($rc)" test $rc = 74; holds 'and prints the lines' test "$(grep -c '^{"step":' out)" = 4 ;;
        esac
    done
else
    echo '  skipped: strace is not there or may not trace'
fi
finish
