#!/usr/bin/env bash
# train.precision: bf16 learns like fp32 and writes fp32 checkpoints, which both precisions can resume, evaluate and generate from.
# Processors without bf16 are refused on every rank; the message names the ranks if only some lack it. fp16 and tf32 are not supported
# on CPUs.
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

seq 1 3001 >text
check 0 'wrote' "$WEFT" data import text text -o text.h5 --test test.h5
cat >job.yaml <<Y
model: {name: gpt2, layers: 2, width: 64, heads: 2, context: 32}
data:  {train: text.h5, test: test.h5}
train: {steps: 30, batch: 16, micro_batch: 8, threads: 1, log_every: 1}
optim: {name: adamw, lr: 2.0e-3}
Y
train() { timeout 240 "$WEFT" train job.yaml "$@"; }

check 78 'fp16 needs a GPU' train train.precision=fp16
check 78 'tf32 needs a GPU' train train.precision=tf32

# oneDNN is made to believe that this processor has no bf16
export ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2
check 78 'bf16 needs AVX512_BF16 or AMX' train train.precision=bf16
check 78 'use train.precision=fp32' train -n 2 train.precision=bf16
holds 'one message' test "$(grep -c 'error:' both)" = 1
unset ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA
if ! timeout 240 "$WEFT" plan job.yaml train.precision=bf16 >out 2>&1; then
    echo "  skipped: bf16: $(cat out)"
    finish
    exit
fi
check 78 'rank 1: train.precision: bf16 needs' timeout 240 mpirun --oversubscribe -n 1 "$WEFT" train job.yaml \
    train.precision=bf16 : -n 1 -x ONEDNN_MAX_CPU_ISA=AVX2 -x DNNL_MAX_CPU_ISA=AVX2 "$WEFT" train job.yaml train.precision=bf16
holds 'one message' test "$(grep -c 'error:' both)" = 1
holds 'nothing was written' test ! -e runs

# the last five losses of a decreasing curve are within 1 % of those of fp32
check 0 '' train run.name=fp32
check 0 '' train run.name=bf16 train.precision=bf16
losses() { sed -n 's/.*"loss":\([0-9.]*\),"lr".*/\1/p' runs/$1/metrics.jsonl; }
losses fp32 >a
losses bf16 >b
holds 'it learns as fp32 does' awk 'FNR == 1 { first = $1 } FNR > 25 { sum[FILENAME] += $1 / 5 }
    END { off = sum["b"] / sum["a"] - 1; exit !(NR == 60 && off != 0 && off < 0.01 && off > -0.01 && sum["b"] < 0.6 * first) }' a b

# resumes in both directions
last=checkpoints/step-00000030.h5
check 0 'H5T_IEEE_F32LE' h5dump -H -d /params/wte.weight runs/bf16/$last
check 0 'good' "$WEFT" ckpt check runs/bf16/$last
check 0 'resuming from runs/bf16' train run.name=after-bf16 train.steps=32 checkpoint.resume=runs/bf16/$last
check 0 'resuming from runs/fp32' train run.name=after-fp32 train.steps=32 train.precision=bf16 checkpoint.resume=runs/fp32/$last
check 78 'was written with `train.precision: bf16`' train run.name=bf16
for precision in fp32 bf16; do
    check 0 'top-1' "$WEFT" eval job.yaml --checkpoint runs/after-fp32/checkpoints/step-00000032.h5 train.precision=$precision
    check 0 '' "$WEFT" generate job.yaml --checkpoint runs/after-fp32/checkpoints/step-00000032.h5 train.precision=$precision
done
check 0 '"product_gflops":' "$WEFT" bench step job.yaml train.precision=bf16 --steps 3 --json
finish
