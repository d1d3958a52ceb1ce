#!/usr/bin/env bash
# A run that begins with parameters of another: the same on every grid; a classifier of another size gets new values; names may have
# another prefix; all tensors that do not fit are named; path and hash of the file are in the run's checkpoints.
# usage: init_from.sh     (WEFT=build/weft)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
noise_idx 64 8 10 images.h5
noise_idx 64 8 12 images12.h5
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, flatten, dense: {width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {steps: 6, batch: 16, micro_batch: 4, threads: 1}
optim: {lr: 0.1, momentum: 0.9}
YAML
check 0 '' "$WEFT" train net.yaml run.name=source
from=runs/source/checkpoints/step-00000006.h5
tensor() { h5dump -d "$2" -b LE -o "$3" "$1" >/dev/null; }
head=$("$WEFT" ckpt info $from | sed -n 's|.*/params/\(dense[^.]*\)\.weight.*|\1|p')
conv=$("$WEFT" ckpt info $from | sed -n 's|.*/params/\(conv[^.]*\)\.weight.*|\1|p')
begin() { "$WEFT" train net.yaml model.init_from=$from "$@"; }

# With a step that changes nothing, all parameters are those at the end of the other run.
check 0 "beginning with $from, step 6, 8 tensors" begin run.name=still train.steps=1 optim.lr=1e-30 optim.momentum=0
for name in params/$conv.weight params/$head.bias; do
    tensor $from /$name a && tensor runs/still/checkpoints/step-00000001.h5 /$name b
    holds "$name is the source's" cmp -s a b
done
check 0 "began with $from, step 6" "$WEFT" ckpt info runs/still/checkpoints/step-00000001.h5
check 0 '"init_from":' "$WEFT" ckpt info --json runs/still/checkpoints/step-00000001.h5

check 0 '' begin run.name=one
for grid in "2 grid.dp=2" "4 grid.pp=2 grid.zero=3"; do
    check 0 '' begin -n $grid run.name="grid-${grid%% *}"
    check 0 'to the bit' "$WEFT" ckpt diff runs/one/checkpoints/step-00000006.h5 "runs/grid-${grid%% *}/checkpoints/step-00000006.h5"
done
check 65 'differ' "$WEFT" ckpt diff $from runs/one/checkpoints/step-00000006.h5
check 0 'this run is complete' begin run.name=one

check 0 "$head has another size there, so it begins anew" begin run.name=head train.steps=1 optim.lr=1e-30 data.train=images12.h5 data.test=images12.h5 \
    'model.layers=[conv2d: {channels: 8, kernel: 3}, batch_norm, relu, flatten, dense: {width: 12}]'
tensor $from /params/$conv.weight a && tensor runs/head/checkpoints/step-00000001.h5 /params/$conv.weight b
holds 'the rest is the source'"'"'s' cmp -s a b
check 0 "anew: $conv.weight, $conv.bias" begin run.name=fresh "model.init_fresh=[$conv]"
check 65 "missing in the file: $head.weight, $head.bias; not in this model: other.bias, other.weight" begin run.name=none "model.init_rename=[$head.:other.]"
check 0 '' begin run.name=renamed "model.init_rename=[$conv.:$conv., x:y]"
check 65 "of another size: $conv.weight (8x1x3x3 in the file, 8x1x5x5 in the model)" begin run.name=none \
    'model.layers=[conv2d: {channels: 8, kernel: 5, pad: 1}, batch_norm, relu, flatten, dense: {width: 10}]'
check 78 "'fc9' matches no layer" begin run.name=none 'model.init_fresh=[fc9]'
check 0 "begins as 'x:y' says" begin run.name=prefix "model.init_rename=[x:y]"
check 78 'the same name' begin run.name=none "model.init_rename=[$conv.weight:$conv.bias]"
check 78 'is not OLD:NEW' begin run.name=none 'model.init_rename=[fc9]'
check 78 'needs model.init_from' "$WEFT" train net.yaml run.name=none 'model.init_fresh=[fc9]'
check 78 'keep one of the two' begin run.name=none checkpoint.resume=$from
check 65 'not a checkpoint' "$WEFT" train net.yaml run.name=none model.init_from=images.h5
check 66 'No such file' "$WEFT" train net.yaml run.name=none model.init_from=none.h5
head -c 3000 $from >cut.h5
check 65 '' "$WEFT" train net.yaml run.name=none model.init_from=cut.h5

# Rows of a table are copied, too.
check 0 '' "$WEFT" data make criteo-like -o clicks.h5 --samples 512
cat >clicks.yaml <<'YAML'
model: {name: wide_deep, width: 4, hidden: [16]}
data:  {train: clicks.h5}
train: {batch: 128, micro_batch: 32, threads: 1, loss: sigmoid, epochs: 1}
optim: {lr: 0.1}
YAML
check 0 '' "$WEFT" train clicks.yaml run.name=clicks
from=runs/clicks/checkpoints/step-00000004.h5
clicks() { "$WEFT" train clicks.yaml model.init_from=$from train.steps=1 optim.lr=1e-30 "$@"; }
check 0 "beginning with $from, step 4, 8 tensors" clicks run.name=rows
for name in tables/embedding/ids tables/embedding/rows; do
    tensor $from /$name a && tensor runs/rows/checkpoints/step-00000001.h5 /$name b
    holds "$name is the source's" cmp -s a b
done
check 0 '' clicks -n 3 run.name=rows-3 grid.servers=1
check 0 'to the bit' "$WEFT" ckpt diff runs/rows/checkpoints/step-00000001.h5 runs/rows-3/checkpoints/step-00000001.h5
check 0 'anew: embedding/ids#0000, embedding/rows#0000' clicks run.name=anew 'model.init_fresh=[embedding]'
check 65 'embedding/rows#0000 (' clicks run.name=none model.width=8
finish
