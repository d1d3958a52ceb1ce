# Sourced by the tests of Slurm, which set `hosts` first: makes several hosts like cluster.bash, and starts Slurm on them;
# slurm_partitions: the lines of partitions in its configuration. Installs Debian's slurm-wlm and munge if they are missing.
if [ -z "${CLUSTER_HOSTS:-}" ]; then
    why=$("$(dirname "$0")/hosts.sh" 1 true) || exit 1
    [ -n "$why" ] || command -v apt-get >/dev/null || command -v slurmctld >/dev/null || why="skipped: no Slurm here, and no apt-get to install it"
    [ -z "$why" ] || { echo "$why"; exit 0; }
    if ! { command -v slurmctld && command -v slurmd && command -v munged; } >/dev/null; then
        echo "installing: slurm-wlm munge"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } >/dev/null || exit 1
    fi
fi
. "$(dirname "$0")/cluster.bash"
export SLURM_CONF=/run/slurm/slurm.conf

slurm_partitions='PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP'
write_config() {
    cat >/run/slurm/slurm.conf <<CONF
ClusterName=weft
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/run/slurm/state
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdLogFile=/run/slurm/%n.log
SlurmdSpoolDir=/run/node
SlurmdPidFile=/run/node/slurmd.pid
TmpFS=/run/node
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobRequeue=1
KillWait=10
SlurmdTimeout=10
NodeName=n[1-$hosts] CPUs=4 RealMemory=1000
$slurm_partitions
CONF
    echo "PMIxCliTmpDirBase=/run/node" >/run/slurm/mpi.conf
}

# until_true SECONDS COMMAND... : waits until the command succeeds.
until_true() {
    local left=$(($1 * 5))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $((left -= 1)) -gt 0 ] || { echo "waited in vain: $*"; return 1; }
        sleep 0.2
    done
}
idle() { [ "$(sinfo -h -o %D -t idle)" = "${1:-$hosts}" ]; }

start_slurm() {
    mkdir -p /run/slurm/state /run/munge
    write_config
    (umask 077 && head -c 128 /dev/urandom >/run/munge/key)
    munged --force --key-file /run/munge/key --seed-file /run/munge/seed --log-file /run/munge/log --pid-file /run/munge/pid
    slurmctld
    for host in $CLUSTER_HOSTS; do "$cluster/hosts.sh" on $host "SLURM_CONF=$SLURM_CONF slurmd -N $host"; done
    until_true 60 idle || { tail /run/slurm/*.log; echo "slurm did not come up"; exit 1; }
}

field() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }

# went_on ID : a requeued job runs and ends. Without this Slurm waits two minutes, and may set that time once more. The restart is not
# in the second of the job's end, because hosts would take it for a start of the run that was just revoked.
goes_on() {
    is "$1" JobState COMPLETED && return
    ! is "$1" JobState PENDING || scontrol update jobid="$1" StartTime=now
    sleep 2
    return 1
}
went_on() {
    sleep 2
    until_true 12 goes_on "$1" || { scontrol show job "$1"; cat "$2" || true; }
}
saved() { ls "$1/checkpoints/"step-*.h5; }
