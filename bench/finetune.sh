#!/usr/bin/env bash
# A step of resnet50 on 3x224x224 that trains only the classifier, compared with one that trains all. Each round runs both, in
# alternating order. Prints medians of times, of peak memory and of each round's ratios.
# usage: bench/finetune.sh [BATCH ...]     (default: 8 16; THREADS=2 ROUNDS=5 STEPS=5)
set -eu
. "$(dirname "$0")/common.bash"
rounds=${ROUNDS:-5} steps=${STEPS:-5} threads=${THREADS:-2}
freeze='model.freeze=["[!f]*"]'
figure() { grep -o "\"$1\": *[0-9.]*" | head -n 1 | sed 's/.*: *//'; }
run() { # NAME BATCH WORDS...
    local name=$1 batch=$2
    shift 2
    timeout 600 "$weft" bench step bench/resnet50.yaml --input 3x224x224 --steps "$steps" --json train.threads="$threads" \
        train.batch="$batch" train.micro_batch="$batch" "$@" >"$tmp/line"
    figure step_s <"$tmp/line" >>"$tmp/$name.s"
    figure memory_mb <"$tmp/line" >>"$tmp/$name.mb"
}
echo "| batch | all: s a step | classifier: s a step | times faster | all: MB | classifier: MB | part of the memory |"
echo "|---|---|---|---|---|---|---|"
for batch in ${@:-8 16}; do
    rm -f "$tmp"/*
    for round in $(seq "$rounds"); do
        [ $((round % 2)) = 0 ] || run all "$batch"
        run fc "$batch" "$freeze"
        [ $((round % 2)) = 1 ] || run all "$batch"
    done
    ratio() { paste "$tmp/$1" "$tmp/$2" | awk '{ printf "%.3f\n", $1 / $2 }' | median; }
    echo "| $batch | $(median <"$tmp/all.s") | $(median <"$tmp/fc.s") | $(ratio all.s fc.s) | $(median <"$tmp/all.mb") |" \
        "$(median <"$tmp/fc.mb") | $(ratio fc.mb all.mb) |"
done
