#!/usr/bin/env bash
# Which signals end a run early: every stop signal, with one rank and with two, before the trainer exists and in the middle; nohup;
# output without a reader; a killed rank. No training result is lost.
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
set -m # background jobs in groups of their own, with SIGINT as it is at a prompt
make_images

newest() { ls runs/"$1"/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
# at_step STEP : has the run come so far?
at_step() { grep -q "step $1/" out 2>/dev/null; }
# begin NAME WORDS... : weft train in the background, its process in $run
begin() {
    local name=$1
    shift
    rm -f out err
    background out,err "$WEFT" train images.yaml run.name="$name" "$@"; run=$!
}
# ends WHAT CODE TEXT : how it ends.
ends() {
    local rc=0
    wait "$run" || rc=$?
    cat out err >both
    holds "$1: exit code $2, not $rc" test "$rc" = "$2"
    holds "$1: it says '$3': $(tail -n 3 both)" grep -qF -- "$3" both
}

# In the middle. The checkpoint is of the last step that metrics.jsonl has.
for ranks in 1 2; do
    for signal in TERM INT HUP USR1 USR2 XCPU; do
        name=$signal$ranks
        begin "$name" -n $ranks
        soon at_step 2
        kill -$signal "$run"
        ends "$signal to $ranks" 75 'start the same command again'
        step=$(tail -n 1 "runs/$name/metrics.jsonl" | grep -o '"step":[0-9]*' | tr -dc 0-9)
        holds "$signal to $ranks: a checkpoint of step $step" test "$(newest "$name")" = "$(printf 'runs/%s/checkpoints/step-%08d.h5' "$name" "$step")"
    done
done
begin HUP2 -n 2
soon grep -q 'resuming from runs/HUP2/checkpoints/' err
kill -TERM "$run"
ends 'resuming from there' 75 'start the same command again'

# The same command would begin anew once more.
for ranks in 1 2; do
    begin fresh$ranks -n $ranks run.fresh=true
    soon at_step 2
    kill -TERM "$run"
    ends "run.fresh with $ranks" 75 'again, but without run.fresh'
done
begin fresh1
soon grep -q 'resuming from runs/fresh1/checkpoints/' err
kill -TERM "$run"
ends 'going on without it' 75 'start the same command again'

# Ctrl-Z: launcher and ranks sleep, longer than a watchdog would stand, and go on together, longer than one needs to speak.
state() { ps -o stat= -p "$1" | grep -q "^$2"; }
sleepers=() names='two run lone'
"$WEFT" train -n 2 images.yaml run.name=two >two.log 2>&1 </dev/null & sleepers+=($!)
"$WEFT" run -n 2 -- "$WEFT" train images.yaml run.name=run >run.log 2>&1 </dev/null & sleepers+=($!)
"$WEFT" run -- "$WEFT" train images.yaml run.name=lone >lone.log 2>&1 </dev/null & sleepers+=($!)
for name in $names; do soon grep -q 'step 2/' $name.log; done
ranks=$(for name in $names; do own "^$WEFT train images.yaml run.name=$name"; done)
holds "five ranks: $ranks" test "$(echo "$ranks" | wc -l)" = 5
set +m # with job control bash leaves all loops, that of soon, too, when one of its jobs is suspended
kill -TSTP "${sleepers[@]}"
for p in "${sleepers[@]}" $ranks; do holds "process $p sleeps" soon state "$p" T; done
set -m
lines=$(cat runs/{two,run,lone}/metrics.jsonl | wc -l)
sleep 6
holds 'nothing was trained meanwhile' test "$(cat runs/{two,run,lone}/metrics.jsonl | wc -l)" = "$lines"
kill -CONT "${sleepers[@]}"
for p in $ranks; do holds "process $p goes on" soon state "$p" '[^T]'; done
sleep 6
for name in $names; do
    lines=$(wc -l <runs/$name/metrics.jsonl)
    holds "$name: it goes on" soon eval "[ \"\$(wc -l <runs/$name/metrics.jsonl)\" -gt $lines ]"
done
kill -TERM "${sleepers[@]}"
for p in "${sleepers[@]}"; do
    rc=0
    wait "$p" || rc=$?
    holds "suspended, then ended: exit code 75, not $rc" test $rc = 75
done
holds "a suspended job is no hang: $(grep -h 'error:\|start 2' {two,run,lone}.log)" test -z "$(grep 'error:\|start 2' {two,run,lone}.log)"

# Two stop requests while its ranks do not answer: the message says what is lost.
begin deaf -n 2
soon at_step 2
kill -STOP $(rank_pids "images.yaml run.name=deaf" | cut -d' ' -f2)
while kill -TERM "$run" 2>/dev/null; do sleep 1.5; done # two requests within a second count as one
ends 'two stop requests' 74 'ended at once, as requested twice; there is no checkpoint yet: start the same command again to begin anew'

# Under plain mpirun it passes these two on.
for signal in USR1 USR2; do
    rm -f out err
    background out,err mpirun --oversubscribe --bind-to none -n 2 "$WEFT" train images.yaml run.name=mpirun$signal; run=$!
    soon at_step 2
    kill -$signal "$run"
    ends "$signal to mpirun" 75 'start the same command again'
    holds "$signal to mpirun: a checkpoint" test -n "$(newest mpirun$signal)"
done

# Before there is a trainer: as soon as signals are blocked, of a model that takes seconds to plan.
{
    echo 'model:'
    printf '  layers: [flatten, %s dense: {width: 10}]\n' "$(yes relu, | head -n 9000 | tr '\n' ' ')"
    sed '/^model:/d' images.yaml
} >early.yaml
blocks() { grep -qE '^SigBlk:.*[13579bdf]$' "/proc/$1/status" 2>/dev/null; } # SIGHUP is the lowest bit
for ranks in 1 2; do
    for signal in HUP XCPU; do
        background out,err "$WEFT" train -n $ranks early.yaml run.name=early; run=$!
        soon blocks "$run"
        kill -$signal "$run"
        ends "an early $signal to $ranks" 75 'nothing is lost'
        holds "an early $signal to $ranks: no checkpoint of nothing" test -z "$(newest early)"
    done
done

# The limit on processor time: the kernel's own SIGXCPU.
(ulimit -S -t 1 && exec "$WEFT" train images.yaml run.name=cpu >out 2>err </dev/null) & run=$!
ends 'a limit on processor time' 75 'start the same command again'
holds 'a limit on processor time: a checkpoint' test -n "$(newest cpu)"

# Ends of children are noticed, also if the parent process ignores or blocks SIGCHLD.
for how in ignore block; do
    for ranks in 1 2; do
        check 0 'it ended with exit code 7' timeout 60 env --$how-signal=CHLD "$WEFT" train -n $ranks images.yaml run.name=$how$ranks train.steps=2 run.hook='exit 7'
    done
done

# Signals that were ignored at the start stay ignored.
for ranks in 1 2; do
    rm -f out err
    (trap '' HUP && exec "$WEFT" train -n $ranks images.yaml run.name=nohup$ranks >out 2>err </dev/null) & run=$!
    soon at_step 2
    kill -HUP "$run"
    soon at_step $(($(grep -c . out) + 10)) # each step has a line
    kill -TERM "$run"
    ends "nohup with $ranks" 75 'start the same command again'
done

# Other verbs die at once, as every tool does: here one that waits for a reader of its output, which a pipe does not hold.
mkfifo unread
exec 6<>unread
head -c 65536 /dev/zero >&6
"$WEFT" plan early.yaml >&6 2>err </dev/null & run=$!
soon state "$run" S
kill -INT "$run"
exec 6>&-
rc=0
wait "$run" || rc=$?
holds "an interrupt ends weft plan: exit code 130, not $rc" test $rc = 130

# Nobody reads: the run ends as it would have. A pipe whose reader has gone, a full disk, closed files.
mkfifo pipe
exec 4<>pipe 5>pipe 4>&-
for ranks in 1 2; do
    train="exec timeout 60 '$WEFT' train -n $ranks images.yaml train.steps=4 run.name"
    check 0 '' sh -c "$train=pipe$ranks >&5"
    [ $ranks = 2 ] || holds 'it says so' grep -q "not all of it could be written" err
    check 0 '' sh -c "$train=both$ranks >&5 2>&1"
    check 0 '' sh -c "$train=closed$ranks >&- 2>&-"
    holds "what a closed stdout would have got is in no file" test "$(cat runs/closed$ranks/owner-* | wc -l)" = 1
    [ ! -e /dev/full ] || check 0 '' sh -c "$train=full$ranks >/dev/full"
    for name in pipe both closed full; do
        [ $name != full ] || [ -e /dev/full ] || continue
        holds "$name with $ranks: the last step's checkpoint" test -e "runs/$name$ranks/checkpoints/step-00000004.h5"
    done
done
if [ -e /dev/full ]; then
    check 74 'standard output' sh -c "exec '$WEFT' eval images.yaml data.test=images.h5 run.name=pipe1 --json >/dev/full"
    check 74 '' sh -c "exec '$WEFT' eval images.yaml data.test=images.h5 run.name=pipe1 --json >&-"
fi
check 141 '' sh -c "exec '$WEFT' plan images.yaml >&5"
holds 'plan ends quietly where nobody reads' test ! -s err
exec 5>&-

# A terminal that has gone: the first write after it fails, and SIGHUP has come.
if command -v script >/dev/null; then
    TERM=xterm script -qfec "exec '$WEFT' train images.yaml run.name=tty" tty.log >/dev/null 2>&1 </dev/null & run=$!
    soon grep -q 'step [0-9]*/' tty.log
    kill -KILL "$run"
    soon eval '[ -n "$(newest tty)" ]'
else
    echo '  skipped: a terminal that has gone: no script(1) here'
fi

# A rank that is killed: who it was, and 75 where there is a checkpoint.
rank_of() { rank_pid ".*run.name=$1( |\$)" "$2"; }
# killed WHAT NAME SIGNAL CODE TEXT : rank 1 of that run
killed() {
    local victim
    victim=$(rank_of "$2" 1)
    kill "-$3" "$victim"
    ends "$1" "$4" "rank 1 (process $victim) was killed by signal"
    holds "$1: $5: $(cat err)" grep -qF -- "$5" err
}
for transport in shm mpi; do
    begin dead$transport -n 2 grid.transport=$transport checkpoint.every_steps=3
    soon eval "[ -n \"\$(newest dead$transport)\" ]"
    killed "a killed rank, $transport" dead$transport KILL 75 "the newest checkpoint is runs/dead$transport/checkpoints/step-"
done
begin launcher -n 2 checkpoint.every_steps=3
soon eval '[ -n "$(newest launcher)" ]'
launcher=$(pgrep -P "$run" -x mpirun)
ranks=$(rank_of launcher 0; rank_of launcher 1)
kill -KILL "$launcher"
ends 'mpirun is killed' 75 "mpirun (process $launcher) was killed by signal 9"
none_of() { local p; for p in $ranks; do ! kill -0 "$p" 2>/dev/null || return 1; done; }
holds 'its ranks do not outlive it' soon none_of

# mpirun is stopped: it is named and continued, and the ranks save. One that does not end, for it is stopped again and again, is killed
# with its ranks once the request has come twice.
begin halted -n 2
soon at_step 2
launcher=$(pgrep -P "$run" -x mpirun)
kill -STOP "$launcher"
kill -TERM "$run"
ends 'mpirun is stopped' 75 "mpirun (process $launcher) is stopped by a signal; weft continues it"
holds 'mpirun is stopped: a checkpoint' test -n "$(newest halted)"
begin frozen -n 2
soon at_step 2
launcher=$(pgrep -P "$run" -x mpirun)
ranks=$(rank_of frozen 0; rank_of frozen 1)
holds 'two ranks' test "$(echo $ranks | wc -w)" = 2
(for _ in $(seq 6000); do kill -STOP "$launcher" $ranks || break; sleep 0.005; done 2>/dev/null) & stops=$!
kill -TERM "$run"
sleep 1.5
kill -TERM "$run"
wanted=74
rc=0
wait "$run" || rc=$?
[ -z "$(newest frozen)" ] || wanted=75
holds "mpirun is stopped again and again: exit code $wanted, not $rc" test $rc = $wanted
holds 'it says that it has been ended' grep -q 'ended at once, as requested twice; ' err
kill "$stops" 2>/dev/null || true
holds 'nor do its stopped ranks outlive it' soon none_of
rm -f out err
background out,err "$WEFT" eval -n 2 early.yaml data.test=images.h5; run=$!
soon eval 'launcher=$(pgrep -P "$run" -x mpirun)'
kill -STOP "$launcher"
kill -TERM "$run"
rc=0
wait "$run" || rc=$?
holds "SIGTERM ends another verb whose mpirun is stopped: 143, not $rc" test $rc = 143
begin none -n 2
soon at_step 2
killed 'no checkpoint yet' none KILL 74 'there is no checkpoint yet'
begin crash -n 2 checkpoint.every_steps=3
soon eval '[ -n "$(newest crash)" ]'
killed 'a crash is a fault of ours' crash SEGV 70 'the newest checkpoint is'

# Memory that the kernel refuses.
if ldd "$WEFT" | grep -q libasan; then
    echo '  skipped: a limit on addresses: a build with sanitizers takes terabytes of them'
else
    check 78 'ulimit -v' sh -c "ulimit -v 2000000 && exec '$WEFT' train images.yaml run.name=large model.name=mlp 'model.hidden=[30000,30000]' "
    check 71 'out of memory' sh -c "ulimit -v 2000000 && exec '$WEFT' train images.yaml run.name=large model.name=mlp 'model.hidden=[30000,30000]' train.memory=1000000000000"
fi
finish
