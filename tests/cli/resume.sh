#!/usr/bin/env bash
# Resuming with another batch size or another end: the messages, the refusals, and the resulting learning rates and steps.
# cores: 0.2
. "$(dirname "$0")/common.bash"

# 40 images of 4x4, three classes.
{ printf '\0\0\010\003\0\0\0\050\0\0\0\004\0\0\0\004'; head -c 640 "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\050'; for i in $(seq 40); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
{ printf '\0\0\010\003\0\0\0\014\0\0\0\004\0\0\0\004'; head -c 192 "$WEFT"; } >x2.idx
{ printf '\0\0\010\001\0\0\0\014'; for i in $(seq 12); do printf "\\00$((i % 3))"; done; } >y2.idx
check 0 '' "$WEFT" data import idx x2.idx y2.idx -o few.h5
cat >job.yaml <<'X'
run: {name: a, seed: 1}
model: {name: mlp, hidden: [7]}
data: {train: data.h5}
train: {epochs: 6, batch: 5, micro_batch: 5, log_every: 1, threads: 1}
optim: {name: sgd, lr: 0.3, lr_schedule: cosine}
checkpoint: {every_steps: 4, keep: 0}
X
train() { timeout 60 "$WEFT" train job.yaml "$@"; }
# rate RUN STEP WANT : the learning rate of that step equals WANT to a part in a million.
rate() {
    local got
    got=$(sed -n "s/^{\"step\":$2,.*\"lr\":\([0-9.e-]*\).*/\1/p" "runs/$1/metrics.jsonl")
    holds "$1: step $2 has rate $3, not '$got'" awk -v a="$got" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && d < 1e-6 && d > -1e-6) }'
}
steps() { grep -c '"loss"' "runs/$1/metrics.jsonl"; }

check 0 '' train
# the default of train.micro_batch may be written down, or left out again
sed 's/ micro_batch: 5,//' job.yaml >plain.yaml
check 0 '' timeout 60 "$WEFT" train plain.yaml run.name=plain train.epochs=1
check 0 'resuming' train run.name=plain train.epochs=2
check 0 'resuming' timeout 60 "$WEFT" train plain.yaml run.name=plain train.epochs=3
check 78 'micro_batch' train run.name=plain train.epochs=4 train.micro_batch=1
# ---- another batch: 3 of 6 epochs are done, then 12 steps of 10; lr = 0.15 (1 + cos(pi done)) ----
check 0 'train.batch was 5 and is 10: continuing in epoch 4 after 0 of its 40 samples, 12 steps are left' train run.name=b train.batch=10 checkpoint.resume="$(at a 24)"
holds '12 steps are made' test "$(steps b)" = 12
rate b 25 0.15 && rate b 29 0.075 && rate b 36 0.00128327
check 0 'epoch 6, step in epoch 0, 0 of 40 samples, batch 10' "$WEFT" ckpt info "$(at b 36)"
check 0 '"epoch_samples":0,"samples":40,"batch":10,"schedule_batch":5' "$WEFT" ckpt info --json "$(at b 36)"
# in the middle of epoch 4: 20 samples of it are left, and 80 follow
check 0 'continuing in epoch 4 after 20 of its 40 samples, 100 steps are left' train run.name=c train.batch=1 train.micro_batch=1 checkpoint.resume="$(at a 28)"
holds '100 steps are made' test "$(steps c)" = 100
rate c 29 0.11117711 && rate c 49 0.075
check 0 'step 128, epoch 6, step in epoch 0' "$WEFT" ckpt info "$(at c 128)"
# two ranks give the same result, and so does a run that is stopped and resumed
check 0 '100 steps are left' timeout 60 "$WEFT" train -n 2 job.yaml run.name=d train.batch=1 train.micro_batch=1 checkpoint.resume="$(at a 28)"
same 128 c d
rm runs/d/checkpoints/step-*{6,2}.h5
check 0 'resuming from runs/d/checkpoints/step-' train run.name=d train.batch=1 train.micro_batch=1 checkpoint.resume="$(at a 28)"
same 128 c d
# the run's checkpoint has another batch: the message says that another name is needed
check 78 'choose another run.name (with checkpoint.resume=runs/a/checkpoints/step-00000048.h5 it begins from there)' train train.batch=10

# ---- more epochs under the same name ----
check 0 'the run was to end after 6 epochs, and now ends after 8 epochs: the cosine stretches to the new end; the next learning rate is 0.0439' train train.epochs=8
holds '64 steps are made' test "$(steps a)" = 64
rate a 49 0.04393398 && rate a 64 0.000180681
check 0 'this run is complete: 64 steps are done; it goes on with a higher train.epochs' train train.epochs=8
check 78 'is already at epoch 8: set this number or a higher one' train train.epochs=7
check 0 'ends after 72 steps: the learning rate stays as it is' train run.name=e checkpoint.resume="$(at a 64)" optim.lr_schedule=constant train.steps=72
holds '8 steps are made' test "$(steps e)" = 8
check 0 'ends after 80 steps' train run.name=e optim.lr_schedule=constant train.steps=80
holds '16 steps are made' test "$(steps e)" = 16

# ---- other data: the current epoch begins again; under the same path they are refused ----
check 0 'data.train holds other data: epoch 4, which was not complete, begins again' train run.name=f data.train=few.h5 checkpoint.resume="$(at a 28)"
holds '9 steps are made' test "$(steps f)" = 9
check 0 'run.seed has changed: epoch 4, which was not complete, begins again' train run.name=g run.seed=2 checkpoint.resume="$(at a 28)"
holds '24 steps are made' test "$(steps g)" = 24
cp few.h5 data.h5
check 65 'holds other data than this run was trained on' train train.epochs=9
finish
