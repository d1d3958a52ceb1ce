# Sourced by the scripts of this folder: the path of weft, a temporary folder that is removed at the end, medians, the rate in the line
# of JSON that `weft bench step --json` prints, and the peak memory of a command with all its processes.
weft=${WEFT:-build/weft}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
rate() { sed -n 's/.*"[a-z]*_per_s":\([0-9.]*\).*/\1/p'; }
# Prints a command's output, and "peak N MiB": the peak memory of all its processes, shared memory counted once, sampled once a second.
with_memory() { # COMMAND...
    setsid "$@" & # in a session of its own, by which all its processes are found
    local leader=$! most=0 now
    while kill -0 $leader 2>/dev/null; do
        now=$(ps -s $leader -o pid= | while read -r p; do sed -n 's/^Pss: *//p' "/proc/$p/smaps_rollup" 2>/dev/null || true; done |
            awk '{ kb += $1 } END { printf "%d", kb / 1024 }')
        [ "$now" -le "$most" ] || most=$now
        sleep 1
    done
    wait $leader || true
    echo "peak $most MiB"
}
