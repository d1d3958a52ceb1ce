#!/usr/bin/env bash
# The time of a run: run.max_time; the end of a batch job, from a replacement for squeue; a signal at any time from the first line of
# main to the first step. The run stops with 75 after a save, and resumes to the bits of an undisturbed run.
# cores: 0.3
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
set -m # background jobs in groups of their own
unset SLURM_JOB_ID SLURM_JOB_END_TIME
make_images
train() { timeout 240 "$WEFT" train images.yaml "$@"; }
newest() { ls runs/"$1"/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }

# run.max_time: so short that each start makes one step.
for ranks in 1 2; do
    check 0 '' train -n $ranks run.name=whole$ranks train.steps=4
    for step in 1 2 3; do
        check 75 'run.max_time: the program has run for' train -n $ranks run.name=parts$ranks train.steps=4 run.max_time=0.001s
        holds "$ranks ranks, start $step: one step" test "$(newest parts$ranks)" = runs/parts$ranks/checkpoints/step-0000000$step.h5
    done
    check 0 'done after' train -n $ranks run.name=parts$ranks train.steps=4 # without it: no other configuration
    check 0 '' "$WEFT" ckpt diff runs/whole$ranks/checkpoints/step-00000004.h5 runs/parts$ranks/checkpoints/step-00000004.h5
done
check 0 '' "$WEFT" ckpt diff runs/whole1/checkpoints/step-00000004.h5 runs/whole2/checkpoints/step-00000004.h5
begin=$(date +%s%N)
check 75 'start the same command again to continue' train run.name=two run.max_time=2s
holds 'it ran for two seconds' test $((($(date +%s%N) - begin) / 1000000)) -ge 2000
holds 'and says so' grep -qE 'has run for ([2-9]|[1-9][0-9]+) s' both
check 0 'done after' train run.name=long run.max_time=1-00:00:00 train.steps=2
holds 'in the resolved configuration' grep -q 'max_time: 86400s' runs/long/config.yaml
check 78 "'90' is not a length of time" train run.max_time=90
check 0 'done after' train run.name=endless run.max_time=0 train.steps=2
holds '0 is none' grep -q 'max_time: none' runs/endless/config.yaml
check 0 "none or 0: no limit" "$WEFT" train --help

# Slurm. What squeue says is in the file `left`, how often it was asked in `asked`.
mkdir bin
cat >bin/squeue <<'SH'
#!/bin/sh
echo "$*" >>asked
cat left
[ ! -e hang ] || { echo $$ >pid; exec sleep 1000; }
SH
chmod +x bin/squeue
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=7
in_s() { echo $(($(date +%s) + $1)); }
# job END WORDS... : a run whose environment says that the job ends in END seconds; -: it does not say.
job() {
    local end=$1
    shift
    unset SLURM_JOB_END_TIME
    [ "$end" = - ] || export SLURM_JOB_END_TIME="$(in_s "$end")"
    train "$@"
}
only_environment='using the end that Slurm set at its start'

echo 'error: no controller' >left
check 75 "squeue does not say when job 7 ends (error: no controller): $only_environment" job 15 run.name=env
holds 'it says why it stops' grep -q '^job 7 ends in .* this run stops here' both
holds 'with a checkpoint' test -n "$(newest env)"
check 75 "(No such file or directory): $only_environment" env PATH=/nowhere SLURM_JOB_END_TIME="$(in_s 15)" "$WEFT" train images.yaml run.name=absent
check 0 'this run stops before that only by run.max_time or a signal' job - run.name=unknown train.steps=30
check 0 'this run stops before that only by run.max_time or a signal' job -5 run.name=past train.steps=30

# A limit that has been moved: what squeue says counts, of this job.
echo '7 0:10' >left
check 75 'this run stops here' job 3600 run.name=earlier
holds 'both ends are said' test "$(grep -c '^job 7 ends at' both)" = 2
printf '6 0:01\n17 0:01\n7 1-00:00:00\n' >left
check 0 'done after' job 15 run.name=later train.steps=30
holds 'both ends are said' test "$(grep -c '^job 7 ends at' both)" = 2
echo '7 UNLIMITED' >left
rm -f asked
check 0 'done after' job - -n 2 run.name=unlimited train.steps=20
holds 'nothing is said where there is no end' test "$(grep -c 'job 7' both)" = 0
holds 'one rank asks, once, for this job' test "$(cat asked)" = '--noheader --jobs 7 --format %A %L'

unset SLURM_JOB_END_TIME

# It is asked again before the run acts, while steps go on. A pause after each epoch keeps the processor free for other tests.
pauses=(run.hook="sleep 0.3" run.hook_s=1 run.hook_on=[epoch] run.hook_wait=true)
echo '7 0:33' >left
rm -f asked out err
background out,err "$WEFT" train images.yaml run.name=again "${pauses[@]}"; run=$!
soon grep -q 'job 7 ends at' err
echo '7 2:00:00' >left
soon eval '[ "$(grep -c "job 7 ends at" err)" = 2 ]'
kill -TERM $run
rc=0
wait $run || rc=$?
holds "more time was noticed: exit code 75, not $rc" test $rc = 75
holds 'two questions' test "$(grep -c . asked)" = 2
holds 'the time did not stop it' test "$(grep -c 'stops here' err)" = 0

# One that does not answer holds up nothing, and is not left behind.
: >left
: >hang
rm -f pid out err
background out,err "$WEFT" train images.yaml run.name=hangs "${pauses[@]}"; run=$!
soon grep -q 'no answer within 10 s' err
holds 'steps were made meanwhile' test "$(grep -c '^epoch' out)" -gt 10
holds 'squeue is gone' soon eval '! kill -0 "$(cat pid)" 2>/dev/null'
kill -TERM $run
rc=0
wait $run || rc=$?
holds "then a signal: exit code 75, not $rc" test $rc = 75
unset SLURM_JOB_ID

# A signal at any moment from main on; the program's own signal mask says that it has come so far. Each start goes on from what
# those before it have left.
begun() { # SIGXCPU is blocked
    local key value blocked=0
    while read -r key value; do [ "$key" != SigBlk: ] || blocked=$((0x$value)); done 2>/dev/null <"/proc/$run/status"
    [ $((blocked & 0x800000)) != 0 ]
}
start() {
    rm -f out err
    background out,err "$WEFT" train images.yaml train.steps=1000000 "$@"; run=$!
    until begun; do kill -0 $run || return; done
}
# moments NAME COUNT WORDS... : COUNT moments, evenly from there to the first step.
moments() {
    local name=$1 count=$2 least=0 last=0 i took rc signals=(TERM INT HUP USR1 USR2 XCPU) signal
    shift 2
    for i in $(seq -3 $((count - 1))); do
        signal=${signals[$(((i + 3) % 6))]}
        start run.name="$name" "$@"
        took=$(date +%s%N)
        if [ "$i" -lt 0 ]; then # how long that takes
            until grep -q '^epoch.*step' out; do kill -0 $run || break; sleep 0.01; done
            took=$((($(date +%s%N) - took) / 1000000))
            [ $least -gt 0 ] && [ $least -lt $took ] || least=$took
        else
            sleep "$(printf '%d.%03d' $((least * i / count / 1000)) $((least * i / count % 1000)))"
        fi
        kill -$signal $run
        rc=0
        wait $run || rc=$?
        holds "$name: $signal at moment $i of $count: exit code 75, not $rc: $(tail -n 2 err)" test $rc = 75
        i=$(newest "$name")
        i=${i##*step-}
        holds "$name: checkpoints grow" test $((10#${i%.h5})) -ge $last
        last=$((10#${i%.h5}))
    done
    check 0 'done after' train run.name="whole_$name" train.steps=$last
    i=checkpoints/step-$(printf %08d $last).h5
    check 0 '' "$WEFT" ckpt diff "runs/whole_$name/$i" "runs/$name/$i"
}
moments alone 10
moments pair 10 -n 2

# A signal during an evaluation, to one rank, sent by the hook at the end of the epoch: the evaluation is cancelled, the run saved, and
# the next start evaluates first. If the hook was too late, the test repeats everything.
noise_idx 5000 28 10 test.h5
cat >term.sh <<'SH'
read -r line
case $line in *'"step": 7,'*) cat answer 2>/dev/null ;; esac
case $line in *'"step": '"$(cat term 2>/dev/null || echo none)"','*) rm term; kill -TERM $PPID ;; esac
SH
evaluated() { sed -n 's/,"seconds".*//; /eval_loss/p' "runs/$1/metrics.jsonl"; }
tells=(run.hook='exec sh term.sh' 'run.hook_on=[epoch]')
epochs() { train run.name="$1" data.test=test.h5 train.epochs=2 train.early_stop=9 optim.lr_schedule=plateau "${@:2}"; }
broken() { # NAME STEP WORDS... : in the evaluation after that step; it ends as the run $as
    local tries rc
    for tries in $(seq 10); do
        rm -rf "runs/$1"
        echo "$2" >term
        rc=0
        epochs "$1" "${tells[@]}" "${@:3}" >both 2>&1 </dev/null || rc=$?
        ! grep -q "^step $2: a stop request interrupts the evaluation" both || break
    done
    holds "$1: exit code 75, not $rc: $(tail -n 2 both)" test $rc = 75
    holds "$1: it is interrupted" grep -q "^step $2: a stop request interrupts the evaluation" both
    holds "$1: and says how to go on" grep -q 'start the same command again to continue' both
    holds "$1: the checkpoint is of that step" test "$(newest "$1")" = "runs/$1/checkpoints/step-$(printf %08d "$2").h5"
    holds "$1: there is no such evaluation yet" test "$(evaluated "$1" | grep -c "\"step\":$2,")" = 0
    check 0 'done after' epochs "$1" "${@:3}"
    check 0 '' "$WEFT" ckpt diff runs/$as/checkpoints/step-00000014.h5 "runs/$1/checkpoints/step-00000014.h5"
    holds "$1: the same evaluations" test "$(evaluated "$1")" = "$(evaluated $as)"
}
check 0 '' epochs evaluated
as=evaluated
broken early 7
broken pair_early 7 -n 2 checkpoint.every_epochs=1
broken stages_early 7 -n 2 grid.pp=2
holds 'once more, with the evaluation' test "$("$WEFT" ckpt info runs/pair_early/checkpoints/step-00000007.h5 | grep -c evaluation_due)" = 0
broken end 14
# Requests of the hook at that sync point are carried out nevertheless.
echo '{"lr": 0.003}' >answer
check 0 'requests optim.lr 0.003' epochs answered "${tells[@]}" run.hook_wait=true
as=answered
broken answer 7 run.hook_wait=true
broken pair_answer 7 run.hook_wait=true -n 2
finish
