#!/usr/bin/env bash
# train.sync_batch_norm: the messages of plan and run, the refusals, and a rank that is lost in the middle of a sum.
# cores: 0.2
. "$(dirname "$0")/common.bash"

samples=800
{ printf '\0\0\010\003\0\0\003\040\0\0\0\004\0\0\0\004'; head -c $((samples * 16)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\003\040'; head -c $((samples / 2)) /dev/zero; head -c $((samples / 2)) /dev/zero | tr '\0' '\1'; } >y.idx
check 0 'wrote data.h5' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'YAML'
run: {name: a}
model: {layers: [batch_norm, conv2d: {channels: 300, kernel: 3}, batch_norm, relu, flatten, dense: {width: 2}]}
data: {train: data.h5}
train: {steps: 1, batch: 8, micro_batch: 2, threads: 1, sync_batch_norm: true}
grid: {transport: mpi}
YAML
# Each replica has two micro-batches a step. A sum is two numbers a channel, in whole vectors of a kernel, and a count.
check 0 'statistics summed over 2 replicas: 4 sums a micro-batch, forward and back; each rank sends and receives' "$WEFT" plan job.yaml --ranks 2
check 0 'train.sync_batch_norm: statistics are over 2 micro-batches at a time, so these bits hold for dp=2 with grid.zero 0 or 1 only' \
    "$WEFT" plan job.yaml --ranks 2
check 0 'so these bits hold for dp=4 only' "$WEFT" plan job.yaml --ranks 4 grid.zero=2
check 0 'so these bits hold for dp=1 only' "$WEFT" plan job.yaml
holds 'one replica sums nothing' test "$(grep -c 'statistics summed' out)" = 0
check 0 '"replica_sums": 4' "$WEFT" plan job.yaml --ranks 2 --json
bytes=$(sed -n 's/.*"replica_sum_bytes": \([0-9]*\).*/\1/p' out)
holds "bytes of a sum: $bytes" test "$bytes" -ge $((2 * 8 * (2 * 301 + 2))) -a "$bytes" -le $((2 * 8 * (2 * 320 + 2)))
holds 'are not the same on every grid' grep -q '"same_bits_on_every_grid": false' out
check 0 '"replica_sums": 6' "$WEFT" plan job.yaml --ranks 2 --json grid.recompute=block
message() { "$WEFT" plan job.yaml --ranks 8 train.sync_batch_norm="$1" --json | sed -n 's/.*"message_bytes": \([0-9]*\).*/\1/p' | head -n 1; }
holds 'places for messages are planned' test "$(message true)" = $(($(message false) + 2 * 3 * 2 * 8192))
check 0 'warning: train.sync_batch_norm: statistics are over 2 micro-batches' "$WEFT" train -n 2 job.yaml
check 78 'job.yaml:4:57: train.sync_batch_norm: the model has no batch_norm: leave it out' \
    "$WEFT" train job.yaml 'model.layers=[flatten, dense: {width: 2}]'

# More than a thousand sums in a step: the rank that is left waits for one of them.
stepped() { [ "$(wc -l <runs/lost/metrics.jsonl)" -gt 1 ]; } 2>/dev/null
nobody() { [ -z "$(rank_pids job.yaml)" ]; }
start() { # TRANSPORT
    rm -rf runs
    background out timeout -k 5 200 mpirun --oversubscribe --bind-to none -n 2 "$WEFT" train job.yaml run.name=lost grid.transport="$1" train.batch=$samples \
        train.micro_batch=1 train.steps=1000000 train.log_every=1
    job=$!
    soon stepped
    victim=$(rank_pid job.yaml 1)
}
ended() { # WHAT
    local code=0
    wait $job || code=$?
    cat out >both
    holds "$1: the job ends by itself, not by the time limit" test "$code" != 124
    holds "$1: the job ends with an error, not with $code" test "$code" -gt 0
    holds "$1: no rank is left" soon nobody
}
start mpi
kill -STOP "$victim"
ended 'a stopped rank'
holds 'it is named' grep -q "rank 1 on $(hostname) (process $victim) has been stopped" out
holds 'the other one is in a sum of statistics' grep -qE 'rank 0 on .* waits for (room for )?statistics' out
start shm
kill -KILL "$victim"
ended 'a killed rank'
finish
