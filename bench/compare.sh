#!/usr/bin/env bash
# Compares weft with PyTorch: both run alternately, ROUNDS times for every workload; of PyTorch's settings that with the best median
# counts. Prints a table in Markdown: samples/s (gpt: tokens/s), their ratio, peak memory of all processes (shared memory counted
# once), its ratio.
# CPU=avx2 limits both to AVX2 (MKL, too); avx512 is the default of both on processors that have it.
# usage: PEER="python peer_torch.py" bench/compare.sh [WORKLOAD ...]
#   PEER: a command that takes MODEL --batch B --steps N [--threads T] [--channels-last] [--ddp] and prints "rate R /s rss M MiB"
set -eu
peer=${PEER:?set PEER to the command of the PyTorch benchmark}
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-3}
case ${CPU:-} in
    "") ;;
    avx2) export WEFT_CPU=avx2 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2;;
    avx512) export WEFT_CPU=avx512;;
    *) echo "compare.sh: CPU is avx2 or avx512" >&2; exit 2;;
esac
# name: weft's file, input, PyTorch's model, batch, steps. A name that ends in -bf16 runs both in bf16; gpt counts tokens
table="mlp:mlp:1x28x28:mlp:64:300
lenet:lenet:1x28x28:lenet:64:60
resnet18:resnet18:1x28x28:resnet18f:32:8
resnet50:resnet50:3x224x224:resnet50:8:5
mobilenet:mobilenet:3x224x224:mobilenet:16:5
gpt:gpt:tokens:gptnano:8:10
gpt-bf16:gpt:tokens:gptnano:8:10
gpt2:gpt2:tokens:gpt2 --seq 256:2:4
gpt2-bf16:gpt2:tokens:gpt2 --seq 256:2:4"

weft_run() { # RANKS FILE INPUT STEPS OVERRIDES -> "rate memory"
    with_memory timeout 300 "$weft" bench step -n "$1" "bench/$2.yaml" --input "$3" --steps "$4" --json $5 |
        sed -n 's/.*"[a-z]*_per_s":\([0-9.]*\).*/\1/p; s/^peak \([0-9]*\) MiB/\1/p' | paste -s -d' '
}
peer_run() { # MODEL BATCH STEPS FLAGS -> "rate memory"
    local batch=$2 flags=$4
    case $flags in *--ddp*) batch=$(($2 / 2));; esac
    local run="timeout 300 $peer $1 --batch $batch --steps $3 $flags"
    case $flags in *--ddp*) run="timeout 300 mpirun --oversubscribe --bind-to none -n 2 $peer $1 --batch $batch --steps $3 $flags";; esac
    with_memory $run 2>/dev/null | sed -n 's/.* rate \([0-9.]*\) .s rss .*/\1/p; s/^peak \([0-9]*\) MiB/\1/p' | paste -s -d' '
}
peer_settings=("" "--channels-last" "--ddp --threads 1" "--ddp --threads 1 --channels-last" "--compile")
weft_settings=("1|" "2|" "2|grid.zero=1")
echo "| workload | weft /s | setting | PyTorch /s | setting | ratio | weft MiB | PyTorch MiB | ratio |"
echo "|---|---|---|---|---|---|---|---|---|"
while IFS=: read -r name file input model batch steps; do
    [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx "$name" && continue
    rm -f "$tmp"/*
    precision=fp32 cast=""
    case $name in *-bf16) precision=bf16 cast="--bf16";; esac
    for _ in $(seq "$rounds"); do
        for i in "${!weft_settings[@]}"; do
            IFS='|' read -r ranks over <<<"${weft_settings[$i]}"
            [ "$ranks" = 2 ] && over="$over train.micro_batch=$((batch / 2))"
            over="$over train.precision=$precision"
            weft_run "$ranks" "$file" "$input" "$steps" "$over" </dev/null >>"$tmp/weft.$i"
        done
        for i in "${!peer_settings[@]}"; do
            case "$name ${peer_settings[$i]}" in gpt*channels-last*) continue;; esac
            case "$name ${peer_settings[$i]}" in *--compile*) [ "${COMPILE:-0}" = 1 ] || continue;; esac
            peer_run "$model" "$batch" "$steps" "${peer_settings[$i]} $cast" </dev/null >>"$tmp/peer.$i"
        done
    done
    best() { # PREFIX -> "rate memory setting-index"
        for f in "$tmp/$1".*; do [ -s "$f" ] && echo "$(cut -d' ' -f1 "$f" | median) $(cut -d' ' -f2 "$f" | median) ${f##*.}"; done | sort -g | tail -n 1
    }
    read -r wr wm wi < <(best weft); read -r pr pm pi < <(best peer)
    awk -v n="$name" -v wr="$wr" -v wm="$wm" -v ws="ranks ${weft_settings[$wi]/|/ }" -v pr="$pr" -v pm="$pm" -v ps="${peer_settings[$pi]:-default}" \
        'BEGIN { printf "| %s | %.1f | %s | %.1f | %s | %.2f | %d | %d | %.2f |\n", n, wr, ws, pr, ps, wr / pr, wm, pm, wm / pm }'
done <<<"$table"
