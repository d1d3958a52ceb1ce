#!/usr/bin/env bash
# Compares two builds: is the new one as fast as the old one? For every workload, PAIRS times one run of each build (every second pair
# in the opposite order); the ratio of a pair is new samples/s / old. Prints a table in Markdown: medians, the median of the ratios
# with its interquartile range, and the instructions of a step. Exit code 1 if a median is below LIMIT, or a step takes more than
# INSTRUCTIONS times as many instructions; 2 if a build does not run.
# usage: bench/before_after.sh OLD NEW [WORKLOAD ...]     OLD, NEW: executables, as ../before/build/weft build/weft
#   PAIRS=15 LIMIT=0.98 INSTRUCTIONS=1.01
#   STEPS=          steps of a run, instead of the workload's own
#   KEYS=           keys for both builds, as "train.threads=1"; KEYS_OLD=, KEYS_NEW= for one of them: with one build twice, this
#                   compares keys, as KEYS_OLD=train.reproducible=same_grid
#   CONFIGS_OLD=    folder of OLD's configurations, where keys have been renamed since; CONFIGS_NEW= of NEW's.
#                   Without them: bench/ of the tree in whose build/ the executable lies, else the folder of this script
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n 's/^# usage: //p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
. "$here/common.bash"
old=$1 new=$2; shift 2
pairs=${PAIRS:-15} limit=${LIMIT:-0.98} most=${INSTRUCTIONS:-1.01}
# name: file, input, ranks, steps, steps for counting. A name that ends in -bf16 runs in bf16.
table="mlp:mlp:1x28x28:1:300:20
lenet:lenet:1x28x28:1:60:4
resnet18:resnet18:1x28x28:1:8:2
resnet50:resnet50:3x224x224:1:5:1
mobilenet:mobilenet:3x224x224:1:5:1
gpt:gpt:tokens:1:10:1
gpt-bf16:gpt:tokens:1:10:1
gpt2:gpt2:tokens:1:4:1
gpt2-bf16:gpt2:tokens:1:4:1
dlrm:dlrm:clicks:1:150:20
bubble:bubble:tokens:2:8:1"
for w in "$@"; do
    grep -q "^$w:" <<<"$table" || { echo "before_after.sh: no workload $w: $(cut -d: -f1 <<<"$table" | paste -s -d' ')" >&2; exit 2; }
done
configs_of() { # EXECUTABLE -> the folder of its configurations
    local own; own=$(dirname "$1")/../bench
    if [ -f "$own/mlp.yaml" ]; then echo "$own"; else echo "$here"; fi
}
configs_old=${CONFIGS_OLD:-$(configs_of "$old")} configs_new=${CONFIGS_NEW:-$(configs_of "$new")}
can_bf16() { grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo; }

side() { # old|new: sets the build, its configurations and its keys
    case $1 in
        old) build=$old configs=$configs_old keys="${KEYS:-} ${KEYS_OLD:-}";;
        new) build=$new configs=$configs_new keys="${KEYS:-} ${KEYS_NEW:-}";;
    esac
}
one() { # old|new -> samples/s
    local build configs keys from="--input $input"
    side "$1"
    if [ "$input" = clicks ]; then
        [ -f "$tmp/clicks.h5" ] || make_clicks
        from=data.train=$tmp/clicks.h5
    fi
    timeout 600 "$build" bench step ${ranks_flag} "$configs/$file.yaml" $from --warmup 2 --steps "$steps" --json \
        train.precision="$precision" $keys >"$tmp/said" 2>&1 </dev/null || true
    rate <"$tmp/said" | grep . || { echo "before_after.sh: $build does not run $file:" >&2; cat "$tmp/said" >&2; return 1; }
}
pair() { # NUMBER -> one line each in $tmp/old and $tmp/new
    local order="old new" which
    [ $(($1 % 2)) = 1 ] || order="new old"
    for which in $order; do one $which >>"$tmp/$which" || exit 2; done
}

# Instructions are those of `weft train` with as many steps more: what start, end and checkpoint take cancels. One rank of one
# thread, because threads that wait for each other count, too.
why_not=""
if ! command -v perf >/dev/null; then why_not="no perf"
elif ! perf stat -x, -e instructions:u -o "$tmp/perf" true 2>/dev/null; then why_not="perf stat fails here"
elif ! grep -q '^[0-9]' "$tmp/perf"; then why_not="perf: instructions $(sed -n 's/^<\(.*\)>.*/\1/p' "$tmp/perf") here"
fi
make_clicks() { "$old" data make criteo-like -o "$tmp/clicks.h5" --rows 100001 --samples 200000 >"$tmp/said" 2>&1; }
make_data() { # -> $tmp/WIDTH.h5 of images, $tmp/tokens.h5
    [ ! -f "$tmp/tokens.h5" ] || return 0
    seq 1 200000 | gzip -n9 >"$tmp/noise"; while [ "$(wc -c <"$tmp/noise")" -lt 3300000 ]; do cat "$tmp/noise" "$tmp/noise" >"$tmp/n"; mv "$tmp/n" "$tmp/noise"; done
    { printf '\0\0\10\1\0\0\0\100'; tr -dc '\0-\11' <"$tmp/noise" | head -c 64; } >"$tmp/labels"
    { printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'; head -c $((64 * 28 * 28)) "$tmp/noise"; } >"$tmp/28"
    { printf '\0\0\10\3\0\0\0\100\0\0\0\340\0\0\0\340'; head -c $((64 * 224 * 224)) "$tmp/noise"; } >"$tmp/224"
    "$old" data import idx "$tmp/28" "$tmp/labels" -o "$tmp/28.h5"
    "$old" data import idx "$tmp/224" "$tmp/labels" -o "$tmp/224.h5"
    "$old" data import text "$tmp/noise" -o "$tmp/tokens.h5"
}
count() { # old|new STEPS -> instructions of a run
    local build configs keys data=$tmp/tokens.h5 runs=""
    side "$1"
    case $input in *28) data=$tmp/28.h5;; *224) data=$tmp/224.h5;; clicks) data=$tmp/clicks.h5;; esac
    [ "$ranks" = 1 ] || runs="grid.pp=1"
    rm -rf "$tmp/run"
    perf stat -x, -e instructions:u -o "$tmp/perf" timeout 600 "$build" train "$configs/$file.yaml" data.train="$data" run.dir="$tmp/run" \
        train.steps="$2" train.precision="$precision" $keys $runs train.threads=1 checkpoint.every_s=0 </dev/null >"$tmp/said" 2>&1 || true
    sed -n 's/^\([0-9]*\),.*instructions.*/\1/p' "$tmp/perf"
}
instructions() { # -> "TEXT RATIO" of a step, new / old
    if [ -n "$why_not" ]; then echo "- 0"; return; fi
    make_data >"$tmp/said" 2>&1 </dev/null
    local a b c d
    a=$(count old "$counted"); b=$(count old $((3 * counted))); c=$(count new "$counted"); d=$(count new $((3 * counted)))
    awk -v a="${a:-0}" -v b="${b:-0}" -v c="${c:-0}" -v d="${d:-0}" 'BEGIN {
        if (a <= 0 || b <= a || d <= c || c <= 0) print "-", 0; else printf "%.4f %.6f\n", (d - c) / (b - a), (d - c) / (b - a) }'
}

echo "| workload | old, samples/s | new, samples/s | new / old | middle half | instructions, new / old | |"
echo "|---|---|---|---|---|---|---|"
worst=0
while IFS=: read -r name file input ranks own_steps counted; do
    [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx "$name" && continue
    steps=${STEPS:-$own_steps} precision=fp32 ranks_flag=""
    [ "$ranks" = 1 ] || ranks_flag="-n $ranks"
    case $name in *-bf16)
        precision=bf16
        can_bf16 || { echo "| $name | | | | | | skipped: this CPU has no bf16 |"; continue; };;
    esac
    rm -f "$tmp/old" "$tmp/new"
    for i in $(seq "$pairs"); do pair "$i"; done
    paste "$tmp/old" "$tmp/new" | awk '{ print $2 / $1 }' | sort -g >"$tmp/ratios"
    read -r counts counted_ratio < <(instructions)
    verdict=$(awk -v limit="$limit" -v most="$most" -v counts="$counted_ratio" '
        { v[NR] = $1 }
        END {
            m = v[int((NR + 1) / 2)]
            bad = m < limit ? "slower" : counts > most ? "more instructions" : "good"
            printf "%.3f|%.3f to %.3f|%s", m, v[int((NR + 3) / 4)], v[int((3 * NR + 3) / 4)], bad
        }' "$tmp/ratios")
    IFS='|' read -r ratio half word <<<"$verdict"
    [ "$word" = good ] || worst=1
    echo "| $name | $(median <"$tmp/old") | $(median <"$tmp/new") | $ratio | $half | $counts | $word |"
done <<<"$table"
echo
echo "median of $pairs pairs, at least $limit; instructions of a step of one thread, at most $most${why_not:+: not counted ($why_not)}"
exit $worst
