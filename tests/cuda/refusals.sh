#!/usr/bin/env bash
# Tests faults with GPUs that are found before a run begins, on the emulated GPU: one message names the node, the GPU and the remedy; the
# exit code is 78; no file is written.
WEFT=${WEFT_EMULATED:-build/emulated/weft}
. "$(dirname "$0")/../cli/common.bash"

for i in $(seq 300); do echo "line $i of a text to learn"; done >text
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5
cat >a.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 16, heads: 2, context: 16}
data: {train: text.h5}
train: {steps: 1, batch: 8, micro_batch: 4, threads: 1, device: cuda}
YAML
node=$(uname -n)
# refused TEXT ENVIRONMENT... [-- WORDS...]: checks that weft train WORDS fails with a message that contains TEXT
refused() {
    local text=$1 with=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do with+=("$1"); shift; done
    check 78 "$text" env "${with[@]}" timeout 240 "$WEFT" train a.yaml "${@:2}"
    holds "${with[*]}: one message" test "$(grep -c 'error' both)" = 1
    holds "${with[*]}: names the node" grep -qF "node $node" both
    holds "${with[*]}: nothing is written" test ! -e runs
}
refused 'no NVIDIA driver on this machine; train.device=cpu needs no GPU' EMULATE_DRIVER=0
refused 'the NVIDIA driver supports CUDA 12.4, and this program needs' EMULATE_DRIVER=12040
refused 'the NVIDIA driver shows no GPU to this process: see nvidia-smi' EMULATE_GPUS=0
refused 'GPU 0: allocating 32 MB for cuBLAS:' EMULATE_OTHERS=4290000000
refused 'end the process that fills its memory' EMULATE_OTHERS=4290000000
refused 'of the 4.3 GB of GPU 0 (emulated GPU) on node' EMULATE_OTHERS=4230000000 -- model.width=256 train.batch=256 train.micro_batch=128
refused 'train.micro_batch of at most about' EMULATE_OTHERS=3960000000 -- model.width=256 train.batch=256 train.micro_batch=128
# 234 MB are free, enough for the plan, but not also for graphs and kernels; then 1.3 GB are free on two GPUs, too little with NCCL
refused "(268.4 MB of it for CUDA graphs and kernels), but may use only 2" EMULATE_OTHERS=4060000000
refused "(1.6 GB of it for CUDA graphs, kernels and NCCL's buffers), but may use only" EMULATE_OTHERS=3000000000 -- -n 2
check 0 'done after' env EMULATE_OTHERS=3900000000 timeout 240 "$WEFT" train a.yaml run.name=fits
check 0 "268.4 MB of the GPU's memory, kept free for CUDA graphs and kernels" "$WEFT" plan a.yaml
check 0 '"reserved_bytes": 268435456' "$WEFT" plan a.yaml --json
check 0 '"reserved_bytes": 0' "$WEFT" plan a.yaml --json train.device=cpu
rm -rf runs
refused 'no NVIDIA driver on this machine' EMULATE_DRIVER=0 -- -n 2
check 0 'done after' "$WEFT" train a.yaml
# Heads of attention that are too wide for GPUs are refused; CPUs support them.
cat >b.yaml <<'YAML'
model: {layers: [embedding: {vocab: 256, width: 16}, dense: {width: 390}, attention: {heads: 1}, dense: {width: 256}]}
data: {train: text.h5}
train: {steps: 1, batch: 8, micro_batch: 4, threads: 1, device: cuda}
YAML
rm -rf runs
check 78 'cuda: attention supports heads of at most 128 columns, not 130' timeout 240 "$WEFT" train b.yaml model.context=16
holds 'one message, and nothing is written' test "$(grep -c error both)" = 1 -a ! -e runs
check 78 'cuda: attention supports heads of at most 128 columns, not 130' "$WEFT" plan b.yaml model.context=16
check 0 'done after' timeout 240 "$WEFT" train b.yaml model.context=16 train.device=cpu
finish
