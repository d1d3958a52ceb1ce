#!/usr/bin/env bash
# Fields in compressed chunks: the ranks of a node unpack each chunk once, together, whatever the grid, and train the same bits as from
# contiguous files; killed ranks leave no shared memory.
# cores: 2
. "$(dirname "$0")/common.bash"
command -v h5repack >/dev/null || { echo '  skipped: there is no h5repack'; exit 0; }
check 0 'wrote plain: 3 members' "$WEFT" data make shallow-water -o plain --size 16x16 --members 3 --steps 24
mkdir packed frames
for m in 0 1 2; do
    h5repack -l h,u,v:CHUNK=6x16x16 -f h,u,v:SHUF -f h,u,v:GZIP=4 plain/member-00$m.nc packed/member-00$m.nc
    h5repack -l h,u,v:CHUNK=1x16x16 -f h,u,v:SHUF -f h,u,v:GZIP=4 plain/member-00$m.nc frames/member-00$m.nc
done
cat >a.yaml <<'YAML'
data:
  train: [plain/member-000.nc, plain/member-001.nc]
  test: plain/member-002.nc
  variables: {inputs: [h, u, v], targets: [h, u, v]}
  window: {inputs: [-1, 0], targets: [1]}
  predict: change
model: {layers: [conv2d: {channels: 4, kernel: 3, pad: same}, silu, conv2d: {channels: 3, kernel: 3, pad: same}]}
train: {loss: mse, batch: 8, micro_batch: 1, epochs: 3, threads: 1}
optim: {name: sgd, lr: 1e-3}
YAML
train() { timeout 120 "$WEFT" train a.yaml "$@"; }
packed='data.train=[packed/member-000.nc, packed/member-001.nc]' frames='data.train=[frames/member-000.nc, frames/member-001.nc]'

check 0 'done after' train run.name=plain
holds 'files without chunks have no line about them' grep -vq 'chunks of fields' both
# 24 frames of 3 variables in 2 files
check 0 'chunks of fields: 24 unpacked, of 24 in the training set' train -n 2 run.name=two "$packed" data.test=packed/member-002.nc
check 0 'chunks of fields: 24 unpacked, of 24 in the training set' train -n 4 run.name=stages "$packed" data.test=frames/member-002.nc grid.pp=2
check 0 'chunks of fields: 144 unpacked, of 144 in the training set' train -n 2 run.name=frames "$frames"
check 0 'chunks of fields: 48 unpacked, of 24 in the training set' train -n 2 run.name=mpi "$packed" grid.transport=mpi
last=$(ls runs/plain/checkpoints/step-*.h5 | sed 's/.*step-0*\([0-9]*\).h5/\1/' | tail -n 1)
for run in two stages frames mpi; do same "$last" plain $run; done

# The plan counts them: 24 chunks of 6 frames, 12 of the test set, and their table.
data_bytes() { "$WEFT" plan a.yaml --json "$@" | grep -o '"data_bytes": [0-9]*' | head -n 1 | grep -o '[0-9]*$'; }
more=$(($(data_bytes "$packed" data.test=packed/member-002.nc) - $(data_bytes)))
holds "the plan has $more bytes more" test $more -ge 221184 -a $more -le 240000

# Killed ranks: one, which ends the others, or all. Memory without a name in /dev/shm ends with the ranks; the file of Open MPI is mpirun's.
unnamed() { grep -q 'memfd:weft-arena' "$1" && ! grep -vE 'vader_segment|sm_segment' "$1" | grep -q /dev/shm/; }
for killed in 1 2; do
    background log train -n 2 run.name=kill$killed "$frames" train.epochs=1000000
    job=$!
    soon grep -q 'step 1/' log
    ranks=$(rank_pids "a.yaml run.name=kill$killed" | cut -d' ' -f2)
    holds 'two ranks run' test "$(wc -w <<<"$ranks")" = 2
    for rank in $ranks; do holds 'it shares memory without a name' unnamed "/proc/$rank/maps"; done
    for rank in $(head -n $killed <<<"$ranks"); do kill -KILL "$rank"; done
    rc=0
    wait $job || rc=$?
    holds 'the job fails' test $rc -gt 0
    for rank in $ranks; do holds 'no rank lives on' soon sh -c "! kill -0 $rank 2>/dev/null"; done
done
finish
