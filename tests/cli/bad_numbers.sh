#!/usr/bin/env bash
# Losses and gradients that are not finite, caused by an extreme learning rate, with each train.on_bad: stop, skip and rollback. The
# messages are checked, and no bad value is saved.
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
make_images
train() { timeout 100 "$WEFT" train images.yaml checkpoint.every_steps=1 checkpoint.keep=0 train.steps=40 "$@"; }
error() { grep '^weft: error:' err; }

check 65 'first of all the' train run.name=stop optim.lr=1e20
holds 'one message' test "$(grep -c 'error:' err)" = 1
holds 'that says when' grep -q 'error: step [0-9]*: ' err
holds 'without the sign that a NaN may have' test -z "$(grep -e '-nan' both)"
error >alone
check 0 'good' "$WEFT" ckpt check runs/stop
check 65 'first of all the' train -n 2 run.name=stop2 optim.lr=1e20
holds 'two ranks say the same' test "$(error)" = "$(cat alone)"
check 65 'it is the data or the model, not the machine' train -n 2 run.name=back optim.lr=1e20 train.on_bad=rollback
holds 'it went back' grep -q 'going back to step' err
holds 'to a step once' test "$(grep -c 'going back to step' err)" = 1
check 65 'the 10 steps before it were bad and skipped, too' train -n 2 run.name=skip optim.lr=1e20 train.on_bad=skip
holds 'each is said' test "$(grep -c ': skipped (' err)" = 10
holds 'and counted' grep -q '"skipped":10' runs/skip/metrics.jsonl
holds 'a NaN has no sign here, either' test -z "$(grep -e '-nan' both)"
check 78 'train.on_bad' train train.on_bad=ignore

# A value of the data set that is not finite is refused with its sample's number, whatever train.on_bad is.
{ echo a,b,y; for i in $(seq 60); do echo $((i % 7)).5,$((i % 3)),$((i % 2)); done; } >table.csv
printf 'columns:\n  a: number\n  b: number\n  y: label\n' >schema.yaml
check 0 '' "$WEFT" data import csv table.csv --schema schema.yaml -o table.h5
check 0 '60 samples' "$WEFT" data info table.h5
at=$(sed -n 's|.* /dense, .* at byte ||p' out)
printf '\0\0\300\177' | dd of=table.h5 bs=1 seek=$((at + 17 * 8)) conv=notrunc status=none
cat >table.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data:  {train: table.h5}
train: {steps: 12, batch: 12, threads: 1}
YAML
for on_bad in stop skip rollback; do
    check 65 'table.h5: sample 17 of /dense holds a value that is not a finite number' timeout 100 "$WEFT" train table.yaml run.name=table-$on_bad train.on_bad=$on_bad
done
check 65 'table.h5: sample 17: value 0 of /dense is not a finite number' "$WEFT" data check table.h5

check 0 'replicas compare hashes of parameters and state every 100 steps and before each save' "$WEFT" plan images.yaml --ranks 2
check 0 'replicas are not compared: replicas share the memory of their parameters' "$WEFT" plan images.yaml --ranks 2 grid.zero=1
check 0 '"replicas_compared": true' "$WEFT" plan images.yaml --ranks 2 --json
finish
