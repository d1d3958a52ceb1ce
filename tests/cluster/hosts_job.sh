#!/usr/bin/env bash
# jobs/hosts.sh on three hosts without Slurm: a host file, mpirun, and a file of output for each rank. After a stop request it saves and
# ends with 75; when it is started again it resumes, and continues after the kill of a rank on another host, to the bits of one rank.
# usage: hosts_job.sh     (WEFT=build/weft; needs root; half a minute on two idle cores)
hosts=3
. "$(dirname "$0")/cluster.bash"
make_images
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 2000, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.02, momentum: 0.9}
checkpoint: {every_s: 1}
grid: {pp: 3}
YAML
last=checkpoints/step-00002000.h5
check 0 '' timeout 200 "$WEFT" train lenet.yaml grid.pp=1 run.name=alone
for host in $CLUSTER_HOSTS; do echo "$host slots=2"; done >hosts
newest() { ls runs/job/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
another() { [ -n "$(newest)" ] && [ "$(newest)" != "$1" ]; }
start() { timeout 250 bash "$cluster/../../jobs/hosts.sh" hosts lenet.yaml run.name=job >job.out 2>&1 </dev/null & job=$!; }
ends() { # CODE
    local rc=0
    wait $job || rc=$?
    holds "it ends with $1, not $rc: $(cat job.out)" [ $rc = "$1" ]
}
words() { cat weft-logs/*/"$1"/*/*/*; }

"$cluster/hosts.sh" link 100mbit
start
holds 'it saves' soon another ''
kill -TERM $(pgrep -P $job)
ends 75
before=$(newest)
start
holds 'it goes on' soon another "$before"
victim=$("$cluster/hosts.sh" on n3 "pgrep -f 'weft [t]rain lenet.yaml'" | tail -n 1)
before=$(newest)
"$cluster/hosts.sh" on n3 kill -KILL "$victim"
"$cluster/hosts.sh" link off
ends 0
check 0 'to the bit' "$WEFT" ckpt diff runs/alone/$last runs/job/$last
holds 'six ranks on three hosts' grep -q '^6 ranks.*allreduce: ' <(words 1)
holds 'each has a file' [ "$(ls -d weft-logs/*/1/1/rank.* | wc -l)" = 12 ]
holds 'the second start went on' grep -q 'resuming from' <(words 2)
finish
