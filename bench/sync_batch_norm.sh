#!/usr/bin/env bash
# What train.sync_batch_norm costs: a step of resnet18 on two replicas of one thread each, without and with it, in turn. Medians over
# ROUNDS pairs, by the size of a micro-batch: the sums are as many and as large whatever that is.
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
