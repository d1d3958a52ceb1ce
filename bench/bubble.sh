#!/usr/bin/env bash
# The bubble of each schedule on two stages with eight micro-batches, measured and by theory, and the time of its step relative to that
# of 1f1b. Each round runs all schedules. Prints a Markdown table of medians.
# usage: ROUNDS=5 bench/bubble.sh
set -eu
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-5}
stages=2 micros=8 chunks=2
theory() { # SCHEDULE -> share of the time in which a stage has nothing to do
    awk -v s="$1" -v p=$stages -v m=$micros -v v=$chunks 'BEGIN {
        if (s == "interleaved") print (p - 1) / (v * m + p - 1)
        else if (s == "zero-bubble") print (p - 1) / (3 * m + p - 1)   # forward, data and weights cost 1 each
        else if (s ~ /-v$/) print (p - 1) / (6 * m + p - 1)              # the unit is half a stage
        else print (p - 1) / (m + p - 1) }'
}
schedules="gpipe 1f1b interleaved zero-bubble zb-v dualpipe-v"
for _ in $(seq "$rounds"); do
    for s in $schedules; do
        timeout 300 "$weft" bench step -n $stages bench/bubble.yaml --input tokens --steps 8 --json grid.pipeline_schedule="$s" |
            sed -n 's/.*"step_s":\([0-9.]*\).*"bubble":\([0-9.-]*\).*/\1 \2/p' >>"$tmp/$s"
    done
done
echo "| schedule | bubble measured | in theory | step, ms | step beside 1f1b |"
echo "|---|---|---|---|---|"
base=$(cut -d' ' -f1 "$tmp/1f1b" | median)
for s in $schedules; do
    awk -v s="$s" -v b="$(cut -d' ' -f2 "$tmp/$s" | median)" -v t="$(theory "$s")" -v m="$(cut -d' ' -f1 "$tmp/$s" | median)" -v base="$base" \
        'BEGIN { printf "| %s | %.1f %% | %.1f %% | %.1f | %.3f |\n", s, 100 * b, 100 * t, 1000 * m, m / base }'
done
