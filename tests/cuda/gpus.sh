#!/usr/bin/env bash
# Tests several ranks with a GPU each, on emulated GPUs and NCCL (tests/cuda/emulate). Every grid, schedule and transport gives the bits
# of one rank. Also GPUs that are shared, hidden or of several models, and a rank that dies. The main grids are tested first.
#
# ONE_CARD=PROGRAM gpus.sh: the same tests with real NCCL and PROGRAM (a bundle's bin/weft); all ranks share the machine's only GPU. Cases
# that need the emulation are skipped. With UNTIL_S=SECONDS no case begins after that time; the last line counts the cases left out.
CLOCK_TOOL=$(readlink -f "${CLOCK_TOOL:-$(dirname "${WEFT:-build/weft}")/tests/cuda/clock_tool.so}" || true)
WEFT=${ONE_CARD:-$(dirname "${WEFT:-build/weft}")/emulated/weft}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../cli/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
left=0
# emulated DESCRIPTION : true if the GPU is emulated; otherwise prints that the described cases are skipped.
emulated() {
    [ -n "${ONE_CARD:-}" ] || return 0
    echo "  skipped: $1: needs the emulated GPU"
    return 1
}
if [ -n "${ONE_CARD:-}" ]; then
    export WEFT_TEST_SHARED_GPU=1 PATH=$(dirname "$WEFT"):$PATH # a bundle contains its mpirun
    # Checks that would begin too late are counted and skipped.
    too_late() { [ "$SECONDS" -ge "${UNTIL_S:-100000}" ] && left=$((left + 1)); }
    eval "made_$(declare -f check)"
    eval "made_$(declare -f holds)"
    check() { too_late || { echo "$SECONDS s: ${*:3}"; made_check "$@"; }; }
    holds() { too_late || made_holds "$@"; }
fi

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; for i in $(seq 3840); do printf "\\$(printf %03o $((i * i % 251)))"; done; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<X
run: {name: one, seed: 1}
model: {name: mlp, hidden: [8, 8, 8, 8, 8, 8, 8]}
data: {train: data.h5, test: data.h5}
train: {steps: 3, batch: 12, micro_batch: 3, threads: 1, device: cuda, sum_slices: 8}
optim: {name: adamw, lr: 0.01, clip: 1}
X
head -c 3000 "$here/gpus.sh" >text.txt
check 0 '' "$WEFT" data import text text.txt -o text.h5
cat >gpt.yaml <<X
run: {name: gpt-one, seed: 1}
model: {name: gpt2, layers: 2, width: 16, heads: 2, context: 16}
data: {train: text.h5}
train: {steps: 2, batch: 4, micro_batch: 1, threads: 1, device: cuda}
optim: {name: adamw, lr: 0.01}
X

ranks() { timeout -k 2 "${RUN_S:-240}" mpirun --oversubscribe --bind-to none -n "$@"; }
# same RANKS JOB NAME OVERRIDE... : trains, and checks that the result has the bits of one rank.
same() {
    local n=$1 job=$2 name=$3 one=one last
    shift 3
    case $job in gpt.yaml) one=gpt-one ;; bf16.yaml) one=bf16-one ;; fp16.yaml) one=fp16-one ;; tp.yaml) one=tp-one ;; tp-bf16.yaml) one=tp-bf16 ;; conv.yaml) one=conv-one ;; flat.yaml) one=flat-one ;; norm.yaml) one=norm-one ;; wide.yaml) one=wide-one ;; odd.yaml) one=odd-one ;; esac
    check 0 'done after' ranks "$n" "$WEFT" train "$job" run.name="$name" "$@"
    cp both words
    last=$(ls "runs/$one/checkpoints" 2>/dev/null | tail -n 1)
    check 0 'to the bit' "$WEFT" ckpt diff "runs/$one/checkpoints/$last" "runs/$name/checkpoints/$last"
}

# ---- the main grids ----

check 0 'done after' "$WEFT" train job.yaml
check 0 'done after' "$WEFT" train gpt.yaml
same 2 job.yaml dp2
holds 'sums by NCCL' grep -q 'allreduce: nccl' words
WEFT_TEST_SHARED_GPU= EMULATE_GPUS=1 same 2 job.yaml dp2-host
holds 'sums through host memory' grep -q 'allreduce: host memory' words
same 2 job.yaml pp2-gpipe grid.pp=2 grid.pipeline_schedule=gpipe
same 4 job.yaml dp2pp2-interleaved grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=3
# tensor parallelism, also with slices of different sizes: 5 heads are divided into 4 slices
sed 's/gpt-one/tp-one/; s/width: 16, heads: 2/width: 20, heads: 5, dropout: 0.1, positions: rotary/; s/device: cuda/&, sum_slices: 8/' gpt.yaml >tp.yaml
losses() { awk -F'[:,]' '/"loss"/ { for (i = 1; i < NF; ++i) if ($i ~ /"loss"/) print $(i + 1) }' "runs/$1/metrics.jsonl"; }
near() { paste <(losses "$1") <(losses "$2") | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d } END { exit !(NR > 0 && most < 2e-5) }'; }
check 0 'done after' "$WEFT" train tp.yaml train.log_every=1
same 2 tp.yaml tp-two grid.tp=2
same 4 tp.yaml tp-four grid.tp=4
check 0 'done after' "$WEFT" train tp.yaml run.name=tp-cpu train.log_every=1 train.device=cpu
holds 'the losses of the CPU' near tp-one tp-cpu
sed 's/tp-one/tp-bf16/; s/device: cuda/&, precision: bf16/' tp.yaml >tp-bf16.yaml
check 0 'done after' "$WEFT" train tp-bf16.yaml
same 4 tp-bf16.yaml tp-bf16-four grid.tp=4
same 2 job.yaml zero3-of-2 grid.zero=3
for zero in 0 3; do same 3 job.yaml halving-3-$zero grid.sums=halving grid.zero=$zero grid.bucket_mb=0.001; done

# three micro-batches on each of two GPUs, dealt as subtrees of two and of one: all-reduce and reduce-scatter by NCCL, and through host memory
sed 's/: one/: odd-one/; s/micro_batch: 3/micro_batch: 2/' job.yaml >odd.yaml
check 0 'done after' "$WEFT" train odd.yaml
for zero in 0 1; do same 2 odd.yaml odd-$zero grid.zero=$zero grid.bucket_mb=0.001; done
WEFT_TEST_SHARED_GPU= EMULATE_GPUS=1 same 2 odd.yaml odd-host grid.bucket_mb=0.001

# a rank dies while others wait for it: the others name the rank and their own GPU, and all end. mpirun is suspended until they have
# written their messages, since it would end the job first.
named() { grep -q 'GPU [0-9]* (.*, [0-9A-F:.]*), joined to others by NCCL: rank [01] (process [0-9]*) has ended' said; }
children() { grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status | cut -d/ -f3 | sort -n; }
gone() { ! kill -0 "$@" 2>/dev/null; }
dies() {
    local job victim ranks start
    : >said
    env -u OMPI_MCA_odls_base_sigkill_timeout mpirun --oversubscribe --bind-to none -n 2 bash -c 'exec env "$@" >>said 2>&1' - \
        ${preload:+LD_PRELOAD="$preload"} "$WEFT" train job.yaml run.name=dies train.steps=1000000 "$@" >both 2>&1 &
    job=$!
    soon grep -q 'step 1/' said
    ranks=$(children "$job") start=$SECONDS
    victim=$(tail -n 1 <<<"$ranks")
    kill -STOP "$job" && kill -KILL "$victim"
    soon named || true
    kill -CONT "$job"
    wait "$job" && return 1
    soon gone $ranks && named || return 1
    [ -z "${ONE_CARD:-}" ] || { echo "the job ended $((SECONDS - start)) s after a rank was killed"; [ $((SECONDS - start)) -le 10 ]; }
}
EMULATE_NETWORK= holds 'a death is named' dies grid.dp=2

# ---- other grids ----

# halving with a power of two of GPUs: all-reduce, and gathered shards
for zero in 0 3; do same 4 job.yaml halving-4-$zero grid.sums=halving grid.zero=$zero grid.bucket_mb=0.001; done
# a tensor that belongs to one rank, and is longer than a slice of all shards
sed 's/: one/: wide-one/; s/hidden: .*/hidden: [60]}/' job.yaml >wide.yaml
check 0 'done after' "$WEFT" train wide.yaml
for n in 3 4; do same $n wide.yaml wide-$n grid.sums=halving grid.zero=3; done
same 2 job.yaml pp2-zero-bubble grid.pp=2 grid.pipeline_schedule=zero-bubble
same 2 job.yaml pp2-interleaved grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2
sed 's/: one/: bf16-one/; s/device: cuda/&, precision: bf16/' job.yaml >bf16.yaml
check 0 'done after' "$WEFT" train bf16.yaml
same 2 bf16.yaml pp2-nothing-back grid.pp=2 'grid.cuts=[fc1]' # no parameter before the cut, so messages of backward are empty
same 3 gpt.yaml gpt-tied grid.pp=3 # embedding and head share a weight, on the first stage and the last

# products that include the sum with the residual: across a cut, with deferred gradients of weights, in recomputed blocks
for schedule in gpipe zero-bubble; do same 2 gpt.yaml gpt-$schedule grid.pp=2 grid.pipeline_schedule=$schedule; done
same 2 gpt.yaml gpt-recomputed grid.pp=2 grid.recompute=block
same 2 gpt.yaml gpt-cut grid.pp=2 'grid.cuts=[h.1.attn.c_proj]' # the residual comes from the other stage

# a convolution adds its gradient to the gradient of a sum, which comes from its own stage or from the next
sed 's/: one/: conv-one/; s/model:.*/model: {layers: [conv2d: {name: a, channels: 8, kernel: 3, pad: 1}, conv2d: {name: b, channels: 8, kernel: 3, pad: 1}, relu, conv2d: {name: c, channels: 8, kernel: 1}, add: {input: [a, c]}, global_pool, flatten, dense: {width: 3}]}/' job.yaml >conv.yaml
check 0 'done after' "$WEFT" train conv.yaml
for schedule in gpipe zero-bubble; do same 2 conv.yaml conv-$schedule grid.pp=2 'grid.cuts=[c]' grid.pipeline_schedule=$schedule; done
same 4 conv.yaml conv-dp2pp2 grid.dp=2 grid.pp=2 'grid.cuts=[b]'

# the columns of a dense layer after an image have the layout of the image: with the image on another stage, with gathered weights, and in tensor parallelism
sed 's/: one/: flat-one/; s/model:.*/model: {layers: [conv2d: {name: a, channels: 6, kernel: 3, pad: 1}, relu, max_pool: {kernel: 2}, flatten, dense: {name: fc, width: 12}, relu, dense: {width: 3}]}/' job.yaml >flat.yaml
check 0 'done after' "$WEFT" train flat.yaml train.log_every=1
same 2 flat.yaml flat-pp2 grid.pp=2 'grid.cuts=[fc]'
same 4 flat.yaml flat-zero3 grid.pp=2 grid.zero=3 checkpoint.every_steps=1
same 1 flat.yaml flat-on checkpoint.resume=runs/flat-zero3/checkpoints/step-00000001.h5

# the gathered parameters of a batch norm that computes no gradient of its input are not in memory during backward
sed 's/: one/: norm-one/; s/model:.*/model: {layers: [batch_norm, relu, conv2d: {channels: 6, kernel: 3}, relu, flatten, dense: {width: 40}, relu, dense: {width: 3}]}/' job.yaml >norm.yaml
check 0 'done after' "$WEFT" train norm.yaml
same 2 norm.yaml norm-zero3 grid.zero=3 grid.bucket_mb=0.001

# if the loss scale is too large, all ranks skip the same steps
sed 's/gpt-one/fp16-one/; s/width: 16, heads: 2/width: 20, heads: 5/; s/steps: 2/steps: 6/; s/device: cuda/&, precision: fp16, sum_slices: 8, loss_scale: 16777216/' gpt.yaml >fp16.yaml
check 0 'the step is skipped' "$WEFT" train fp16.yaml
same 4 fp16.yaml fp16-dp2pp2 grid.dp=2 grid.pp=2

# if only one rank detects an overflow, all ranks skip the step
same 2 fp16.yaml fp16-zero2 grid.zero=2
same 2 fp16.yaml fp16-zero3 grid.zero=3
same 4 fp16.yaml fp16-zero2-pp2 grid.pp=2 grid.zero=2 grid.bucket_mb=0.001 # rings with gaps, where last step's numbers lie

# work between communication with other ranks is captured
sed 's/gpt-one/graphs-off/; s/steps: 2/steps: 24/; s/device: cuda/&, cuda_graphs: off/' gpt.yaml >off.yaml
calls() { EMULATE_COUNTS=1 ranks 1 "$@" 2>&1 : -n 1 "$@" | awk '/calls of the host/ { print $1; exit }'; }
few() { [ "$(calls "$WEFT" train off.yaml run.name="$1" train.cuda_graphs=auto)" -lt $(($(calls "$WEFT" train off.yaml) / 2)) ]; }
if emulated 'calls of the host are counted'; then
    holds 'fewer calls with graphs on two ranks' few graphs-auto
    check 0 'to the bit' "$WEFT" ckpt diff runs/graphs-{off,auto}/checkpoints/step-00000024.h5
fi

# sharded parameters and state, also in checkpoints: a run is resumed on another number of ranks
same 2 job.yaml zero1 grid.zero=1 checkpoint.every_steps=2
same 4 gpt.yaml gpt-zero2 grid.pp=2 grid.zero=2
same 4 job.yaml zero3 grid.pp=2 grid.zero=3 checkpoint.resume=runs/zero1/checkpoints/step-00000002.h5

# tensor parallelism on three ranks, and with other layers
for n in 2 3; do
    check 0 'done after' ranks $n "$WEFT" train tp.yaml run.name=tp-grid-$n grid.tp=$n train.log_every=1 train.sum_slices=1
    holds "the losses of one rank, with one slice on each of $n" near tp-one tp-grid-$n
done
same 2 job.yaml tp-mlp grid.tp=2
same 2 flat.yaml tp-flat grid.tp=2
same 4 tp.yaml tp-dropout grid.tp=2 grid.dp=2 grid.recompute=block grid.transport=mpi

# Llama, with keys of several queries, a window and slices of sums, and models of fields, with everything they can have: the losses of the CPU
as_cpu() {
    local job=$1 name=$2
    shift 2
    check 0 'done after' "$WEFT" train "$job" run.name="$name" "$@"
    check 0 'done after' "$WEFT" train "$job" run.name="$name-cpu" "$@" train.device=cpu
    holds "$name: the losses of the CPU" near "$name" "$name-cpu"
}
sed 's/gpt-one/llama/; s/name: gpt2.*/name: llama, layers: 1, width: 32, heads: 4, kv_heads: 2, context: 16, window: 5}/; s/steps: 2/steps: 3, log_every: 1/' gpt.yaml >llama.yaml
as_cpu llama.yaml llama train.sum_slices=8
check 0 'done after' ranks 2 "$WEFT" train llama.yaml run.name=llama-tp train.sum_slices=8 grid.tp=2
check 0 'to the bit' "$WEFT" ckpt diff runs/llama/checkpoints/step-00000003.h5 runs/llama-tp/checkpoints/step-00000003.h5
check 0 '' "$WEFT" data make shallow-water -o sea --size 16x16 --members 1 --steps 8 --labels
cat >unet.yaml <<X
run: {seed: 1}
data:
  train: sea/member-000.nc
  variables: {inputs: [h, u, v], static: [orography], extra: [row, hour], targets: [{name: h, weight: 4}, u, v]}
  window: {inputs: [0], targets: [1]}
model: {name: unet, channels: [8, 16], attention: 2, film: 8, residual: true, up: bilinear, pad_mode: [reflect, circular]}
train: {loss: huber, steps: 3, batch: 4, micro_batch: 2, threads: 1, device: cuda, log_every: 1}
optim: {name: adamw, lr: 0.001}
X
as_cpu unet.yaml unet
as_cpu unet.yaml patches data.patch=8x8 model.activation=silu model.norm=instance
as_cpu unet.yaml rollout train.rollout=2 data.predict=change
sed 's/^model:.*/model: {name: fieldresnet, layers: 2, width: 16, film: 8}/' unet.yaml >fieldresnet.yaml
as_cpu fieldresnet.yaml fieldresnet
sed 's/^model:.*/model: {name: columns, layers: 2, width: 16, norm: layer}/' unet.yaml >columns.yaml
as_cpu columns.yaml columns
sed '/variables:/s/targets: .*/targets: [{name: regime, classes: 3}]}/' unet.yaml >labels.yaml
for loss in softmax focal dice iou; do as_cpu labels.yaml labels-$loss train.loss=$loss; done

# a loss after an image with as many channels as a block of padded rows
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\$(printf %03o $((i * 17 % 256)))"; done; } >many.idx
check 0 '' "$WEFT" data import idx x.idx many.idx -o many.h5
sed 's/: one/: bare/; s/data.h5/many.h5/g; s/model:.*/model: {layers: [conv2d: {channels: 64, kernel: 7}, flatten]}/' job.yaml >bare.yaml
check 0 'done after' "$WEFT" train bare.yaml train.log_every=1
check 0 'done after' "$WEFT" train bare.yaml run.name=bare-cpu train.log_every=1 train.device=cpu
holds 'the losses of the CPU' near bare bare-cpu

EMULATE_PITCH=4 same 2 tp.yaml tp-far grid.tp=2 # rows with too large a distance for one copy of several
same 4 tp.yaml tp-dp2 grid.tp=2 grid.dp=2
same 4 tp.yaml tp-pp2 grid.tp=2 grid.pp=2
same 2 tp.yaml tp-shm grid.tp=2 grid.transport=shm
same 4 tp.yaml tp-zero1 grid.tp=2 grid.zero=1 checkpoint.every_steps=1
same 4 tp.yaml tp-zero3 grid.tp=2 grid.zero=3 grid.bucket_mb=0.004 # slices whose sizes alone would divide buckets differently
check 0 'done after' "$WEFT" train tp.yaml run.name=tp-goes-on checkpoint.resume=runs/tp-zero1/checkpoints/step-00000001.h5
for way in auto mpi; do check 0 'the step is skipped' ranks 2 "$WEFT" train fp16.yaml run.name=tp-fp16-$way grid.tp=2 grid.transport=$way; done
check 0 'to the bit' "$WEFT" ckpt diff runs/tp-fp16-{auto,mpi}/checkpoints/step-00000006.h5
check 0 'to the bit' "$WEFT" ckpt diff runs/tp-fp16-auto/checkpoints/step-00000006.h5 runs/fp16-one/checkpoints/step-00000006.h5

# sums in a ring have the same bits in two runs, but not the bits of the summation tree
for name in run-a run-b; do check 0 'allreduce: nccl' ranks 4 "$WEFT" train job.yaml run.name=$name train.reproducible=same_grid; done
step=checkpoints/step-00000003.h5
check 0 'to the bit' "$WEFT" ckpt diff runs/run-a/$step runs/run-b/$step
check 65 'differs first at' "$WEFT" ckpt diff runs/one/$step runs/run-a/$step

# sums through host memory, by request, or because two ranks share a GPU
same 2 job.yaml shm grid.transport=shm
same 4 job.yaml mpi grid.transport=mpi grid.pp=2
holds 'no word of sharing' test "$(grep -c 'share the GPU' words)" = 0
export EMULATE_GPUS=1
# tests may connect ranks that share a GPU by NCCL
export WEFT_TEST_SHARED_GPU=1
same 2 job.yaml joined grid.zero=3 grid.transport=nccl
same 4 job.yaml joined-dp2pp2 grid.pp=2
holds 'it is said' grep -q 'WEFT_TEST_SHARED_GPU: ranks 0 and 1 share the GPU [0-9A-F:.]*, and NCCL joins them' words
holds 'NCCL sums' grep -q 'allreduce: nccl' words
check 0 'NCCL_SOCKET_IFNAME set by environment to lo' ranks 2 env NCCL_DEBUG=INFO "$WEFT" train job.yaml run.name=joined-hosts
holds 'a host a rank' test "$(grep -o 'NCCL_HOSTID set by environment to weft-rank-[01]' both | sort -u | wc -l)" = 2
check 78 'through host memory cannot be sharded' ranks 1 "$WEFT" train job.yaml run.name=x grid.zero=1 : \
    -n 1 env WEFT_TEST_SHARED_GPU=0 "$WEFT" train job.yaml run.name=x grid.zero=1
unset WEFT_TEST_SHARED_GPU
same 2 tp.yaml tp-shared grid.tp=2
same 4 job.yaml shared grid.pp=2
check 78 'through host memory cannot be sharded' ranks 2 "$WEFT" train job.yaml run.name=x grid.zero=1
holds 'why not NCCL' grep -q 'ranks 0 and 1 share the GPU [0-9A-F:.]*, and NCCL needs one for each rank: sums and messages go through host' words
holds 'allreduce: host memory' grep -q 'allreduce: host memory' words
check 78 'needs a GPU for each rank, and ranks 0 and 1 share ' ranks 2 "$WEFT" train job.yaml run.name=x grid.transport=nccl
unset EMULATE_GPUS

if emulated 'GPUs that are hidden or of several models'; then
    # each rank sees only one GPU, and a different one
    hidden=("$WEFT" train job.yaml run.name=hidden)
    check 0 'make all GPUs of a node visible to each rank' ranks 1 env CUDA_VISIBLE_DEVICES=3 "${hidden[@]}" : -n 1 env CUDA_VISIBLE_DEVICES=5 "${hidden[@]}"
    export EMULATE_MODELS='Model A,Model A,Model A,Model A,Model A,Model A,Model B'
    check 78 'rank 0 has a GPU Model A (2 processors), rank 1 a Model B (2): results on different models are not identical' ranks 4 "$WEFT" train job.yaml run.name=x
    holds 'one message' test "$(grep -c 'error:' both)" = 1
    check 0 'each step is as slow as the slowest' ranks 4 "$WEFT" train job.yaml run.name=mixed train.reproducible=same_grid
    unset EMULATE_MODELS
fi

if emulated 'deaths over a network, and when the clock was set back'; then
    EMULATE_NETWORK=1 holds 'a death is named, over a network' dies grid.pp=2
    holds 'there is a wall clock to set back' test -f "$CLOCK_TOOL"
    preload=$CLOCK_TOOL EMULATE_NETWORK= holds 'a death is named when the wall clock was set back' dies grid.dp=2
fi

[ -z "${ONE_CARD:-}" ] || echo "$left checks left: the time of $UNTIL_S s was over"
finish
