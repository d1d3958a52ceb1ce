#!/usr/bin/env bash
# run.nvtx: the trace's spans are also NVTX ranges, with the same names; none without the switch; a clear refusal without CUDA.
# NVTX_TOOL replaces a profiler (tests/cuda/nvtx_tool.c).
NVTX_TOOL=$(readlink -f "${NVTX_TOOL:-build/tests/cuda/nvtx_tool.so}" || true)
. "$(dirname "$0")/common.bash"

for i in $(seq 300); do echo "line $i of a text to learn"; done >text
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5
cat >a.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 16, heads: 2, context: 16}
data: {train: text.h5, test: text.h5}
train: {steps: 6, batch: 8, micro_batch: 4, threads: 1}
run: {trace: true, nvtx: true}
YAML
if "$WEFT" --version | grep -q 'CUDA: built without'; then
    check 78 'run.nvtx: true, but weft was built without CUDA' "$WEFT" train a.yaml
    holds 'nothing is written' test ! -e runs
    finish
    exit
fi
check 0 'done after' env NVTX_INJECTION64_PATH="$NVTX_TOOL" "$WEFT" train a.yaml
for name in data forward backward sum update eval checkpoint; do
    spans=$(grep -c "\"name\":\"$name\"" runs/a/trace.json || true)
    ranges=$(sed -n "s/^nvtx $name //p" err)
    holds "$name: $spans spans, ${ranges:-0} ranges" test "$spans" -gt 0 -a "$spans" = "${ranges:-0}"
done
holds 'one range at a time' grep -qx 'nvtx-depth 1' err
check 0 'done after' env NVTX_INJECTION64_PATH="$NVTX_TOOL" "$WEFT" train a.yaml run.name=off run.nvtx=false
holds 'none without the switch' bash -c "! grep -q nvtx err"
check 0 'done after' "$WEFT" train a.yaml run.name=alone # without a profiler
check 0 '' "$WEFT" ckpt diff runs/a/checkpoints/step-00000006.h5 runs/alone/checkpoints/step-00000006.h5
finish
