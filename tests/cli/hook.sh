#!/usr/bin/env bash
# run.hook: it receives events, stops and saves the run and changes the learning rate, with the same effect on every grid and after a
# resume; if it fails, hangs or prints garbage, training continues. Early stopping, the plateau schedule, and the choice of the best
# evaluation.
# usage: hook.sh     (WEFT=build/weft)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export WEFT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
noise_idx 64 8 10 images.h5
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {channels: 4, kernel: 3}, batch_norm, relu, flatten, dense: {width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {epochs: 4, batch: 16, micro_batch: 4, threads: 1, log_every: 1}
optim: {lr: 0.1, momentum: 0.9}
YAML
train() { local name=$1; shift; timeout 240 "$WEFT" train net.yaml run.name="$name" "$@"; }
said() { grep -cF -- "$2" "runs/$1/metrics.jsonl"; }
rate() { sed -n "s/{\"step\":$2,.*\"lr\":\([0-9.e-]*\),\"s.*/\1/p" "runs/$1/metrics.jsonl"; }
same() { check 0 'to the bit' "$WEFT" ckpt diff "runs/$1/checkpoints/step-$3.h5" "runs/$2/checkpoints/step-$3.h5"; }

# This hook receives every event; it requests another rate after the second evaluation, and a checkpoint after the first.
cat >ask.sh <<'SH'
read -r line
echo "$line" >>"told-$1"
case $line in
*'"evaluation", "step": 4,'*) echo '{"save": true}' ;;
*'"evaluation", "step": 8,'*) [ ! -e kill ] || { rm kill; kill -TERM $PPID; }; echo '{"lr": 0.05}' ;;
esac
SH
ask() { train "$1" run.hook="exec sh ask.sh $1" run.hook_wait=true "${@:2}"; }
check 0 'requests optim.lr 0.05' ask one
holds 'rates' [ "$(rate one 8) $(rate one 9) $(rate one 16)" = '0.1 0.05 0.05' ]
holds 'events' [ "$(grep event runs/one/metrics.jsonl | tr -d '\n')" = '{"step":4,"epoch":1,"event":"hook","save":true}{"step":8,"epoch":2,"event":"hook","lr":0.05}' ]
holds 'the checkpoint that was asked for' test -e runs/one/checkpoints/step-00000004.h5
for moment in epoch evaluation; do holds "$moment" [ "$(grep -c "\"moment\": \"$moment\"" told-one)" = 4 ]; done
holds 'the end is told last' grep -q '"moment": "end", "step": 16, .*"train_top1": [0-9].*"top5": [0-9].*step-00000016.h5".*"ended": "done"}' <(tail -n 1 told-one)
holds 'a checkpoint' grep -q '"moment": "checkpoint"' told-one
holds 'shares while training' grep -q '"step":16,.*"train_top1":[0-9.]*,"train_top5":[0-9]' runs/one/metrics.jsonl
check 0 '0.05 requested by a hook' "$WEFT" ckpt info runs/one/checkpoints/step-00000016.h5
check 0 '' ask two -n 2 grid.zero=1
same one two 00000016
check 0 '' ask stages -n 2 grid.pp=2
same one stages 00000016
touch kill
check 75 'stopped early' ask resumed
check 0 'resuming from' ask resumed
holds 'it was stopped at that step' test -e runs/resumed/checkpoints/step-00000008.h5
same one resumed 00000016

# The hook runs in the background of ranks that mpirun has started, and may use weft itself.
check 0 'the run ends early: run.hook requested it' train stop -n 2 grid.dp=2 train.epochs=20000 train.eval_every=20000 checkpoint.every_s=0 \
    checkpoint.every_epochs=50 checkpoint.keep=0 train.log_every=100000 'run.hook=cat >line && "$WEFT" ckpt info runs/stop/checkpoints/step-*.h5 >info && echo "{\"stop\":true}"' \
    'run.hook_on=[checkpoint]'
holds 'weft ran in the hook' grep -q 'params' info
holds 'the event' [ "$(said stop '"event":"hook","stop":true}')" = 1 ]
check 0 'this run is complete' train stop -n 2 grid.dp=2 train.epochs=20000 train.eval_every=20000 'run.hook=true'

# Faults of a hook are reported, and training continues.
odd() { check 0 "$1" train odd run.fresh=true train.epochs=1 'run.hook_on=[end]' run.hook="$2" "${@:3}"; }
odd 'run.hook (end, step 4): it ended with exit code 3; training goes on' 'exit 3'
odd 'ended with exit code 127' /nowhere/hook
odd 'ended by signal 9' 'kill -9 $$'
odd "it printed 'epoch done': not a JSON object" 'echo epoch done'
odd ": not a JSON object" 'echo "{\"stop\": true} {}"'
odd 'prints more than 65536 bytes' 'head -c 10000000 /dev/zero'
odd '"lr", the learning rate, must be above 0' 'echo "{\"lr\": 0}"'
odd 'it has not ended after 0.3 s (run.hook_s), so it was ended' 'echo $$ >pid; sleep 98765 & echo $! >>pid; sleep 98765' run.hook_s=0.3
# The process has ended: it does not exist, or it is a zombie.
gone() { for p in $(cat pid); do ! kill -0 "$p" 2>/dev/null || grep -q 'State:.*Z' "/proc/$p/status" 2>/dev/null || return 1; done; }
holds 'all that it started is gone' soon gone
# A process that survives its hook holds the output of the rank, for which mpirun waits. weft does not.
check 0 'done' timeout 100 "$WEFT" train net.yaml -n 2 run.name=survives train.epochs=1 'run.hook_on=[end]' \
    run.hook='setsid sh -c ">up; exec sleep 98764" & until [ -e up ]; do sleep 0.01; done'
holds 'it survives the run' own '^sleep 98764'
kill $(own '^sleep 98764')
check 0 '' timeout 100 "$WEFT" run --log-dir logs -- "$WEFT" train net.yaml run.name=within train.epochs=1 run.hook='env >environment'
holds 'it is no rank of weft run' [ "$(grep -cE '^WEFT_(RUN|LAUNCHER|LOG_DIR)=|^OMPI_COMM_WORLD_RANK=' environment)" = 0 ]
check 0 '' train 'a$(touch hurt)"b' train.epochs=1 run.hook='cat >line'
holds 'a name is no command' [ ! -e hurt ]
holds 'a name is text' grep -qF '"run": "a$(touch hurt)\"b"' line

# Early stopping with a learning rate of 0, so that no evaluation is better than the first.
still() { train still optim.lr=1e-30 optim.momentum=0 train.epochs=8 train.early_stop_delta=0.5 "$@" checkpoint.best_metric="${metric:-eval_loss}"; }
check 0 'eval_loss was not better than' still train.early_stop=2
holds 'and how often it looked' grep -q 'in 2 evaluations (train.early_stop)' both
holds 'it ends after the third' test -e runs/still/checkpoints/step-00000012.h5
holds 'and says so' [ "$(said still '"step":12,"epoch":3,"event":"early_stop","why":"eval_loss was not')" = 1 ]
check 0 'this run is complete' still train.early_stop=2
check 0 'in 4 evaluations' still train.early_stop=4
holds 'it has counted on' test -e runs/still/checkpoints/step-00000020.h5
check 0 '(eval_loss)' "$WEFT" ckpt info runs/still/checkpoints/best.h5
# A run that begins from a checkpoint whose early stopping has already ended it, also after a rollback: each step multiplies the weights
# by a thousand.
check 65 'it is the data or the model' train other optim.lr=1 optim.weight_decay=1000 optim.momentum=0 train.epochs=8 train.early_stop_delta=0.5 train.early_stop=4 \
    train.on_bad=rollback checkpoint.resume=runs/still/checkpoints/step-00000020.h5 checkpoint.every_s=0 checkpoint.best=false checkpoint.best_metric=eval_loss
holds 'it went back to there' grep -q 'going back to step 20, runs/still/' both
holds 'it had an evaluation each time' [ "$(grep -c '^evaluation after step 24:' both)" = 2 ]
metric=top5 check 0 'by another checkpoint.best_metric' still train.early_stop=8

# The plateau schedule across a restart and on two stages.
flat() { train "$@" train.epochs=6 optim.lr_schedule=plateau optim.patience=0 optim.gamma=0.5 optim.threshold=9 optim.warmup_steps=2; }
check 0 'so the learning rate is 0.05 from here on' flat flat checkpoint.every_epochs=2 checkpoint.keep=0 checkpoint.every_s=0 checkpoint.best=false
holds 'rates' [ "$(rate flat 2) $(rate flat 8) $(rate flat 9) $(rate flat 13) $(rate flat 24)" = '0.1 0.1 0.05 0.025 0.00625' ]
holds 'every second epoch' [ "$(cd runs/flat/checkpoints && echo *)" = 'step-00000008.h5 step-00000016.h5 step-00000024.h5' ]
check 0 '' flat stages2 -n 2 grid.pp=2
same flat stages2 00000024
check 75 '' flat again 'run.hook_on=[evaluation]' run.hook='grep -q "step\": 12," && kill -TERM $PPID' run.hook_wait=true
check 0 'resuming from' flat again
same flat again 00000024
check 78 'train.eval_every: 1' flat again train.eval_every=2
sed 's/, test: images.h5//' net.yaml >untested.yaml
check 0 'done after' "$WEFT" train untested.yaml run.name=untested run.hook='cat >>untold' 'run.hook_on=[evaluation]' run.hook_wait=true
holds 'of evaluations that are none it is not told' [ ! -s untold ]
check 78 'depends on evaluations: set data.test' "$WEFT" train untested.yaml optim.lr_schedule=plateau
check 78 'needs evaluations: set data.test' "$WEFT" train untested.yaml train.early_stop=3
check 78 'must be below 1' train none optim.lr_schedule=plateau optim.gamma=2
finish
