#!/usr/bin/env bash
# Costs and benefits of pruning: ResNet-18 (small stem) on Fashion-MNIST, three epochs, half of the channels removed by each method, one
# epoch of finetuning; accuracy on all 10,000 test images, parameters, multiply-adds, images/s of `weft eval`.
# Goals: accuracy within 1.5 points of that before, and at least twice the speed; exit code 1 if one is missed.
# usage: bench/shrink.sh
#   IMAGES=6000|60000     to train on
#   FASHION_MNIST=        folder of the four IDX files (Debian: /usr/share/datasets/fashion-mnist)
#   METHODS="l1 l2 fpgm slim" SPARSITY=0.5 ROUND=1 EPOCHS=3 RANKS=1 TIMES=3 KEYS=   see jobs/prune.sh; KEYS: for all of it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
case $weft in /*) ;; *) weft=$PWD/$weft;; esac
images=${IMAGES:-6000} raw=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -r "$raw/train-images-idx3-ubyte.gz" ] || { echo "shrink.sh: no Fashion-MNIST in $raw: set FASHION_MNIST" >&2; exit 66; }
cd "$tmp"
word() { printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"; }
{ printf '\0\0\10\3'; word "$images"; word 28; word 28; zcat "$raw/train-images-idx3-ubyte.gz" | tail -c +17 | head -c $((images * 784)) || true; } >images
{ printf '\0\0\10\1'; word "$images"; zcat "$raw/train-labels-idx1-ubyte.gz" | tail -c +9 | head -c "$images" || true; } >labels
"$weft" data import idx images labels -o train.h5 >/dev/null 2>&1
"$weft" data import idx "$raw/t10k-images-idx3-ubyte.gz" "$raw/t10k-labels-idx1-ubyte.gz" -o test.h5 >/dev/null 2>&1
cat >fashion.yaml <<'YAML'
model: {name: resnet18, stem: small}
data:  {train: train.h5, test: test.h5, augment: [flip]}
train: {batch: 64, micro_batch: 32}
optim: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 5e-4, lr_schedule: cosine}
YAML
# shellcheck disable=SC2086
WEFT=$weft RANKS=${RANKS:-1} METHODS=${METHODS:-l1 l2 fpgm slim} SPARSITY=${SPARSITY:-0.5} ROUND=${ROUND:-1} TIMES=${TIMES:-3} SLIM=${SLIM:-1e-3} \
    FINETUNE=${FINETUNE:-train.epochs=1 train.batch=16 train.micro_batch=16 optim.lr=0.01 data.augment=[]} \
    bash "$here/../jobs/prune.sh" fashion.yaml "train.epochs=${EPOCHS:-3}" ${KEYS:-} | tee table
# method whole pruned tuned  a -> b  c -> d  e -> f
awk 'NR > 1 { if ($4 < $2 - 1.5) { print $1 ": more than 1.5 points lost"; bad = 1 }
    if ($13 < 2 * $11) { print $1 ": less than twice as fast"; bad = 1 } } END { exit bad }' table
