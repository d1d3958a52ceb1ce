#!/usr/bin/env bash
# Runs test programs and scripts, each under a time limit; _npN in a name means mpirun with N ranks. Tests run side by side as long
# as the cores that they keep busy are there: a program of one process keeps one busy, one with ranks all, a script 0.3 of a core,
# unless a line "# cores: 0.1" or "# cores: all" at its top says otherwise. A program's own last line counts its assertions; here a
# program is one test. Each line gives the seconds that a test took and its processor time. Last line: "N passed, N failed".
# usage: run.sh PROGRAM...    TEST_TIMEOUT seconds each (default 900: against what hangs, on a machine however busy)
#                             TEST_JOBS    cores to use (default: all; 1: one test at a time)
#                             TEST_TIMES   file that gets each test's name and seconds
set -u
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_base_warn_component_unused=0
export HWLOC_PLUGINS_BLACKLIST=hwloc_gl.so,hwloc_opencl.so,hwloc_xml_libxml.so # mpirun too would load them; weft sets the same
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:quarantine_size_mb=16} LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/lsan.supp:print_suppressions=0}
passive="env OMP_WAIT_POLICY=passive" # threads that wait leave their cores to other tests
jobs=${TEST_JOBS:-$(nproc 2>/dev/null || echo 1)} limit=${TEST_TIMEOUT:-900}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

# Prints what became of one test, in one piece, and adds its name to those that passed or failed. Called in a process of its own.
run() {
    local t=$1 name=${1##*/tests/} log cmd rc start took busy n
    log=$(mktemp -p "$work")
    start=$(date +%s.%N)
    case $t in
        *_np[0-9]*) n=${t##*_np}; n=${n%%[!0-9]*}; cmd="$passive mpirun --bind-to none -n $n $t";;
        *.sh) cmd=$t;;
        *) cmd="$passive $t";;
    esac
    timeout -k 5 "$limit" $cmd </dev/null >"$log" 2>&1 &
    trap "kill $!; exit 1" TERM
    wait $!; rc=$?
    trap - TERM
    times >"$log.times"
    took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    busy=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%.1f", $1 * 60 + $2 + $3 * 60 + $4 }' "$log.times")
    [ $rc = 124 ] && echo "time limit of ${limit}s" >>"$log"
    {
        grep 'skipped:' "$log"
        if [ $rc = 0 ]; then
            printf 'ok    %-44s %5ss %5ss  %s\n' "$name" "$took" "$busy" "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)"
            echo "$name" >>"$work/passed"
        else
            printf 'FAIL  %-44s %5ss %5ss  (exit %s)\n' "$name" "$took" "$busy" "$rc"; sed 's/^/      /' "$log" | tail -n 200
            echo "$name" >>"$work/failed"
        fi
    } >"$log.said"
    [ -z "${TEST_TIMES:-}" ] || echo "$name $took" >>"$TEST_TIMES"
    cat "$log.said"
}

: >"$work/passed" >"$work/failed"
# cores TEST : prints how many hundredths of a core the test keeps busy; at most all cores.
cores() {
    case $1 in
        *_np[0-9]*) given=$jobs;;
        *.sh) given=$(sed -n '1,8s/^# cores: \([0-9.]*\|all\)$/\1/p' "$1");;
        *) given=1;;
    esac
    [ "$given" != all ] || given=$jobs
    awk -v c="${given:-0.3}" -v most="$jobs" 'BEGIN { printf "%d\n", 100 * (most == 1 || c > most ? most : c) }'
}
declare -A cost=() running=() # both are indexed by test or by process
light=() others=() ranks=() # light: what keeps less than a core busy
for t in "$@"; do
    cost[$t]=$(cores "$t")
    case $t in
        *_np[0-9]*) ranks+=("$t");;
        *) if [ "${cost[$t]}" -lt 100 ]; then light+=("$t"); else others+=("$t"); fi;;
    esac
done
# Light tests begin first, so that others run at the same time; programs with ranks wait for each other and end soonest alone.
waiting=(${light[@]+"${light[@]}"} ${others[@]+"${others[@]}"} ${ranks[@]+"${ranks[@]}"})
while [ ${#waiting[@]} -gt 0 ]; do
    room=$((100 * jobs)) later=()
    for pid in "${!running[@]}"; do
        if kill -0 "$pid" 2>/dev/null; then room=$((room - running[$pid])); else unset "running[$pid]"; fi
    done
    for t in "${waiting[@]}"; do
        if [ "${cost[$t]}" -le $room ]; then
            run "$t" &
            running[$!]=${cost[$t]} room=$((room - cost[$t]))
        else
            later+=("$t")
        fi
    done
    waiting=(${later[@]+"${later[@]}"})
    [ ${#waiting[@]} = 0 ] || wait -n
done
wait
mapfile -t passed <"$work/passed"
mapfile -t failed <"$work/failed"
[ ${#failed[@]} = 0 ] || echo "failed: ${failed[*]}"
echo "${#passed[@]} passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ] && [ ${#passed[@]} = $# ] && [ $# -gt 0 ]
