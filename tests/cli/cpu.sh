#!/usr/bin/env bash
# train.cpu and WEFT_CPU limit weft's kernels and oneDNN to an instruction set. Each set that this processor has computes the same
# function, gives the same bits on one rank and on two, and belongs to the facts that a resumed run must match. Ranks with different
# processors use the set that all of them have. The test programs of kernels pass under each set, also through oneDNN.
# cores: 1
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
programs=$(dirname "$WEFT")/tests/tensor

{ printf '\0\0\10\1\0\0\0\100'; seq 1 40 | tr -dc '\60-\71' | head -c 64 | tr '\60-\71' '\0-\11'; } >labels
{ printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'; seq 1 20000 | head -c $((64 * 28 * 28)); } >images
check 0 'wrote' "$WEFT" data import idx images labels -o data.h5
cat >job.yaml <<Y
model: {name: lenet}
data:  {train: data.h5}
train: {steps: 4, batch: 16, micro_batch: 8, threads: 1, log_every: 1}
optim: {name: sgd, lr: 0.01}
Y
train() { timeout 240 "$WEFT" train -n "$1" job.yaml "${@:2}"; }
losses() { sed -n 's/.*"loss":\([0-9.]*\),"lr".*/\1/p' "runs/$1/metrics.jsonl"; }
params() { "$WEFT" ckpt diff "runs/$1/checkpoints/step-00000004.h5" "runs/$2/checkpoints/step-00000004.h5"; }

check 78 "the variable WEFT_CPU is 'sse9': it is one of auto|base|avx2|avx512" env WEFT_CPU=sse9 "$WEFT" train job.yaml
check 78 'train.cpu' "$WEFT" plan job.yaml train.cpu=sse9
best=$("$WEFT" --version | sed -n 's/.*this processor has \([a-z0-9]*\).*/\1/p')
sets="base avx2 avx512"
sets=${sets%"${sets#*"$best"}"}
holds 'a best set' test -n "$best"
if [ "$best" != avx512 ]; then
    check 78 'train.cpu: avx512 needs AVX512F, BW, DQ and VL, which this processor lacks' "$WEFT" plan job.yaml train.cpu=avx512
fi

check 0 '' train 1 run.name=auto
check 0 'train.cuda_tune=gone.txt does nothing on CPUs' train 1 run.name=tuned train.cuda_tune=gone.txt
check 0 'to the bit' params auto tuned
for set in $sets; do
    check 0 "CPU kernels: $set (this processor has $best)" env WEFT_CPU=$set "$WEFT" --version
    check 0 "on cpu ($set), allreduce" train 1 run.name=$set train.cpu=$set
    check 0 "on cpu ($set), allreduce" train 2 run.name=$set-two train.cpu=$set
    check 0 "on cpu ($set), allreduce" env WEFT_CPU=$set timeout 240 "$WEFT" train job.yaml run.name=$set-variable
    check 0 '' params $set $set-two
    check 0 '' params $set $set-variable
    losses auto >a; losses $set >b
    holds "$set learns what auto does" awk '{ if (FNR == NR) a[FNR] = $1; else { n += 1; d = $1 / a[FNR] - 1; far += d > 1e-4 || d < -1e-4 } }
        END { exit !(n == 4 && far == 0) }' a b
    holds "$set is in the run's configuration" grep -q "cpu: $set" runs/$set/config.yaml
    [ $set != "$best" ] || continue # the programs use this set by default
    for program in test_dnnl_conv test_dnnl_dense test_kernels test_kernels_loss; do
        check 0 '0 failed' env WEFT_CPU=$set OMP_WAIT_POLICY=passive timeout 300 "$programs/$program"
    done
done
if [ "$best" != base ]; then
    check 78 'was written with `train.cpu: base`' train 1 run.name=base train.cpu=$best
    check 0 'on cpu (base), allreduce' timeout 240 mpirun --oversubscribe -n 1 "$WEFT" train job.yaml run.name=mixed : \
        -n 1 -x WEFT_CPU=base "$WEFT" train job.yaml run.name=mixed
    check 0 '' params base mixed
    check 78 'bf16 needs AVX512_BF16 or AMX, but train.cpu or WEFT_CPU limits instructions to base' train 1 train.precision=bf16 train.cpu=base
fi
finish
