#!/usr/bin/env bash
# What a checkpoint costs: by how much it holds training up beside a copy of the same bytes, and how fast it is written and
# loaded beside dd, on the file system of the folder given.
# usage: bench/save.sh [FOLDER]     RANKS=2  SIZE=124m  ROUNDS=3
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
at=$(mktemp -d "${1:-/tmp}/weft-save-XXXXXX")
trap 'rm -rf "$at" "$tmp"' EXIT
ranks=${RANKS:-1} size=${SIZE:-124m} rounds=${ROUNDS:-3}
head -c 400000 /dev/urandom >"$at/text"
"$weft" data import text "$at/text" -o "$at/text.h5" >/dev/null
for _ in $(seq "$rounds"); do
    for background in true false; do
        rm -rf "$at/runs"
        timeout 600 "$weft" train -n "$ranks" "$here/gpt2.yaml" run.dir="$at/runs" run.name=r run.trace=true data.train="$at/text.h5" \
            model.context=32 train.steps=30 train.batch=2 train.micro_batch=1 train.eval_every=0 checkpoint.every_steps=10 \
            checkpoint.keep=1 checkpoint.best=false checkpoint.background=$background model.size="$size" >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
        # spans of the first two saves on rank 0; the last save of a run is waited for
        sed -n 's/.*"name":"checkpoint".*"pid":0,.*"dur":\([0-9.]*\).*/\1/p' "$at/runs/r/trace.json" |
            awk -v what="background=$background" '{ d[NR] = $1 / 1000 } END { n = NR / 3; for (i = 1; i <= 2 * n; i++) { s += d[i]; if (d[i] > m) m = d[i] }
                printf "%s: a save holds training up %.1f ms, %.1f ms at most at one border\n", what, s / 2, m }'
    done
    file=$(ls "$at"/runs/r/checkpoints/step-*.h5) bytes=$(stat -c %s "$file")
    printf 'file of %d MB\n' $((bytes / 1000000))
    dd if=/dev/zero of="$at/dd" bs=4M count=$((bytes / 4194304)) conv=fsync 2>&1 | sed -n 's/.*copied, \(.*\)/dd with fsync: \1/p'
    rm -f "$at/dd"
done
