#!/usr/bin/env bash
# Fields in NetCDF-4 files: weft data info, data check and data stats of a configuration; training with statistics that are measured or
# read from a file, on one and more ranks; splits by time; resumed runs and evaluations use the checkpoint's statistics.
# usage: fields.sh     (WEFT=build/weft)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
files=$root/tests/golden/fields
cat >job.yaml <<YAML
data:
  train: [$files/2001.nc, $files/2002.nc]
  test: $files/member.nc
  variables: {inputs: [h], targets: [h]}
  window: {inputs: [0d], targets: [1d]}
  predict: change
model: {layers: [conv2d: {channels: 4, kernel: 3, pad: same}, tanh, conv2d: {channels: 1, kernel: 3, pad: same}]}
train: {loss: mse, steps: 4, batch: 2, micro_batch: 1, threads: 1}
optim: {name: adam, lr: 1e-2}
YAML
loss() { grep -o '"eval_loss": *[0-9.e-]*' "runs/$1/metrics.jsonl" | tail -1; }

check 0 'segments  1 of frames 1d apart' "$WEFT" data info job.yaml
holds 'the years join' grep -q '2001-12-29 00:00:00 to 2002-01-03 00:00:00: 6 frames, 5 samples' out
holds 'a channel is named' grep -q 'h (1d) as change' out
check 0 '"train": {' "$WEFT" data info job.yaml --json
holds 'it is JSON' python3 -c 'import json, sys; d = json.load(open("out")); sys.exit(d["train"]["samples"] != 5 or len(d["test"]["segments"]) != 1)'
check 0 'go together' "$WEFT" data check job.yaml
keys="data.variables={inputs: [h], targets: [h]}"
check 0 'frames are missing between 2001-01-01 12:00:00 and 2001-01-02 06:00:00' "$WEFT" data check "$files/gap.nc" "$keys" \
    'data.window={targets: [6h]}'
check 0 '% of the values of gappy are missing' "$WEFT" data check "$files/kinds.nc" 'data.variables={inputs: [t2m], targets: [gappy]}'
check 65 'did you mean t2m?' "$WEFT" data info "$files/kinds.nc" 'data.variables={inputs: [t2], targets: [gappy]}'

# Splits by time: one list of files for both sets; whole windows, whole days, dates of the calendar.
split() { "$WEFT" "${@:3}" job.yaml "data.test=[$files/2001.nc, $files/2002.nc]" "data.train_time=$1" "data.test_time=$2"; }
check 0 '2001-12-29 00:00:00 to 2001-12-31 00:00:00: 3 frames, 2 samples' split '[2001-12-29, 2001-12-31]' '[2002-01-01, 2003-01-01]' data info
holds 'the test set follows' grep -q '2002-01-01 00:00:00 to 2002-01-03 00:00:00: 3 frames, 2 samples' out
check 0 'go together' split '[2001-12-29, 2001-12-31]' '["2002-01-01 12:00", 2002-01-03]' data check
check 0 'measured over 2 samples' split '[2001-12-29, 2001-12-31]' '[2002-01-01, 2002-01-03]' train -n 2
holds 'the test set is the other part' grep -q 'on 2 samples' out
check 0 'wrote out.nc: 2 samples' "$WEFT" predict job.yaml "$files/member.nc" 'data.test_time=[2002-01-01, 2002-01-03]' -o out.nc
check 78 'no date of the calendar standard' split '[2001-02-29, 2001-12-31]' '[2002-01-01, 2002-01-03]' data info
check 78 'is after' split '[2002-02-01, 2001-12-31]' '[2002-01-01, 2002-01-03]' data info
check 78 'its times are 2001-12-29 00:00:00 to 2002-01-03 00:00:00' split '[2001-12-29, 2001-12-31]' '[2002-01-03, 2003-01-01]' data info
check 78 'expected first and last time' split '[2001-12-29]' '[2002-01-03, 2003-01-01]' data info

# Statistics: the same bytes on any number of ranks and threads, and the same training as with measured ones.
check 0 'mean and deviation of 1 variables' "$WEFT" data stats job.yaml -o stats.yaml
check 0 '' "$WEFT" data stats job.yaml -o three.yaml -n 3 --threads 2
holds 'ranks write the same' cmp stats.yaml three.yaml
holds 'values and changes' test "$(grep -c 'variable: "h"' stats.yaml)" = 2
check 0 'mean and deviation of 1 variables measured' "$WEFT" train job.yaml run.name=measured
check 0 'measured' "$WEFT" train -n 2 job.yaml run.name=two
check 0 'mean and deviation are those in stats.yaml' "$WEFT" train job.yaml run.name=read data.stats=stats.yaml
same 4 measured two
same 4 measured read
check 64 'already' "$WEFT" data stats job.yaml -o stats.yaml
grep -v change stats.yaml >values.yaml
check 65 'no mean and deviation of the change of h over 1d' "$WEFT" train job.yaml run.name=bad data.stats=values.yaml
sed 's/"m"/"km"/' stats.yaml >km.yaml
check 65 'the units of h are' "$WEFT" train job.yaml run.name=bad data.stats=km.yaml
sed 's/mean: [-0-9.]*/mean: x/' stats.yaml >broken.yaml
check 65 'expected a number' "$WEFT" train job.yaml run.name=bad data.stats=broken.yaml

check 78 'is for fields' "$WEFT" train job.yaml 'data.variables={}' run.name=bad
check 78 'is for fields' "$WEFT" train job.yaml 'data.variables={}' data.window={} data.predict=value data.mask=m run.name=bad
check 78 'is not for fields' "$WEFT" train job.yaml data.mean=[1] data.std=[1] run.name=bad

# A resumed run, and an evaluation without training data, take the checkpoint's statistics and measure none.
check 0 'resuming' "$WEFT" train job.yaml run.name=measured train.steps=6
holds 'nothing is measured again' test "$(grep -c 'measured over' both)" = 0
check 65 'data.train, 2 files from ' "$WEFT" train job.yaml run.name=measured train.steps=8 "data.train=[$files/2002.nc, $files/2001.nc]"
mkdir turned
cp "$files/2002.nc" turned/1.nc
cp "$files/2001.nc" turned/2.nc
check 65 'turned/*.nc, 2 files: holds other data' "$WEFT" train job.yaml run.name=measured train.steps=8 'data.train=turned/*.nc'
check 0 '' "$WEFT" eval job.yaml --checkpoint "$(at measured 6)" --json
cp both with.both
cp out with.json
grep -v '  train: \[' job.yaml >test.yaml
check 0 'evaluated without data.train' "$WEFT" eval test.yaml --checkpoint "$(at measured 6)" --json
holds 'nothing is measured' test "$(grep -c 'measured over' both)" = 0
holds 'the loss is the same' test "$(grep -o '"eval_loss": *[0-9.e-]*' out)" = "$(grep -o '"eval_loss": *[0-9.e-]*' with.json)"
finish
