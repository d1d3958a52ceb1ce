#!/usr/bin/env bash
# data.refresh: files that appear while a run goes on are learnt from the next epoch on, on all ranks; a checkpoint records the files, so that a
# resumed run finishes its epoch with the same ones; incomplete files wait. data.patch trains on any grid with the same bits.
# cores: 2
. "$(dirname "$0")/common.bash"
check 0 'wrote waves: 6 members' "$WEFT" data make shallow-water -o waves --size 16x16 --members 6 --steps 8
check 0 'wrote other: 1 member' "$WEFT" data make shallow-water -o other --size 16x32 --members 1 --steps 8
mkdir sim
touch -d '1 minute ago' waves/*.nc other/*.nc
cp -p waves/member-000.nc waves/member-001.nc sim/
cat >a.yaml <<'YAML'
run: {name: a}
data:
  train: sim/*.nc
  variables: {inputs: [h, u, v], targets: [h, u, v]}
  window: {inputs: [0], targets: [1]}
  predict: change
  refresh: epoch
model: {layers: [conv2d: {channels: 4, kernel: 3, pad: same}, silu, conv2d: {channels: 3, kernel: 3, pad: same}]}
train: {loss: mse, batch: 2, micro_batch: 1, log_every: 1}
optim: {name: sgd, lr: 1e-3}
YAML
# After the first epoch a file is there, one that is being written, and one that is no file of this kind, and one of another size.
cat >hook.sh <<'SH'
[ ! -e sim/member-002.nc ] || exit 0
cp -p waves/member-002.nc sim/
cp -p other/member-000.nc sim/member-001-small.nc
head -c 9000 waves/member-003.nc >sim/member-003.nc
touch -d '1 minute ago' sim/member-003.nc
cp waves/member-004.nc sim/
touch sim/member-004.nc
SH
train() { timeout 120 "$WEFT" train "$@"; }
check 0 'epoch 2: 1 new file; the training set has 3 files and 21 samples' train -n 2 a.yaml 'run.hook=sh hook.sh' 'run.hook_on=[epoch]' run.hook_wait=true \
    checkpoint.every_steps=2 checkpoint.keep=99 train.steps=14
holds 'a file that is not complete is named' grep -q 'member-003.nc: .*it is left for the next epoch' both
holds 'a file that is being written is named' grep -q 'member-004.nc: was written to a moment ago; it is left for the next epoch' both
misfit='member-001-small.nc: dimensions of h differ from those in sim/member-000.nc, so the two cannot be one set; the training set goes on without it'
holds 'a file of another size is named' grep -q "$misfit" both
# The run goes on in its second epoch with the recorded files, although there is one more.
rm sim/member-003.nc
touch -d '1 minute ago' sim/member-004.nc
cp -r runs/a before
check 0 'data.train: the 3 files that' train a.yaml train.steps=34
holds 'the epoch does not begin again' sh -c '! grep -q "begins again" both'
holds 'the next epoch takes the new file' grep -q 'epoch 3: 1 new file; the training set has 4 files and 28 samples' both
holds 'a file that stays out is named once in two epochs' test "$(grep -c "$misfit" both)" = 1
rm -rf runs/b && cp -r before runs/b
check 0 'epoch 3: 1 new file' train -n 2 a.yaml run.name=b train.steps=34
newest() { "$WEFT" train --newest a.yaml run.name="$1"; }
rm sim/member-001-small.nc
check 0 'equal: 8 tensors, to the bit' "$WEFT" ckpt diff "$(newest a)" "$(newest b)"
check 78 'data.refresh' train a.yaml run.name=c data.refresh=always
check 78 'needs a pattern in data.train that new files match, as sim/member-000.nc is none' train a.yaml run.name=c data.train=sim/member-000.nc
check 66 'data.train: no file matches the pattern none/*.nc' train a.yaml run.name=c 'data.train=none/*.nc'
check 66 'data.test: no file matches the pattern none/*.nc' train a.yaml run.name=c 'data.test=none/*.nc'
check 78 'data.refresh: optim.name lbfgs needs the gradient of the same samples' train a.yaml run.name=c optim.name=lbfgs
check 78 'data.patch=8x12: optim.name lbfgs needs the gradient of the same samples' train a.yaml run.name=c optim.name=lbfgs data.refresh=never data.patch=8x12

verify() { timeout 240 "$WEFT" verify a.yaml train.epochs=1 --steps 2 data.refresh=never data.train=waves/member-000.nc "$@"; }
hash() { sed -n '/^1x1x1/ { s/^.*  \([0-9a-f]\{16\}\).*/\1/p; q; }' out; }
check 0 'the same to the bit' verify --grids 1x1x1,2x1x1 --threads 1,2 data.patch=8x12
patch=$(hash)
check 0 'the same to the bit' verify --grids 1x1x1,2x1x1 data.patch=8x12 'data.variables={inputs: [h, u, v], extra: [row, column], targets: [{name: h, weight: 2}, u, v]}'
check 0 'the same to the bit' verify --grids 1x1x1,1x2x1
holds 'patches have other bits' test "$(hash)" != "$patch"
check 0 'evaluation after step' train a.yaml run.name=tiles data.refresh=never data.train=waves/member-000.nc data.test=waves/member-005.nc data.patch=8x12 train.epochs=1
holds 'an evaluation counts samples, not tiles' grep -q 'after step .*(7 samples' both
holds 'outputs for targets are no classes' grep -q 'parameters, 3 outputs; 7 samples' both
check 0 'wrote long.nc' timeout 60 "$WEFT" predict a.yaml run.name=tiles data.test=waves/member-005.nc data.patch=8x12 data.refresh=never --rollout 2 -o long.nc
# Other units than those of the training are refused, whatever the set is for.
check 0 'wrote fronts: 1 members' "$WEFT" data make burgers -o fronts --size 16x16 --members 1 --steps 3
uv=(run.name=units data.refresh=never data.train=waves/member-000.nc 'data.variables={inputs: [u, v], targets: [u, v]}' 'model.layers=[conv2d: {channels: 2, kernel: 1}]')
check 0 '' train a.yaml "${uv[@]}" train.steps=1
check 65 'fronts/member-000.nc: its fields have u in 1, but u in m s-1 for the training of' "$WEFT" predict a.yaml "${uv[@]}" fronts/member-000.nc -o no.nc
check 65 'fronts/member-000.nc: has u in 1, but waves/member-000.nc has u in m s-1' "$WEFT" eval a.yaml "${uv[@]}" data.test=fronts/member-000.nc
check 78 'has 32 rows, but the inputs of' train a.yaml run.name=c data.patch=32x8
finish
