#!/usr/bin/env bash
# The cost of data parallelism: two replicas of one thread, compared with two independent runs of one rank at the same time (the highest
# rate that the machine allows). The work of a replica is the same in both. Medians over ROUNDS rounds; runs alternate.
# usage: bench/replicas.sh [lenet|resnet18 ...]
set -eu
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-7}
echo "| workload | two alone, summed samples/s | two replicas, samples/s | share |"
echo "|---|---|---|---|"
for name in "${@:-lenet resnet18}"; do for model in $name; do
    case $model in lenet) micro=32 steps=300;; *) micro=32 steps=12;; esac
    rm -f "$tmp"/*
    for _ in $(seq "$rounds"); do
        for i in 1 2; do
            timeout 200 "$weft" bench step "bench/$model.yaml" --input 1x28x28 --steps $steps --json train.threads=1 \
                train.batch=$micro train.micro_batch=$micro >"$tmp/one.$i" &
        done; wait
        cat "$tmp"/one.[12] | rate | awk '{ s += $1 } END { print s }' >>"$tmp/alone"
        timeout 200 "$weft" bench step -n 2 "bench/$model.yaml" --input 1x28x28 --steps $steps --json train.threads=1 \
            train.batch=$((2 * micro)) train.micro_batch=$micro | rate >>"$tmp/replicas"
    done
    paste "$tmp/alone" "$tmp/replicas" | awk '{ print $2 / $1 }' >"$tmp/share"
    echo "| $model | $(median <"$tmp/alone") | $(median <"$tmp/replicas") | $(median <"$tmp/share") |"
done; done
