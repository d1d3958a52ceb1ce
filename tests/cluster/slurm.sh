#!/usr/bin/env bash
# Slurm itself, on two hosts of one machine: jobs/slurm.sh trains with srun to the same bits as one rank; a job whose time
# limit comes leaves a checkpoint, ends with 75, goes back to the queue and then on, to the same bits.
# usage: slurm.sh     (WEFT=build/weft; needs root; 40 s on two idle cores)
# Installs Debian's slurm-wlm and munge where they are missing.
if [ -z "${CLUSTER_HOSTS:-}" ]; then
    why=$("$(dirname "$0")/hosts.sh" 1 true) || exit 1
    [ -n "$why" ] || command -v apt-get >/dev/null || command -v slurmctld >/dev/null || why="skipped: no Slurm here, and no apt-get to install it"
    [ -z "$why" ] || { echo "$why"; exit 0; }
    if ! { command -v slurmctld && command -v slurmd && command -v munged; } >/dev/null; then
        echo "installing: slurm-wlm munge"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } >/dev/null || exit 1
    fi
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
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
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
train: {steps: 200, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.05, momentum: 0.9}
YAML
last=checkpoints/step-00000200.h5
check 0 '' "$WEFT" train lenet.yaml run.name=alone

check 0 '' timeout 120 sbatch --wait -o four.log "$job" lenet.yaml run.name=four
holds 'four ranks on two hosts' grep -q '^4 ranks.*allreduce: shm and mpi' four.log
check 0 '' "$WEFT" ckpt diff runs/alone/$last runs/four/$last

# Half a second a step over this link: the limit comes long before the end. No signal says so (URG is ignored): Slurm sends it
# once, at one of its looks at limits, twice a minute, and it is lost where srun has not started the ranks yet. They ask Slurm.
"$cluster/hosts.sh" link 50mbit
id=$(sbatch --parsable --time=1 --signal=URG@1 -o long.log "$job" lenet.yaml run.name=long grid.pp=2)
until_true 90 is "$id" Restarts 1 || { scontrol show job "$id"; cat long.log; }
holds 'the time limit leads to exit code 75' grep -q 'exit code 75' long.log
holds 'by itself, before the limit' grep -q "^job $id ends in .* this run stops here" long.log
holds 'Slurm stopped nothing' test -z "$(grep -i 'time limit' long.log)"
holds 'and to a checkpoint' test -n "$(ls runs/long/checkpoints/step-*.h5)" -a ! -e runs/long/$last
"$cluster/hosts.sh" link off
until_true 60 idle
# Else Slurm lets two minutes pass; and it may set that time once more after it was told. Fifty times, two seconds apart, and
# not within the second of the job's end: hosts take a start from then for one of the run that was just revoked.
sleep 2
goes_on() {
    is "$id" JobState COMPLETED && return
    ! is "$id" JobState PENDING || scontrol update jobid="$id" StartTime=now
    sleep 2
    return 1
}
until_true 10 goes_on || { scontrol show job "$id"; cat long.log; }
holds 'it went on from there' grep -q 'resuming from runs/long/checkpoints/' long.log
check 0 '' "$WEFT" ckpt diff runs/alone/$last runs/long/$last
finish
