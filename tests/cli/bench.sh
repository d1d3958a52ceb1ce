#!/usr/bin/env bash
# weft bench step: the figures are present, positive and consistent, on the CPU and, if nvcc is installed, on the emulated GPU; also for a
# detector. weft bench comm between two ranks.
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >job.yaml <<Y
model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 16, vocab: 64}
train: {batch: 4, micro_batch: 2, threads: 1}
optim: {name: adamw, lr: 1e-3}
Y
field() { sed -n "s/.*\"$2\":\"\{0,1\}\([^,}\"]*\).*/\1/p" "$1"; } # FILE KEY -> the values of all lines that have this key
ratio() { awk -v a="$1" -v b="$2" -v r="$3" 'BEGIN { exit !(a > 0 && b > 0 && r > 0 && a / b < 1.02 * r && a / b > 0.98 * r) }'; }
# the expected FLOP of products: 3 x (2 x 12 C^2 + V C + the causal half of attention)
flops_a_token() { awk 'BEGIN { L = 2; C = 32; T = 16; V = 64; print 3 * (2 * (12 * C * C * L + V * C) + 2 * L * C * (T + 1)) }'; }

# DEVICE COMMAND...
step_figures() {
    local device=$1
    shift
    check 0 "\"device\":\"$device\"" timeout 240 "$@" bench step job.yaml --input tokens --steps 4 --warmup 1 --kernels --json \
        train.device="$device"
    head -n 1 out >step
    tail -n +2 out >kernels
    holds "$device: share = rate / products' rate" ratio "$(field step gflops)" "$(field step product_gflops)" "$(field step share)"
    holds "$device: tokens a second" ratio 64 "$(field step step_s)" "$(field step tokens_per_s)"
    holds "$device: the flops of the model" ratio "$(awk -v g="$(field step gflops)" 'BEGIN { print 1e9 * g }')" \
        "$(field step tokens_per_s)" "$(flops_a_token)"
    holds "$device: shares of the step" awk -v d="$(field step data_wait_share)" -v s="$(field step sum_wait_share)" \
        'BEGIN { exit !(d >= 0 && d <= 1 && s >= 0 && s <= 1) }'
    local apart="add gelu" lines=11 # on a GPU bias and activation are parts of products
    [ "$device" = cpu ] || apart= lines=8
    for op in embedding positions layer_norm $apart softmax_loss adamw; do
        holds "$device: $op is measured" grep -q "\"op\":\"$op\"" kernels
    done
    holds "$device: five layer norms are one line, there and back" test "$(grep '"op":"layer_norm"' kernels | grep -c '"times":5')" = 2
    holds "$device: the loss and its gradient are one" test "$(grep '"op":"softmax_loss"' kernels | grep -c '"direction":"both"')" = 1
    paste <(field kernels bytes) <(field kernels seconds) <(field kernels gb_per_s) <(field kernels copy_gb_per_s) <(field kernels share) >rates
    holds "$device: rates of kernels" awk -v lines="$lines" 'NF != 5 || !($1 > 0 && $2 > 0 && $5 >= 0 && $4 > 0) { bad = 1 }
        { rate = $1 / $2 * 1e-9; if (rate > 1.02 * $3 || rate < 0.98 * $3) bad = 1 }
        END { exit bad || NR != lines }' rates
}
step_figures cpu "$WEFT"
check 0 'memory-bound operations, compared with a copy' timeout 240 "$WEFT" bench step job.yaml --input tokens --steps 1 --kernels
check 0 'waiting for data' timeout 240 "$WEFT" bench step -n 2 job.yaml --input tokens --steps 3 grid.zero=2
check 0 '"ranks":2' timeout 240 "$WEFT" bench step -n 2 job.yaml --input tokens --steps 5 --json
# the number of waits is checked, not their time, which is zero if the other rank always arrives first
holds 'two ranks wait for sums at each step' awk -v n="$(field out sum_waits)" -v s="$(field out sum_wait_share)" 'BEGIN { exit !(n >= 1 && s >= 0 && s <= 1) }'
check 0 '"sum_waits":0.0' timeout 240 "$WEFT" bench step job.yaml --input tokens --steps 1 --json
# A detector: squares of the given size with boxes, whatever the configuration's letterbox.
cat >detector.yaml <<Y
model: {name: yolov5n, width_multiple: 0.03}
data: {letterbox: 640, mosaic: 1, normalize: false}
train: {batch: 4, micro_batch: 2, threads: 1, loss: yolo}
Y
check 0 '"model":"yolov5n"' timeout 240 "$WEFT" bench step detector.yaml --input 3x64x64 --steps 2 --warmup 0 --kernels --json
holds 'the loss is measured, for inputs of 64 pixels' grep -q '"op":"yolo_loss","x":"2x45x8x8"' out
check 64 'takes squares' "$WEFT" bench step detector.yaml --input 3x64x32
check 64 'takes squares' "$WEFT" bench step detector.yaml --input tokens
check 0 '"allreduce_gb_per_s": ' timeout 240 "$WEFT" bench comm -n 2 --mb 0.01 --json

# every layout and instruction set is listed; a case has one or two lines
check 0 '"op":"relu"' timeout 240 "$WEFT" bench kernels relu --json
sets=$("$WEFT" --version | sed -n 's/.*this processor has \([a-z0-9]*\).*/\1/p' | sed 's/avx512/base avx2 avx512/; s/^avx2$/base avx2/' | wc -w)
holds 'four layouts, forward and backward, with each instruction set' test "$(grep -c '"layout":"' out)" = $((4 * 2 * sets))
paste <(field out bytes) <(field out seconds) <(field out gb_per_s) <(field out copy_gb_per_s) <(field out share) >rates
holds 'rates of kernels by layout' awk '!($1 > 0 && $2 > 0) { bad = 1 }
    { if ($1 / $2 * 1e-9 > 1.02 * $3 || $1 / $2 * 1e-9 < 0.98 * $3 || $3 / $4 > 1.02 * $5 + 0.001 || $3 / $4 < 0.98 * $5 - 0.001) bad = 1 }
    END { exit bad }' rates
check 0 '"op":"adamw"' timeout 240 "$WEFT" bench kernels sgd adamw --cpu base --json
holds 'two updates of two lengths, their ranges' test "$(field out bytes | sort -u | paste -s -d' ')" = "20971520 29360128 524288000 734003200"
check 64 "'max_pol' is not among the measured kernels; did you mean 'max_pool'?" "$WEFT" bench kernels max_pol
check 64 '--cpu sse: expected base|avx2|avx512' "$WEFT" bench kernels --cpu sse
check 64 '--device gpu: expected cpu|cuda' "$WEFT" bench comm --device gpu
check 64 '--steps 0: expected a whole number from 1' "$WEFT" bench step job.yaml --steps 0
emulated=$(dirname "$WEFT")/emulated/weft
if [ -x "$emulated" ]; then step_figures cuda "$emulated"
else echo "  skipped: on the emulated GPU: no $emulated (built without CUDA)"; fi
finish
