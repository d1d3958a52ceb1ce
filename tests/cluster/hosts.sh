#!/usr/bin/env bash
# Several hosts on one machine, for as long as a command runs: every host has its own network, address, host name, processes
# and /dev/shm, and a cable to one switch; the command runs on a host of its own, `login`, that sees them all. The kernel
# takes everything away when the command ends, however it ends: all of it lies in namespaces that nothing else holds.
# /run/shared is the hosts' shared file system (memory), TMPDIR each host's own. Links here are full duplex.
# usage: hosts.sh N COMMAND [ARGUMENT...]     N hosts, n1..nN, CLUSTER_HOSTS names them; exit code: COMMAND's
#   and within COMMAND:
#        hosts.sh on HOST COMMAND...          as ssh would run it, with a fresh environment (mpirun does so by itself)
#        hosts.sh cut HOST, mend HOST         pulls its cable, and plugs it in again; its processes go on
#        hosts.sh kill HOST                   it dies with all its processes, for good
#        hosts.sh link RATE|off [HOST]        limits what every host sends, or one, e.g. 1gbit; BURST= and QUEUE= as for tc-tbf
# Needs root and iproute2. Where namespaces are not allowed: says "skipped:" and why, exit code 0.
set -eu
unset PMIX_MCA_gds HWLOC_COMPONENTS HWLOC_PLUGINS_BLACKLIST # from tests/run.sh; the other hosts do not get them, and mpirun hangs if gds differs
me=$(cd "$(dirname "$0")" && pwd)/$(basename "$0") net=10.77.0
state=/run/hosts # a folder in the namespaces with a file per host, which has its first process
spaces="--mount --uts --net --ipc --pid --fork --kill-child --mount-proc"
usage() { sed -n '/^# usage/,/^# Needs/s/^# \{0,1\}//p' "$me" >&2; exit 64; }
skip() { echo "skipped: $1"; exit 0; }

# Runs as the first process of host $1: adopts orphans and waits for the end.
host() {
    hostname "n$1"
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount -t tmpfs -o mode=1777 node /run/node
    ip link set lo up
    : >"$state/n$1.up"
    sleep infinity &
    wait
}

# await DESCRIPTION COMMAND... : repeats the command until it succeeds, for at least a minute
await() { for _ in $(seq 1200); do "${@:2}" && return; sleep 0.05; done; echo "hosts.sh: no $1" >&2; exit 70; }

add_host() {
    local pid
    unshare $spaces "$me" host "$1" &
    await "$state/n$1.up" [ -e "$state/n$1.up" ]
    pid=$(pgrep -P $!)
    echo "$pid" >"$state/n$1"
    ip link add "port$1" type veth peer name eth0 netns "$pid"
    ip link set "port$1" master switch up
    nsenter -t "$pid" --net ip addr add "$net.$1/24" dev eth0
    nsenter -t "$pid" --net ip link set eth0 up
}

# Runs as the first process of all hosts: the processes that it leaves are killed with it.
login() {
    local n=$1 i
    shift
    hostname login
    mount -t tmpfs -o mode=755 run /run
    mkdir -p "$state" /run/node /run/shared
    { echo "127.0.0.1 localhost"; echo "$net.254 login"; for i in $(seq "$n"); do echo "$net.$i n$i"; done; } >/run/hosts.txt
    mount --bind /run/hosts.txt /etc/hosts
    ip link set lo up
    # A fixed address: otherwise the switch has the lowest address of its cables, and changes it without notice when that host dies.
    ip link add switch address 02:00:00:00:00:fe type bridge
    ip addr add "$net.254/24" dev switch
    ip link set switch up
    for i in $(seq "$n"); do add_host "$i"; done
    export CLUSTER_HOSTS=$(seq -f 'n%g' -s ' ' "$n") TMPDIR=/run/shared OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_plm_rsh_agent="$me on" OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp
    "$@"
}

on() {
    local host=$1 pid
    shift
    pid=$(cat "$state/$host" 2>/dev/null) || { echo "hosts.sh: no host '$host' here" >&2; exit 68; }
    exec nsenter -t "$pid" --mount --uts --net --ipc --pid env -i HOME="$HOME" PATH="$PATH" TMPDIR=/run/node \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 bash -c "$*"
}

link() {
    local host do_it="del dev eth0 root"
    [ "$1" = off ] || do_it="replace dev eth0 root tbf rate $1 burst ${BURST:-128kb} ${QUEUE:-latency 100ms}"
    for host in ${2:-$CLUSTER_HOSTS}; do
        nsenter -t "$(cat "$state/$host")" --net tc qdisc $do_it 2>/dev/null || [ "$1" = off ]
    done
}

# tells whether the switch answers HOST, even by a refusal
reaches() { nsenter -t "$(cat "$state/$1")" --net env LC_ALL=C bash -c "exec 3<>/dev/tcp/$net.254/1" 2>&1 | grep -q refused; }
# A command that begins right after a cable is plugged in may find no route yet.
mend() { ip link set "port${1#n}" up; await "answer of the switch to $1" reaches "$1"; }

case ${1:-} in
    cut) [ $# = 2 ] || usage; ip link set "port${2#n}" down;;
    mend) [ $# = 2 ] || usage; mend "$2";;
    kill) [ $# = 2 ] || usage; kill -KILL "$(cat "$state/$2")";;
    on) [ $# -ge 3 ] || usage; shift; on "$@";;
    link) [ $# = 2 ] || [ $# = 3 ] || usage; link "${@:2}";;
    host) host "$2";;
    login) shift; login "$@";;
    [1-9] | [1-9][0-9])
        [ $# -ge 2 ] || usage
        [ "$(id -u)" = 0 ] || skip "several hosts on one machine need root"
        command -v ip tc nsenter unshare >/dev/null || skip "several hosts on one machine need iproute2 and util-linux"
        unshare $spaces ip link add switch type bridge 2>/dev/null || skip "this machine allows no namespaces, or no bridge in them"
        setpriv --pdeathsig KILL unshare $spaces "$me" login "$@" &
        trap 'kill -KILL %1; exit 143' TERM INT HUP
        wait $!;;
    *) usage;;
esac
