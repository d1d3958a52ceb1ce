#!/usr/bin/env bash
# Fuzzes each target from its corpus for so many seconds of processor time, that of the processes it starts included, one after
# the other, with bounds on memory and on the time of an input. What it finds lies in FOLDER/found; new inputs that reach new
# code in FOLDER/new/TARGET. A target goes on where an earlier call of the same program was ended: FOLDER/TARGET.done.
# usage: fuzz.sh FOLDER SECONDS TARGET...    FOLDER: of the programs fuzz_TARGET
set -u
folder=$1 seconds=$2
shift 2
echo "$# targets of $seconds s of processor time each: at least $(($# * seconds / 60)) minutes"
mkdir -p "$folder/found"
bad=0
# A process that reads a file for another may take 1 GB of addresses, a limit that the kernel cannot set beside this sanitizer; and the
# sanitizer marks all that is taken, however much a file asks for.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=1024
# used: processor time of all that has ended below this shell, in whole seconds (a pipe would ask a shell of its own).
look() { times >"$folder/$target.times"; used=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$folder/$target.times"); }
for target in "$@"; do
    mkdir -p "$folder/new/$target"
    log=$folder/$target.log rc=0 spent=0 runs=0 more=()
    # files of HDF5's are large, and HDF5 counts no edges; each is read by a process that is forked, which takes the longer the
    # more memory this one holds, and what HDF5 ends is no finding that a symbolizer must explain
    asan=$ASAN_OPTIONS
    case $target in data | checkpoint)
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
        # HDF5 may end the process that reads for this one, which may write nothing
        find "$folder/found" -name "$target-*" -empty -delete
        look
        spent=$((spent + used - before))
        n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | head -n 1) # none where the program did not get so far
        runs=$((runs + ${n:-0}))
        echo "$spent $runs" >"$folder/$target.done"
    done
    echo "$target: $runs executions in $spent s, exit $rc"
    [ $rc = 0 ] || { bad=$((bad + 1)); tail -n 40 "$log"; }
done
echo "$(($# - bad)) passed, $bad failed"
[ $bad = 0 ]
