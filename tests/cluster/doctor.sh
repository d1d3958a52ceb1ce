#!/usr/bin/env bash
# weft doctor on three hosts of one machine: a slow link, another packet size, another library, a clock that is ahead, a folder that is
# not shared, a host that is missing at the start. Each is named, the slow link also by weft topo.
# usage: doctor.sh     (WEFT=build/weft; needs root; about a minute)
hosts=3
. "$(dirname "$0")/cluster.bash"
CC=${CC:-cc}
mkdir own
# /sys describes the network cards of the network namespace in which it was mounted
for host in $CLUSTER_HOSTS; do "$cluster/hosts.sh" on "$host" mount -t sysfs sys /sys; done
# the command on n1 and n2, and on n3 with the words before it
doctors() { timeout 100 mpirun --host n1:1,n2:1,n3:1 --map-by node --bind-to none -n 2 "$WEFT" doctor "$folder" : -n 1 env "$@" "$WEFT" doctor "$folder"; }
folder=$PWD/own
says() { holds "$1: $2" grep -qE "^$1 +$2" both; }

check 0 'launcher           3 ranks on 3 nodes' doctors A=b
says ok 'network card +eth0'
says ok 'shared folder +by all nodes'
says '(ok|warn)' 'latency'
holds 'nothing stays in the folder' test -z "$(ls -A own)"

"$cluster/hosts.sh" link 50mbit n3
check 0 '3 ranks on 3 nodes' timeout 100 mpirun --host n1:1,n2:1,n3:1 --map-by node --bind-to none -n 3 "$WEFT" topo show --save three.json
holds 'topo show names the slow node' grep -q '^  n3: fastest link to another node' out
holds 'and describes equal nodes once' grep -q '"hardware_of": \[0, 0, 0\]' three.json
"$cluster/hosts.sh" on n2 ip link set eth0 mtu 1400
library=$(ldd "$WEFT" | awk '/libyaml/ { print $3 }')
mkdir lib
cp "$library" lib
echo "another build" >>"lib/$(basename "$library")"
cat >ahead.c <<C
#include "wall_clock.h"
__attribute__((constructor)) static void begin(void) { wall_ahead_s = 7; }
C
$CC -shared -fPIC -D_GNU_SOURCE -I"$cluster/.." -o ahead.so ahead.c
check 0 '' doctors LD_LIBRARY_PATH="$PWD/lib" LD_PRELOAD="$PWD/ahead.so"
says warn 'bandwidth +n3: best pair [0-9]+ MB/s, less than 80 % of [0-9]+, the median of nodes; try: cable'
says warn 'network card +n2: packets of 1400 bytes on eth0, on most nodes of 1500'
says warn 'libraries +rank 2 on n3: libyaml[^ ]* differs from the file on most ranks'
says warn 'clocks +n3: its clock is 7.0 s ahead of that of the others'
"$cluster/hosts.sh" link off

# a separate folder on each host
folder=/run/node
check 78 'a run could not work here: shared folder' doctors A=b
says fatal 'shared folder +n2, n3: a file of the first node, n1, is not visible after 5 s'

# n3 starts a program that never calls MPI
check 78 'doctor: the start of MPI: no answer' timeout 100 mpirun --host n1:1,n3:1 --map-by node --bind-to none \
    -n 1 "$WEFT" doctor "$PWD/own" : -n 1 sleep 60
finish
