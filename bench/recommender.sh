#!/usr/bin/env bash
# Compares wide & deep with one sparse table with PyTorch: 13 numbers, 26 ids in 1,000,001 rows of 10, hidden layers 400-400-400, plain
# SGD on both sides, the same generated data from memory. First it checks that both compute the same: ten steps from the same values,
# losses to 1e-5. Then each of ROUNDS rounds runs every program on every batch for TIME seconds after a warm-up. Prints a table in
# Markdown with medians: samples/s of all ranks over all steps, ratios to PyTorch's best setting, peak memory of all processes (PSS:
# shared memory counted once). "floor": samples/s if matrix products, at the rate that weft measures, took all the time.
# usage: [PYTHON=python] bench/recommender.sh [BATCH ...]     10, 512 and 4096
#   PYTHON: one with torch, h5py and numpy    TIME, ROUNDS, SAMPLES, DATA, KEPT: see recommender.bash
set -eu
. "$(dirname "$0")/recommender.bash"
python=${PYTHON:-python3}
peer="$python $(dirname "$0")/peer_recommender.py"
[ $# -gt 0 ] || set -- 10 512 4096

# ---- both compute the same: one step makes all rows, ten more are compared ----
make_clicks "$tmp/few.h5" 512
"$weft" train "$config" -n 1 data.train="$tmp/few.h5" run.name=same train.batch=512 train.steps=11 train.log_every=1 \
    optim.lr=0.1 checkpoint.every_steps=1 checkpoint.keep=0 >"$tmp/same.log" 2>&1
$peer "$tmp/few.h5" --lr 0.1 --check "$tmp/runs/same/checkpoints/step-00000001.h5" "$tmp/runs/same/metrics.jsonl" >"$tmp/check" ||
    { cat "$tmp/check"; exit 1; }
echo "losses of ten steps beside PyTorch's: $(tail -n 1 "$tmp/check")"
echo

# ---- speed ----
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\)[,}].*/\1/p"; }
# The floor: what products alone would take, at the rate that weft bench measures.
floor_run() {
    local batch=$1 out
    out=$(timeout 300 "$weft" bench step "$config" -n 2 --json train.batch="$batch" \
        train.micro_batch="${MICRO_BATCH:-$(micro_batch "$batch")}" 2>/dev/null)
    echo "$(number gflops <<<"$out") $(number step_s <<<"$out") $(number product_gflops <<<"$out")" |
        awk -v b="$batch" '{ print $3 * b / ($1 * $2) }' >>"$kept/floor.$batch"
}
for _ in $(seq "$rounds"); do
    for batch in "$@"; do
        weft_run "$batch" weft-collective 2
        floor_run "$batch"
        peer_run "$batch" peer-threads $peer "$data" --threads 2
        peer_run "$batch" peer-threads-bag $peer "$data" --threads 2 --bag
        peer_run "$batch" peer-ranks $two $peer "$data" --ddp
        weft_run "$batch" weft-sync 3 grid.servers=1
        weft_run "$batch" weft-stale 3 grid.servers=1 grid.mode=stale grid.staleness=1
        weft_run "$batch" weft-geo 3 grid.servers=1 grid.mode=geo grid.geo_steps=100
        weft_run "$batch" weft-async 3 grid.servers=1 grid.mode=async grid.geo_steps=100
    done
done
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
