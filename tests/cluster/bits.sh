#!/usr/bin/env bash
# Training on two and three hosts, with shared memory within a host and MPI between hosts, ends with the bits of one rank: data parallel
# (the ranks of a host sum in shared memory before messages leave it), pipelines with both kinds of schedule, and both together, with
# either one crossing hosts, with the optimizer's state, or more, sharded or not. Also a detector, with its average and its evaluation.
# usage: bits.sh     (WEFT=build/weft; needs root; half a minute on two idle cores)
hosts=3
. "$(dirname "$0")/cluster.bash"
make_images
make_text
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 4, micro_batch: 4, threads: 1}
optim: {lr: 0.05, momentum: 0.9}
checkpoint: {resume: "no"}
YAML
cat >gpt2.yaml <<'YAML'
model: {name: gpt2, layers: 3, width: 32, heads: 2, context: 32}
data:  {train: text.h5}
train: {steps: 3, micro_batch: 4, threads: 1}
optim: {name: adamw, lr: 1.0e-3}
checkpoint: {resume: "no"}
YAML

# same BATCH SUMS HOSTS RANKS MAP KEY=VALUE... : both models end with the bits of one rank with that batch, and SUMS is in the line
# about the ranks' sums.
same() {
    local batch=$1 sums=$2 place="$3 $4 $5" model name
    shift 5
    for model in lenet gpt2; do
        name=$(tr ' =.' '---' <<<"$model-$batch-$place-$*")
        check 0 "allreduce: $sums" across $place "$WEFT" train $model.yaml train.batch=$batch run.name="$name" "$@"
        check 0 '' "$WEFT" ckpt diff runs/"$name"/checkpoints/step-*.h5 runs/$model-$batch/checkpoints/step-*.h5
    done
}
for model in lenet gpt2; do
    for batch in 24 32; do check 0 '' "$WEFT" train $model.yaml train.batch=$batch run.name=$model-$batch; done
done

same 32 mpi 2 1 slot grid.dp=2
same 24 mpi 3 1 slot grid.dp=3
for schedule in 1f1b zero-bubble; do
    same 32 self 2 1 slot grid.pp=2 grid.pipeline_schedule=$schedule
    same 24 self 3 1 slot grid.pp=3 grid.pipeline_schedule=$schedule
    same 32 shm 2 2 slot grid.dp=2 grid.pp=2 grid.pipeline_schedule=$schedule # messages between hosts
    same 32 mpi 2 2 node grid.dp=2 grid.pp=2 grid.pipeline_schedule=$schedule # sums between hosts
done
same 32 'shm and mpi' 2 2 slot grid.dp=4
same 24 'shm and mpi' 3 2 slot grid.dp=6
same 32 'shm and mpi' 2 4 slot grid.dp=8
same 32 'shm and mpi' 2 4 slot grid.dp=8 grid.zero=2
same 32 mpi 2 2 slot grid.dp=4 grid.transport=mpi
same 32 mpi 2 2 node grid.dp=4           # neighbours are on other hosts, so there are no groups
same 24 mpi 3 2 slot grid.dp=3 grid.pp=2 # messages and sums between hosts
for zero in 1 2 3; do same 32 'shm and mpi' 2 2 slot grid.dp=4 grid.zero=$zero; done
same 24 'shm and mpi' 3 2 slot grid.dp=6 grid.zero=3
same 32 shm 2 2 slot grid.dp=2 grid.pp=2 grid.zero=1
same 24 mpi 3 2 node grid.dp=3 grid.pp=2 grid.zero=1 grid.pipeline_schedule=zero-bubble
same 32 mpi 2 2 node grid.dp=2 grid.pp=2 grid.zero=3
# rounds of halving between three hosts and six ranks, one per host or grouped
for zero in 0 1 2 3; do same 24 'shm and mpi' 3 2 slot grid.dp=6 grid.zero=$zero grid.sums=halving; done
same 24 mpi 3 1 slot grid.dp=3 grid.sums=halving
same 24 mpi 3 2 slot grid.dp=6 grid.transport=mpi grid.sums=halving grid.zero=1
# from a checkpoint after two steps, which the hosts exchange
for model in lenet gpt2; do check 0 '' "$WEFT" train $model.yaml train.batch=24 train.steps=2 run.name=$model-half; done
resumed() {
    local model half
    for model in lenet gpt2; do
        half=runs/$model-half/checkpoints/step-00000002.h5
        check 0 "resuming from $half" across 3 2 "$1" "$WEFT" train $model.yaml train.batch=24 checkpoint.resume=$half run.name=resumed run.fresh=true "${@:2}"
        check 0 '' "$WEFT" ckpt diff runs/resumed/checkpoints/step-*.h5 runs/$model-24/checkpoints/step-*.h5
    done
}
resumed slot grid.dp=6
resumed slot grid.dp=6 grid.zero=3
resumed node grid.dp=3 grid.pp=2
# a detector on one host with two ranks, and on two with two each
make_detector
check 0 'AP50' "$WEFT" train yolo.yaml run.name=yolo
detector() { # HOSTS RANKS MAP KEY=VALUE...
    check 0 'AP50' across "$1" "$2" "$3" "$WEFT" train yolo.yaml run.name=yolo-ranks run.fresh=true "${@:4}"
    check 0 'to the bit' "$WEFT" ckpt diff runs/yolo-ranks/checkpoints/step-*.h5 runs/yolo/checkpoints/step-*.h5
    holds 'the same evaluation' test "$(numbers yolo)" = "$(numbers yolo-ranks)"
}
numbers() { sed -n '/eval_loss/s/,"seconds".*//p' "runs/$1/metrics.jsonl"; }
holds 'an evaluation' test -n "$(numbers yolo)"
detector 1 2 slot grid.dp=2
detector 2 2 slot grid.dp=4
detector 2 2 slot grid.dp=2 grid.pp=2
detector 2 2 node grid.dp=2 grid.pp=2 grid.zero=2
check 78 'shm needs all ranks on one node' across 2 1 slot "$WEFT" train lenet.yaml train.batch=32 run.name=refused grid.dp=2 grid.transport=shm
finish
