#!/usr/bin/env bash
# Runs test programs and scripts, each under a time limit; _npN in a name means mpirun with N ranks. A program's own last
# line counts its assertions; here a program is one test. Last line: "N passed, N failed".
# usage: run.sh PROGRAM...    TEST_TIMEOUT seconds each (default 300: mpirun takes 5 s where the host has no name)
set -u
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_base_warn_component_unused=0
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/lsan.supp:print_suppressions=0}
pass=0 fail=0 failed= log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
    name=${t##*/tests/} limit=${TEST_TIMEOUT:-300} start=$(date +%s.%N)
    case $t in
        *_np[0-9]*) n=${t##*_np}; n=${n%%[!0-9]*}; cmd="mpirun --bind-to none -n $n $t";;
        *) cmd=$t;;
    esac
    timeout -k 5 "$limit" $cmd </dev/null >"$log" 2>&1; rc=$?
    took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    summary=$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    grep 'skipped:' "$log"
    if [ $rc = 0 ]; then pass=$((pass + 1)); printf 'ok    %-44s %5ss  %s\n' "$name" "$took" "$summary"
    else
        fail=$((fail + 1)) failed="$failed $name"
        [ $rc = 124 ] && echo "time limit of ${limit}s" >>"$log"
        printf 'FAIL  %-44s %5ss  (exit %s)\n' "$name" "$took" "$rc"; sed 's/^/      /' "$log" | tail -n 200
    fi
done
[ -n "$failed" ] && echo "failed:$failed"
echo "$pass passed, $fail failed"
[ $fail = 0 ] && [ $pass -gt 0 ]
