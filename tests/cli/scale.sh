#!/usr/bin/env bash
# weft bench scale: its rows, batches and grids, the relation of speed-up, efficiency and rates, and forecasts. No time itself is
# tested, so that nothing depends on this machine's load.
. "$(dirname "$0")/common.bash"

cat >job.yaml <<'YAML'
model: {classes: 3, layers: [flatten, dense: {width: 24}, relu, dense: {width: 24}, relu, dense: {width: 3}]}
train: {batch: 32, micro_batch: 8, threads: 1}
YAML
# An operation takes 1 ms, whatever it is: 4 forward parts, 3 gradients of inputs, 3 of weights, as in forecast.sh.
cat >two.yaml <<'YAML'
weft_machine: 1
host: "described"
ranks: 2
rates: {flops_s: 1e18, bytes_s: 1e18, call_s: 0.001}
message: {latency_s: 0, byte_s: 0}
YAML
scale() { timeout 240 "$WEFT" bench scale job.yaml --input 1x8x8 --steps 3 --warmup 1 "$@"; }
# rows TABLE KEY... : the values of these keys in the rows of a table in `out`, in one line.
rows() {
    local table=$1 key
    shift
    while IFS= read -r line; do
        for key; do sed -n "s/.*\"$key\":\"\{0,1\}\([^,}\"]*\).*/\1/p" <<<"$line" | tr '\n' ' '; done
    done < <(awk -v begin="\"$table\":[" 'index($0, begin) { on = 1; next } /^]/ { on = 0 } on' out)
}

check 0 '"bench":"scale"' scale -n 2 --machine two.yaml --json
holds "strong: $(rows strong ranks grid batch)" test "$(rows strong ranks grid batch)" = '1 1x1x1 32 2 2x1x1 32 '
holds "weak: $(rows weak ranks grid batch)" test "$(rows weak ranks grid batch)" = '1 1x1x1 32 2 2x1x1 64 '
for table in strong weak; do
    holds "$table: the first row is the measure of the others" test "$(rows $table speed_up efficiency | cut -d' ' -f1,2)" = '1.0000 1.0000'
    # speed-up: the ratio of samples per second, which are batch / time; efficiency: that of each rank
    holds "$table: speed-up, efficiency, rates" awk -v rows="$(rows $table ranks batch step_s samples_per_s speed_up efficiency)" '
        function near(a, b) { return a < 1.01 * b + 0.001 && a > 0.99 * b - 0.001 }
        BEGIN { n = split(rows, v, " "); if (n != 12) exit 1
            for (i = 0; i < n; i += 6)
                if (!near(v[i + 4], v[i + 2] / v[i + 3]) || !near(v[i + 5], v[i + 4] / v[4]) || !near(v[i + 6], v[i + 5] / v[i + 1])) exit 1 }'
done
# 4 micro-batches of 10 ms, and 2 on each of two ranks; weak: 4 on each
holds "forecast, strong: $(rows strong forecast_s)" test "$(rows strong forecast_s)" = '0.040000000 0.020000000 '
holds "forecast, weak: $(rows weak forecast_s)" test "$(rows weak forecast_s)" = '0.040000000 0.040000000 '

check 0 'weak scaling: a batch in proportion to p' scale -n 2
holds 'without a machine there is no forecast' test -z "$(grep forecast out)"
# One micro-batch cannot be divided, so only weak scaling has a second row. The file lacks the second rank.
sed 's/^ranks: 2/ranks: 1/; /^message/d' two.yaml >one.yaml
check 0 'p = 2: 1 micro-batch cannot be divided among 2 replicas' scale -n 2 train.micro_batch=32 run.machine=one.yaml
holds 'the row is left out' grep -Eq '^ +2 +2x1x1 +32 +- +- +- +- +- +-$' out
holds "weak: measured, not forecast" grep -Eq '^ +2 +2x1x1 +64 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ % +- +-$' out
holds 'the reason stands once' test "$(grep -c '^p = 2: one.yaml: ' out)" = 1
# A replica of two stages is the smallest unit.
check 0 'replicas, each of 2 ranks' scale -n 2 grid.pp=2
holds 'one row' grep -Eq '^ +2 +1x2x1 +32 +[0-9.]+ +[0-9.]+ +1.00 +100.0 %$' out
check 0 'grid.rank_map: auto' scale -n 2 grid.rank_map=auto
# 60 samples are 3 batches of 16, but not two of 32.
{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
check 0 'p = 2: command line: train.batch=16: the 60 samples of data.train are fewer than two batches of 32' \
    "$WEFT" bench scale -n 2 job.yaml data.train=data.h5 train.batch=16 --steps 2
check 78 'two batches of 32' "$WEFT" bench scale job.yaml data.train=data.h5
check 78 'is 3 ranks a replica, but 2 were started' scale -n 2 grid.pp=3
check 66 'none.yaml' scale --machine none.yaml
check 78 'all ranks of weft bench scale compute' scale -n 2 grid.servers=1
finish
