#!/usr/bin/env bash
# Planned memory compared with measured memory at the end of a run: within 2 % if a run has more than 50 MB, on one rank and on two;
# `weft plan` prints the same figures as the run.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\100\0\0\0\034\0\0\0\034'; head -c $((64 * 784)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\0\100'; for i in $(seq 64); do printf "\\00$((i % 3))"; done; } >y.idx
for i in $(seq 3000); do echo "line $i of a text to learn"; done >text
check 0 'wrote images.h5' "$WEFT" data import idx x.idx y.idx -o images.h5
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5
cat >mlp.yaml <<'YAML'
model: {name: mlp, hidden: [2048, 2048]}
data: {train: images.h5}
train: {steps: 2, batch: 64, micro_batch: 32, threads: 1}
optim: {name: adamw}
YAML
cat >resnet.yaml <<'YAML'
model: {name: resnet18, stem: small}
data: {train: images.h5}
train: {steps: 1, batch: 8, micro_batch: 4, threads: 1}
YAML
# large enough that unplanned memory, 1 to 2.5 MB for first calls of libraries and for MPI's messages to a late rank, is less than 2 %
cat >gpt.yaml <<'YAML'
model: {name: gpt2, layers: 3, width: 448, heads: 4, context: 64}
data: {train: text.h5}
train: {steps: 2, batch: 16, micro_batch: 8, threads: 1}
optim: {name: adamw}
YAML
mb() { sed -n "s/.* \([0-9.]*\) MB $1.*/\1/p" out | tail -n 1; }
runs=0
# agrees WORDS...: compares plan and measurement of `weft train WORDS...`
agrees() {
    local plan run
    check 0 'MB measured' timeout 240 "$WEFT" train "$@" run.name="run$((++runs))"
    plan=$(mb 'planned,') run=$(mb measured)
    holds "$*: $plan MB planned, $run MB measured: 2 % apart at most" \
        awk -v p="$plan" -v m="$run" 'BEGIN { d = m / p - 1; exit !(p > 50 && d < 0.02 && d > -0.02) }'
}
if ldd "$WEFT" | grep -q libasan; then
    echo '  skipped: a build with sanitizers has memory of its own'
    finish
    exit
fi
agrees mlp.yaml
agrees resnet.yaml optim.momentum=0.9
agrees resnet.yaml # without momentum there is no optimizer state
agrees gpt.yaml
# `weft plan` without a run prints the same to 1 %, because its process plans the same kernels.
planned=$("$WEFT" plan gpt.yaml --json | grep -o '"bytes": [0-9]*' | head -n 1 | cut -d' ' -f2)
holds 'weft plan and the run plan alike' awk -v a="$planned" -v b="$(mb 'planned,')" \
    'BEGIN { d = a / b / 1e6 - 1; exit !(d < 0.01 && d > -0.01) }'
agrees -n 2 gpt.yaml grid.transport=mpi
agrees -n 2 gpt.yaml grid.pp=2
agrees -n 2 gpt.yaml grid.pp=2 grid.transport=mpi # both ends have storage, also for the tied gradient
finish
