#!/usr/bin/env bash
# The cost of train.sync_batch_norm: a step of resnet18 on two replicas of one thread each, with and without it alternately. Prints
# medians over ROUNDS pairs for each size of a micro-batch, which does not change the number and size of the sums.
# usage: bench/sync_batch_norm.sh [MICRO_BATCH ...]
set -eu
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-7}
echo "| micro-batch of a replica | off, samples/s | on, samples/s | on / off |"
echo "|---|---|---|---|"
for micro in "${@:-32 8 2}"; do for size in $micro; do
    rm -f "$tmp"/*
    for _ in $(seq "$rounds"); do
        for on in false true; do
            timeout 300 "$weft" bench step -n 2 bench/resnet18.yaml --input 1x28x28 --steps "${STEPS:-12}" --json train.threads=1 \
                train.batch=64 train.micro_batch="$size" train.sync_batch_norm=$on | rate >>"$tmp/$on"
        done
    done
    paste "$tmp/false" "$tmp/true" | awk '{ print $2 / $1 }' >"$tmp/share"
    echo "| $size | $(median <"$tmp/false") | $(median <"$tmp/true") | $(median <"$tmp/share") |"
done; done
