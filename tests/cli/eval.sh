#!/usr/bin/env bash
# weft eval: the loss of labels as they are, whatever training does to them.
# usage: eval.sh     (WEFT=build/weft)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
make_images

# Two runs that differ by label smoothing alone, and take no step away from where they began: the training losses differ, those of
# evaluations do not. A grid with slices of the classes says the same.
figure() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$2" | head -n 1; }
for smoothing in 0 0.3; do
    check 0 '' "$WEFT" train lenet.yaml run.name=smooth-$smoothing train.label_smoothing=$smoothing data.test=images.h5 train.steps=1 \
        optim.lr=1e-30 checkpoint.best_metric=eval_loss
done
check 0 '' mpi 2 train lenet.yaml run.name=smooth-sliced train.label_smoothing=0.3 data.test=images.h5 train.steps=1 optim.lr=1e-30 grid.tp=2
grep -h '"loss"' runs/smooth-0/metrics.jsonl >plain; grep -h '"loss"' runs/smooth-0.3/metrics.jsonl >smooth
holds 'the training losses differ' test "$(figure loss plain)" != "$(figure loss smooth)"
for run in 0 0.3 sliced; do grep -h eval_loss runs/smooth-$run/metrics.jsonl >eval-$run; done
holds 'there is an evaluation' test -n "$(figure eval_loss eval-0)"
holds 'those of evaluations are the same' test "$(figure eval_loss eval-0)" = "$(figure eval_loss eval-0.3)"
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }'; }
holds 'and so where ranks have slices of the classes' near "$(figure eval_loss eval-0)" "$(figure eval_loss eval-sliced)"
for smoothing in 0 0.3; do
    check 0 '' "$WEFT" eval lenet.yaml data.test=images.h5 --checkpoint runs/smooth-0.3/checkpoints/best.h5 --json \
        train.label_smoothing=$smoothing
    holds 'weft eval says the same' test "$(figure eval_loss out)" = "$(figure eval_loss eval-0)"
done
check 0 '' "$WEFT" ckpt info runs/smooth-0.3/checkpoints/best.h5 --json
holds 'best.h5 goes by it' grep -q eval_loss out

finish
