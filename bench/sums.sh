#!/usr/bin/env bash
# Times the ordered sum between hosts of one machine (namespaces, as in tests/cluster) with one rank each, on links of limited rate: all
# to all, by halving, and MPI's own all-reduce, alternately; also the prediction of sums_simulate for the latency, overhead and rate that
# bench/link_bench measures on the same links at the same time. Prints medians of ROUNDS rounds in ms. DELAY_US delays the sender of
# every message of the program (bench/slow_messages.c; not the messages inside MPI's all-reduce). This also delays the thread that moves
# the rank's other messages, so the simulation then runs with one_thread. Ranks share few cores here, so MPI yields.
# BEFORE: another build's program, whose all to all is measured, too. Connections use TCP cubic, Linux's default.
# usage: HOSTS="8 16" MB=45 LINK=200 DELAY_US=0 ROUNDS=3 REPEATS=1 bench/sums.sh     (as root, after `make bench`; LINK in Mbit/s; minutes)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ ! "${CLUSTER_HOSTS:-}" ]; then
    echo "| hosts | link Mbit/s | delay ms | MB | before: ms | all to all | halving | all : halving | MPI_Allreduce | simulated: all to all | halving | the link, measured |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for n in ${HOSTS:-8 16}; do "$here/../tests/cluster/hosts.sh" "$n" "$here/sums.sh"; done
    exit
fi
. "$here/common.bash"
megabytes=${MB:-45} link=${LINK:-200} delay=${DELAY_US:-0} rounds=${ROUNDS:-3}
case $weft in /*) ;; *) weft=$PWD/$weft;; esac
before=$(realpath -m "${BEFORE:-/nothing}")
programs=${weft%/*}/bench
n=$(wc -w <<<"$CLUSTER_HOSTS")
"$here/../tests/cluster/hosts.sh" link "${link}mbit"
for host in $CLUSTER_HOSTS; do
    "$here/../tests/cluster/hosts.sh" on "$host" 'ip route change $(ip route show dev eth0 | head -n 1) dev eth0 congctl cubic'
done
ranks() { # COMMAND... on one rank a host
    timeout 200 mpirun -n "$n" --host "$(seq -f 'n%g:1' -s , "$n")" --bind-to none --mca mpi_yield_when_idle 1 -x "SEND_DELAY_US=$delay" \
        -x "LD_PRELOAD=$programs/slow_messages.so" "$@" 2>/dev/null
}
sum() { # PROGRAM WAY FILE
    ranks "$1" bench comm --mb "$megabytes" --way "$2" --repeats "${REPEATS:-1}" --json | tail -n 1 >>"$tmp/$3"
}
touch "$tmp/before"
for round in $(seq "$rounds"); do
    # two seconds' worth, but no more than makes a steady row
    ranks "$programs/link_bench" "$((link < 512 ? link / 4 : 128))" | tail -n 1 >>"$tmp/link"
    ways="all halving"
    [ $((round % 2)) = 1 ] || ways="halving all"
    [ ! -x "$before" ] || sum "$before" all before
    for way in $ways; do sum "$weft" "$way" "$way"; done
done
ms() { cat "${@:2}" | sed -n "s/.*\"$1\": \{0,1\}\([0-9.e-]*\).*/\1/p" | median | awk '{ printf "%.0f", 1e3 * $1 }'; }
key() { sed -n "s/.*$1=\([0-9.]*\).*/$1=\1/p" "$tmp/link" | sort -t= -k2 -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
of_link="$(key latency_us) $(key overhead_us) $(key mbit)"
threads=
[ "$delay" = 0 ] || threads=one_thread
simulated() { "$programs/sums_simulate" time "$n" "$megabytes" $of_link $threads | sed -n "s/^$1: \([0-9.]*\) ms.*/\1/p" | awk '{ printf "%.0f", $1 }'; }
before_ms=$([ ! -x "$before" ] || ms mpi_s "$tmp/before") all=$(ms mpi_s "$tmp/all") halving=$(ms mpi_s "$tmp/halving")
echo "| $n | $link | $(awk -v d="$delay" 'BEGIN { print d / 1000 }') | $megabytes | $before_ms | $all | $halving | $(awk -v a="$all" -v h="$halving" 'BEGIN { printf "%.2f", a / h }') | $(
    ms allreduce_s "$tmp/all" "$tmp/halving") | $(simulated 'all to all') | $(simulated halving) | $of_link |"
