#!/usr/bin/env bash
# train.rollout: the same bits on grids, with threads, shards, recomputation and pipelines; checkpoints for any number of steps; what is
# refused.
# cores: 2
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"
check 0 'wrote waves: 2 members' "$WEFT" data make shallow-water -o waves --size 16x16 --members 2 --steps 12
mkdir all
cat >a.yaml <<'YAML'
run: {name: a, dir: all/runs}
data:
  train: waves/member-000.nc
  test: waves/member-001.nc
  variables: {inputs: [h, u, v], static: [orography], extra: [row, hour], targets: [h, u]}
  window: {inputs: [-1, 0], targets: [1]}
  predict: change
model: {name: unet, channels: [8, 16], up: bilinear, pad_mode: [reflect, circular], attention: 2, film: 6}
train: {loss: mse, epochs: 1, batch: 4, micro_batch: 1, rollout: 3}
optim: {name: adamw, lr: 1e-3}
YAML
verify() { timeout 240 "$WEFT" verify a.yaml --steps 2 "$@"; }
hash() { sed -n '/^1x1x1/ { s/^.*  \([0-9a-f]\{16\}\).*/\1/p; q; }' out; }
check 0 'the same to the bit' verify --grids 1x1x1,2x1x1 --zero 0,2
whole=$(hash)
check 0 'the same to the bit' verify --grids 1x1x1 --threads 1,2 grid.recompute=block
holds 'recomputation changes no bit' test "$(hash)" = "$whole"
check 0 'the same to the bit' verify --grids 1x1x1,1x2x1 grid.pipeline_schedule=interleaved grid.chunks=3
holds 'interleaved chunks change no bit' test "$(hash)" = "$whole"
check 0 'the same to the bit' verify --grids 1x1x1,1x2x1 train.rollout=2
holds 'another number of steps has other bits' test "$(hash)" != "$whole"
check 0 'chunk 5' "$WEFT" plan a.yaml --ranks 2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=3
holds 'steps begin on stage 0' test "$(grep -c 'stage 0 .* layers, step[123].state to' out)" = 3
holds 'stage 1 begins at the same layer in all steps' test \
    "$(sed -n 's/.*stage 1 .* layers, \(step[23]\.\)\{0,1\}\([^ ]*\) to .*/\2/p' out | uniq -c | sed 's/^ *\([0-9]*\) .*/\1/')" = 3
check 78 'set grid.pipeline_schedule to interleaved and grid.chunks to the number of steps' "$WEFT" plan a.yaml --ranks 2 grid.pp=2

train() { timeout 120 "$WEFT" train a.yaml "$@"; }
check 0 'evaluation after step 3' train train.rollout=1 run.name=one
check 0 'evaluation after step 2' train run.name=three model.init_from=all/runs/one/checkpoints/best.h5
check 78 'was written with `train.rollout: 1`' train run.name=one
check 0 'evaluation after step' train run.name=more checkpoint.resume=all/runs/three/checkpoints/best.h5 train.rollout=1 train.epochs=2
eval() { timeout 100 "$WEFT" eval a.yaml run.name=three "$@"; }
check 0 'h_9h' eval
check 0 'h_3h' eval train.rollout=1
holds 'one step has no later lead' sh -c '! grep -q h_6h both'
check 0 '' timeout 100 "$WEFT" predict a.yaml run.name=three --rollout 4
check 0 'wrote model.onnx' "$WEFT" ckpt export all/runs/three/checkpoints/best.h5 --onnx -o model.onnx

# A value that is missing at the start of a forecast: evaluation and forecast compute with the mean in its place.
cat >gap.yaml <<YAML
run: {name: gap}
data:
  train: $root/tests/golden/fields/kinds.nc
  test: $root/tests/golden/fields/kinds.nc
  variables: {inputs: [gappy], targets: [gappy]}
  window: {inputs: [0], targets: [1]}
  predict: change
model: {layers: [conv2d: {channels: 4, kernel: 3, pad: same}, tanh, conv2d: {channels: 1, kernel: 3, pad: same}]}
train: {loss: mse, steps: 4, batch: 2, rollout: 3, threads: 1}
YAML
rmse() { grep -o '"rmse": [0-9.]*' "$1" | cut -c9-15; }
check 0 'on 2 samples' "$WEFT" train gap.yaml
check 0 '' "$WEFT" eval gap.yaml --json
rmse out >evaluated
check 0 '' "$WEFT" predict gap.yaml --rollout 3 --samples 0-1 --json
rmse out >predicted
holds 'three leads' test "$(wc -l <evaluated)" = 3
holds "the errors of a forecast are those of the evaluation: $(paste evaluated predicted)" cmp evaluated predicted

check 78 'choose another norm (model.norm: group)' train model.norm=batch
check 78 'train.rollout=33: 33 is out of range' train train.rollout=33
check 78 'no target is an input' train 'data.variables={inputs: [u, v], targets: [h]}' data.predict=value
check 78 'needs a target after the last of the inputs' train 'data.window={inputs: [-1, 0], targets: [-2]}'
finish
