#!/usr/bin/env bash
# Forecasts of fields: metrics of weft eval on one and two ranks, weft predict with its file, rollouts and pictures.
# usage: fields_predict.sh     (WEFT=build/weft)
golden=$(cd "$(dirname "$0")/../golden/fields" && pwd)
. "$(dirname "$0")/common.bash"
cp "$golden/kinds.nc" .
cat >f.yaml <<'YAML'
run: {name: f}
data:
  train: kinds.nc
  test: kinds.nc
  variables: {inputs: [t2m, {name: wind, levels: [500, 850]}], static: [orog], targets: [t2m, {name: wind, levels: [850]}]}
  window: {inputs: [-1, 0], targets: [1]}
model: {layers: [conv2d: {channels: 2, kernel: 3, pad: same}]}
train: {loss: mse, steps: 3, batch: 2, micro_batch: 1, threads: 1}
checkpoint: {best_metric: skill}
YAML
check 0 'skill' "$WEFT" train f.yaml
holds 'metrics.jsonl has them' grep -q '"eval_skill":.*"variable":"wind","level":850,"lead":"[0-9]*h".*"skill_climatology"' runs/f/metrics.jsonl
check 0 'skill' "$WEFT" eval f.yaml
check 0 '"anomaly_correlation"' "$WEFT" eval f.yaml --json
sed 's/"seconds".*//' out >one
for more in '' 'grid.pp=1 train.threads=2' data.predict=value; do
    check 0 '"eval_rmse"' "$WEFT" eval f.yaml $more --json -n 2
    holds "the same on two ranks $more" cmp one <(sed 's/"seconds".*//' out)
done
check 0 '"latitude_weights": false' "$WEFT" eval f.yaml train.eval_latitude=false --json
holds 'weights matter' [ "$(sed 's/.*"eval_rmse": \([-0-9.e]*\).*/\1/' out)" != "$(sed 's/.*"eval_rmse": \([-0-9.e]*\).*/\1/' one)" ]
# The errors that predict prints are those of the evaluation, also without the training set.
check 0 'wrote out.nc: 3 samples, 1 lead' "$WEFT" predict f.yaml kinds.nc data.train=none.nc -o out.nc --truth
holds 'a NetCDF-4 file' [ "$(head -c 4 out.nc | tail -c 3)" = HDF ]
check 0 '"variable": "wind", "level": 850' "$WEFT" predict f.yaml --json
rmse() { tr '{' '\n' <"$1" | sed -n 's/.*"variable": "t2m".*"rmse": \([-0-9.e]*\).*/\1/p'; }
holds 'the same error' awk "BEGIN { d = $(rmse out) / $(rmse one) - 1; exit !(d < 1e-5 && d > -1e-5) }"
# The file is a set itself: its truth is that of the source.
check 0 '3 samples' "$WEFT" data info out.nc data.variables='{inputs: [t2m], targets: [t2m_truth]}'
check 64 'out.nc' "$WEFT" predict f.yaml -o out.nc
check 0 'wrote out.nc: 2 samples' "$WEFT" predict f.yaml -o out.nc --samples 1-2 --force
check 64 'kinds.nc: is one of the files that are read' "$WEFT" predict f.yaml kinds.nc -o kinds.nc --force
# wind at 500 is read from the set, which so limits rollouts.
check 0 'wrote roll.nc: 3 samples, 2 leads' "$WEFT" predict f.yaml --rollout 2 -o roll.nc --truth
check 64 'from sample 2 the set has inputs for 2 steps only (those that the model does not predict)' "$WEFT" predict f.yaml --rollout 3 --samples 2
check 64 'for 4 steps at most' "$WEFT" predict f.yaml --rollout 9
window='data.window={inputs: [-1, 0], targets: [2]}'
check 0 '' "$WEFT" train f.yaml run.name=gap train.steps=1 "$window"
check 78 'step 2 of a rollout needs frame 1 after its start as input' "$WEFT" predict f.yaml run.name=gap --rollout 2 "$window"
# A rollout that grows until it overflows is not a training that diverged.
check 0 '' "$WEFT" train f.yaml run.name=steep train.steps=1 optim.lr=1e13
check 65 'from sample 0 is NaN or infinite at step 3: the rollout diverged' "$WEFT" predict f.yaml run.name=steep --rollout 4 --samples 0
# These outputs are finite, but not in the variables' units.
check 0 '' "$WEFT" train f.yaml run.name=large train.steps=1 optim.lr=1e37
check 65 "from sample 0 is NaN or infinite at step 1: the model's training diverged" "$WEFT" predict f.yaml run.name=large --samples 0
# Persistence is printed if all levels of a variable have it.
check 0 '' "$WEFT" train f.yaml run.name=levels train.steps=1 'data.variables={inputs: [{name: wind, levels: [500]}], targets: [wind]}' model.layers='[conv2d: {channels: 3, kernel: 1}]'
check 0 'wind RMSE' "$WEFT" predict f.yaml run.name=levels 'data.variables={inputs: [{name: wind, levels: [500]}], targets: [wind]}' model.layers='[conv2d: {channels: 3, kernel: 1}]'
holds 'no persistence of some levels' test -z "$(grep persistence out)"
check 64 '--png needs --samples' "$WEFT" predict f.yaml --png pictures
check 0 '' "$WEFT" predict f.yaml --samples 0-1 --png pictures
holds 'a picture for each target' [ "$(ls pictures | wc -l)" = 4 ]
check 0 '' "$WEFT" predict f.yaml --rollout 3 --samples 0 --png sheets
holds 'a sheet for each target' [ -s sheets/t2m-0.png ] && holds 'with the level' [ -s sheets/wind_850-0.png ]
# Profiles are fields of 1x1, columns in a row fields of 1xN; the file has their dimensions again.
cp "$golden/columns.nc" .
sed -e 's/kinds.nc/columns.nc/; s/^model:.*/model: {name: columns, width: 8, norm: layer}/; s/name: f}/name: c}/' \
    -e 's/^  variables:.*/  variables: {inputs: [state, flux], scalars: [co2], extra: [column, hour], targets: [state, flux]}/' f.yaml >c.yaml
check 0 'inputs    13 channels of 1 x 4' "$WEFT" data info c.yaml
check 0 'skill' "$WEFT" train c.yaml
check 0 'wrote col.nc: 10 samples, 2 leads' "$WEFT" predict c.yaml --rollout 2 -o col.nc --truth
check 0 'wrote c.onnx' "$WEFT" ckpt export runs/c/checkpoints/best.h5 --onnx -o c.onnx
profiles='data.variables={inputs: [profile], targets: [tendency]}'
check 0 '' "$WEFT" train c.yaml run.name=p "$profiles" 'data.window={}' train.steps=1
check 0 'wrote p.nc: 12 samples, 1 lead' "$WEFT" predict c.yaml run.name=p "$profiles" 'data.window={}' -o p.nc
check 0 'time x level 3;' "$WEFT" data info p.nc 'data.variables={inputs: [tendency], targets: [{name: tendency, levels: [500]}]}' 'data.window={targets: [1]}'
check 78 'set model.norm to layer or none' "$WEFT" plan c.yaml model.norm=batch
plan() { "$WEFT" plan f.yaml model.layers=1 model.name=unet 'model.channels=[8]' "$@"; }
check 78 'model.film needs channels that are constant over space' plan model.film=4
check 78 'heads (3) must divide the width (8)' plan model.attention=3
check 78 'layer is for columns' plan model.norm=layer
check 64 '--top: the samples are fields' "$WEFT" predict f.yaml --top 3
finish
