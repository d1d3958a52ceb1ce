#!/usr/bin/env bash
# Label fields from files to predictions: weft data info and check, training, resuming, metrics on one and two ranks, predicted classes
# as integers with the names of the classes, pictures; keys and losses that do not fit are refused by name.
# usage: field_labels.sh     (WEFT=build/weft)
golden=$(cd "$(dirname "$0")/../golden/fields" && pwd)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cp "$golden/labels.nc" "$golden/plain.h5" .
cat >l.yaml <<'YAML'
run: {name: l}
data:
  train: labels.nc
  test: labels.nc
  variables: {inputs: [h, u], targets: [{name: cover, classes: 3, ignore: 200}]}
model: {name: unet, channels: [8], norm: none}
train: {loss: softmax, class_weights: [1, 2, 1], steps: 3, batch: 4, micro_batch: 2, threads: 1}
YAML
check 0 'labels of 3 classes: sea, land, ice; no label: 200' "$WEFT" data info l.yaml
check 0 'go together' "$WEFT" data check l.yaml
holds 'pixels of each class' grep -q 'cover: class 1 land has 474 pixels, 32.2 %' both
holds 'pixels without a label' grep -q '64 pixels, 4.17 %, have no label' both
check 65 'cover is 200 at 2003-05-01 18:00:00, row 0, column 0' "$WEFT" data check labels.nc 'data.variables={inputs: [h], targets: [{name: cover, classes: 3}]}'
check 0 'mean and deviation of 2 variables' "$WEFT" data stats l.yaml -o stats.yaml
holds 'labels have none' test "$(grep -c cover stats.yaml)" = 0

check 0 'IoU' "$WEFT" train l.yaml
holds 'metrics.jsonl has them' grep -q '"eval_iou":.*"labels":\[{"class":"sea","pixels":763' runs/l/metrics.jsonl
check 0 '"confusion": [[' "$WEFT" eval l.yaml --json
sed 's/"seconds".*//' out >one
check 0 '"eval_dice"' "$WEFT" eval l.yaml --json -n 2
holds 'the same on two ranks' cmp one <(sed 's/"seconds".*//' out)
check 0 'ice ' "$WEFT" eval l.yaml
check 0 'wrote l.html' "$WEFT" report runs/l -o l.html
holds 'the report has it' grep -q eval_iou l.html
# The value of pixels without a label may be another one in the data of an evaluation.
check 65 'cover is 200 at' "$WEFT" eval l.yaml 'data.variables={inputs: [h, u], targets: [{name: cover, classes: 3, ignore: 7}]}'
# A resumed run compares the meaning of labels.
check 0 'resuming' "$WEFT" train l.yaml train.steps=4
check 78 'was written with' "$WEFT" train l.yaml train.steps=5 'data.variables={inputs: [h, u], targets: [{name: mask, classes: 3}]}'

check 0 'wrote out.nc: 12 samples' "$WEFT" predict l.yaml data.train=none.nc -o out.nc --truth
holds 'and metrics' grep -q 'ice  *IoU' out
check 0 'labels of 3 classes: sea, land, ice' "$WEFT" data info out.nc 'data.variables={inputs: [cover], targets: [{name: cover_truth, classes: 3}]}'
holds 'integers without missing values' grep -q 'int16, contiguous$' out
check 0 'cover_truth: class 1 land has 474 pixels' "$WEFT" data check out.nc 'data.variables={inputs: [cover], targets: [{name: cover_truth, classes: 3}]}'
check 0 '"eval_iou"' "$WEFT" predict l.yaml --samples 1-2 --png pictures --json
holds 'a picture for each sample' test "$(ls pictures | wc -l)" = 2
check 64 'the model predicts labels' "$WEFT" predict l.yaml --rollout 2

# Arrays without names of dimensions; two classes; the other losses.
variables='data.variables={inputs: [x], targets: [{name: y, classes: 3}]}'
check 0 'accuracy' "$WEFT" train l.yaml run.name=plain data.train=plain.h5 data.test=plain.h5 "$variables" train.loss=iou train.class_weights=[]
# A dimension without a name does not take that of a variable, y.
check 0 'wrote y.nc: 12 samples, 1 lead' "$WEFT" predict l.yaml run.name=plain data.test=plain.h5 "$variables" train.loss=iou train.class_weights=[] -o y.nc
mask='data.variables={inputs: [h, u], targets: [{name: mask, classes: 2}]}'
check 0 'IoU' "$WEFT" train l.yaml run.name=mask "$mask" train.loss=dice train.class_weights=[] checkpoint.best_metric=dice
check 65 'bad is 3 at frame 2' "$WEFT" train l.yaml run.name=no data.train=plain.h5 data.test=plain.h5 'data.variables={inputs: [x], targets: [{name: bad, classes: 3}]}'
check 78 'which mse does not read: set it to softmax' "$WEFT" train l.yaml run.name=no train.loss=mse train.class_weights=[]
check 78 'which sigmoid does not read' "$WEFT" train l.yaml run.name=no "$mask" train.loss=sigmoid train.class_weights=[]
check 78 'labels of 3 classes' "$WEFT" train l.yaml run.name=no model.classes=4
check 78 'each channel needs one' "$WEFT" train l.yaml run.name=no train.class_weights=[1,2]
check 78 'set iou' "$WEFT" train l.yaml run.name=no checkpoint.best_metric=top1
sed /^model/d l.yaml >layers.yaml
check 78 'need 2x3x8x16' "$WEFT" train layers.yaml run.name=no 'model.layers=[conv2d: {channels: 3, kernel: 3}]'
check 65 "give the target's classes" "$WEFT" train l.yaml run.name=no train.class_weights=[] 'data.variables={inputs: [h], targets: [u]}'
# A model that is planned without data.
check 0 'softmax_loss' "$WEFT" plan l.yaml --input 2x16x32 model.classes=3
finish
