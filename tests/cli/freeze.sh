#!/usr/bin/env bash
# Frozen layers: parameters from another run that are frozen stay the same to the end, on every grid; the plan prints which are trained
# and at which rate, and that no gradient is sent to a frozen stage; checkpoints have state only for trained parameters; a run resumes
# only with the same list; if everything is frozen, the run changes nothing and warns.
# usage: freeze.sh     (WEFT=build/weft)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
noise_idx 64 8 10 images.h5
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {name: conv, channels: 8, kernel: 3}, batch_norm: {name: bn}, relu, flatten, dense: {name: fc, width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {steps: 4, batch: 16, micro_batch: 4, threads: 1}
optim: {lr: 0.1, momentum: 0.9, clip: 1}
YAML
check 0 '' "$WEFT" train net.yaml run.name=source
from=runs/source/checkpoints/step-00000004.h5
tune() { "$WEFT" train net.yaml model.init_from=$from 'model.freeze=[conv, bn]' "$@"; }
last() { echo "runs/$1/checkpoints/step-0000000$2.h5"; }
tensor() { h5dump -d "$2" -b LE -o "$3" "$1" >/dev/null; }
same() { tensor "$1" "$3" a && tensor "$2" "$3" b && cmp -s a b; }

check 0 '2986 parameters (2890 trained)' tune run.name=one
for name in params/conv.weight params/bn.bias buffers/bn.running_var; do
    holds "$name stayed" same $from "$(last one 4)" /$name
done
holds 'fc.weight did not' test "$(same $from "$(last one 4)" /params/fc.weight; echo $?)" = 1
"$WEFT" ckpt info "$(last one 4)" >info
holds 'state of fc' grep -q '/optim/momentum/fc.weight' info
holds 'no state of conv' test "$(grep -c '/optim/momentum/conv' info)" = 0
for grid in "4 grid.dp=4 grid.zero=3" "2 grid.pp=2"; do
    check 0 '' tune -n $grid run.name="grid-${grid%% *}"
    check 0 'to the bit' "$WEFT" ckpt diff "$(last one 4)" "$(last "grid-${grid%% *}" 4)"
done

# At step 0 it evaluates to the same loss as its source.
check 0 '' tune run.name=still train.steps=1 optim.lr=1e-30 optim.momentum=0
"$WEFT" eval net.yaml run.name=source --checkpoint $from --json 2>/dev/null | grep -o '"eval_loss": *[0-9.]*' >want || true
"$WEFT" eval net.yaml run.name=still 'model.freeze=[conv, bn]' --checkpoint "$(last still 1)" --json 2>/dev/null | grep -o '"eval_loss": *[0-9.]*' >got || true
holds 'evaluations are equal' cmp -s want got
holds 'there is one' test -s want

# A changed list makes another run.
check 78 'model.freeze' "$WEFT" train net.yaml run.name=one 'model.freeze=[conv]' model.init_from=$from train.steps=6
check 78 'freeze_norm: all' "$WEFT" train net.yaml run.name=one 'model.freeze=[conv, bn]' model.freeze_norm=affine model.init_from=$from train.steps=6
check 65 'model.freeze' "$WEFT" train net.yaml run.name=more 'model.freeze=[conv]' checkpoint.resume="$(last one 4)" train.steps=6
check 65 'model.freeze' "$WEFT" train net.yaml run.name=less 'model.freeze=[conv, bn, fc.bias]' checkpoint.resume="$(last one 4)" train.steps=6
check 0 '' "$WEFT" train net.yaml run.name=on 'model.freeze=[conv, bn]' checkpoint.resume="$(last one 4)" train.steps=6
holds 'conv.weight stayed' same $from "$(last on 6)" /params/conv.weight
check 78 "'conv9' matches no layer" "$WEFT" train net.yaml run.name=none 'model.freeze=[conv9]'
check 78 'needs model.freeze' "$WEFT" train net.yaml run.name=none model.freeze_norm=none
check 78 'write lr_scale' "$WEFT" train net.yaml run.name=none 'optim.groups=[{match: fc.*, lr_factor: 2}]'

check 0 'nothing is trained' "$WEFT" train net.yaml run.name=all 'model.freeze=["*"]' model.init_from=$from
for name in params/conv.weight params/fc.weight params/fc.bias buffers/bn.running_mean; do
    holds "$name stayed" same $from "$(last all 4)" /$name
done

# The plan of frozen layers.
plan() { "$WEFT" plan net.yaml --json "$@"; }
plan 'model.freeze=[conv, bn]' optim.layer_decay=0.5 >json
number() { grep -o "\"$1\": *[0-9.e-]*" "${2:-json}" | head -n 1 | sed 's/.*: *//'; }
holds 'frozen ones' test "$(number parameters_frozen)" = 96
holds 'all' test "$(number parameters)" = $(($(number parameters_trained) + 96))
rate() { tr -d ' \n' <json | grep -o "\"name\":\"$1\",\"elements\":[0-9]*,\"frozen\":[a-z]*,\"lr\":[0-9.]*" | sed 's/.*"lr"://'; }
holds 'no rate' test "$(rate conv.weight)" = 0
holds 'the head'"'"'s rate' test "$(rate fc.weight)" = 0.1
plan optim.layer_decay=0.5 >json
holds 'two tiers below it' test "$(rate conv.weight)" = 0.025 -a "$(rate bn.bias)" = 0.05
plan 'model.freeze=[conv, bn]' --ranks 2 grid.pp=2 'grid.cuts=[fc]' >json
holds 'nothing comes back' grep -q '"gradients_out_bytes": 0' json
check 0 'frozen' "$WEFT" plan net.yaml 'model.freeze=[conv, bn]'
check 0 'frozen: 8,' "$WEFT" plan "$root/jobs/finetune.yaml" --input 3x64x64 model.classes=102 train.micro_batch=1
finish
