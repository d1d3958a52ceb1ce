#!/usr/bin/env bash
# A growing table up to its memory limit: wide & deep on clicks that drift, so that new ids keep appearing, with one server whose
# train.memory is the amount that it needs after nine tenths of SOAK_S seconds. Rows are added, the server's memory follows the planned
# bytes per row, checkpoints are written; then the job ends with 71 and names the table, and its newest checkpoint is resumed with three
# servers.
# usage: soak_tables.sh     (WEFT=build/weft SOAK_S=600: and about half a minute more; on any machine with 4 GB)
. "$(dirname "$0")/../cli/common.bash"
seconds=${SOAK_S:-600}
cat >job.yaml <<'Y'
run:   {seed: 1, name: soak}
model: {name: wide_deep, width: 8, hidden: [1024, 1024]}
data:  {train: clicks.h5, shuffle: chunks}
train: {batch: 64, micro_batch: 32, epochs: 1, threads: 1, loss: sigmoid, log_every: 200}
optim: {name: adagrad, lr: 0.02}
checkpoint: {best: false, keep: 2}
Y
# measures this machine's samples per second, so that the data suffice
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 100000
check 75 '' timeout 120 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train job.yaml grid.servers=1 run.name=rate train.epochs=1000 run.max_time=8s
rate=$(sed -n 's/.*"samples_per_s":\([0-9.e+]*\).*/\1/p' runs/rate/metrics.jsonl | sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }')
# with fewer, the limit would be below the model's memory
samples=$(awk -v r="$rate" -v s="$seconds" 'BEGIN { n = int(r * s); print n < 120000 ? 120000 : n }')
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --force --samples "$samples" --drift 4
# the rows do not depend on the layers of the model, so a small and quick one is used
steps=$((samples * 9 / 10 / 64))
check 0 'tables: ' timeout 600 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train job.yaml grid.servers=1 run.name=count 'model.hidden=[1]' train.batch=1024 train.micro_batch=256 train.steps=$((steps / 16))
limit=$(sed -n 's/.*the fullest has [0-9]*, \([0-9.]*\) \(.\)B).*/\1 \2/p' both | awk '{ print int($1 * ($2 == "G" ? 1000 : $2 == "M" ? 1 : 0.001)) }')
rm -r runs
echo "$rate samples/s; $samples samples; limit ${limit} MB, where about $(sed -n 's/.*tables: \([0-9]*\) rows.*/\1/p' both) rows have come"

every=$((seconds / 20 > 2 ? seconds / 20 : 2))
timeout $((3 * seconds + 120)) nice -n 10 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train job.yaml grid.servers=1 train.memory="${limit}MB" checkpoint.every_s=$every >train.log 2>&1 &
job=$! begun=$EPOCHREALTIME last=
newest() { ls runs/soak/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
server() { rank_pid job.yaml 2; }
rows() { "$WEFT" ckpt info "$1" | awk '$1 ~ "^/tables/.*/ids" { split($2, n, "x"); sum += n[1] } END { print sum }'; }
: >grown
while kill -0 $job 2>/dev/null; do
    sleep 0.5
    file=$(newest)
    [ "$file" != "$last" ] || continue
    last=$file
    rss=$(awk '/^RssAnon/ { print $2 * 1024 }' "/proc/$(server)/status" 2>/dev/null) || continue
    n=$(rows "$file") && echo "$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }') $n ${rss:-0}" >>grown
done
code=0
wait $job || code=$?
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }')
cat grown
tail -n 20 train.log
holds "it ends with 71, not $code" test $code = 71
holds 'and names the table' grep -q 'table embedding' train.log
holds "after more than half of the time, not $took s" test "$took" -gt $((seconds / 2))
holds 'with some checkpoints behind it' test "$(wc -l <grown)" -ge 5
holds 'rows and memory only grow' awk '$2 <= n || $3 == 0 { exit 1 } { n = $2 }' grown
# 8 numbers and 8 of state are 64 bytes; the index has 17 to 34 per row; the last save has left 16 for the order of rows
holds 'memory follows the rows: 81 to 114 bytes each, and 20 MB at most beside them' awk '$3 < 81 * $2 * 0.98 || $3 > 114 * $2 + 20e6 { exit 1 }' grown
file=$(newest)
check 0 'good' "$WEFT" ckpt check "$file"
before=$(rows "$file")
step=$(basename "$file" .h5)
step=$((10#${step#step-}))
check 0 'resuming from' timeout 300 mpirun --oversubscribe --bind-to none -n 5 "$WEFT" train job.yaml run.name=on grid.servers=3 train.memory="${limit}MB" checkpoint.resume="$file" train.steps=$((step + 300))
after=$(rows "$(at on $((step + 300)))")
holds "with three servers rows grow on, from $before to $after" test "$after" -gt "$before"
echo "$took s; $before rows in the last checkpoint, $after after it went on with three servers"
finish
