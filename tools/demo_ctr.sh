#!/usr/bin/env bash
# Trains wide & deep on UCI's Adult data, with one server for the table of categories and two ranks that compute; then the same in mode
# geo. Prints accuracy and AUC on the official test file, and fails if one is below its goal.
# usage: demo_ctr.sh WEFT [key=value ...]
set -eu
weft=$1; shift
adult=datasets/adult accuracy=0.85 auc=0.905
n=1; while [ -e "runs/ctr-$n" ] || [ -e "runs/ctr-$n-geo" ]; do n=$((n + 1)); done
name=ctr-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
last() { # RUN KEY: prints its value in the last evaluation
    grep '"eval_auc"' "runs/$1/metrics.jsonl" | tail -n 1 | sed 's/.*"'"$2"'":\([^,}]*\).*/\1/'
}
judge() { # MODE RUN
    awk -v mode="$1" -v a="$(last "$2" top1)" -v goal="$accuracy" -v u="$(last "$2" eval_auc)" -v least="$auc" 'BEGIN {
        printf "%-6s accuracy %.4f, AUC %.4f\n", mode, a, u
        if (a + 0 >= goal && u + 0 >= least) exit 0
        printf "demo-ctr: mode %s misses its goal: accuracy %s, AUC %s\n", mode, goal, least >"/dev/stderr"
        exit 1 }'
}
say "$weft" data import csv $adult/adult.data.gz --schema $adult/adult.yaml -o $adult/train.h5 \
    --test $adult/test.h5 --test-files $adult/adult.test.gz --force
say "$weft" train -n 3 jobs/wide-deep.yaml grid.servers=1 "run.name=$name" "$@"
say "$weft" train -n 3 jobs/wide-deep-geo.yaml "run.name=$name-geo" "$@"
printf '\nthe 16,281 samples of the official test file, after the last step:\n'
good=0
judge sync "$name" || good=1
judge geo "$name-geo" || good=1
[ $good = 0 ] || exit 1
cat <<TEXT

What to try next:
  $weft eval jobs/wide-deep.yaml run.name=$name                        any number of ranks evaluates, with or without servers
  $weft train -n 4 jobs/wide-deep.yaml grid.servers=2 run.name=two     the same bits
  $weft train -n 2 jobs/wide-deep.yaml model.name=deepfm run.name=deepfm
  $weft plan jobs/wide-deep.yaml --ranks 3 grid.servers=1              the table, its owners and messages
Your own table: $weft data import csv --help; docs/tables-data.md.
TEXT
