#!/usr/bin/env bash
# Tests the choice of cuBLASLt's and cuDNN's algorithms by measured time, on the emulated GPU, whose times are set by EMULATE_TIMES. The
# fastest algorithm is chosen; with the same record, resumed runs and all ranks have the same bits; a record of another GPU or library is
# refused.
# cores: 1
WEFT=$(dirname "${WEFT:-build/weft}")/emulated/weft
. "$(dirname "$0")/../cli/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; for i in $(seq 3840); do printf "\\$(printf %03o $((i * i % 251)))"; done; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<X
run: {name: off, seed: 1}
model: {layers: [conv2d: {channels: 6, kernel: 3, pad: 1}, relu, flatten, dense: {width: 24}, relu, dense: {width: 3}]}
data: {train: data.h5, test: data.h5}
train: {steps: 4, batch: 12, micro_batch: 3, threads: 1, device: cuda}
optim: {name: adamw, lr: 0.01}
checkpoint: {every_steps: 2, keep: 0}
X
# Times of algorithms 0 to 5. Algorithm 3, the last for products in fp32, adds in reverse order; 3 and 5 for convolutions are one engine with two settings.
last=543291 first=123499
ends=checkpoints/step-00000004.h5
half=checkpoints/step-00000002.h5
ranks() { timeout -k 2 240 mpirun --oversubscribe --bind-to none -n "$@"; }
tuned() { EMULATE_TIMES=$1 timeout 240 "$WEFT" train job.yaml train.cuda_tune=time run.name="$2" "${@:3}"; }
equal() { check 0 'to the bit' "$WEFT" ckpt diff "runs/$1/$ends" "runs/$2/$ends"; }
differ() { check 65 'differs first at' "$WEFT" ckpt diff "runs/$1/$ends" "runs/$2/$ends"; }
record() { grep -v '^weft-\|^gpu\|^libraries' "runs/$1/algorithms.txt"; }

check 0 'done after' "$WEFT" train job.yaml
check 0 'algorithms timed' tuned $last last
check 0 'algorithms timed' tuned $first first
holds 'off writes no record' test ! -e runs/off/algorithms.txt
holds 'products by the fastest' test "$(record last | grep '^cublaslt' | grep -vc '= 3\.0\.')" = 0
holds 'there are products' test "$(record last | grep -c '^cublaslt')" -ge 5
holds 'convolutions by the fastest' test "$(record last | grep '^cudnn' | grep -vc '= engine 3, knobs 2=1$')" = 0
holds 'there are convolutions' test "$(record last | grep -c '^cudnn')" -ge 2
holds 'the first where it is the fastest' test "$(record first | grep -c '= 3\.0\.\|knobs 2=1')" = 0
equal off first
differ off last

# an algorithm that is only slightly faster is not chosen
check 0 'algorithms timed' tuned 999999 even
equal off even

# a resumed run uses the record of its checkpoint, even if another algorithm is the fastest now; so does another run that begins from the checkpoint
copied() { mkdir -p "runs/$2/checkpoints" && cp "runs/$1/$half" "runs/$2/checkpoints"; }
copied last resumed
check 0 'algorithms read from runs/resumed/checkpoints/step-00000002.h5' tuned $first resumed
equal last resumed
check 0 'algorithms read from runs/last/checkpoints/step-00000002.h5' tuned $first other checkpoint.resume=runs/last/$half
equal last other
holds 'the record goes on' cmp -s runs/last/algorithms.txt runs/other/algorithms.txt
check 78 'was written with `train.cuda_tune: time`' "$WEFT" train job.yaml run.name=last train.cuda_tune=off
check 78 'was written with `train.cuda_tune: off`' "$WEFT" train job.yaml run.name=off train.cuda_tune=time

# a record in a file gives the same choice
cp runs/last/algorithms.txt last.txt
file() { EMULATE_TIMES=$first timeout 240 "$WEFT" train job.yaml train.cuda_tune="$1" run.name="$2" "${@:3}"; }
check 0 'algorithms read from last.txt' file last.txt file
equal last file
grep -v '^cudnn' last.txt >part.txt
check 0 'algorithms not in the record' file part.txt part
holds 'the rest is recorded' test "$(record part | grep -c '^cudnn')" -ge 2
copied first first-on
check 78 "runs/first-on/$half was trained with" file last.txt first-on
check 78 'nowhere.txt' file nowhere.txt x
check 65 'is not a record of algorithms' file job.yaml x
sed 's/= 3\.0\./= 77.0./' last.txt >changed.txt
check 78 'does not accept the recorded algorithm of' file changed.txt x
sed 's/engine 3/engine 1/' last.txt >rough.txt
check 78 'does not accept the recorded algorithm of' file rough.txt x

# records of another GPU and of another library
export EMULATE_MODELS='other GPU'
check 78 'has algorithms for emulated GPU with' tuned $last last
check 78 'this is other GPU with' file last.txt x
check 0 'they are chosen anew for other GPU' tuned $first anew checkpoint.resume=runs/last/$half
unset EMULATE_MODELS
check 78 'running 13.2.0' env EMULATE_CUBLASLT=130200 EMULATE_TIMES=$last "$WEFT" train job.yaml train.cuda_tune=time run.name=last
holds 'nothing was written' test ! -e runs/x

# ranks with different measurements agree on one choice
two() { ranks 1 env EMULATE_TIMES=$last "$WEFT" train job.yaml train.cuda_tune=time run.name="$1" "${@:2}" : \
    -n 1 env EMULATE_TIMES=$first "$WEFT" train job.yaml train.cuda_tune=time run.name="$1" "${@:2}"; }
check 0 'algorithms timed' two dp2
equal last dp2
check 0 'algorithms timed' two pp2 grid.pp=2
equal last pp2
check 0 'algorithms read from' ranks 2 env EMULATE_TIMES=$first "$WEFT" train job.yaml train.cuda_tune=time run.name=dp2-resumed checkpoint.resume=runs/last/$half
equal last dp2-resumed
# in a tensor-parallel group, a rank with slices of other shapes measures these shapes once
sed -i 's/width: 24/width: 25/' job.yaml
for name in tp2 tp2-again; do check 0 'algorithms timed' two $name grid.tp=2; done
equal tp2 tp2-again
holds 'slices of 13 and of 12' grep -q 'x13x\| 13x\|x13 ' runs/tp2/algorithms.txt
holds 'slices of 12, by the other rank' grep -q 'x12x\| 12x\|x12 ' runs/tp2/algorithms.txt
holds 'the first rank chose its own by its times' grep -q '= 3\.0\.' runs/tp2/algorithms.txt
check 0 'algorithms read from' ranks 2 env EMULATE_TIMES=999999 "$WEFT" train job.yaml train.cuda_tune=time run.name=tp2-on checkpoint.resume=runs/tp2/$half grid.tp=2
equal tp2 tp2-on
sed -i 's/width: 25/width: 24/' job.yaml

check 78 'would choose algorithms by timing' "$WEFT" verify job.yaml train.cuda_tune=time --grids 1x1x1,2x1x1
check 0 'the same to the bit' timeout 240 "$WEFT" verify job.yaml train.cuda_tune="$PWD/last.txt" --grids 1x1x1,2x1x1

# weft plan prints the algorithms
check 0 "the libraries' own first choice" "$WEFT" plan job.yaml
check 0 'timed before the first step' "$WEFT" plan job.yaml train.cuda_tune=time run.name=never
check 0 'chosen on emulated GPU' "$WEFT" plan job.yaml train.cuda_tune=time run.name=last
holds 'all of them are printed' test "$(grep -c ' = 3\.0\.\| = engine 3, knobs 2=1' out)" = "$(record last | wc -l)"
check 0 '"algorithms": {' "$WEFT" plan job.yaml train.cuda_tune=last.txt --json

# the workspace of attention
for ((i = 0; i < 40; ++i)); do echo "the quick brown fox jumps over the lazy dog$((i % 10))"; done >text
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5
cat >gpt.yaml <<X
run: {name: gpt, seed: 1}
model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 32}
data: {train: text.h5}
train: {steps: 2, batch: 64, micro_batch: 64, threads: 1, device: cuda, precision: bf16}
optim: {name: adamw, lr: 0.01}
X
check 0 'done after' "$WEFT" train gpt.yaml
check 0 'done after' env WEFT_ATTENTION_SCRATCH=1 "$WEFT" train gpt.yaml run.name=groups
check 78 'WEFT_ATTENTION_SCRATCH=few: expected MiB' env WEFT_ATTENTION_SCRATCH=few "$WEFT" train gpt.yaml run.name=x
check 78 'WEFT_ATTENTION_SCRATCH=0: expected MiB' env WEFT_ATTENTION_SCRATCH=0 "$WEFT" train gpt.yaml run.name=x
check 78 'variables' ranks 1 "$WEFT" train gpt.yaml run.name=x train.micro_batch=32 : -n 1 env WEFT_ATTENTION_SCRATCH=2 "$WEFT" train gpt.yaml run.name=x train.micro_batch=32
check 0 'algorithms timed' env EMULATE_TIMES=$last "$WEFT" train gpt.yaml run.name=gpt-tuned train.cuda_tune=time train.batch=4 train.micro_batch=4
holds 'attention is among them' grep -q '^cudnn matmul' runs/gpt-tuned/algorithms.txt
finish
