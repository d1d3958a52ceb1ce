#!/usr/bin/env bash
# Compares forecasts with measured steps on this machine: measures each workload's operations once with two ranks (weft bench machine),
# forecasts steps on several grids (weft plan --machine), and measures them (weft bench step). Prints a table in Markdown, the mean and
# the worst error, and Kendall's rank correlation of forecasts and measurements over the grids of a workload. Two cores are needed.
# usage: bench/forecast.sh [WEFT [WORKLOAD ...]]
#   STEPS=20        measured steps
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
weft=${1:-$here/../build/weft}; [ $# -lt 1 ] || shift
steps=${STEPS:-20}
# name: file, input, keys
table="mlp:mlp:1x28x28:train.batch=256 train.micro_batch=64
lenet:lenet:1x28x28:train.batch=256 train.micro_batch=64
resnet18:resnet18:1x28x28:train.batch=32 train.micro_batch=8
gpt:gpt:tokens:train.batch=8 train.micro_batch=2
bubble:bubble:tokens:train.batch=16 train.micro_batch=2"
# grids of one and two ranks: ranks, keys
grids="1:grid.pp=1
2:grid.pp=1
2:grid.pp=2 grid.pipeline_schedule=gpipe
2:grid.pp=2 grid.pipeline_schedule=1f1b
2:grid.pp=2 grid.pipeline_schedule=zero-bubble"

printf '| workload | ranks, grid | forecast ms | measured ms | error |\n|---|---|---|---|---|\n'
while IFS=: read -r name file input keys; do
    [ $# = 0 ] || grep -qw -- "$name" <<<"$*" || continue
    timeout 600 "$weft" bench machine -n 2 "$here/$file.yaml" --input "$input" --steps "$steps" --save "$tmp/$name.yaml" \
        train.threads=1 grid.pp=1 $keys >"$tmp/said" 2>&1 </dev/null || { cat "$tmp/said" >&2; exit 2; }
    grep warning "$tmp/said" >&2 || true
    while IFS=: read -r ranks grid; do
        forecast=$("$weft" plan "$here/$file.yaml" --input "$input" --samples 1024 --ranks "$ranks" --machine "$tmp/$name.yaml" --json \
            train.threads=1 $keys $grid </dev/null | number step_s)
        ranks_flag=; [ "$ranks" = 1 ] || ranks_flag="-n $ranks"
        measured=$(timeout 600 "$weft" bench step $ranks_flag "$here/$file.yaml" --input "$input" --steps "$steps" --json \
            train.threads=1 $keys $grid </dev/null | number step_s)
        echo "$name $forecast $measured" >>"$tmp/all"
        awk -v n="$name" -v g="$ranks, $grid" -v f="$forecast" -v m="$measured" \
            'BEGIN { printf "| %s | %s | %.2f | %.2f | %+.1f %% |\n", n, g, 1000 * f, 1000 * m, 100 * (f / m - 1) }'
    done <<<"$grids"
done <<<"$table"
forecast_errors <"$tmp/all"
