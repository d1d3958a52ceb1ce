#!/usr/bin/env bash
# A checkpoint with fewer channels: train, shrink, continue training on every grid, and evaluate with the unchanged configuration;
# optimizer state is shrunk, too; sparsity 0 changes no byte; impossible requests are refused.
# usage: shrink.sh     (WEFT=build/weft)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
noise_idx 64 8 10 images.h5
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5, test: images.h5}
train: {steps: 1, batch: 16, micro_batch: 4, threads: 1}
YAML
cat >net.yaml <<'YAML'
model: {name: resnet18, stem: small, width: 8}
data:  {train: images.h5, test: images.h5}
train: {steps: 4, batch: 16, micro_batch: 4, threads: 1}
optim: {lr: 0.1, momentum: 0.9, slim: 1e-3, clip: 5}
YAML
step() { printf 'runs/%s/checkpoints/step-%08d.h5' "$1" "$2"; }
from=$(step whole 4)
check 0 '' "$WEFT" train net.yaml run.name=whole
shrink() { "$WEFT" ckpt shrink "$from" --method l1 --sparsity .5 "$@"; }

# optim.slim gives the same bits wherever a scale is updated.
for grid in "grid.dp=2 grid.zero=3" "grid.pp=2"; do
    name=slim-${grid//[. =]/}
    check 0 '' "$WEFT" train -n 2 net.yaml run.name="$name" $grid
    check 0 'to the bit' "$WEFT" ckpt diff "$from" "$(step "$name" 4)"
done
check 0 '' "$WEFT" train net.yaml run.name=plain optim.slim=0
check 65 '' "$WEFT" ckpt diff "$from" "$(step plain 4)"
check 78 'needs a batch norm that is trained' "$WEFT" train lenet.yaml run.name=none optim.slim=1e-4

# A group norm with as many groups as channels: each group is removed with its channel, and every verb accepts the file.
cat >norm.yaml <<'YAML'
model: {layers: [conv2d: {name: a, channels: 8, kernel: 3}, group_norm: {groups: 8}, relu, conv2d: {name: b, channels: 8, kernel: 1},
        group_norm: {groups: 2}, relu, global_pool, flatten, dense: {width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {steps: 2, batch: 16, micro_batch: 4, threads: 1}
YAML
check 0 '' "$WEFT" train norm.yaml run.name=norm
check 0 '    8 -> 6      a' "$WEFT" ckpt shrink "$(step norm 2)" --method l1 --sparsity .25 -o norm.h5
holds 'of two groups one each' grep -q '    8 -> 6      b (equally in 2 parts)' out
check 0 '    8 -> 7      a' "$WEFT" ckpt shrink "$(step norm 2)" --method l1 --sparsity .2 -o fewer.h5
holds 'and of two groups none' grep -q '    8 -> 8      b (equally in 2 parts, of which each would lose less than one)' out
check 0 'top-1' "$WEFT" eval norm.yaml --checkpoint norm.h5
check 0 '' "$WEFT" train norm.yaml run.name=norm-on model.init_from=norm.h5
check 0 '    6 -> 3      a' "$WEFT" ckpt shrink norm.h5 --method l2 --sparsity .5 -o norm2.h5
check 78 'no channel is removed: --sparsity 0.1 of the 8 channels of' "$WEFT" ckpt shrink "$(step norm 2)" --method l1 --sparsity .1 -o no.h5

# With sparsity 0 the bytes are the same. With one half: the table, the numbers, the widths.
check 0 '--sparsity 0 removes no channel: zero.h5 is the same model as' "$WEFT" ckpt shrink "$from" --method fpgm --sparsity 0 -o zero.h5
check 0 'to the bit' "$WEFT" ckpt diff "$from" zero.h5
check 0 '    8 -> 4      layer1.0.conv1' shrink -o half.h5
holds 'parameters are named' grep -q '^parameters  176258 -> 44' both
check 64 'is already there' shrink -o half.h5
for method in l2 fpgm slim; do
    check 0 '"parameters_left":' "$WEFT" ckpt shrink "$from" --method $method --sparsity .5 -o $method.h5 --json
done
check 0 '(whole: --keep)' shrink --keep 'layer1.*,layer2.0.conv1' --force -o kept.h5
holds 'what shares channels stays, too' grep -q '8 -> 8  *conv1, layer1.0.conv2' both
check 0 '   16 -> 8 ' shrink --round 8 --force -o kept.h5
check 0 '/optim/momentum/layer4.1.conv2.weight' "$WEFT" ckpt info half.h5
holds 'the state is as small as its parameter' \
    test "$("$WEFT" ckpt info half.h5 | awk '/layer4.1.conv2.weight/ { print $2 }' | sort -u)" = 32x32x3x3

# The configuration of the training still works for evaluation and training.
check 0 'model.widths are those of half.h5: 20 layers' "$WEFT" eval net.yaml --checkpoint half.h5
check 0 'parameters' "$WEFT" plan net.yaml model.init_from=half.h5
check 0 'model.widths are those of half.h5' "$WEFT" train net.yaml run.name=one model.init_from=half.h5 checkpoint.every_steps=2
check 0 'this run is complete' "$WEFT" train net.yaml run.name=one model.init_from=half.h5 checkpoint.every_steps=2
for grid in "grid.dp=2" "grid.pp=2 grid.zero=1"; do
    name=grid-${grid//[. =]/}
    check 0 '' "$WEFT" train -n 2 net.yaml run.name="$name" $grid model.init_from=half.h5 checkpoint.every_steps=2
    check 0 'to the bit' "$WEFT" ckpt diff "$(step one 4)" "$(step "$name" 4)"
done
check 0 'resuming from half.h5' "$WEFT" train net.yaml run.name=on checkpoint.resume=half.h5 train.steps=6
check 0 'resuming from half.h5' "$WEFT" train -n 2 net.yaml run.name=on2 checkpoint.resume=half.h5 train.steps=6
check 0 'to the bit' "$WEFT" ckpt diff "$(step on 6)" "$(step on2 6)"
check 0 'model.widths are those of runs/on/' "$WEFT" train net.yaml run.name=on train.steps=6
# The run's own checkpoint has precedence over the file from which the run began, which may have been replaced since.
cp zero.h5 replaced.h5
check 0 'model.widths are those of runs/on/' "$WEFT" train net.yaml run.name=on checkpoint.resume=replaced.h5 train.steps=7
check 0 '    4 -> 2      layer1.0.conv1' "$WEFT" ckpt shrink "$(step on 6)" --method l2 --sparsity .5 -o quarter.h5
check 0 'model.widths are those of quarter.h5' "$WEFT" eval net.yaml --checkpoint quarter.h5
# With all widths written out it is the same model; with other widths it is not.
check 65 '' "$WEFT" eval net.yaml --checkpoint half.h5 'model.widths={conv1: 8}'
check 78 "no layer 'layer1.0.conv1'" "$WEFT" eval lenet.yaml --checkpoint half.h5

# Impossible requests.
check 64 "--method" "$WEFT" ckpt shrink "$from" --method l3 --sparsity .5 -o none.h5
check 64 'nothing would be left' "$WEFT" ckpt shrink "$from" --method l1 --sparsity 1 -o none.h5
check 64 '--sparsity' "$WEFT" ckpt shrink "$from" --method l1 --sparsity -.1 -o none.h5
check 64 'matches no layer' shrink --keep 'conv9*' -o none.h5
check 66 'describe a sample by --input' shrink -o none.h5 data.train=gone.h5
check 0 'wrote' shrink --input 1x8x8 -o elsewhere.h5 data.train=gone.h5 model.classes=10
check 65 'of its configuration' shrink -o none.h5 model.width=16
check 0 '' "$WEFT" ckpt export "$from" -o net.safetensors
check 0 '' "$WEFT" ckpt import net.safetensors -o bare.h5
check 78 'holds no configuration' "$WEFT" ckpt shrink bare.h5 --method l1 --sparsity .5 -o none.h5
check 0 'wrote' "$WEFT" ckpt shrink bare.h5 --config net.yaml --method l1 --sparsity .5 -o less.h5
check 0 'model.widths are those of less.h5' "$WEFT" eval net.yaml --checkpoint less.h5
# With the user's configuration every verb uses the widths of the checkpoint.
check 0 'model.widths are those of half.h5: 20 layers' "$WEFT" ckpt export half.h5 --onnx -o half.onnx --config net.yaml
check 0 '' "$WEFT" ckpt export half.h5 --onnx -o half-own.onnx
holds 'the same model' cmp half.onnx half-own.onnx
check 0 'model.widths are those of half.h5: 20 layers' "$WEFT" ckpt shrink half.h5 --method l1 --sparsity .5 -o quarter-own.h5 --config net.yaml
check 0 '' "$WEFT" ckpt shrink half.h5 --method l1 --sparsity .5 -o quarter-plain.h5
check 0 'to the bit' "$WEFT" ckpt diff quarter-own.h5 quarter-plain.h5
check 65 'of another size: ' "$WEFT" ckpt export half.h5 --onnx -o none.onnx --config net.yaml 'model.widths={conv1: 8}'
# Tensors that were exported and imported without their configuration: the message names the key with the widths.
check 0 '' "$WEFT" ckpt export half.h5 -o half.safetensors
check 0 '' "$WEFT" ckpt import half.safetensors -o half-bare.h5
check 65 'needs model.widths: {conv1: 4, ...}, the first number of each weight in the file' "$WEFT" eval net.yaml --checkpoint half-bare.h5
widths=$("$WEFT" ckpt info half-bare.h5 | sed -n 's|^ */params/\([^ ]*\)\.weight *\([0-9]*\)x[0-9]*x.*|\1: \2|p' | paste -sd,)
check 0 'top-1' "$WEFT" eval net.yaml --checkpoint half-bare.h5 "model.widths={$widths}"
check 65 'of another size: ' "$WEFT" eval net.yaml --checkpoint "$from" model.width=4
holds 'wider tensors are not called shrunk' test "$(grep -c model.widths both)" = 0
# All tensors that do not fit are named, up to a limit.
check 65 'layer1.0.conv1.weight (4x4x3x3 in the file, 8x8x3x3 in the model)' "$WEFT" eval net.yaml --checkpoint half.h5 'model.widths={conv1: 8}'
holds 'and how many more there are' grep -qE ' and [0-9]+ more' both
check 0 '' "$WEFT" train lenet.yaml
check 78 'this model has none' "$WEFT" ckpt shrink "$(step lenet 1)" --method slim --sparsity .5 -o none.h5
holds 'no file is left of what failed' test ! -e none.h5
finish
