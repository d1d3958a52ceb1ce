#!/usr/bin/env bash
# Runs test programs and scripts, each under a time limit. A program with _npN in its name runs
# under mpirun with N ranks. Tests run side by side while cores are free: a program of one process
# keeps one core busy; N ranks, which often wait for each other, N / 5 cores; a script 0.3 of a
# core. A line "cores: 0.1" or "cores: all" among the first eight lines of a script, or of a
# program's source, says otherwise. For each test a line is printed with the seconds that it took,
# the processor time, and its own count of assertions. The last line, "N passed, N failed", counts
# programs and scripts. Before it come the reasons of the tests that failed, shortened. Each test has
# its own TMPDIR: an mpirun of Open MPI 4 fails if another one ends just then and removes the folder
# in TMPDIR that both use.
# usage: run.sh PROGRAM...
# environment: TEST_TIMEOUT  seconds for each test (default 900, enough on a busy machine)
#              TEST_JOBS     cores to use (default: all; 1: one test at a time)
#              TEST_TIMES    file to which each test's name and seconds are appended
set -u
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_base_warn_component_unused=0
export HWLOC_PLUGINS_BLACKLIST=hwloc_gl.so,hwloc_opencl.so,hwloc_xml_libxml.so # for mpirun, which would load them; weft sets this for itself
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:quarantine_size_mb=16} LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/lsan.supp:print_suppressions=0}
export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--pci,-linux:0x8} # no PCI devices: on a virtual machine mpirun and each rank need 15 ms to list them
export PMIX_MCA_gds=${PMIX_MCA_gds:-hash} # the default for shared memory takes a fifth of mpirun's time for two ranks
jobs=${TEST_JOBS:-$(nproc 2>/dev/null || echo 1)} limit=${TEST_TIMEOUT:-900}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

# run TEST : runs one test, prints its result in one piece, and adds its name to the file passed or
# failed in $work. Called in the background, in a process of its own.
run() {
    local t=$1 name=${1##*/tests/} log=$work/$BASHPID rc start=${EPOCHREALTIME/[.,]/} took busy n minutes user system cmd=("$1")
    case $t in
        *_np[0-9]*) n=${t##*_np}; cmd=(mpirun --bind-to none -n "${n%%[!0-9]*}" "$t");;
    esac
    export TMPDIR=$log.tmp
    mkdir "$TMPDIR"
    case $t in *.sh) ;; *) export OMP_WAIT_POLICY=passive;; esac # threads that wait leave their cores to other tests
    timeout -k 5 "$limit" "${cmd[@]}" </dev/null >"$log" 2>&1 &
    trap "kill $!; exit 1" TERM
    wait $!; rc=$?
    trap - TERM
    took=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
    times >"$log.times"
    { read -r _; read -r user system; } <"$log.times"
    busy=0 # hundredths of a second
    for n in "$user" "$system"; do
        minutes=${n%m*} n=${n#*m} n=${n%s}
        busy=$((busy + 6000 * minutes + 10#${n%[.,]*}${n: -3:2}))
    done
    [ $rc = 124 ] && echo "time limit of ${limit}s" >>"$log"
    {
        grep 'skipped:' "$log"
        if [ $rc = 0 ]; then
            printf 'ok    %-44s %3d.%ds %3d.%ds  %s\n' "$name" $((took / 10)) $((took % 10)) $((busy / 100)) $((busy % 100 / 10)) \
                "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)"
            echo "$name" >>"$work/passed"
        else
            printf 'FAIL  %-44s %3d.%ds %3d.%ds  (exit %s)\n' "$name" $((took / 10)) $((took % 10)) $((busy / 100)) $((busy % 100 / 10)) "$rc"
            sed 's/^/      /' "$log" | tail -n 200
            echo "$name" >>"$work/failed"
            { echo "$name (exit $rc):"; grep -A 3 -e FAILED "$log" || tail "$log"; } | head -n 30 | sed '1!s/^/      /' >>"$work/reasons"
        fi
    } >"$log.said"
    [ -z "${TEST_TIMES:-}" ] || echo "$name $((took / 10)).$((took % 10))" >>"$TEST_TIMES"
    cat "$log.said"
    rm -rf "$TMPDIR"
}

: >"$work/passed" >"$work/failed" >"$work/reasons"
# cores TEST : sets `given` to the hundredths of a core that the test keeps busy, at most all of
# $jobs; with one job, always 100.
cores() {
    local line n=${1##*_np} source=$here/${1##*/tests/}.c
    given=100
    case $1 in
        *_np[0-9]*) given=$((20 * ${n%%[!0-9]*}));;
        *.sh) given=30 source=$1;;
    esac
    [ ! -f "$source" ] || for _ in 1 2 3 4 5 6 7 8; do
        IFS= read -r line
        [[ $line =~ ^('#'|' *')' cores: '(all|([0-9])(\.([0-9]))?)(' */')?$ ]] || continue
        if [ "${BASH_REMATCH[2]}" = all ]; then given=$((100 * jobs))
        else given=$((100 * BASH_REMATCH[3] + 10 * ${BASH_REMATCH[5]:-0})); fi
    done <"$source"
    [ $given -le $((100 * jobs)) ] && [ "$jobs" -gt 1 ] || given=$((100 * jobs))
}
declare -A cost=() # hundredths of a core that a test keeps busy
light=() others=() ranks=() # light: tests that keep less than one core busy; ranks: programs with ranks
for t in "$@"; do
    cores "$t"
    cost[$t]=$given
    case $t in
        *_np[0-9]*) ranks+=("$t");;
        *) if [ "${cost[$t]}" -lt 100 ]; then light+=("$t"); else others+=("$t"); fi;;
    esac
done
# Programs with ranks are last: a rank that waits for a message polls, so that next to other tests they take twice their processor time.
others+=(${ranks[@]+"${ranks[@]}"})
declare -A running_light=() running_other=() # hundredths of a core of each running test, by process id
# begin ROOM KIND TEST... : begins the tests that fit into ROOM hundredths of a core. Sets `later` to the tests that do not.
begin() {
    local room=$1 t
    local -n running=running_$2
    later=()
    for t in "${@:3}"; do
        if [ "${cost[$t]}" -le "$room" ]; then
            run "$t" &
            running[$!]=${cost[$t]} room=$((room - cost[$t]))
        else
            later+=("$t")
        fi
    done
}
# in_use KIND : sets `used` to the hundredths of a core that the running tests of this kind keep busy.
in_use() {
    local -n running=running_$1
    local pid
    used=0
    for pid in "${!running[@]}"; do
        if kill -0 "$pid" 2>/dev/null; then used=$((used + running[$pid])); else unset "running[$pid]"; fi
    done
}
# While light tests wait, others get half of the cores, and a test that needs more waits: many light tests at once would be many ranks,
# which take processor time while they wait for messages.
while [ $((${#light[@]} + ${#others[@]})) -gt 0 ]; do
    in_use light; room=$((100 * jobs - used))
    in_use other; half=$((${#light[@]} > 0 ? 50 * jobs : 100 * jobs))
    begin $((room < half ? room - used : half - used)) other ${others[@]+"${others[@]}"}
    others=(${later[@]+"${later[@]}"})
    in_use other
    begin $((room - used)) light ${light[@]+"${light[@]}"}
    light=(${later[@]+"${later[@]}"})
    [ $((${#light[@]} + ${#others[@]})) = 0 ] || wait -n
done
wait
mapfile -t passed <"$work/passed"
mapfile -t failed <"$work/failed"
cat "$work/reasons"
[ ${#failed[@]} = 0 ] || echo "failed: ${failed[*]}"
echo "${#passed[@]} passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ] && [ ${#passed[@]} = $# ] && [ $# -gt 0 ]
