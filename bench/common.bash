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
number() { sed -n "s/.*\"$1\": *\([-+.e0-9]*\).*/\1/p"; } # the number of a key in a line of JSON
# Reads lines of workload, forecast, measurement. Prints the mean and the worst error, and Kendall's rank correlation over the pairs of a workload.
forecast_errors() {
    awk '{ name[NR] = $1; f[NR] = $2; m[NR] = $3; e = 100 * ($2 / $3 - 1); if (e < 0) e = -e; sum += e; if (e > worst) worst = e }
        END {
            for (i = 1; i <= NR; ++i) for (k = 1; k < i; ++k) if (name[i] == name[k]) {
                ++pairs; agree = (f[i] - f[k]) * (m[i] - m[k]); tau += agree > 0 ? 1 : agree < 0 ? -1 : 0
            }
            printf "\n%d steps: mean error %.1f %%, worst %.1f %%; Kendall'"'"'s rank correlation %.2f over %d pairs\n", NR, sum / NR, worst, tau / pairs, pairs
        }'
}
