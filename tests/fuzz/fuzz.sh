#!/usr/bin/env bash
# Fuzzes each target for some time from its corpus, one after the other, with bounds on memory and on the time of an input.
# What it finds lies in FOLDER/found; new inputs that reach new code in FOLDER/new/TARGET.
# usage: fuzz.sh FOLDER SECONDS TARGET...    FOLDER: of the programs fuzz_TARGET
set -u
folder=$1 seconds=$2
shift 2
echo "$# targets of $seconds s each: $(($# * seconds / 60)) minutes"
mkdir -p "$folder/found"
bad=0
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
for target in "$@"; do
    mkdir -p "$folder/new/$target"
    log=$folder/$target.log
    "$folder/fuzz_$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="$folder/found/$target-" "$folder/new/$target" "tests/fuzz/corpus/$target" \
        >"$log" 2>&1
    rc=$?
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, exit $rc"
    [ $rc = 0 ] || { bad=$((bad + 1)); tail -n 40 "$log"; }
done
echo "$(($# - bad)) passed, $bad failed"
[ $bad = 0 ]
