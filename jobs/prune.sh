#!/usr/bin/env bash
# Trains a network, removes channels, continues training, and prints what that has cost and gained.
#   bash jobs/prune.sh CONFIG [key=value ...]
# Settings: RANKS=1 METHODS="l1" SPARSITY=0.5 ROUND=1 FINETUNE="train.epochs=1 optim.lr=0.02" SLIM=1e-4 TIMES=3
# METHODS: l1, l2, fpgm, slim; for slim the network is trained a second time, with optim.slim=SLIM. FINETUNE: keys of the second
# training. Runs are named after CONFIG's file, or by run.name=NAME, followed by -whole, -slim or -METHOD; complete runs are not
# repeated. images/s are those of `weft eval`, the median of TIMES runs, with the whole and the pruned network in turn.
set -eu
weft=${WEFT:-weft} ranks=${RANKS:-1} methods=${METHODS:-l1} sparsity=${SPARSITY:-0.5} times=${TIMES:-3}
read -ra finetune <<<"${FINETUNE:-train.epochs=1 optim.lr=0.02}"
[ $# -gt 0 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 64; }
config=$1; shift
keys=()
log=$(mktemp); trap 'rm -f "$log" "$log".*' EXIT
run() { # COMMAND...: its output is shown if it fails
    "$@" >"$log" 2>&1 </dev/null || { local code=$?; cat "$log" >&2; exit "$code"; }
}
value() { sed -n 's/.*"'"$1"'": *\([0-9.e+-]*\).*/\1/p' "$log" | head -n 1; } # KEY: prints its value from the JSON in the log
name=$(basename "$config" .yaml)
for word in "$@"; do
    case $word in
    run.name=*) name=${word#*=}; continue;;
    esac
    keys+=("$word")
done
train() { # RUN [key=value ...]: these replace the same keys of `keys`
    local word own words=("run.name=$name-$1")
    shift
    for word in "${keys[@]}"; do
        for own in "$@"; do [ "${own%%=*}" != "${word%%=*}" ] || continue 2; done
        words+=("$word")
    done
    run "$weft" train -n "$ranks" "$config" "${words[@]}" "$@"
    path=$("$weft" train "$config" "${words[@]}" "$@" --newest)
    [ "$path" ] || { echo "$name: there is no checkpoint of ${words[0]}" >&2; exit 74; }
}
evaluate() { run "$weft" eval "$config" "${keys[@]}" --checkpoint "$1" --json; }
percent() { value top1 | awk '{ printf "%.2f", 100 * $1 }'; }
rate() { # CHECKPOINT -> images/s
    evaluate "$1"
    awk -v n="$(value samples)" -v s="$(value seconds)" 'BEGIN { printf "%.0f\n", n / s }'
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

printf '%-8s %9s %9s %9s %22s %26s %17s\n' method 'whole %' 'pruned %' 'tuned %' parameters MACs 'images/s'
for method in $methods; do
    if [ "$method" = slim ]; then train slim "optim.slim=${SLIM:-1e-4}"; else train whole; fi
    from=$path
    small=${from%/*/checkpoints/*}/$name-$method.h5
    evaluate "$from"; before=$(percent)
    run "$weft" ckpt shrink "$from" --method "$method" --sparsity "$sparsity" --round "${ROUND:-1}" -o "$small" --force --json
    sizes=$(printf '%s -> %s' "$(value parameters)" "$(value parameters_left)")
    macs=$(printf '%.3g -> %.3g' "$(value macs)" "$(value macs_left)")
    evaluate "$small"; pruned=$(percent)
    train "$method-tuned" "model.init_from=$small" "${finetune[@]}"
    tuned=$path
    evaluate "$tuned"; after=$(percent)
    : >"$log.whole"; : >"$log.small"
    for ((i = 0; i < times; ++i)); do rate "$from" >>"$log.whole"; rate "$tuned" >>"$log.small"; done
    speed=$(printf '%s -> %s' "$(median <"$log.whole")" "$(median <"$log.small")")
    printf '%-8s %9s %9s %9s %22s %26s %17s\n' "$method" "$before" "$pruned" "$after" "$sizes" "$macs" "$speed"
done
