#!/usr/bin/env bash
# Seconds from the SIGKILL of a rank to the end of the next new step (one beyond all steps made before), of lenet under `weft run` with
# checkpoint.every_steps=50. Kills a random rank at a random time, KILLS times; prints median, 95th percentile and maximum. At the end
# the final checkpoint is compared with that of an undisturbed run.
# usage: bench/restart.sh [RANKS]     KILLS=20
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
ranks=${1:-2} kills=${KILLS:-20}
weft=$(realpath "$weft")
seq 1 600000 | gzip -n9 >"$tmp/noise"
{ printf '\0\0\10\3\0\0\7\320\0\0\0\34\0\0\0\34'; cat "$tmp/noise" "$tmp/noise" "$tmp/noise" | head -c $((2000 * 28 * 28)); } >"$tmp/images"
{ printf '\0\0\10\1\0\0\7\320'; tr -dc '\0-\11' <"$tmp/noise" | head -c 2000; } >"$tmp/labels"
"$weft" data import idx "$tmp/images" "$tmp/labels" -o "$tmp/train.h5" >/dev/null
words=("$here/lenet.yaml" run.dir="$tmp/runs" data.train="$tmp/train.h5" train.threads=1 train.log_every=1 checkpoint.every_steps=50)
metrics=$tmp/runs/r/metrics.jsonl
step() { local line; line=$(tail -n 1 "$metrics" 2>/dev/null) || line=; line=${line#*'"step":'}; line=${line%%,*}; [[ $line =~ ^[0-9]+$ ]] && echo "$line" || echo 0; }
# Enough steps for all kills.
timeout 900 "$weft" run -n "$ranks" --max-restarts 1000 -- "$weft" train "${words[@]}" run.name=r train.steps=1000000 >"$tmp/out" 2>&1 &
supervisor=$!
trap 'kill -TERM $supervisor 2>/dev/null; wait; rm -rf "$tmp"' EXIT
for _ in $(seq "$kills"); do
    # beyond another checkpoint, and a moment more
    from=$(step)
    until [ "$(step)" -gt $((from + 60)) ]; do sleep 0.05; done
    sleep "0.$((RANDOM % 90 + 10))"
    mapfile -t all < <(pgrep -f "^$weft train .*$tmp/runs .*run.name=r ")
    victim=${all[$((RANDOM % ${#all[@]}))]}
    begin=$(date +%s.%N)
    kill -KILL "$victim"
    before=$(step)
    until [ "$(step)" -gt "$before" ]; do
        kill -0 $supervisor 2>/dev/null || { cat "$tmp/out" >&2; exit 1; }
        sleep 0.005
    done
    awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f\n", b - a }'
done | tee "$tmp/each" >&2
kill -TERM $supervisor
rc=0
wait $supervisor || rc=$?
[ $rc = 75 ] || { cat "$tmp/out" >&2; echo "the run ended with $rc" >&2; exit 1; }
last=$(ls "$tmp"/runs/r/checkpoints/step-*.h5 | tail -n 1)
steps=${last##*step-}
timeout 900 "$weft" train -n "$ranks" "${words[@]}" run.name=quiet train.steps=$((10#${steps%.h5})) >/dev/null 2>&1
"$weft" ckpt diff "$tmp/runs/quiet/checkpoints/step-${steps}" "$last" >"$tmp/diff" 2>&1 || { cat "$tmp/diff" >&2; echo "other bits than those of an undisturbed run" >&2; exit 1; }
sort -g "$tmp/each" | awk '{ v[NR] = $1 } END { printf "to the next new step: median %.2f s, 95th percentile %.2f s, slowest %.2f s (%d kills); same bits as undisturbed\n", v[int((NR + 1) / 2)], v[int(NR * 0.95 + 0.999)], v[NR], NR }'
