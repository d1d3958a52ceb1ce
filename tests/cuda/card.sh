#!/usr/bin/env bash
# Tests a user's workflow on a GPU and on the CPU. A language model and an image network are trained on both, with nearly equal losses,
# and twice on the GPU, with the same bits. A run is killed and resumed. Then eval, generate, predict and doctor; the largest micro-batch
# that the plan allows; and the device's memory compared with the plan. Needs one GPU; with the emulated GPU it takes a minute or two.
# usage: WEFT=PROGRAM card.sh     (a bundle's bin/weft; default build/weft)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/../cli/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
emulated=; case $WEFT in */emulated/weft) emulated=1 ;; esac

# ---- small data sets made by this test: the pages as text, and pictures of ten patterns with noise ----
cat "$root"/docs/*.md >pages.txt
check 0 'wrote text.h5' "$WEFT" data import text pages.txt -o text.h5 --test text-test.h5
{ # 640 pictures of 28 x 28, bytes of 1 to 255
    printf '\0\0\010\003\0\0\002\200\0\0\0\034\0\0\0\034'
    LC_ALL=C awk 'BEGIN { srand(7); for (n = 0; n < 640; n++) { k = n % 10; for (y = 0; y < 28; y++) for (x = 0; x < 28; x++)
        printf "%c", int(128 + 80 * sin((x * (k % 5 + 1) + y * (k - 4)) / 6) + 40 * (rand() - 0.5)) } }'
} >pictures.idx
{
    printf '\0\0\010\001\0\0\002\200'
    for ((i = 0; i < 64; i++)); do printf '\0\001\002\003\004\005\006\007\010\011'; done
} >classes.idx
check 0 '' "$WEFT" data import idx pictures.idx classes.idx -o pictures.h5
steps=30 width=64 context=64
[ -z "$emulated" ] || steps=6 width=32 context=32
cat >gpt.yaml <<X
model: {name: gpt2, layers: 2, width: $width, heads: 4, context: $context}
data: {train: text.h5, test: text-test.h5}
train: {steps: $steps, batch: 16, micro_batch: 8, threads: 1, log_every: 1}
optim: {name: adamw, lr: 0.0005, clip: 1} # with a rate of 0.003 the losses of two CPUs differ by 1e-3 after 25 steps
X
cat >lenet.yaml <<X
model: {name: lenet}
data: {train: pictures.h5, test: pictures.h5}
train: {steps: $steps, batch: 32, micro_batch: 16, threads: 1, log_every: 1}
optim: {name: sgd, lr: 0.02, momentum: 0.9}
X
last=$(printf 'checkpoints/step-%08d.h5' $steps) half=$(printf 'checkpoints/step-%08d.h5' $((steps / 2)))
losses() { sed -n 's/.*"loss":\([0-9.e-]*\),"lr".*/\1/p' "runs/$1/metrics.jsonl"; }
# near BOUND RUN RUN [LAST] : true if the runs have equally many losses, and all losses, or the last LAST, differ by at most BOUND.
near() { paste <(losses "$2" | tail -n "${4:-1000}") <(losses "$3" | tail -n "${4:-1000}") | awk -v b="$1" '{ d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d; if (NF != 2) bad = 1 }
    END { printf "  largest difference %g, allowed %g\n", most, b; exit bad || NR == 0 || most > b }'; }
falls() { losses "$1" | awk 'NR == 1 { a = $1 } { b = $1 } END { exit !(b < a) }'; }

# ---- training ----
for model in gpt lenet; do
    for run in cpu cuda cuda-again; do
        check 0 'done after' "$WEFT" train $model.yaml run.name=$model-$run train.device=${run%-again} checkpoint.every_steps=$((steps / 2)) checkpoint.keep=0
    done
    echo "$model: step, loss on the CPU, on the GPU"
    paste <(losses $model-cpu) <(losses $model-cuda) | awk 'NR % 5 == 1 { printf "  %d %s\n", NR, $0 }'
    holds "$model: the CPU's losses" near 1e-3 $model-cpu $model-cuda
    holds "$model: the loss falls" falls $model-cuda
    check 0 'to the bit' "$WEFT" ckpt diff runs/$model-cuda/$last runs/$model-cuda-again/$last
done
check 0 'done after' "$WEFT" train gpt.yaml run.name=gpt-bf16 train.device=cuda train.precision=bf16
holds 'bf16 near fp32' near 0.05 gpt-cuda gpt-bf16

# ---- a run that is killed and resumed has the bits of an undisturbed run ----
long=3000 # long enough on a GPU to be killed before its end
[ -z "$emulated" ] || long=6
third=$(printf 'checkpoints/step-%08d.h5' $((long / 3))) end=$(printf 'checkpoints/step-%08d.h5' $long)
words=(train gpt.yaml train.device=cuda train.steps=$long "checkpoint.every_steps=$((long / 3))" checkpoint.keep=0)
check 0 'done after' "$WEFT" "${words[@]}" run.name=whole
"$WEFT" "${words[@]}" run.name=killed >said 2>&1 &
soon test -e "runs/killed/$third" || cat said
kill -KILL $! 2>/dev/null || true
wait $! 2>/dev/null || true
holds 'it was killed on its way' test ! -e "runs/killed/$end"
check 0 'resuming from' "$WEFT" "${words[@]}" run.name=killed
check 0 'to the bit' "$WEFT" ckpt diff "runs/whole/$end" "runs/killed/$end"
check 0 'resuming from' "$WEFT" train gpt.yaml run.name=moved train.device=cuda checkpoint.resume=runs/gpt-cpu/$half
holds 'the losses of the run that stayed on the CPU' near 1e-3 gpt-cpu moved $((steps - steps / 2))

# ---- use of trained models ----
for device in cpu cuda; do
    check 0 'eval_loss' "$WEFT" eval gpt.yaml --json --checkpoint runs/gpt-cpu/$last train.device=$device
    sed 's/.*"eval_loss": \([0-9.]*\),.*/\1/' out >eval-$device
    check 0 'The ' "$WEFT" generate gpt.yaml --checkpoint runs/gpt-cpu/$last --prompt 'The ' --tokens 40 --temperature 0 train.device=$device
    cp out text-$device
done
paste eval-cpu eval-cuda
holds 'one loss on both' awk 'NR == FNR { a = $1; next } { d = a - $1; exit !(d < 1e-3 && d > -1e-3) }' eval-cpu eval-cuda
cat text-cpu text-cuda
holds 'one text on both' cmp text-cpu text-cuda
cp runs/lenet-cuda/$last lenet.h5
check 0 '' "$WEFT" eval lenet.yaml --json --checkpoint lenet.h5 train.device=cuda
cat out
for device in cpu cuda; do
    check 0 'plain.png: ' "$WEFT" predict lenet.yaml --checkpoint lenet.h5 "$root"/tests/image/pictures/{plain,grey16}.png --top 1 train.device=$device
    sed 's/ [0-9.]* %//' out >classes-$device
done
cat out
holds 'one class on both' cmp classes-cpu classes-cuda
doctor() { timeout 60 "$WEFT" doctor .; }
check 0 'GPU' doctor
grep GPU out

# ---- memory ----
field() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" out | tail -n 1; }
planned() { awk -v p="$(field device_planned_mb)" -v m="$(field device_mb)" -v b="$(field device_unplanned_mb)" 'BEGIN {
    printf "  %s MB planned, %s MB taken, %s MB beside it by libraries and graphs after step 3\n", p, m, b
    exit !(p > 0 && m <= p * 1.03 + 1 && m >= p * 0.97 - 1) }'; }
big=("$root/bench/gpt2.yaml" model.context=1024) too_many=2048
[ -z "$emulated" ] || big=(gpt.yaml) too_many=131072
with() { "$WEFT" bench step "${big[@]}" --input tokens --steps 3 --warmup 0 --json train.device=cuda train.precision=bf16 train.batch="$1" train.micro_batch="$1"; }
check 0 device_planned_mb with 4
holds 'memory as planned' planned
check 78 'train.micro_batch of at most about' with $too_many
most=$(sed -n 's/.*train.micro_batch of at most about \([0-9]*\).*/\1/p' both | head -n 1)
echo "the plan allows a micro-batch of about $most"
[ -z "$emulated" ] || most=64 # a larger one would take a CPU too long
check 0 device_planned_mb with "${most:-1}"
holds 'memory as planned, when it is full' planned
finish
