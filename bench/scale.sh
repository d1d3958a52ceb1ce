#!/usr/bin/env bash
# Weak and strong scaling to 16,384 ranks on machines that are described by their rates, by the model of weft plan --machine: the tables of
# bench/scale.md. Nothing is measured. The GPU cluster's tables are of bf16, which plans need a processor with AVX512_BF16 or AMX for.
# usage: bench/scale.sh [cpus] [gpus]     (two minutes)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
weft=$(realpath "$weft")
# Two sockets of 64 cores, a rank each: 4 TFLOP/s in fp32 and 300 GB/s a socket; 200 Gbit/s a node, of which 90 % are used.
cat >"$tmp/cpus.yaml" <<'YAML'
weft_machine: 1
host: "2 x 64 cores, 200 Gbit/s"
ranks: 2
nodes: 8192
memory_bytes: 5e11
rates: {flops_s: 4e12, bytes_s: 3e11, call_s: 5e-6}
message: {latency_s: 1e-6, byte_s: 1e-10}
network: {latency_s: 2e-6, byte_s: 4.4e-11}
YAML
# Eight GPUs, a rank each: 450 TFLOP/s in bf16, 2.7 TB/s, 350 GB/s between two of a node; 8 x 400 Gbit/s a node, of which 90 % are used.
cat >"$tmp/gpus.yaml" <<'YAML'
weft_machine: 1
host: "8 GPUs, 8 x 400 Gbit/s"
ranks: 8
nodes: 2048
memory_bytes: 6.4e11
rates: {flops_s: 4.5e14, bytes_s: 2.7e12, call_s: 5e-6}
message: {latency_s: 5e-6, byte_s: 2.9e-12}
network: {latency_s: 5e-6, byte_s: 2.8e-12}
YAML
resnet="resnet50.yaml --input 3x224x224 train.micro_batch=32"
gpt="gpt2.yaml --input tokens model.size=1558m model.context=1024 train.micro_batch=1"
# row MACHINE MODEL RANKS BATCH FIRST RANKS0 : FIRST: samples/s on RANKS0 ranks, or "" to take this row's
row() {
    local best step keys
    best=$("$weft" plan "$here"/$2 --ranks "$3" "train.batch=$4" $([ "$1" = cpus ] || echo train.precision=bf16) --machine "$tmp/$1.yaml" --choose --top 1 --json 2>"$tmp/said") ||
        { grep -q 'fit' "$tmp/said" || { cat "$tmp/said" >&2; exit 1; }; echo "| $3 | $4 | does not fit | | | |"; return; }
    step=$(number step_s <<<"$best") keys=$(sed -n 's/.*"keys": "\([^"]*\)".*/\1/p' <<<"$best" | sed 's/grid\.//g; s/ chunks=1//; s/zero=0//; s/recompute=none//; s/pipeline_schedule=//')
    rate=$(awk -v b="$4" -v s="$step" 'BEGIN { print b / s }')
    awk -v r="$3" -v b="$4" -v s="$step" -v k="$keys" -v first="${5:-$rate}" -v ranks0="$6" \
        'BEGIN { sub(/ +$/, "", k); printf "| %d | %d | %.4g | %.4g | %.1f %% | %s |\n", r, b, 1000 * s, b / s, 100 * b / s / first / r * ranks0, k }'
}
for machine in ${*:-cpus gpus}; do
    for model in resnet gpt; do
        for kind in weak strong; do
            [ $model = resnet ] && each=64 all=32768 || { each=8; all=16384; }
            printf '\n%s, %s, %s scaling\n\n| ranks | batch | ms a step | samples/s | efficiency | grid |\n|---|---|---|---|---|---|\n' "$machine" "$model" "$kind"
            first= ranks0=16
            for ranks in 16 64 256 1024 4096 16384; do
                [ $kind = weak ] && batch=$((ranks * each)) || batch=$all
                [ "$batch" -ge "$ranks" ] || continue
                row $machine "${!model}" $ranks $batch "$first" $ranks0 >"$tmp/row"
                cat "$tmp/row"
                first=${first:-$(cut -d'|' -f5 "$tmp/row")}
            done
        done
    done
done
