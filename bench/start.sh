#!/usr/bin/env bash
# Seconds from `mpirun` to the first finished step of lenet, which is read from the first progress line. Median of ROUNDS.
# usage: bench/start.sh [RANKS]   (needs the data sets of `make data`)
set -eu
weft=${WEFT:-build/weft} rounds=${ROUNDS:-9} ranks=${1:-2}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
for i in $(seq "$rounds"); do
    begin=$(date +%s.%N)
    timeout 60 mpirun --oversubscribe --bind-to none -n "$ranks" "$weft" train jobs/fashion.yaml run.dir="$dir" \
        run.name="r$i" train.steps=2 2>&1 |
        while IFS= read -r line; do
            case $line in *"step 1/"*) awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f\n", b - a }';; esac
        done
done | sort -g | awk '{ v[NR] = $1 } END { printf "first step after %.3f s (median of %d, %.3f to %.3f)\n", v[int((NR + 1) / 2)], NR, v[1], v[NR] }'
