#!/usr/bin/env bash
# What data parallelism costs: two replicas of one thread, against two independent runs of one rank at the same time (the
# true ceiling of the machine). Per replica the work is the same. Medians over ROUNDS rounds, in turn.
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
