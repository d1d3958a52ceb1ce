#!/usr/bin/env bash
# Fuzzes the targets one after the other from their corpora, with limits on memory and on the time of an input. Each target gets SECONDS
# of processor time, including that of the processes that it starts. Findings are stored in FOLDER/found, and inputs that reach new code
# in FOLDER/new/TARGET. If an earlier call with the same program was interrupted, a target continues there: FOLDER/TARGET.done.
# usage: fuzz.sh FOLDER SECONDS TARGET...    FOLDER: contains the programs fuzz_TARGET
set -u
folder=$1 seconds=$2
shift 2
echo "$# targets of $seconds s of processor time each: at least $(($# * seconds / 60)) minutes"
mkdir -p "$folder/found"
bad=0
# A process that reads a file for another may allocate 1 GB. The kernel's limit on addresses cannot be used with this sanitizer, whose own
# memory grows with all allocations of the process; so the sanitizer limits the size of each allocation instead.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=1024
# look : sets `used` to the processor time of all children that have ended, in whole seconds. Do not call it in a pipe, whose subshell has its own times.
look() { times >"$folder/$target.times"; used=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$folder/$target.times"); }
for target in "$@"; do
    mkdir -p "$folder/new/$target"
    log=$folder/$target.log rc=0 spent=0 runs=0 more=()
    # HDF5 files are large, and HDF5 is built without counters of edges. Each file is read in a forked process. A fork takes longer the
    # more memory the target has, so quarantines are small. A crash of HDF5 in that process is not a finding and needs no symbolizer.
    asan=$ASAN_OPTIONS
    case $target in data | checkpoint | fields)
        more=(-len_control=0 -keep_seed=1 -reduce_inputs=0)
        asan=$asan:symbolize=0:quarantine_size_mb=8:thread_local_quarantine_size_kb=64 ;;
    esac
    [ "$folder/$target.done" -nt "$folder/fuzz_$target" ] && read -r spent runs <"$folder/$target.done"
    while [ "$spent" -lt "$seconds" ] && [ $rc = 0 ]; do
        look
        left=$((seconds - spent)) before=$used
        ASAN_OPTIONS=$asan "$folder/fuzz_$target" -max_total_time=$((left < 120 ? left : 120)) -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=512 \
            -max_len=65536 "${more[@]}" -print_final_stats=1 -artifact_prefix="$folder/found/$target-" "$folder/new/$target" \
            "tests/fuzz/corpus/$target" >"$log" 2>&1
        rc=$?
        # if HDF5 crashes the reading process, which may not write files, libFuzzer leaves an empty artifact
        find "$folder/found" -name "$target-*" -empty -delete
        look
        spent=$((spent + used - before))
        n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | head -n 1) # empty where the program ended before its statistics
        runs=$((runs + ${n:-0}))
        echo "$spent $runs" >"$folder/$target.done"
    done
    echo "$target: $runs executions in $spent s, exit $rc"
    [ $rc = 0 ] || { bad=$((bad + 1)); tail -n 40 "$log"; }
done
echo "$(($# - bad)) passed, $bad failed"
[ $bad = 0 ]
