#!/usr/bin/env bash
# The cost of grid.zero (sharding optimizer state, gradients and parameters) in a step: two replicas of one thread, two micro-batches
# each, with grid.zero 0 to 3 alternately. Prints medians over ROUNDS rounds, of rates and of each round's ratios.
# usage: bench/zero.sh [shm|mpi ...]
set -eu
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-7} steps=${STEPS:-6}
echo "| transport | zero 0, samples/s | time of a step, zero 1 / zero 0 | zero 2 / zero 0 | zero 3 / zero 0 |"
echo "|---|---|---|---|---|"
for transport in "${@:-shm mpi}"; do for t in $transport; do
    rm -f "$tmp"/*
    for _ in $(seq "$rounds"); do
        for z in 0 1 2 3; do
            timeout 300 "$weft" bench step -n 2 bench/gpt.yaml --input tokens --steps "$steps" --json train.threads=1 \
                train.batch=4 train.micro_batch=1 grid.zero=$z grid.transport="$t" | rate >>"$tmp/$z"
        done
    done
    for z in 1 2 3; do paste "$tmp/0" "$tmp/$z" | awk '{ print $1 / $2 }' >"$tmp/ratio.$z"; done
    echo "| $t | $(median <"$tmp/0") | $(median <"$tmp/ratio.1") | $(median <"$tmp/ratio.2") | $(median <"$tmp/ratio.3") |"
done; done
