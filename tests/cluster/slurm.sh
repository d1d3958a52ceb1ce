#!/usr/bin/env bash
# Slurm itself, on two hosts of one machine: jobs/slurm.sh trains with srun to the same bits as one rank; a job whose time
# limit comes leaves a checkpoint, ends with 75, goes back to the queue and then on, to the same bits.
# usage: slurm.sh     (WEFT=build/weft; needs root; about two minutes, for Slurm's shortest time limit is one)
# Installs Debian's slurm-wlm and munge where they are missing.
if [ -z "${CLUSTER_HOSTS:-}" ] && [ "$(id -u)" = 0 ] && ! command -v slurmctld slurmd munged >/dev/null; then
    command -v apt-get >/dev/null || { echo "skipped: no slurmctld, slurmd and munged here, and no apt-get to install them"; exit 0; }
    echo "installing: slurm-wlm munge"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } >/dev/null || exit 1
fi
hosts=2
. "$(dirname "$0")/cluster.bash"
job=$cluster/../../jobs/slurm.sh
export SLURM_CONF=/run/slurm/slurm.conf

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
NodeName=n[1-2] CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
CONF
    echo "PMIxCliTmpDirBase=/run/node" >/run/slurm/mpi.conf
}

# until_true SECONDS COMMAND... : waits for it to succeed.
until_true() {
    local left=$(($1 * 5))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $((left -= 1)) -gt 0 ] || return 1
        sleep 0.2
    done
}
idle() { [ "$(sinfo -h -o %D -t idle)" = 2 ]; }

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

start_slurm
make_images
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 6, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.05, momentum: 0.9}
YAML
check 0 '' "$WEFT" train lenet.yaml run.name=alone
check 0 'sums by mpi' sbatch --wait -o job.log "$job" lenet.yaml run.name=four
cat job.log
check 0 '' "$WEFT" ckpt diff runs/alone/checkpoints/step-00000006.h5 runs/four/checkpoints/step-00000006.h5
finish
