# Sourced by recommender.sh and recommender_servers.sh: the model and its data, and functions that run weft and other programs on them;
# each run adds a line "samples/s MiB" to a file in $kept. Settings:
#   TIME=15 (seconds of a run after its warm-up), ROUNDS=3    SAMPLES=1000000 of the data    DATA: an existing data file
#   KEPT: a folder for the results, which is kept, so that rounds of several calls add up; ROUNDS=0: only prints the table
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"
rounds=${ROUNDS:-3} seconds=${TIME:-15} samples=${SAMPLES:-1000000} kept=${KEPT:-$tmp}
data=${DATA:-$tmp/clicks.h5}
config=$tmp/wide-deep.yaml
cat >"$config" <<EOF
run:   {name: wide-deep, dir: $tmp/runs, seed: 1}
model: {name: wide_deep, width: 10, hidden: [400, 400, 400], vocab: 1000001}
data:  {train: $data}
train: {threads: 1, loss: sigmoid}
optim: {name: sgd, lr: 1e-4}
EOF
mkdir -p "$kept"
make_clicks() { "$weft" data make criteo-like -o "$1" --rows 1000001 --samples "$2" >"$tmp/made" 2>&1; } # FILE SAMPLES
[ -e "$data" ] || make_clicks "$data" "$samples"
two="mpirun --oversubscribe --bind-to none -n 2"
trained() { sed -n 's/^done after .* s, \([0-9,]*\) samples.*/\1/p' | tr -d ,; }
# BATCH: prints the largest divisor of a rank's part of it that is at most 1024: the whole part was fastest for a batch of 512, and 1024
# or 2048 for 4096.
micro_batch() { awk -v n=$(($1 / 2)) 'BEGIN { for (m = n < 1024 ? n : 1024; n % m; --m); print m }'; }
# BATCH NAME RANKS OVERRIDES: runs weft for about TIME seconds: a short run before gives the rate, and so the number of steps. The rate
# is the one that weft train prints.
weft_run() {
    local batch=$1 name=$2 ranks=$3 rate steps
    shift 3
    set -- "$config" -n "$ranks" run.name="$name" run.fresh=true train.log_every=100 train.batch="$batch" \
        train.micro_batch="${MICRO_BATCH:-$(micro_batch "$batch")}" checkpoint.every_s=100000 "$@"
    timeout 300 "$weft" train "$@" train.steps=200 >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
    rate=$(trained <"$tmp/out")
    steps=$(awk -v r="$rate" -v b="$batch" -v t="$seconds" 'BEGIN { printf "%d", t * r / b / 100 + 1 }')00
    with_memory timeout 600 "$weft" train "$@" train.steps="$steps" >"$tmp/out" 2>&1
    echo "$(trained <"$tmp/out") $(sed -n 's/^peak \([0-9]*\) MiB/\1/p' "$tmp/out")" >>"$kept/$name.$batch"
}
# BATCH NAME COMMAND...: runs a command that prints "rate R /s"
peer_run() {
    local batch=$1 name=$2
    shift 2
    with_memory timeout 600 "$@" --batch "$batch" --seconds "$seconds" 2>/dev/null |
        sed -n 's/.* rate \([0-9.]*\) .s$/\1/p; s/^peak \([0-9]*\) MiB/\1/p' | paste -s -d' ' >>"$kept/$name.$batch"
}
column() { cut -d' ' -f"$2" "$kept/$1" | median; } # NAME.BATCH NUMBER
