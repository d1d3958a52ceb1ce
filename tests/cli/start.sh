#!/usr/bin/env bash
# From the start of ranks to their first step: a stopped rank is named and ends the job, a stop request ends everything at once, ranks
# without progress have a time limit, and the number of layers in a configuration is limited.
# cores: 0.3
. "$(dirname "$0")/common.bash"
set -m # so that background jobs do not ignore SIGINT

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: mlp, hidden: [8]}
data: {train: data.h5}
train: {steps: 40, batch: 12, micro_batch: 2, threads: 1}
X
# A pause after each epoch leaves the processor to other tests.
pauses=(train.steps=100000000 run.hook="sleep 0.3" run.hook_s=5 run.hook_on=[epoch] run.hook_wait=true)
# stop_first WORDS RANK : stops that rank of a start as soon as its process exists, and sets victim to the process.
stop_first() {
    local n
    victim=
    for n in $(seq 3000); do
        victim=$(rank_pid "$1" "$2") || true
        if [ -n "$victim" ]; then kill -STOP "$victim" && return 0; fi
    done
    return 1
}
# ended LIMIT : waits for the background job; sets rc to its exit code and took to the seconds of this call.
ended() {
    local begin=$SECONDS
    rc=0
    while kill -0 "$job" 2>/dev/null && [ $((SECONDS - begin)) -lt "$1" ]; do sleep 0.1; done
    kill -KILL "$job" 2>/dev/null && echo "still there after $1 s"
    wait "$job" || rc=$?
    took=$((SECONDS - begin))
}
none_left() { ! own "^$WEFT ${verb:-train} $1" >/dev/null; }

for rank in 0 1 2; do
    background out timeout 120 "$WEFT" train -n 3 job.yaml run.name=stopped$rank
    job=$!
    holds 'a rank was stopped' stop_first job.yaml $rank
    ended 60
    holds "a stopped rank ends the start: 74, not $rc" test $rc = 74
    holds "within seconds, not $took" test $took -lt 40
    grep -Eq "error: while ranks start: rank $rank on .* \(process $victim\) is stopped by a signal: it .*(MPI_Init|host|training|step)" out && passed=$((passed + 1)) ||
        { grep -q "rank $rank .*has been stopped by a signal" out && echo '  it came late, and the watchdog has named it' && passed=$((passed + 1)); } ||
        { failed=$((failed + 1)); echo 'FAILED: the stopped rank is named'; cat out; }
    holds 'no rank is left' soon none_left job.yaml
done

# A stop request does not wait for a stopped rank.
background out timeout 120 "$WEFT" train -n 3 job.yaml run.name=asked
job=$!
holds 'a rank was stopped' stop_first job.yaml 1
sleep 1
launcher=$(own "^$WEFT train -n 3 job.yaml run.name=asked" | head -n 1)
kill -TERM "$launcher"
ended 60
holds "SIGTERM ends a start with a stopped rank: 75, not $rc" test $rc = 75
holds "in a moment, not $took s" test $took -lt 30
holds 'it says that nothing is lost' grep -q 'stopped before the first step, so nothing is lost' out
holds 'once' test "$(grep -c 'stopped before the first step' out)" = 1
holds 'no rank is left' soon none_left job.yaml

# weft run makes another start.
background out timeout 120 "$WEFT" run -n 2 -- weft train job.yaml run.name=again
job=$!
holds 'a rank was stopped' stop_first job.yaml 1
ended 100
holds "weft run goes on behind a start that was stopped ($rc)" test $rc = 0
holds 'the stopped rank is named' grep -Eq "start 1: .*rank 1 on .*\(process $victim\).*stopped by a signal" out
holds 'there was another start' grep -q 'start 2: 2 ranks' out

# All ranks are stopped: train.hang_s applies.
background out timeout 120 "$WEFT" train -n 2 job.yaml run.name=all train.hang_s=6
job=$!
holds 'a rank was stopped' stop_first job.yaml 0
holds 'a rank was stopped' stop_first job.yaml 1
ended 100
holds "ranks that do not get on are ended: 74, not $rc" test $rc = 74
holds 'and named' grep -q 'while ranks start.* (train.hang_s): rank' out || cat out

# A time limit applies from the start of mpirun on, also in a batch job, where ranks may be on other hosts and report late. It ends an
# mpirun that never starts a rank, one that is stopped, and one that exits with 0 on a signal.
# silent HOW PLACE VERB_WORDS... : runs weft with an mpirun that does HOW and starts no rank; PLACE is "job" for the environment of a
# batch job, else "host".
silent() {
    local how=$1 place=$2 begin=$SECONDS
    shift 2
    mkdir -p bin
    printf '#!/bin/bash\n%s\n' "$how" >bin/mpirun
    chmod +x bin/mpirun
    rc=0
    ( [ "$place" = host ] || export JOB_ID=7; exec timeout 60 env "PATH=$PWD/bin:$PATH" "$WEFT" "$@" train.hang_s=3 ) >out 2>&1 </dev/null || rc=$?
    took=$((SECONDS - begin))
    holds "$place: $1: a start without a rank is ended with 74, not $rc" test $rc = 74
    holds "$place: $1: after the limit and soon, not $took s" test $took -ge 3 -a $took -lt 30
    holds "$place: $1: it is said: $(cat out)" grep -Eq 'error: .*while ranks start none has made progress for [3-9] s \(train.hang_s\): no rank has reported' out
}
for place in host job; do
    silent 'exec sleep 100' $place train -n 2 job.yaml run.name=silent
done
silent 'kill -STOP $$' job train -n 3 job.yaml run.name=silent
silent 'trap "kill %1; exit 0" HUP TERM; sleep 100 & wait' job train -n 2 job.yaml run.name=silent
silent 'exec sleep 100' job eval -n 2 job.yaml data.test=data.h5
silent 'exec sleep 100' job bench step -n 2 job.yaml
# A training whose ranks cannot report is recognised by the lease of its run's folder, and continues.
printf '#!/bin/bash\nWEFT_LAUNCHER=0 %s "$@" & echo $! >pid\nwait $!\n' "$(command -v mpirun)" >bin/mpirun
background out timeout 120 env JOB_ID=7 "PATH=$PWD/bin:$PATH" "$WEFT" train -n 2 job.yaml run.name=mute "${pauses[@]}" train.hang_s=3
job=$!
soon grep -q 'step  *[0-9]' out
sleep 6
kill -USR1 "$(cat pid)"
ended 60
holds "ranks that cannot report but compute are not ended: 75, not $rc: $(tail -n 3 out)" test $rc = 75
holds 'and they have saved' test -n "$(ls runs/mute/checkpoints/step-*.h5)"

# Other verbs that start ranks watch them in the same way.
# stopped_of VERB WORDS RANKS_WORDS : rank 1 of `weft VERB WORDS` is stopped as soon as it is there, named, and the command ends with 74.
stopped_of() {
    background out timeout 120 "$WEFT" $1 $2
    job=$!
    verb=${4:-$1}
    holds "$1: a rank was stopped" stop_first "$3" 1
    ended 60
    holds "$1: a stopped rank ends it: 74, not $rc" test $rc = 74
    holds "$1: within seconds, not $took" test $took -lt 40
    holds "$1: the stopped rank is named: $(cat out)" grep -Eq "error: .*(while ranks run: rank 1 on .* \(process $victim\) is stopped by a signal: it (has|is) |while ranks start: rank 1 .*\(process $victim\))" out
    holds "$1: no rank is left" soon none_left "$3"
    verb=
}
# An evaluation that takes seconds, so that it does not end before its rank is stopped.
sed 's/hidden: .8./hidden: [2000, 2000]/; s/name: r/name: wide/' job.yaml >wide.yaml
check 0 '' timeout 60 "$WEFT" train wide.yaml train.steps=1
{ printf '\0\0\010\003\0\0\352\140\0\0\0\010\0\0\0\010'; head -c $((60000 * 64)) /dev/zero; } >many-x.idx
{ printf '\0\0\010\001\0\0\352\140'; head -c 60000 /dev/zero; } >many-y.idx
check 0 '' "$WEFT" data import idx many-x.idx many-y.idx -o many.h5
stopped_of eval '-n 2 wide.yaml data.test=many.h5' wide.yaml
stopped_of 'bench step' '-n 2 job.yaml' job.yaml
stopped_of verify 'job.yaml --grids 1x1x1,2x1x1' '.*verify-[^/]*/config.yaml' train
# Commands other than a training may compute for any time, but not while all of their ranks are stopped.
verb=eval
background out timeout 120 "$WEFT" eval -n 2 wide.yaml data.test=many.h5 train.hang_s=6
job=$!
holds 'a rank was stopped' stop_first wide.yaml 0
holds 'a rank was stopped' stop_first wide.yaml 1
ended 60
holds "eval: ranks that are all stopped are ended: 74, not $rc" test $rc = 74
for rank in 0 1; do
    holds "eval: and rank $rank is named: $(cat out)" grep -Eq "while ranks run all have been stopped for [0-9]+ s \\(train.hang_s\\): .*rank $rank on " out
done
verb=
holds 'no folder of weft verify is left' test -z "$(ls -d runs.verify-* 2>/dev/null)"

# SIGQUIT is also a stop request: the launcher waits until its ranks have saved.
background out timeout 120 "$WEFT" train -n 2 job.yaml run.name=quit train.steps=100000000
job=$!
soon grep -q 'step  *[0-9]' out
kill -QUIT "$(own "^$WEFT train -n 2 job.yaml run.name=quit" | head -n 1)"
ended 60
holds "SIGQUIT stops a training: 75, not $rc" test $rc = 75
holds 'no rank is left' none_left 'job.yaml run.name=quit'
holds 'and it has saved' test -n "$(ls runs/quit/checkpoints/step-*.h5)"

# stop_in_setup PROCESS : stops it as soon as weft handles SIGTERM and SIGINT, long before the first
# step of a deep model. Before it runs weft, the process is a copy of this shell with its handlers.
stop_in_setup() {
    local caught=
    until [ -n "$caught" ] && ((16#$caught >> 14 & 16#$caught >> 1 & 1)); do
        caught=$(sed -n '/^Name:[[:space:]]*weft$/,$s/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) || return 1
    done
    kill -STOP "$1"
}

# A single process with a model whose plan takes some time.
layers() { printf 'run: {name: deep}\nmodel:\n  layers: [flatten, %s dense: {width: 3}]\ndata: {train: data.h5}\ntrain: {steps: 2, batch: 12, threads: 1}\n' "$(yes 'relu,' | head -n "$1" | tr '\n' ' ')"; }
layers 60000 >deep.yaml
layers 300000 >deeper.yaml
begin=$SECONDS
printf 'run: {name: wide}\nmodel: {name: mlp, hidden: [%s 8]}\ndata: {train: data.h5}\n' "$(yes 8, | head -n 70000 | tr -d '\n')" >hidden.yaml
check 78 'more than 65536 layers' timeout 60 "$WEFT" train deeper.yaml
check 78 'more than 65536 layers' timeout 60 "$WEFT" plan deeper.yaml
check 78 '65536' timeout 60 "$WEFT" train hidden.yaml
check 0 'relu60000 ' timeout 60 "$WEFT" plan deep.yaml
holds "they are refused soon, not after $((SECONDS - begin)) s" test $((SECONDS - begin)) -lt 60
for signal in TERM INT; do
    background out "$WEFT" train deep.yaml
    job=$!
    holds 'set-up has begun' stop_in_setup $job
    kill -$signal $job
    kill -CONT $job
    ended 20
    holds "SIG$signal ends the set-up: 75, not $rc" test $rc = 75
    holds "at once, not after $took s" test $took -lt 4
    holds 'and says so' grep -q 'stopped before the first step, so nothing is lost' out
done
# weft run treats it as a stop request, whichever process received the signal.
for _ in 1 2 3 4 5; do # repeated if the run has already ended
    rm -rf runs/deep
    background out timeout 120 "$WEFT" run -n 1 -- weft train deep.yaml
    job=$!
    until own "^$WEFT train deep.yaml" >pids || ! kill -0 $job 2>/dev/null; do :; done
    rank=$(head -n 1 pids)
    if stop_in_setup "$rank"; then kill -TERM "$rank"; kill -CONT "$rank"; fi
    ended 30
    if [ $rc != 0 ]; then break; fi
done
holds "weft run ends with 75, not $rc" test $rc = 75
holds 'without another start' test "$(grep -c 'start 2' out)" = 0
# A single rank that executes itself again, for OpenMP's settings, is not reported as lost.
background out env -u OMP_NUM_THREADS "$WEFT" run -- weft train job.yaml run.name=threads train.threads=2 "${pauses[@]}"
job=$!
sleep 13
kill -TERM $job
ended 30
holds "it is not ended before it is told to ($rc)" test $rc = 75 -a "$(grep -c 'error:\|start 2' out)" = 0
finish
