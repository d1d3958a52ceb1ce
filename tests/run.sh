#!/usr/bin/env bash
# Runs test programs and scripts, each under a time limit; _npN in a name means mpirun with N ranks. Programs of one process
# come first, several at a time; what starts ranks has the machine to itself. A program's own last line counts its
# assertions; here a program is one test. Last line: "N passed, N failed".
# usage: run.sh PROGRAM...    TEST_TIMEOUT seconds each (default 900: against what hangs, on a machine however busy)
#                             TEST_JOBS    programs of one process at a time (default: one for each processor)
set -u
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_base_warn_component_unused=0
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/lsan.supp:print_suppressions=0}
jobs=${TEST_JOBS:-$(nproc 2>/dev/null || echo 1)} limit=${TEST_TIMEOUT:-900}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

# Prints what became of one test, in one piece, and adds its name to those that passed or failed.
run() {
    local t=$1 name=${1##*/tests/} log cmd rc start took n
    log=$(mktemp -p "$work")
    start=$(date +%s.%N)
    case $t in
        *_np[0-9]*) n=${t##*_np}; n=${n%%[!0-9]*}; cmd="mpirun --bind-to none -n $n $t";;
        *) cmd=$t;;
    esac
    timeout -k 5 "$limit" $cmd </dev/null >"$log" 2>&1 &
    trap "kill $!; exit 1" TERM
    wait $!; rc=$?
    trap - TERM
    took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    [ $rc = 124 ] && echo "time limit of ${limit}s" >>"$log"
    {
        grep 'skipped:' "$log"
        if [ $rc = 0 ]; then
            printf 'ok    %-44s %5ss  %s\n' "$name" "$took" "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)"
            echo "$name" >>"$work/passed"
        else
            printf 'FAIL  %-44s %5ss  (exit %s)\n' "$name" "$took" "$rc"; sed 's/^/      /' "$log" | tail -n 200
            echo "$name" >>"$work/failed"
        fi
    } >"$log.said"
    cat "$log.said"
}

: >"$work/passed" >"$work/failed"
alone=()
for t in "$@"; do
    case $t in
        *_np[0-9]*|*.sh) alone+=("$t");;
        *) while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
           run "$t" &;;
    esac
done
wait
for t in ${alone[@]+"${alone[@]}"}; do run "$t"; done
mapfile -t passed <"$work/passed"
mapfile -t failed <"$work/failed"
[ ${#failed[@]} = 0 ] || echo "failed: ${failed[*]}"
echo "${#passed[@]} passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ] && [ ${#passed[@]} = $# ] && [ $# -gt 0 ]
