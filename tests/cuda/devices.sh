#!/usr/bin/env bash
# Tests runs that change their device, with a program whose GPU is emulated. A checkpoint of one device is loaded on the other with the
# same bits, and the run resumes with the losses of a run that does not change its device. eval and generate give the same results on
# both devices. A model that does not fit into a GPU is refused.
# cores: 1
WEFT=$(dirname "${WEFT:-build/weft}")/emulated/weft
. "$(dirname "$0")/../cli/common.bash"

for ((i = 0; i < 40; ++i)); do echo "the quick brown fox jumps over the lazy dog$((i % 10))"; done >text
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5 --test test.h5
cat >gpt.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 32}
data: {train: text.h5, test: test.h5}
train: {steps: 8, batch: 8, micro_batch: 4, threads: 1, log_every: 1}
optim: {name: adamw, lr: 0.01, clip: 1}
YAML
{ printf '\0\0\010\003\0\0\0\040\0\0\0\010\0\0\0\010'; seq 1 2000 | head -c 2048; } >images
{ printf '\0\0\010\001\0\0\0\040'; for i in 1 2 3 4 5 6 7 8; do printf '\0\001\002\003'; done; } >labels
check 0 '' "$WEFT" data import idx images labels -o images.h5
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data: {train: images.h5, test: images.h5}
train: {steps: 8, batch: 8, micro_batch: 4, threads: 1, log_every: 1}
optim: {name: sgd, lr: 0.01}
YAML

losses() { sed -n 's/.*"loss":\([0-9.e-]*\),"lr".*/\1/p' "runs/$1/metrics.jsonl" | tail -n 4; }
near() { # FILE FILE: lines of numbers
    paste "$1" "$2" | awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) bad = 1 } END { exit bad || NR == 0 }'
}
half=checkpoints/step-00000004.h5
for model in gpt lenet; do
    for device in cpu cuda; do # the last four of eight steps
        check 0 '' "$WEFT" train $model.yaml run.name=$model-$device train.device=$device checkpoint.every_steps=4 checkpoint.keep=0
        losses $model-$device >$model-$device
    done
    for way in cpu:cuda cuda:cpu; do
        from=${way%:*} to=${way#*:} name=$model-$from-$to
        check 0 'resuming from' "$WEFT" train $model.yaml run.name=$name train.device=$to checkpoint.resume=runs/$model-$from/$half
        losses $name >$name
        holds "$name: the losses of a run that stayed" near $name $model-$from
    done
    for device in cpu cuda; do
        check 0 'eval_loss' "$WEFT" eval $model.yaml --json --checkpoint runs/$model-cpu/$half train.device=$device
        sed 's/.*"eval_loss": \([0-9.]*\),.*/\1/' out >eval-$device
    done
    holds "$model: eval's loss" near eval-cpu eval-cuda
done

# After a step with a learning rate of almost 0 the saved parameters have the bits of the loaded parameters.
for way in cpu:cuda cuda:cpu; do
    from=${way%:*} to=${way#*:}
    check 0 'resuming from' "$WEFT" train gpt.yaml run.name=still-$from-$to train.device=$to optim.lr=1e-30 optim.weight_decay=0 \
        train.steps=5 checkpoint.resume=runs/gpt-$from/$half
    check 65 'attribute step: 4 and 5' "$WEFT" ckpt diff runs/gpt-$from/$half runs/still-$from-$to/checkpoints/step-00000005.h5
    h5dump -d /params/wte.weight -o a runs/gpt-$from/$half >/dev/null
    h5dump -d /params/wte.weight -o b runs/still-$from-$to/checkpoints/step-00000005.h5 >/dev/null
    holds "from $from to $to: the same bits" cmp -s a b
done

# The checks of weft doctor for GPUs.
doctor() { env OMPI_MCA_rmaps_base_oversubscribe=1 "$@" timeout 60 mpirun --allow-run-as-root -n 2 "$WEFT" doctor .; }
check 0 '2 for each process, emulated GPU' doctor EMULATE_GPUS=2
check 0 '2 ranks share 1 GPU and take turns' doctor EMULATE_GPUS=1
check 0 '2 of 8 GPUs have a rank' doctor EMULATE_GPUS=8
check 0 'GB: other processes use it' doctor EMULATE_GPUS=2 EMULATE_OTHERS=2000000000

# Both devices generate the same text.
for device in cpu cuda; do
    check 0 'the quick ' "$WEFT" generate gpt.yaml --checkpoint runs/gpt-cpu/$half --prompt 'the quick ' --tokens 20 --temperature 0 train.device=$device
    cp out text-$device
done
holds 'both write the same' cmp -s text-cpu text-cuda
check 0 '' "$WEFT" generate gpt.yaml --checkpoint runs/gpt-cpu/$half --tokens 5 train.device=cuda train.precision=bf16
# The memory that the plan counts, and the additional memory of recorded graphs.
beside() { sed -n 's/.*"device_unplanned_mb": *\([0-9.]*\).*/\1/p' out; }
planned() { awk -F'"device_mb": *|"device_planned_mb": *' '{ d = $2 - $3; exit !($2 > 0 && d <= 1 && d >= -1) }' out; }
check 0 '"product_gflops":' "$WEFT" bench step lenet.yaml train.device=cuda --steps 3 --json
holds 'memory as planned' planned
holds 'nothing beside it' test "$(beside)" = 0
check 0 '' env EMULATE_GRAPH_BYTES=64000000 "$WEFT" bench step lenet.yaml train.device=cuda --steps 3 --json
holds 'graphs of 64 MB beside it' test "$(($(beside) / 64 * 64))" = "$(beside)" -a "$(beside)" -gt 0
check 0 '"device_unplanned_mb":null' "$WEFT" bench step lenet.yaml train.device=cpu --steps 1 --json

# An emulated GPU has 4 GiB.
check 78 'train.micro_batch of at most about' "$WEFT" train gpt.yaml run.name=big train.device=cuda model.width=1024 model.heads=16 model.layers=12 \
    train.batch=65536 train.micro_batch=65536
check 78 'a GPU that no other process uses' "$WEFT" train gpt.yaml run.name=big train.device=cuda model.width=4096 model.heads=32 model.layers=24
holds 'nothing was written' test ! -e runs/big
finish
