#!/usr/bin/env bash
# Mode stale: a step computes with the values after the step `grid.staleness` steps before the last one; the figures follow the
# definition, with the same bits on every grid and any number of servers; resuming with other servers; refusals.
# cores: 0.3
# usage: stale.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---- the definition ---- All samples are equal: the logit is z = v + c x + b, with a row and two parameters that begin as 0, and the
# gradients of each step follow from z. geo_steps: after a sync point, steps compute with its values until later ones arrive.
for _ in $(seq 96); do echo 1,word,0.5; done >one.csv
printf 'header: false\ncolumns:\n  y: label\n  c: category\n  n: number\n' >one.yaml
check 0 'wrote one.h5' "$WEFT" data import csv one.csv --schema one.yaml -o one.h5 --threads 1
cat >def.yaml <<'Y'
run: {seed: 1}
model: {layers: [dense: {width: 1, init: zero}, bag: {width: 1, init: zero, input: data}, add: {input: [bag1, dense1]}]}
data: {train: one.h5}
train: {steps: 24, batch: 4, micro_batch: 1, threads: 1, loss: sigmoid, log_every: 1}
optim: {name: sgd, lr: 0.5}
grid: {mode: stale, geo_steps: 16}
Y
losses() { sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' "runs/$1/metrics.jsonl" | head -24; } # RUN
# STALENESS: the losses by the definition
defined() {
    awk -v late="$1" 'BEGIN {
        x = 0.5
        for (t = 0; t < 24; ++t) {
            if (t % 16 == 0) border = t
            z[t] = v + c * x + b # steps up to t - 1 - late are in it
            printf "%.6f\n", log(1 + exp(-z[t]))
            for (u = done; u <= t; ++u) {
                if (u > t - late && (t + 1) % 16 && t < 23) break
                g = 1 / (1 + exp(-z[u])) - 1
                v -= 0.5 * g; c -= 0.5 * g * x; b -= 0.5 * g
                done = u + 1
            }
        }
    }'
}
for late in 0 1 3; do
    check 0 'done after' "$WEFT" train def.yaml run.name=def$late grid.staleness=$late
    holds "losses $late late are as defined" test "$(losses def$late | awk '{ printf "%.6f\n", $1 }')" = "$(defined $late)"
done
holds 'they are not the same' test "$(defined 1)" != "$(defined 3)"

# ---- the same bits ----
check 0 'wrote grow.h5' "$WEFT" data make criteo-like -o grow.h5 --samples 384 --test test.h5 --test-samples 40 --threads 1
cat >job.yaml <<'Y'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: grow.h5, test: test.h5}
train: {steps: 12, batch: 48, micro_batch: 6, threads: 1, loss: sigmoid}
optim: {name: adagrad, lr: 0.05}
grid: {mode: stale, geo_steps: 6}
checkpoint: {best: false, keep: 0}
Y
ranks() { check 0 'done after' mpi "$1" train job.yaml "run.name=$2" "${@:3}"; } # N RUN WORDS...
for late in 1 2; do
    rule=(grid.staleness=$late)
    [ $late = 1 ] || rule+=(optim.name=adam optim.clip=0.5 model.name=dlrm 'model.bottom=[6]')
    ranks 1 $late "${rule[@]}"
    i=0
    for grid in 2 '2 grid.servers=1' '4 grid.servers=2 grid.zero=1' '7 grid.servers=3 grid.pp=2'; do
        i=$((i + 1))
        # shellcheck disable=SC2086
        ranks ${grid%% *} $late.$i "${rule[@]}" $(printf '%s' "${grid#* }" | sed 's/^[0-9]*$//')
        same 12 $late $late.$i
    done
done
ranks 1 sync grid.mode=sync
ranks 3 none grid.staleness=0 grid.servers=1
same 12 sync none
check 65 'differ' "$WEFT" ckpt diff "$(at sync 12)" "$(at 1 12)"

# ---- going on, and ranks that stand still ----
ranks 2 from grid.servers=1 checkpoint.every_steps=6
ranks 5 on grid.servers=3 "checkpoint.resume=$(at from 6)"
same 12 1 on
sed 's/steps: 12/steps: 360/' job.yaml >slow.yaml
check 0 'done after' mpi 2 train slow.yaml run.name=even
background uneven mpi 4 train slow.yaml grid.servers=2 run.name=uneven
job=$!
code=0; stop_in_turn $job slow.yaml || code=$?
holds "a rank that stands still is waited for (exit $code): $(tail -n 3 uneven)" test $code = 0
same 360 even uneven

# ---- what is refused ----
refused() { check 78 "$1" "$WEFT" train job.yaml run.name=refused "${@:2}"; }
refused 'checkpoint.every_steps=7: checkpoints are written at sync points' checkpoint.every_steps=7
refused 'train.on_bad=skip: only stop is possible in this grid.mode' train.on_bad=skip
refused 'grid.staleness=65: 65 is out of range' grid.staleness=65
check 0 'wrote text.h5' "$WEFT" data import text one.csv -o text.h5 --test text-test.h5
sed -e 's/^model:.*/model: {name: gpt2, layers: 1, width: 16, heads: 2, context: 16}/' -e 's/^data:.*/data: {train: text.h5}/' -e 's/, loss: sigmoid//' job.yaml >gpt.yaml
check 78 'grid.mode: the model has no sparse table' "$WEFT" train gpt.yaml run.name=refused
holds 'nothing was written' test ! -e runs/refused
finish
