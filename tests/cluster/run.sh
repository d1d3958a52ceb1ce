#!/usr/bin/env bash
# weft run on several hosts of one machine: a host dies in the middle of a step, first with a spare host, then without: the ranks
# continue with the bits of one rank; a host whose cable is pulled while its processes live is left out, too.
# usage: run.sh     (WEFT=build/weft; needs root; two minutes on two idle cores)
hosts=3
. "$(dirname "$0")/cluster.bash"
make_images
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 3000, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.02, momentum: 0.9}
checkpoint: {every_steps: 20}
YAML
last=checkpoints/step-00003000.h5
for host in $CLUSTER_HOSTS; do echo "$host slots=1"; done >hosts
check 0 '' timeout 300 "$WEFT" train lenet.yaml run.name=alone

newest() { ls runs/"$1"/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
another() { [ -n "$(newest "$1")" ] && [ "$(newest "$1")" != "$2" ]; }
says() { holds "it says '$1': $(cat err)" grep -qF -- "$1" err; }
begin() { # NAME WORDS... for weft run
    local name=$1
    shift
    background out,err timeout 280 "$WEFT" run --hostfile hosts "$@" -- weft train lenet.yaml run.name="$name"; run=$!
    soon another "$name" ''
}
ends() {
    local rc=0
    wait "$run" || rc=$?
    holds "$1: exit code $rc: $(cat err)" test $rc = 0
    check 0 '' "$WEFT" ckpt diff runs/alone/$last "runs/$1/$last"
}

# A rank of another host that is stopped before its first step is named with its host, and another start continues. The set-up of this
# model takes seconds; a rank that is stopped at once has not reported.
printf 'run: {dir: starts}\nmodel:\n  layers: [flatten, %s dense: {width: 10}]\ndata: {train: images.h5}\ntrain: {steps: 2, batch: 32, threads: 1, hang_s: 15}\n' \
    "$(yes 'relu,' | head -n 30000 | tr '\n' ' ')" >deep.yaml
stop_starting() { # NAME SECONDS : stops rank 1 that long after its start, or earlier if the start is over by then
    local victim after=$2
    for _ in 1 2 3 4 5 6; do
        rm -rf "starts/$1"
        background out,err timeout 280 "$WEFT" run --hostfile hosts --nnodes 2 -- weft train deep.yaml run.name="$1"; run=$!
        victim=
        while [ -z "$victim" ] && kill -0 $run 2>/dev/null; do victim=$(rank_pid deep.yaml 1); done
        sleep "$after"
        if kill -STOP "$victim" 2>/dev/null && soon grep -q 'start 2: 2 ranks on' err && grep -q 'while ranks start' err; then return; fi
        kill -TERM $run 2>/dev/null || true
        wait $run || true
        after=$(awk -v s="$after" 'BEGIN { print s / 2 }')
    done
}
stop_starting silent 2
says 'error: weft run: start 1: while ranks start: rank 1 on n2 (process '
says ' is stopped, or its host is (silent for '
wait $run || true
holds "it goes on: $(cat err)" test -e starts/silent/checkpoints/step-00000002.h5
stop_starting early 0
holds "it is named: $(cat err)" grep -Eq 'start 1: while ranks start.* rank 1 on n2 (has not reported|\(process )' err
kill -TERM $run; wait $run || true

begin cut --nnodes 2
says 'start 1: 2 ranks on n1,n2'
"$cluster/hosts.sh" cut n2
soon grep -q 'start 2: 2 ranks on n1,n3, from step' err
says 'no answer from n2'
"$cluster/hosts.sh" mend n2
ends cut

begin killed --nnodes 2 --log-dir logs
says 'start 1: 2 ranks on n1,n2'
"$cluster/hosts.sh" kill n2
soon grep -q 'start 2: 2 ranks on n1,n3, from step' err
says 'no answer from n2'
at=$(newest killed)
soon another killed "$at"
"$cluster/hosts.sh" kill n1
soon grep -q 'start 3: 1 rank on n3, from step' err
says 'no answer from n1,n2'
says 'results stay bit-identical to 2 replicas'
ends killed
for file in start-1/rank-0 start-1/rank-1 start-2/rank-1 start-3/rank-0; do holds "logs/$file.log" test -e "logs/$file.log"; done
finish
