#!/usr/bin/env bash
# The share of the gradient sum that is hidden behind backward, over a link on which the sum takes as long as backward: two hosts with
# one rank of one thread each, resnet18 on small images, one micro-batch per rank. A backward without a limit determines the limit; then
# each round runs the sum alone, steps without the limit, and steps with it. Medians over the steps of all rounds except each run's
# first two. "waited" is the time between the end of backward and the end of the sum.
# usage: overlap.sh [ROUNDS [KEY=VALUE ...]]     (default 3; WEFT=build/weft; needs root and two idle cores; five minutes)
# Last line: the share hidden, compared with the goal of 80 %. It is a measurement: the exit code is 0 whatever it says. The trace of
# the last run with the limit is left in TRACE, if that is set.
hosts=2
. "$(dirname "$0")/cluster.bash"
rounds=${1:-3}
[ $# = 0 ] || shift
make_images >/dev/null
cat >model.yaml <<'YAML'
run:   {trace: true}
model: {name: resnet18, stem: small}
data:  {train: images.h5}
train: {steps: 10, batch: 96, micro_batch: 48, threads: 1}
optim: {lr: 0.001}
YAML

# steps NAME : trains, and appends the seconds of each step in backward, in the sum, and in total to the file NAME.
steps() {
    local run=$1
    shift
    check 0 'allreduce: mpi' across 2 1 slot "$WEFT" train model.yaml checkpoint.resume=no run.dir=$(mktemp -d runs.XXXX) run.name=a "$@"
    sed 's/.*"name":"\([a-z]*\)".*"pid":0,.*"ts":\([0-9.]*\),"dur":\([0-9.]*\).*/\1 \2 \3/;t;d' runs.*/a/trace.json | awk '
        $1 == "forward" && !seen { seen = 1; if (n++ > 2) print backward, sum, ($2 - start) / 1e6; start = $2; backward = sum = 0 }
        $1 == "backward" { backward += $3 / 1e6 }
        $1 == "sum" { sum += $3 / 1e6 }
        $1 == "update" { seen = 0 }' >>$run
    [ ! "${TRACE:-}" ] || cp runs.*/a/trace.json "$TRACE"
    rm -rf runs.*
}
sum_alone() {
    across 2 1 slot "$WEFT" bench comm --mb "$megabytes" --json 2>/dev/null | tail -n 1 | sed 's/.*"mpi_s": \([0-9.e-]*\).*/\1/'
}
median() { sort -g -k "$2,$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

megabytes=$("$WEFT" plan model.yaml --json 2>/dev/null | tr ',{' '\n\n' | sed -n 's/ *"parameters": //p' | head -n 1 | awk '{ print $1 * 4 / 1e6 }')
measure() {
    steps first "$@"
    backward=$(median first 1)
    # The sum takes longer than its bytes on the wire: the limit is raised until the sum takes as long as backward.
    rate=$(awk -v mb="$megabytes" -v s="$backward" 'BEGIN { printf "%.0f", mb * 8 / s }')
    for _ in 1 2 3; do
        "$cluster/hosts.sh" link "${rate}mbit"
        rate=$(awk -v r="$rate" -v s="$backward" -v alone="$(sum_alone)" 'BEGIN { printf "%.0f", r * alone / s }')
        "$cluster/hosts.sh" link off
    done
    for _ in $(seq "$rounds"); do
        steps free "$@"
        "$cluster/hosts.sh" link "${rate}mbit"
        sum_alone >>alone
        steps limited "$@"
        "$cluster/hosts.sh" link off
    done
}
# If other work ran while the limit was set, and not afterwards, the comparison is invalid: then everything is measured again.
fits() { awk -v a="$(median alone 1)" -v b="$(median free 1)" 'BEGIN { exit !(a < 1.25 * b && b < 1.25 * a) }'; }
for _ in 1 2 3; do
    rm -f first free limited alone
    measure "$@"
    ! fits || break
    echo "the sum alone took $(median alone 1) s, backward $(median free 1) s: the limit does not fit"
done
awk -v mb="$megabytes" -v rate="$rate" -v alone="$(median alone 1)" -v back="$(median free 1)" -v free_wait="$(median free 2)" \
    -v free="$(median free 3)" -v slow_back="$(median limited 1)" -v wait="$(median limited 2)" -v limited="$(median limited 3)" 'BEGIN {
    printf "%.1f MB of gradients, link %d Mbit/s: at least %.0f ms; the sum alone took %.0f ms\n", mb, rate, mb * 8e3 / rate, alone * 1e3
    printf "without limit   step %4.0f ms, backward %4.0f ms, waited %4.0f ms\n", free * 1e3, back * 1e3, free_wait * 1e3
    printf "with it         step %4.0f ms, backward %4.0f ms, waited %4.0f ms\n", limited * 1e3, slow_back * 1e3, wait * 1e3
    printf "the limit costs %.0f ms a step: %.0f %% of the sum alone\n", (limited - free) * 1e3, 100 * (limited - free) / alone
    printf "hidden: %.0f %% of the sum alone (goal: 80 %%)\n", 100 * (1 - wait / alone) }'
finish
