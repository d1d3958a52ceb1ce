#!/usr/bin/env bash
# From a folder of pictures to a smaller network for other programs: writes Fashion-MNIST as PNGs, imports them, trains ResNet-18,
# removes half of its channels, finetunes it for one epoch, and exports it as ONNX. Prints accuracy, parameters, multiply-adds and
# images/s before and after.
# usage: demo_images.sh WEFT PICTURES [key=value ...]    PICTURES: the program of tools/pictures.c
#   FASHION_MNIST: the folder of the IDX files; RANKS=2; METHOD=l1
set -eu
weft=$1 pictures=$2; shift 2
ranks=${RANKS:-2} method=${METHOD:-l1} folder=datasets/pictures config=jobs/pictures.yaml
raw=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -d "$raw" ] || raw=datasets/fashion-mnist/raw
n=1; while [ -e "runs/pictures-$n" ]; do n=$((n + 1)); done
name=pictures-$n dir=runs/pictures-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
log=$(mktemp); trap 'rm -f "$log"' EXIT
value() { sed -n 's/.*"'"$1"'": *\([0-9.e+-]*\).*/\1/p' "$log" | head -n 1; } # KEY: prints its value from the JSON in the log
judge() { # CHECKPOINT -> "top-1 % images/s"
    "$weft" eval "$config" --checkpoint "$1" --json >"$log" 2>/dev/null
    awk -v t="$(value top1)" -v n="$(value samples)" -v s="$(value seconds)" 'BEGIN { printf "%.2f %.0f\n", 100 * t, n / s }'
}
mkdir -p "$folder"
for part in train:train:6000 test:t10k:10000; do
    IFS=: read -r to from count <<<"$part"
    if [ ! -d "$folder/$to" ]; then
        rm -rf "$folder/$to.part"
        "$pictures" "$raw/$from-images-idx3-ubyte.gz" "$raw/$from-labels-idx1-ubyte.gz" "$count" "$folder/$to.part" \
            T-shirt Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag "Ankle boot"
        mv "$folder/$to.part" "$folder/$to"
    fi
    say "$weft" data import folder "$folder/$to" -o "$folder/$to.h5" --short 28 --force
done
say "$weft" train -n "$ranks" "$config" "run.name=$name" "$@"
whole=$("$weft" train "$config" "run.name=$name" --newest)
small=$dir/half.h5
say "$weft" ckpt shrink "$whole" --method "$method" --sparsity 0.5 -o "$small" --json | tee "$log"
sizes=$(printf '%s %s %s %s' "$(value parameters)" "$(value macs)" "$(value parameters_left)" "$(value macs_left)")
say "$weft" train -n "$ranks" "$config" "run.name=$name-half" "model.init_from=$small" "$@" train.epochs=1 optim.lr=0.02 optim.warmup_steps=0
half=$("$weft" train "$config" "run.name=$name-half" --newest)
say "$weft" ckpt export "$half" --onnx --softmax --normalize -o "$dir/half.onnx"
say "$weft" predict "$config" --checkpoint "$half" "$folder/test/Sneaker/00009.png" "$folder/test/Bag/00018.png"
read -r top rate <<<"$(judge "$whole")"
read -r top_half rate_half <<<"$(judge "$half")"
read -r parameters macs parameters_half macs_half <<<"$sizes"
printf '\n%-10s %8s %12s %14s %10s\n' "" "top-1 %" parameters multiply-adds images/s
printf '%-10s %8s %12s %14s %10s\n' whole "$top" "$parameters" "$macs" "$rate" half "$top_half" "$parameters_half" "$macs_half" "$rate_half"
cat <<TEXT

What to try next:
  METHOD=fpgm make demo-images                 another way to judge channels; jobs/prune.sh compares them
  $weft predict $config --checkpoint $half YOUR.jpg
  $weft data import folder --help              your own pictures; docs/images.md
TEXT
