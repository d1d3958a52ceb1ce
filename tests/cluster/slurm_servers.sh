#!/usr/bin/env bash
# jobs/slurm-servers.sh under Slurm, on three hosts of one machine: servers on separate nodes, with the bits of a run without Slurm, for
# one server and two; mode async with its order of requests, and its replay under Slurm, with the same bits; and a killed server, which
# ends the job's start within seconds: the job is requeued and resumes.
# usage: slurm_servers.sh     (WEFT=build/weft; needs root; a minute on two busy cores)
hosts=3
. "$(dirname "$0")/slurm.bash"
job=$cluster/../../jobs/slurm-servers.sh

start_slurm
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 2000 --threads 1
cat >clicks.yaml <<'YAML'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data:  {train: clicks.h5}
train: {steps: 30, batch: 64, micro_batch: 8, threads: 1, loss: sigmoid}
optim: {name: adagrad, lr: 0.05}
YAML
last=checkpoints/step-00000030.h5
check 0 'done after' "$WEFT" train clicks.yaml run.name=alone
submit() { # NAME NODES SERVERS WORDS... : submits a run with one rank on each node that computes
    SERVERS=$3 timeout 120 sbatch --wait --nodes "$2" --ntasks-per-node 1 -o "$1.log" "$job" clicks.yaml run.name="$1" "${@:4}"
}

check 0 '' submit one 3 1
holds 'two ranks compute, the third is the server' grep -q '^2 ranks .*' one.log
holds 'rows are on one server' grep -q 'tables: [0-9]* rows on 1 server ' one.log
check 0 'to the bit' "$WEFT" ckpt diff runs/alone/$last runs/one/$last
check 0 '' submit two 3 2
holds 'rows are on two servers' grep -q 'tables: [0-9]* rows on 2 servers ' two.log
check 0 'to the bit' "$WEFT" ckpt diff runs/alone/$last runs/two/$last
check 64 '' submit none 2 2
holds 'no node left to compute' grep -q '2 servers leave none of 2 nodes to compute' none.log

check 0 '' submit async 3 1 grid.mode=async run.order_log=order
check 0 '' submit again 3 1 grid.mode=async run.replay=order
check 0 'to the bit' "$WEFT" ckpt diff runs/async/$last runs/again/$last

# A server dies: the job is requeued and resumes. It would wait in the queue for two minutes without an explicit start.
resumed() {
    grep -q 'resuming from runs/dies' dies.log && return
    ! is "$id" JobState PENDING || scontrol update jobid="$id" StartTime=now
    sleep 2
    return 1
}
id=$(SERVERS=1 sbatch --parsable --nodes 3 --ntasks-per-node 1 -o dies.log "$job" clicks.yaml run.name=dies train.steps=1000000 checkpoint.every_steps=50)
until_true 60 saved runs/dies
holds 'the last node has the server' test "$("$cluster/hosts.sh" on n3 'pgrep -fc "[w]eft train clicks.yaml"')" -ge 1
"$cluster/hosts.sh" on n3 'pkill -KILL -f "[w]eft train clicks.yaml"'
begun=$SECONDS
until_true 30 is "$id" Restarts 1 || { scontrol show job "$id"; cat dies.log; }
holds "a dead server sends the job back to the queue, in $((SECONDS - begun)) s" is "$id" Restarts 1
until_true 30 idle
nobody() { [ -z "$("$cluster/hosts.sh" on "$1" 'pgrep -f "[w]eft train clicks.yaml"')" ]; }
for host in $CLUSTER_HOSTS; do holds "no rank is left on $host" until_true 20 nobody "$host"; done
holds 'no list of hosts is left' test -z "$(ls weft-*.hosts 2>/dev/null)"
sleep 2
holds 'it goes on' until_true 12 resumed
scancel "$id"
until_true 30 idle
finish
