#!/usr/bin/env bash
# train.ema: evaluations of a run use the average, and its checkpoints have it; eval, predict and export take it unless --no-ema says
# otherwise, and say so; so does model.init_from unless model.init_ema does; a run that resumes with the average turned on or off says
# what happens to it; the plan has its memory; sparse tables are refused.
# usage: ema.sh     (WEFT=build/weft)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
noise_idx 64 8 10 images.h5
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {name: conv, channels: 8, kernel: 3}, batch_norm: {name: bn}, relu, flatten, dense: {name: fc, width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {steps: 6, batch: 16, micro_batch: 4, threads: 1, ema: 0.9, ema_ramp: 3}
optim: {lr: 0.1, momentum: 0.9}
YAML
last() { echo "runs/$1/checkpoints/step-0000000$2.h5"; }
loss() { grep -o '"eval_loss": *[0-9.]*' "$1" | tail -1 | grep -o '[0-9.]*$'; }
tensor() { h5dump -d "$2" -b LE -o "$3" "$1" >/dev/null; }

check 0 '' "$WEFT" train net.yaml run.name=a
from=$(last a 6)
"$WEFT" ckpt info "$from" >info
for name in fc.weight bn.bias bn.running_var; do holds "the file has the EMA of $name" grep -q " /ema/$name " info; done
check 0 'good' "$WEFT" ckpt check "$from"

# Shards of it, saved in the background.
check 0 'evaluations use the EMA' "$WEFT" train -n 2 net.yaml run.name=two grid.zero=2
check 0 'to the bit' "$WEFT" ckpt diff "$from" "$(last two 6)"

# The run's own evaluation is that of the EMA.
check 0 'using the EMA' "$WEFT" eval net.yaml --checkpoint "$from" --json
cp out ema.json
check 0 '' "$WEFT" eval net.yaml --checkpoint "$from" --json --no-ema
cp out params.json
holds 'eval says which' test "$(grep -c '"ema": *true' ema.json)$(grep -c '"ema": *true' params.json)" = 10
holds 'they differ' test "$(loss ema.json)" != "$(loss params.json)"
holds 'training evaluates the EMA' test "$(printf %.6f "$(loss runs/a/metrics.jsonl)")" = "$(printf %.6f "$(loss ema.json)")"
check 0 'the EMA of the parameters' "$WEFT" eval net.yaml -n 2 --checkpoint "$from"

# Exports.
check 0 'values: the EMA' "$WEFT" ckpt export "$from" -o ema.safetensors
check 0 '' "$WEFT" ckpt export "$from" -o params.safetensors --no-ema
holds 'exports differ' test "$(cmp -s ema.safetensors params.safetensors; echo $?)" = 1
tensor "$from" /ema/fc.bias want
hex() { od -An -v -tx1 "$1" | tr -d ' \n'; }
holds 'the export has the EMA' grep -qF "$(hex want)" <(hex ema.safetensors)
holds 'and without it not' test "$(hex params.safetensors | grep -cF "$(hex want)")" = 0
check 0 'values: the EMA' "$WEFT" ckpt export "$from" --onnx -o ema.onnx
check 0 '' "$WEFT" ckpt shrink "$from" --method l1 --sparsity 0.5 -o small.h5
"$WEFT" ckpt info small.h5 >info
holds 'the EMA shrinks, too' grep -q '/ema/conv.weight  *4x' info

# Beginning with it: a step that moves nothing leaves what was taken.
still="train.steps=1 optim.lr=1e-30 optim.momentum=0 train.ema=0"
check 0 'tensors (EMA)' "$WEFT" train net.yaml run.name=init model.init_from="$from" $still
check 0 'beginning with' "$WEFT" train net.yaml run.name=raw model.init_from="$from" model.init_ema=false $still
for pair in init:ema raw:params; do
    tensor "$(last ${pair%:*} 1)" /params/fc.weight got
    tensor "$from" /${pair#*:}/fc.weight want
    holds "model.init_from takes ${pair#*:}" cmp -s got want
done
check 78 'needs model.init_from' "$WEFT" train net.yaml run.name=none model.init_ema=false

# Turned off and on.
check 78 'train.ema' "$WEFT" train net.yaml run.name=a train.steps=8 train.ema=0
check 0 'which ends here' "$WEFT" train net.yaml run.name=off train.steps=8 train.ema=0 checkpoint.resume="$from"
"$WEFT" ckpt info "$(last off 8)" >info
holds 'no EMA' test "$(grep -c /ema/ info)" = 0
check 0 'begins with its parameters' "$WEFT" train net.yaml run.name=on train.steps=9 checkpoint.resume="$(last off 8)"
"$WEFT" ckpt info "$(last on 9)" >info
holds 'an EMA again' grep -q ' /ema/fc.weight ' info

"$WEFT" plan net.yaml --json >plan.json
holds 'the plan has its bytes' grep -q '"average_bytes": *[1-9]' plan.json
check 78 'train.ema' "$WEFT" train net.yaml train.ema=1
check 78 'ema_ramp' "$WEFT" train net.yaml train.ema_ramp=-1
cat >table.yaml <<'YAML'
model: {name: wide_deep, hidden: [8], vocab: 20}
train: {steps: 2, batch: 4, loss: sigmoid, ema: 0.9}
optim: {name: adagrad, lr: 0.1}
YAML
check 78 'sparse tables, of whose rows there is no average' "$WEFT" plan table.yaml --input 13+26
check 78 'servers update all parameters with one learning rate' "$WEFT" plan table.yaml --input 13+26 --ranks 3 train.ema=0 \
    grid.mode=async grid.servers=1 optim.warmup_steps=2 optim.warmup_bias_lr=0.1
finish
