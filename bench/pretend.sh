#!/usr/bin/env bash
# Compares forecasts with steps whose operations sleep (weft bench step --pretend) on four hosts of one machine (namespaces, as in
# tests/cluster) with shaped links: schedules, messages and sums of 8 and 16 ranks are real, and cores are not needed. The network of the
# forecast is measured by weft topo show between two of the hosts. Prints a table in Markdown, the mean and the worst error, and Kendall's
# rank correlation over the grids with equal ranks and links.
# usage: bench/pretend.sh [LINK ...]       (as root; links in Mbit/s, by default 25 and 100; ten minutes)
#   STEPS=3        measured steps, after one other
set -eu
here=$(cd "$(dirname "$0")" && pwd)
hosts=$here/../tests/cluster/hosts.sh
[ "${CLUSTER_HOSTS:-}" ] || exec "$hosts" 4 "$here/pretend.sh" "$@"
. "$here/common.bash"
[ $# -gt 0 ] || set -- 25 100
weft=$(realpath "$weft") steps=${STEPS:-3}
cd "$tmp"
# 16 dense layers, 5 ms for each part of an operation: tasks of 10 ms and more
layers=$(for _ in $(seq 15); do printf 'dense: {width: 128}, relu, '; done)
echo "model: {layers: [flatten, ${layers}dense: {width: 10}], classes: 10}
train: {steps: 100, batch: 2048, micro_batch: 64, threads: 1}" >job.yaml
grids="1:
2:gpipe 1f1b zero-bubble zb-v interleaved
4:gpipe 1f1b zero-bubble zb-v interleaved
8:gpipe 1f1b zero-bubble"

# start RANKS COMMAND... : on the four hosts, the first ones filled first
start() {
    local each=$(($1 / 4)) ranks=$1
    shift
    timeout 300 mpirun -n "$ranks" --host "n1:$each,n2:$each,n3:$each,n4:$each" --map-by slot --bind-to none "$@" </dev/null 2>"$tmp/said" ||
        { cat "$tmp/said" >&2; exit 2; }
}
printf '| link, Mbit/s | ranks | grid | forecast ms | measured ms | error |\n|---|---|---|---|---|---|\n'
for link; do
    BURST=2kb QUEUE='limit 20mb' "$hosts" link "${link}mbit"
    timeout 60 mpirun -n 2 --host n1:1,n2:1 "$weft" topo show --json </dev/null 2>/dev/null >net.json
    latency=$(tr -d '\n ' <net.json | sed 's/.*"latency_s":\[\[0,\([^],]*\).*/\1/')
    rate=$(tr -d '\n ' <net.json | sed 's/.*"bytes_s":\[\[0,\([^],]*\).*/\1/')
    for ranks in 8 16; do
        cat >machine.yaml <<YAML
weft_machine: 1
host: "four hosts"
ranks: $((ranks / 4))
nodes: 4
rates: {flops_s: 1e18, bytes_s: 1e18, call_s: 0.005}
message: {latency_s: 2e-5, byte_s: 3e-10}
network: {latency_s: $latency, byte_s: $(awk -v r="$rate" 'BEGIN { printf "%.4g", 1 / r }')}
YAML
        while IFS=: read -r pp schedules; do
            for schedule in ${schedules:-1f1b}; do
                keys="grid.pp=$pp grid.pipeline_schedule=$schedule"
                forecast=$("$weft" plan job.yaml --input 1x16x16 --ranks "$ranks" --machine machine.yaml --json $keys | number step_s)
                measured=$(start "$ranks" "$weft" bench step job.yaml --input 1x16x16 --pretend machine.yaml --steps "$steps" --warmup 1 $keys |
                    sed -n 's/.*: step \([0-9.]*\) s.*/\1/p')
                echo "$link-$ranks $forecast $measured" >>all
                awk -v l="$link" -v r="$ranks" -v g="$((ranks / pp)) x $pp, $schedule" -v f="$forecast" -v m="$measured" \
                    'BEGIN { printf "| %s | %s | %s | %.0f | %.0f | %+.1f %% |\n", l, r, g, 1000 * f, 1000 * m, 100 * (f / m - 1) }'
            done
        done <<<"$grids"
    done
done
forecast_errors <all
