#!/usr/bin/env bash
# Wide & deep with one sparse table beside PyTorch, in turn, in one run: 13 numbers, 26 ids in 1,000,001 rows of 10, hidden layers
# 400-400-400, plain SGD on both sides, the same made data out of memory. First both compute the same: ten steps from the same
# values, losses to 1e-5. Then each of ROUNDS rounds runs every program on every batch for TIME seconds behind a warm-up; a table in
# Markdown has medians: samples/s of all ranks over all steps, PyTorch's best setting, ratios, peak memory of all processes (PSS:
# what they share counted once). "floor": samples/s if the product rate that weft has measured were all that counts.
# usage: [PYTHON=python] bench/recommender.sh [BATCH ...]     10, 512 and 4096
#   PYTHON: one with torch, h5py and numpy    TIME=15 (seconds), ROUNDS=3    SAMPLES=1000000 of the data    DATA: a file that is there
set -eu
. "$(dirname "$0")/common.bash"
python=${PYTHON:-python3} rounds=${ROUNDS:-3} seconds=${TIME:-15} samples=${SAMPLES:-1000000}
peer="$python $(dirname "$0")/peer_recommender.py"
data=${DATA:-$tmp/clicks.h5}
[ $# -gt 0 ] || set -- 10 512 4096
cat >"$tmp/wide-deep.yaml" <<EOF
run:   {name: wide-deep, dir: $tmp/runs, seed: 1}
model: {name: wide_deep, width: 10, hidden: [400, 400, 400], vocab: 1000001}
data:  {train: $data}
train: {threads: 1, loss: sigmoid}
optim: {name: sgd, lr: 1e-4}
EOF
config=$tmp/wide-deep.yaml
[ -e "$data" ] || "$weft" data make criteo-like -o "$data" --rows 1000001 --samples "$samples" >"$tmp/made" 2>&1

# ---- both compute the same: one step makes all rows, ten more are compared ----
"$weft" data make criteo-like -o "$tmp/few.h5" --rows 1000001 --samples 512 >"$tmp/made" 2>&1
"$weft" train "$config" -n 1 data.train="$tmp/few.h5" run.name=same train.batch=512 train.steps=11 train.log_every=1 \
    optim.lr=0.1 checkpoint.every_steps=1 checkpoint.keep=0 >"$tmp/same.log" 2>&1
$peer "$tmp/few.h5" --lr 0.1 --check "$tmp/runs/same/checkpoints/step-00000001.h5" "$tmp/runs/same/metrics.jsonl" >"$tmp/check" ||
    { cat "$tmp/check"; exit 1; }
echo "losses of ten steps beside PyTorch's: $(tail -n 1 "$tmp/check")"
echo

# ---- speed ----
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\)[,}].*/\1/p"; }
trained() { sed -n 's/^done after .* s, \([0-9,]*\) samples.*/\1/p' | tr -d ,; }
# The largest divisor of a rank's part up to 128, which was fastest at 512 and 4096.
micro_batch() { awk -v n=$(($1 / 2)) 'BEGIN { for (m = n < 128 ? n : 128; n % m; --m); print m }'; }
# BATCH NAME RANKS OVERRIDES: so many steps that they take TIME by the rate of a short run before; by the clock of weft train
weft_run() {
    local batch=$1 name=$2 ranks=$3 rate steps
    shift 3
    set -- "$config" -n "$ranks" run.name="$name" run.fresh=true train.log_every=100 train.batch="$batch" \
        train.micro_batch="${MICRO_BATCH:-$(micro_batch "$batch")}" checkpoint.every_s=100000 "$@"
    timeout 300 "$weft" train "$@" train.steps=200 >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
    rate=$(trained <"$tmp/out")
    steps=$(awk -v r="$rate" -v b="$batch" -v t="$seconds" 'BEGIN { printf "%d", t * r / b / 100 + 1 }')00
    with_memory timeout 600 "$weft" train "$@" train.steps="$steps" >"$tmp/out" 2>&1
    echo "$(trained <"$tmp/out") $(sed -n 's/^peak \([0-9]*\) MiB/\1/p' "$tmp/out")" >>"$tmp/$name.$batch"
}
# The floor: what products alone would take, at the rate that weft bench measures.
floor_run() {
    local batch=$1 out
    out=$(timeout 300 "$weft" bench step "$config" -n 2 --json train.batch="$batch" \
        train.micro_batch="${MICRO_BATCH:-$(micro_batch "$batch")}" 2>/dev/null)
    echo "$(number gflops <<<"$out") $(number step_s <<<"$out") $(number product_gflops <<<"$out")" |
        awk -v b="$batch" '{ print $3 * b / ($1 * $2) }' >>"$tmp/floor.$batch"
}
# BATCH NAME COMMAND...
peer_run() {
    local batch=$1 name=$2
    shift 2
    with_memory timeout 600 "$@" "$data" --batch "$batch" --seconds "$seconds" 2>/dev/null |
        sed -n 's/.* rate \([0-9.]*\) .s$/\1/p; s/^peak \([0-9]*\) MiB/\1/p' | paste -s -d' ' >>"$tmp/$name.$batch"
}
two="mpirun --oversubscribe --bind-to none -n 2"
for _ in $(seq "$rounds"); do
    for batch in "$@"; do
        weft_run "$batch" weft-collective 2
        floor_run "$batch"
        peer_run "$batch" peer-threads $peer --threads 2
        peer_run "$batch" peer-threads-bag $peer --threads 2 --bag
        peer_run "$batch" peer-ranks $two $peer --ddp
        weft_run "$batch" weft-sync 3 grid.servers=1
        weft_run "$batch" weft-stale 3 grid.servers=1 grid.mode=stale grid.staleness=1
        weft_run "$batch" weft-geo 3 grid.servers=1 grid.mode=geo grid.geo_steps=100
        weft_run "$batch" weft-async 3 grid.servers=1 grid.mode=async grid.geo_steps=100
    done
done
column() { cut -d' ' -f"$2" "$tmp/$1" | median; }
echo "| batch | program | samples/s | beside PyTorch's best | MiB | beside it |"
echo "|---|---|---|---|---|---|"
for batch in "$@"; do
    best=$(for p in threads threads-bag ranks; do echo "$(column "peer-$p.$batch" 1) $(column "peer-$p.$batch" 2)"; done | sort -g | tail -n 1)
    while IFS=: read -r name words; do
        echo "$(column "$name.$batch" 1) $(column "$name.$batch" 2) $best" |
            awk -v b="$batch" -v w="$words" '{ printf "| %d | %s | %.0f | %.2f | %d | %.2f |\n", b, w, $1, $1 / $3, $2, $2 / $4 }'
    done <<'EOF'
weft-collective:weft, 2 ranks
weft-sync:weft, 1 server and 2 ranks, sync
weft-stale:weft, 1 server and 2 ranks, stale by one step
weft-geo:weft, 1 server and 2 ranks, geo of 100 steps
weft-async:weft, 1 server and 2 ranks, async
peer-threads:PyTorch, 2 threads, Embedding
peer-threads-bag:PyTorch, 2 threads, EmbeddingBag
peer-ranks:PyTorch, 2 processes, DDP
EOF
    echo "| $batch | floor by the product rate | $(column "floor.$batch" 1 | cut -d. -f1) | | | |"
done
