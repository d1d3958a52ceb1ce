#!/usr/bin/env bash
# Numbers that are none: a learning rate that no model survives, ended, skipped and gone back from. What is said, and that
# nothing of it is saved.
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
make_images
train() { timeout 100 "$WEFT" train lenet.yaml checkpoint.every_steps=1 checkpoint.keep=0 train.steps=40 "$@"; }
error() { grep '^weft: error:' err; }

check 65 'first of all the' train run.name=stop optim.lr=1e20
holds 'one message' test "$(grep -c 'error:' err)" = 1
holds 'that says when' grep -q 'error: step [0-9]*: ' err
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
check 78 'train.on_bad' train train.on_bad=ignore

check 0 'replicas compare hashes of parameters and state every 100 steps and before each save' "$WEFT" plan lenet.yaml --ranks 2
check 0 'replicas are not compared: replicas have their parameters in common memory' "$WEFT" plan lenet.yaml --ranks 2 grid.zero=1
check 0 '"replicas_compared": true' "$WEFT" plan lenet.yaml --ranks 2 --json
finish
