#!/usr/bin/env bash
# The cost of the checks for bad numbers, as a fraction of a step: the processor time (getrusage) of `weft train -n 2`, two replicas of
# one thread, with and without train.check_every=1, and with train.on_bad=skip and rollback, compared with stop; runs alternate. Start
# and end cancel, because the time of a run of STEPS steps is subtracted from that of 5 STEPS. Prints a Markdown table of medians.
# usage: bench/checks.sh [WORKLOAD ...]    of mlp, lenet, gpt
#   ROUNDS=5
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
rounds=${ROUNDS:-5}
seq 1 200000 | gzip -n9 >"$tmp/noise"
cat "$tmp/noise" "$tmp/noise" >"$tmp/n" && mv "$tmp/n" "$tmp/noise"
{ printf '\0\0\10\3\0\0\1\0\0\0\0\34\0\0\0\34'; head -c $((256 * 28 * 28)) "$tmp/noise"; } >"$tmp/images"
{ printf '\0\0\10\1\0\0\1\0'; tr -dc '\0-\11' <"$tmp/noise" | head -c 256; } >"$tmp/labels"
"$weft" data import idx "$tmp/images" "$tmp/labels" -o "$tmp/images.h5" >/dev/null
"$weft" data import text "$tmp/noise" -o "$tmp/tokens.h5" >/dev/null

spent() { # FILE STEPS KEYS... -> processor seconds
    local file=$1 steps=$2 data=$tmp/images.h5; shift 2
    [ "$file" != gpt ] || data=$tmp/tokens.h5
    rm -rf "$tmp/run"
    ( TIMEFORMAT='%U %S'; time "$weft" train -n 2 "$here/$file.yaml" data.train="$data" run.dir="$tmp/run" train.steps="$steps" \
        train.threads=1 train.eval_every=0 checkpoint.every_s=0 checkpoint.best=false train.spike=8 "$@" >/dev/null 2>"$tmp/err" ) 2>"$tmp/time" ||
        { cat "$tmp/err" >&2; exit 2; }
    awk '{ print $1 + $2 }' "$tmp/time"
}
step() { # FILE STEPS KEYS... -> seconds of a step
    local file=$1 steps=$2 a b; shift 2
    a=$(spent "$file" "$steps" "$@") b=$(spent "$file" $((5 * steps)) "$@")
    awk -v a="$a" -v b="$b" -v n="$steps" 'BEGIN { printf "%.9f\n", (b - a) / (2 * 4 * n) }'
}
echo "| workload | a step, ms | a check, ms | of a step, every 100 steps, % | skip, % | rollback, % |"
echo "|---|---|---|---|---|---|"
while IFS=: read -r file steps; do
    [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx "$file" && continue
    rm -f "$tmp"/of-*
    for i in $(seq "$rounds"); do
        step "$file" "$steps" train.check_every=0 >>"$tmp/of-none"
        step "$file" "$steps" train.check_every=1 >>"$tmp/of-check"
        step "$file" "$steps" train.check_every=0 train.on_bad=skip >>"$tmp/of-skip"
        step "$file" "$steps" train.check_every=0 train.on_bad=rollback >>"$tmp/of-back"
    done
    awk -v file="$file" -v n="$(median <"$tmp/of-none")" -v c="$(median <"$tmp/of-check")" -v s="$(median <"$tmp/of-skip")" \
        -v b="$(median <"$tmp/of-back")" 'BEGIN {
        printf "| %s | %.3f | %.4f | %.3f | %.2f | %.2f |\n", file, 1e3 * n, 1e3 * (c - n), (c - n) / n, 100 * (s / n - 1), 100 * (b / n - 1) }'
done <<<"mlp:300
lenet:60
gpt:3"
