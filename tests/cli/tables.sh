#!/usr/bin/env bash
# Sparse tables of whole runs: the same checkpoint, to the bit, on every grid and any number of servers; going on with another
# number; mode geo; what is refused; files with tables; and ranks that die.
# usage: tables.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1


check 0 'wrote grow.h5' "$WEFT" data make criteo-like -o grow.h5 --samples 192 --test test.h5 --test-samples 40 --threads 1
check 0 'wrote small.h5' "$WEFT" data make criteo-like -o small.h5 --samples 192 --rows 300 --threads 1
cat >job.yaml <<'Y'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: grow.h5, test: test.h5}
train: {steps: 4, batch: 48, micro_batch: 6, threads: 1, loss: sigmoid}
optim: {name: adagrad, lr: 0.05}
checkpoint: {best: false, keep: 0}
Y
mpi() { timeout -k 5 120 mpirun --oversubscribe --bind-to none -n "$1" "$WEFT" "${@:2}"; }
# ranks N NAME WORDS... : a run of so many ranks
ranks() {
    if [ "$1" = 1 ]; then check 0 'done after' "$WEFT" train job.yaml "run.name=$2" "${@:3}"
    else check 0 'done after' mpi "$1" train job.yaml "run.name=$2" "${@:3}"; fi
}
at() { printf 'runs/%s/checkpoints/step-%08d.h5' "$1" "$2"; }
# same STEP NAME NAME
same() { check 0 'to the bit' "$WEFT" ckpt diff "$(at "$2" "$1")" "$(at "$3" "$1")"; }
# grids WORDS... -- GRID... : of a model of those words the same file on one rank and on each grid, which is
# its number of ranks and words of its own
model=0
grids() {
    local words=() grid i=0
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    model=$((model + 1))
    ranks 1 "$model" "${words[@]}"
    for grid in "$@"; do
        i=$((i + 1))
        # shellcheck disable=SC2086
        ranks ${grid%% *} "$model.$i" "${words[@]}" $(printf '%s' "${grid#* }" | sed 's/^[0-9]*$//')
        same 4 "$model" "$model.$i"
    done
}

# ---- the same bits ----
grids -- 2 '4 grid.pp=2' '5 grid.servers=1' '4 grid.servers=2 grid.zero=1'
grids model.name=dlrm 'model.bottom=[6]' optim.name=adam optim.clip=0.5 train.micro_batch=4 -- '3 grid.zero=1' '6 grid.servers=3' '3 grid.pp=2 grid.servers=1'
grids model.name=deepfm optim.name=sgd 'optim.groups=[{roles: table, name: adagrad_row, lr: 0.05}]' optim.clip=0.5 data.train=small.h5 -- '4 grid.servers=2' 2

# ---- going on with other servers and ranks ----
ranks 3 moved1 grid.servers=1 checkpoint.every_steps=1
ranks 5 moved2 grid.servers=3 checkpoint.every_steps=2 "checkpoint.resume=$(at moved1 1)"
ranks 2 moved3 checkpoint.every_steps=3 "checkpoint.resume=$(at moved2 2)"
holds 'it goes on, and does not begin again' grep -q 'resuming from runs/moved2/checkpoints/step-00000002.h5' both
ranks 1 moved4 "checkpoint.resume=$(at moved3 3)"
same 4 1 moved4
check 0 'loss' "$WEFT" eval job.yaml run.name=1
grep -o '^loss  *[0-9.]*' both | tail -1 >one
check 0 'loss' mpi 2 eval job.yaml run.name=1.3
holds 'evaluated alike on two ranks' grep -qFf one both

# ---- mode geo: neither servers nor time show ----
geo=(grid.mode=geo grid.geo_steps=2 optim.name=sgd train.steps=5)
ranks 3 geo1 "${geo[@]}" grid.servers=1
ranks 5 geo3 "${geo[@]}" grid.servers=3
same 5 geo1 geo3
# a rank that is stopped now and then
sed 's/steps: 4/steps: 400/' job.yaml >slow.yaml
slow=(slow.yaml grid.mode=geo grid.geo_steps=7 optim.name=sgd optim.lr=0.01 train.log_every=50)
check 0 'done after' mpi 3 train "${slow[@]}" grid.servers=1 run.name=even
mpi 4 train "${slow[@]}" grid.servers=2 run.name=uneven >uneven 2>&1 &
job=$!
stops=0
while kill -0 $job 2>/dev/null; do
    pids=$(rank_pids slow.yaml 2>/dev/null | cut -d' ' -f2) || continue
    for victim in $pids; do
        kill -STOP "$victim" 2>/dev/null || continue
        stops=$((stops + 1))
        sleep 0.03
        kill -CONT "$victim" 2>/dev/null || true
    done
    sleep 0.02
done
code=0; wait $job || code=$?
holds "a rank that stands still is waited for (exit $code)" test $code = 0
holds "ranks stood still" test $stops -gt 0
same 400 even uneven
# borders after every step, of one rank: plain training but for rounding
losses() { sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "runs/$1/metrics.jsonl" | cut -c1-5 | head -4; }
ranks 2 single grid.mode=geo grid.geo_steps=1 optim.name=sgd grid.servers=1
ranks 1 plain optim.name=sgd
holds 'as plain training' test -n "$(losses plain)" -a "$(losses plain)" = "$(losses single)"
ranks 3 frozen "${geo[@]}" grid.servers=1 'model.freeze=[embedding]'
holds 'a frozen table has no rows' grep -q 'tables: 0 rows on 1 server' both

# ---- files ----
file=$(at 2 4)
check 0 '/optim/v/tables/embedding.3#0000' "$WEFT" ckpt info "$file"
check 0 'good' "$WEFT" ckpt check "$file"
finish
