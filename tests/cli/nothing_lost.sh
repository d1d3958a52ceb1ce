#!/usr/bin/env bash
# The results of a run survive kills, truncated files, second starts and full disks: checkpoints, metrics, best.h5.
. "$(dirname "$0")/common.bash"

# 200 images of 28x28 in ten classes, made from the bytes of the program.
{ printf '\0\0\010\003\0\0\0\310\0\0\0\034\0\0\0\034'; head -c $((200 * 784)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\310'; for i in $(seq 200); do printf "\\00$((i % 8))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: lenet}
data: {train: data.h5, test: data.h5}
train: {steps: 10, batch: 20, micro_batch: 5, log_every: 1, threads: 1}
optim: {lr: 0.02, momentum: 0.9}
X
files() { (cd "$1" && find . -type f ! -name 'owner-*' -exec cksum {} + | sort -k3); }

has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
evaluated() { grep -q eval_loss "$1"; }
top1() { "$WEFT" ckpt info --json "$1" | sed 's/.*"best_metric": *\([0-9.e+-]*\).*/\1/'; }
# in_order FILE: has the steps 1, 2, 3, ..., each once.
in_order() { grep '"loss"' "$1" | sed 's/{"step":\([0-9]*\),.*/\1/' | awk '$1 != ++n { bad = 1 } END { exit bad || !n }'; }

# ---- truncated files ----
check 0 '' timeout 60 "$WEFT" train job.yaml checkpoint.every_steps=2 checkpoint.keep=0
cp -r runs/r all
truncate -s 2500 runs/r/checkpoints/step-000000{10,08}.h5
check 0 'step-00000008.h5: ' timeout 60 "$WEFT" train job.yaml checkpoint.every_steps=2 checkpoint.keep=1
holds 'it went on from the newest good one' grep -q 'resuming from runs/r/checkpoints/step-00000006.h5' both
holds 'the last one alone is kept' test "$(cd runs/r/checkpoints && echo step-*)" = step-00000010.h5
check 0 'equal' "$WEFT" ckpt diff all/checkpoints/step-00000010.h5 runs/r/checkpoints/step-00000010.h5
truncate -s 2500 runs/r/checkpoints/step-00000010.h5
echo rings >runs/r/hang-host.txt
before=$(files runs/r)
for n in 1 2; do
    check 65 'best.h5 is good' timeout 60 "$WEFT" train -n $n job.yaml
    holds 'a refused run changes nothing' test "$before" = "$(files runs/r)"
done
cp -r runs/r runs/bare
rm runs/bare/checkpoints/step-*
truncate -s 2500 runs/bare/checkpoints/best.h5
check 65 'run.fresh=true moves this run aside' timeout 60 "$WEFT" train job.yaml run.name=bare
# No file is renamed that the run is to begin from, nor if that file does not exist.
for from in checkpoint.resume model.init_from; do
    check 78 'is in the folder that run.fresh=true moves aside' timeout 60 "$WEFT" train job.yaml run.fresh=true "$from=$(ls runs/r/checkpoints/step-*.h5 | tail -n 1)"
    check 66 'nowhere.h5: cannot be opened' timeout 60 "$WEFT" train job.yaml run.fresh=true $from=nowhere.h5
done
holds 'all is where it was' test ! -e runs/r/earlier-1
check 0 'is kept in runs/r/earlier-1' timeout 60 "$WEFT" train job.yaml run.fresh=true
holds 'nothing that was there is gone' test "$before" = "$(files runs/r/earlier-1)"
check 0 'equal' "$WEFT" ckpt diff all/checkpoints/step-00000010.h5 runs/r/checkpoints/step-00000010.h5
check 0 'is kept in runs/r/earlier-2' timeout 60 "$WEFT" train -n 2 job.yaml run.fresh=true
# A start that ended while it moved files: the next one moves the others, or moves these back if run.fresh is not set.
for moved in checkpoints metrics.jsonl; do
    for fresh in false true; do
        mkdir -p runs/half
        cp -r all/* runs/half
        before=$(files runs/half | grep -v owner-)
        mkdir runs/half/earlier-1.part
        mv runs/half/$moved runs/half/earlier-1.part
        check 0 "$($fresh && echo 'is kept in runs/half/earlier-1' || echo 'this run is complete')" timeout 60 "$WEFT" train job.yaml run.name=half run.fresh=$fresh
        $fresh && holds "all is in one place ($moved)" test "$before" = "$(files runs/half/earlier-1)"
        holds "nothing is half done ($moved, $fresh)" test ! -e runs/half/earlier-1.part
        rm -r runs/half
    done
done
if strace -f -o /dev/null true 2>/dev/null; then
    cp -r all runs/half
    before=$(files runs/half | grep -v owner-)
    check 137 '' timeout 60 strace -f -qq -o trace -e trace=rename,renameat,renameat2 -e inject=rename,renameat,renameat2:signal=KILL:when=3 \
        "$WEFT" train job.yaml run.name=half run.fresh=true
    holds 'some files are moved, others are not' test -e runs/half/earlier-1.part
    check 0 'is kept in runs/half/earlier-1' timeout 60 "$WEFT" train job.yaml run.name=half run.fresh=true
    holds 'all is in one place' test "$before" = "$(files runs/half/earlier-1)"
    holds 'and in no other' test ! -e runs/half/earlier-2
else
    echo '  skipped: strace is not there or may not trace'
fi
mv runs/r runs/moved # a run's folder may move
check 0 'this run is complete' timeout 60 "$WEFT" train job.yaml run.name=moved
printf '\377\376' | dd of=runs/moved/checkpoints/best.h5 bs=1 seek=1000000 conv=notrunc 2>/dev/null
check 0 'it is kept as runs/moved/checkpoints/best.h5.1' timeout 60 "$WEFT" train job.yaml run.name=moved
check 0 '' "$WEFT" ckpt check runs/moved/checkpoints/best.h5

# ---- the folder of checkpoints is moved while a run writes to it ----
background log timeout 120 "$WEFT" train -n 2 job.yaml run.name=away train.steps=999999 checkpoint.every_steps=20
child=$!
saved() { ls runs/away/checkpoints/step-*.h5; } >/dev/null
holds 'it saves' soon saved
mv runs/away/checkpoints away
holds 'it saves again' soon saved
holds 'and says why' grep -q 'warning: runs/away/checkpoints: was missing, and has been created again' log
kill -TERM "$(pgrep -P $child -f "$WEFT train")"
rc=0; wait $child || rc=$?
holds "stopped with a checkpoint ($rc)" test $rc = 75

# ---- killed before the first checkpoint ----
for n in 1 2; do
    run=runs/k$n
    job=(job.yaml run.name=k$n train.steps=999999 checkpoint.every_s=0)
    background log "$WEFT" train -n $n "${job[@]}"
    holds 'a first run is under way' soon eval 'has_lines $run/metrics.jsonl 60 && test -e $run/checkpoints/best.h5'
    kill -9 $(own "$WEFT train .*run.name=k$n") # all of its ranks
    wait $! 2>/dev/null || true
    seen=$(wc -l <$run/metrics.jsonl) best=$(top1 $run/checkpoints/best.h5)
    before=$(files $run)
    check 78 'already holds a run' timeout 60 "$WEFT" train "${job[@]}" checkpoint.resume=no
    check 78 'was written with' timeout 60 "$WEFT" train "${job[@]}" optim.lr=0.01
    holds 'a refused run changes nothing' test "$before" = "$(files $run)"

    sum=$(cksum <$run/checkpoints/best.h5)
    background log timeout 60 "$WEFT" train -n $n "${job[@]}"
    child=$!
    holds 'a second one begins' soon eval 'test -e $run/metrics.jsonl.1 && evaluated $run/metrics.jsonl'
    kill -TERM "$(pgrep -P $child -f "$WEFT train")"
    rc=0; wait $child || rc=$?
    holds "stopped with a checkpoint ($rc)" test $rc = 75
    holds 'the first one is not lost' test "$(wc -l <$run/metrics.jsonl.1)" -ge "$seen"
    awk -v a="$(top1 $run/checkpoints/best.h5)" -v b="$best" 'BEGIN { exit !(a > b) }' ||
        holds 'no worse one takes its place' test "$sum" = "$(cksum <$run/checkpoints/best.h5)"

    background log timeout 60 "$WEFT" train -n $n "${job[@]}"
    child=$!
    holds 'a third one' soon grep -q 'resuming from' log
    kill -TERM "$(pgrep -P $child -f "$WEFT train")"
    rc=0; wait $child || rc=$?
    holds "stopped with a checkpoint, again ($rc)" test $rc = 75
    holds 'each step once' in_order $run/metrics.jsonl
    holds 'nothing was moved aside for it' test ! -e $run/metrics.jsonl.2
done

# ---- a trace that cannot be written is reported before the first step, not after the last one ----
echo words >precious
for n in 1 2; do
    mkdir -p runs/tr$n
    ln -s "$PWD/precious" runs/tr$n/trace.json
    check 74 "runs/tr$n/trace.json: cannot write the trace: it is a symbolic link" \
        timeout 60 "$WEFT" train -n $n job.yaml run.name=tr$n run.trace=true
    holds 'no step was made' test ! -e runs/tr$n/metrics.jsonl -a -z "$(ls runs/tr$n/checkpoints)"
    holds 'and nothing was written there' test "$(cat precious)" = words
    rm runs/tr$n/trace.json
    check 0 'done after' timeout 60 "$WEFT" train -n $n job.yaml run.name=tr$n run.trace=true
    holds 'a trace' grep -q traceEvents runs/tr$n/trace.json
done

# ---- a full disk ----
mkdir small
if ! mount -t tmpfs -o size=16m tmpfs small 2>/dev/null; then
    echo '  skipped: a disk that is full (mounting a small tmpfs needs root)'
    finish
    exit
fi
trap 'umount "$dir/small"; rm -rf "$dir"' EXIT
# signal_run SIGNAL : sends it to all processes of this test's current run.
signal_run() {
    local p
    for p in $(own 'run.dir=small/runs'); do kill "-$1" "$p" 2>/dev/null || true; done
}
# fill: fills the disk while no save is in progress, because a failing save would free its space again, and the next one would fit.
fill() {
    local n
    for n in $(seq 6000); do
        signal_run STOP
        if [ "$(ls $run/checkpoints)" = "$(cd $run/checkpoints && echo best.h5; ls step-*.h5 | tail -n 1)" ]; then
            cat /dev/zero >small/fill 2>/dev/null || true
            n=0
        fi
        signal_run CONT
        [ "$n" != 0 ] || return 0
        sleep 0.01
    done
    return 1
}
for n in 1 2; do
    run=small/runs/f
    job=(job.yaml run.name=f run.dir=small/runs train.steps=999999 checkpoint.every_steps=10 checkpoint.keep=1)
    background log timeout 100 "$WEFT" train -n $n "${job[@]}"
    child=$!
    holds 'a first checkpoint' soon eval 'ls $run/checkpoints/step-*.h5 >ls.log' # it is soon replaced by the next one
    holds 'no save is under way' fill
    holds 'a full disk is said' soon grep -q 'No space left.*training continues, and this is tried again' log
    lines=$(grep -c '"loss"' $run/metrics.jsonl)
    step() { grep -o 'step [0-9,]*' log | tail -n 1 | tr -dc 0-9; }
    now=$(step)
    holds 'training continues' soon eval 'test "$(step)" -gt $((now + 50))'
    holds 'and is said once' test "$(grep -c 'step-.*this is tried again' log)" = 1
    check 0 '' "$WEFT" ckpt check $run/checkpoints/step-*.h5
    rm small/fill
    holds 'the next try works' soon grep -q 'saving checkpoints works again' log
    kill -TERM "$(pgrep -P $child -f "$WEFT train")"
    rc=0; wait $child || rc=$?
    holds "stopped with a checkpoint ($rc)" test $rc = 75
    holds 'no line is missing' in_order $run/metrics.jsonl
    check 0 '' "$WEFT" ckpt check $run/checkpoints/step-*.h5
    before=$(files $run/checkpoints)
    cat /dev/zero >small/fill 2>/dev/null || true
    rm -rf small/runs/g; mkdir -p small/runs # the last save fails
    check 74 'No space left' timeout 60 "$WEFT" train -n $n job.yaml run.name=g run.dir=small/runs
    holds 'another run is not hurt' test "$before" = "$(files $run/checkpoints)"
    rm -rf small/fill small/runs
done

# messages name other checkpoints that could be removed only if there may be some
advice() { # KEEP EARLIER EXPRESSION : number of checkpoints beforehand (0 or 1), and the end of the message about a failed save
    local job=(job.yaml run.name=h run.dir=small/runs checkpoint.every_steps=5)
    if [ "$2" = 1 ]; then
        check 0 '' timeout 60 "$WEFT" train "${job[@]}" checkpoint.keep=2
        rm small/runs/h/checkpoints/step-00000010.h5
    fi
    cat /dev/zero >small/fill 2>/dev/null || true
    truncate -s -64K small/fill # space for everything except a checkpoint
    check 74 'No space left' timeout 60 "$WEFT" train "${job[@]}" checkpoint.keep=$1
    holds "keep=$1 behind $2 checkpoints: $3" grep -qE "reserving the file's space failed: .*; make room there$3\$" both
    rm -rf small/fill small/runs
}
advice 1 1 ''
advice 0 1 ', and set checkpoint.keep: all checkpoints are kept'
advice 3 1 ', and set checkpoint.keep lower: 3 are kept'
advice 3 0 ''
finish
