#!/usr/bin/env bash
# weft verify with every family of models: any number of replicas, stages and threads, with 6, 7, 8 and 15 micro-batches, every
# grid.zero and every schedule; tensor groups of models that they can divide; a run that resumes on another grid. MODELS="gpt llama" in the environment takes those alone.
# cores: 2
. "$(dirname "$0")/../cli/images.bash"
. "$(dirname "$0")/../cli/common.bash"

noise_idx 64 28 10 grey.h5
for i in $(seq 3000); do printf "\\$(printf %03o $((i * i % 61)))\\0"; done >tokens.raw
check 0 'wrote tokens.h5' "$WEFT" data import tokens tokens.raw -o tokens.h5 --bits 16 --vocab 61
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 192 --test clicks-test.h5 --test-samples 40 --threads 1
check 0 'wrote waves: 4 members' "$WEFT" data make shallow-water -o waves --size 16x16 --members 4 --steps 12
check 0 'wrote scenes.h5: 64 scenes' "$WEFT" data make scenes grey.h5 -o scenes.h5 --samples 64 --side 64 --threads 1
fields="'waves/*.nc', variables: {inputs: [h, u, v], static: [orography], targets: [h, u]}, window: {inputs: [0], targets: [1]}"
# job NAME MODEL DATA TRAIN OPTIM
job() { printf 'run: {seed: 3}\nmodel: {%s}\ndata: {train: %s}\ntrain: {%s}\noptim: {%s}\n' "${@:2}" >"$1.yaml"; }
job mlp 'name: mlp, hidden: [304, 40, 32, 24]' grey.h5 'micro_batch: 2' 'name: adamw, lr: 0.001'
job lenet 'name: lenet' grey.h5 'micro_batch: 2' 'lr: 0.01, momentum: 0.9'
job resnet18 'name: resnet18' grey.h5 'micro_batch: 2' 'name: lars, lr: 0.01, momentum: 0.9'
job mobilenet 'name: mobilenet_v2' grey.h5 'micro_batch: 4' 'lr: 0.0001'
job gpt 'name: gpt2, layers: 3, width: 64, heads: 8, context: 64, dropout: 0.1' tokens.h5 'micro_batch: 1' 'name: adamw, lr: 0.001, clip: 1'
job llama 'name: llama, layers: 3, width: 64, heads: 8, kv_heads: 4, context: 64' tokens.h5 'micro_batch: 1' 'name: lamb, lr: 0.001'
job multi_query 'name: llama, layers: 3, width: 64, heads: 8, kv_heads: 1, context: 64, window: 20, qkv_bias: true' tokens.h5 'micro_batch: 1' 'name: adamw, lr: 0.001, clip: 1'
job wide_deep 'name: wide_deep, width: 4, hidden: [40, 24]' clicks.h5 'micro_batch: 4, loss: sigmoid' 'name: adagrad, lr: 0.05'
job deepfm 'name: deepfm, width: 4, hidden: [40, 24]' clicks.h5 'micro_batch: 4, loss: sigmoid' 'name: adagrad, lr: 0.05'
job unet 'name: unet, channels: [8, 16], up: bilinear, pad_mode: [reflect, circular], attention: 2' "$fields" 'micro_batch: 1, loss: mse' 'name: adamw, lr: 0.001, clip: 1'
job fieldresnet 'name: fieldresnet, width: 8' "$fields" 'micro_batch: 1, loss: huber' 'name: adamw, lr: 0.001'
job columns 'name: columns, width: 16, norm: layer' "$fields" 'micro_batch: 1, loss: l1' 'name: adamw, lr: 0.001'
job yolov5n 'name: yolov5n, width_multiple: 0.03' 'scenes.h5, normalize: false' 'micro_batch: 2, loss: yolo' 'lr: 0.01, momentum: 0.9'
job dlrm 'name: dlrm, width: 4' clicks.h5 'micro_batch: 4, loss: sigmoid' 'name: adagrad, lr: 0.05'

micro_of() { sed -n 's/.*micro_batch: \([0-9]*\).*/\1/p' "$1.yaml"; }
same() { check 0 'the same to the bit' timeout 1200 "$WEFT" verify "$@"; }
for model in ${MODELS:-mlp lenet resnet18 mobilenet gpt llama multi_query wide_deep deepfm dlrm unet fieldresnet columns yolov5n}; do
    micro=$(micro_of $model)
    for count in 6 7 8 15; do
        same $model.yaml --grids 1x1x1,2x1x1,3x1x1,5x1x1,1x3x1,3x2x1 --threads 1,2,4 --steps 2 train.batch=$((count * micro))
    done
    # sparse tables are always divided among the replicas, so 2 and 3 are refused
    zero=0,1,2,3
    case $model in wide_deep | deepfm | dlrm) zero=0,1 ;; esac
    same $model.yaml --grids 1x1x1,2x1x1,3x1x1,4x1x1 --zero $zero --transports shm,mpi --steps 2 train.batch=$((7 * micro))
    same $model.yaml --grids 1x1x1,1x2x1,3x2x1 --schedules gpipe,1f1b,interleaved,zero-bubble,zb-v,dualpipe-v --steps 2 \
        train.batch=$((15 * micro))
    case $model in mlp | gpt | llama | multi_query)
        for count in 6 15; do
            same $model.yaml --grids 1x1x1,1x1x2,1x1x4,2x1x2,2x2x2,3x1x2 --threads 1,2 --steps 2 train.batch=$((count * micro))
        done
        same $model.yaml --grids 1x1x1,1x1x2,2x1x2 --zero 0,1,2,3 --transports shm,mpi --steps 2 train.batch=$((7 * micro))
        same $model.yaml --grids 1x1x1,1x1x8 --steps 2 train.batch=$((6 * micro))
        [ $model != llama ] || same $model.yaml --grids 1x1x1,1x1x4,1x1x8,2x1x4 --steps 2 train.batch=$((6 * micro)) model.kv_heads=2
        # in bf16 a head of keys cannot be divided
        if [ $model != multi_query ] && grep -q 'avx512_bf16\|amx_bf16' /proc/cpuinfo; then
            same $model.yaml --grids 1x1x1,1x1x2,1x1x4,2x1x2,1x2x2 --threads 1,2 --steps 2 train.batch=$((6 * micro)) train.precision=bf16
        fi ;;
    esac
done

# Replicas, the tensor group and threads change when a run resumes.
train() { timeout 300 "$WEFT" train gpt.yaml run.dir=resumed train.batch=12 train.log_every=1 "$@"; }
check 0 'step 4/4' train run.name=whole train.threads=1 train.steps=4
check 0 'step 2/2' train -n 8 run.name=halves grid.dp=4 grid.tp=2 train.threads=1 train.steps=2
check 0 'step 4/4' train -n 3 run.name=halves grid.dp=3 train.threads=2 train.steps=4
check 0 'to the bit' "$WEFT" ckpt diff resumed/{whole,halves}/checkpoints/step-00000004.h5
finish
