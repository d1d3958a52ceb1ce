#!/usr/bin/env bash
# Tests evaluations of models with one logit: AUC follows its definition and is the same on every number of ranks, with servers and in
# stages; features that use AUC; data for which it is not defined; refusals.
# usage: auc.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
awk 'BEGIN { srand(5); for (i = 0; i < 203; ++i) { x = int(rand() * 40); print x "," (rand() * 60 < x ? 1 : 0) "," i % 7 } }' >a.csv
printf 'header: false\ncolumns:\n  x: {type: number, scale: [0, 40]}\n  y: label\n  f: category\n' >a.yaml
grep ',1,' a.csv >ones.csv
check 0 'wrote ones.h5' "$WEFT" data import csv a.csv --schema a.yaml -o a.h5 --test ones.h5 --test-files ones.csv
cat >one.yaml <<'YAML'
model: {layers: [dense: {width: 1}]}
data:  {train: a.h5, test: a.h5}
train: {epochs: 3, batch: 16, micro_batch: 2, threads: 1, loss: sigmoid}
optim: {lr: 0.1}
YAML
sed 's/^model.*/model: {name: wide_deep, width: 4, hidden: [8, 8]}/' one.yaml >deep.yaml
figures() { grep eval_auc "runs/$1/metrics.jsonl" | sed 's/"seconds".*//'; } # RUN
train() { # NAME RANKS CONFIG [key=value ...]
    local name=$1 ranks=$2 config=$3
    shift 3
    check 0 'accuracy' "$WEFT" train -n "$ranks" "$config" "run.name=$name" "$@"
}

# A logit of one number is ordered like that number, so the test counts the pairs one by one.
train one 1 one.yaml
awk -F, '{ x[NR] = $1; y[NR] = $2 } END { for (i = 1; i <= NR; ++i) if (y[i]) { ++p; for (j = 1; j <= NR; ++j) if (!y[j]) twice += 2 * (x[j] < x[i]) + (x[j] == x[i]) }
    printf "\"eval_auc\":%.15g\n", twice / (2 * p * (NR - p)) }' a.csv >want
figures one | tail -n 1 | grep -o '"eval_auc":[0-9.]*' | awk -F: '{ printf "%s:%.15g\n", $1, $2 }' >got
holds "AUC is that of its definition: $(cat want got)" cmp want got

for kind in exact buckets; do
    train "$kind-1" 1 deep.yaml "train.auc=$kind"
    figures "$kind-1" >want
    holds "$kind: three evaluations" test "$(grep -c "\"eval_auc_kind\":\"$kind\"" want)" = 3
    for grid in '2 grid.dp=2' '3 grid.servers=1' '4 grid.pp=2 grid.servers=2'; do
        case $kind:$grid in buckets:2*) continue;; esac
        read -r ranks keys <<<"$grid"
        # shellcheck disable=SC2086
        train "$kind-$ranks" "$ranks" deep.yaml "train.auc=$kind" $keys
        figures "$kind-$ranks" >got
        holds "$kind: $keys has the figures of one rank: $(diff want got)" cmp -s want got
    done
done
holds 'buckets are not exact' test "$(sed 's/"eval_auc_kind.*//' want | tail -n 1)" != "$(figures exact-1 | sed 's/"eval_auc_kind.*//' | tail -n 1)"

check 0 '(auc)' "$WEFT" ckpt info runs/exact-1/checkpoints/best.h5
check 0 '"eval_auc_kind": "exact"' "$WEFT" eval deep.yaml run.name=exact-1 --json
check 0 'AUC         0.' "$WEFT" eval -n 2 deep.yaml run.name=exact-1
check 0 'not defined' "$WEFT" eval deep.yaml run.name=exact-1 data.test=ones.h5
check 0 '"eval_auc": null' "$WEFT" eval deep.yaml run.name=exact-1 data.test=ones.h5 --json
train early 1 deep.yaml train.early_stop=1 train.early_stop_delta=1
holds 'early stopping goes by AUC' grep -q 'auc was not better' runs/early/metrics.jsonl
check 78 'auc needs a logit' "$WEFT" train deep.yaml train.loss=softmax checkpoint.best_metric=auc run.name=no
finish
