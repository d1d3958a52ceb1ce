#!/usr/bin/env bash
# Times the ordered sum on two hosts of one machine (namespaces, as in tests/cluster) with RANKS ranks each, on a link of limited
# rate: by messages alone; by shared memory inside a host and messages between the hosts; MPI's own all-reduce. Prints medians of
# ROUNDS rounds in ms, and the time that the bytes need on the wire.
# usage: MB=45 RANKS=2 LINK=1000 ROUNDS=3 bench/nodes.sh     (as root; LINK in Mbit/s; half a minute)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ "${CLUSTER_HOSTS:-}" ] || exec "$here/../tests/cluster/hosts.sh" 2 "$here/nodes.sh"
. "$here/common.bash"
megabytes=${MB:-45} ranks=${RANKS:-2} link=${LINK:-1000} rounds=${ROUNDS:-3}
"$here/../tests/cluster/hosts.sh" link "${link}mbit"
for _ in $(seq "$rounds"); do
    timeout 300 mpirun -n $((2 * ranks)) --host "n1:$ranks,n2:$ranks" --map-by slot --bind-to none \
        "$PWD/$weft" bench comm --mb "$megabytes" --json 2>/dev/null | tail -n 1 >>"$tmp/lines"
done
column() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" "$tmp/lines" | median | awk '{ printf "%.0f", 1e3 * $1 }'; }
echo "| ranks a host | link Mbit/s | MB | shm, then mpi: ms | mpi | MPI_Allreduce | wire, once a host |"
echo "|---|---|---|---|---|---|---|"
echo "| $ranks | $link | $megabytes | $(column shm_mpi_s) | $(column mpi_s) | $(column allreduce_s) | $(awk -v m="$megabytes" -v l="$link" 'BEGIN { printf "%.0f", 8e3 * m / l }') |"
