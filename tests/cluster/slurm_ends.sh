#!/usr/bin/env bash
# The ways in which Slurm ends a job, on three hosts of one machine. The time limit, three times over, of four jobs side by side: two
# replicas on 2 hosts and three stages on 3, with srun --mpi=pmix and with mpirun. Preemption, with time to save and without. A
# cable that is pulled in mid-step. Each goes back to the queue and then on, to the bits of one rank alone.
# usage: slurm_ends.sh     (WEFT=build/weft; needs root; eight minutes, most of them Slurm's time limits)
hosts=3
. "$(dirname "$0")/slurm.bash"
# Jobs in the queue of `urgent` preempt the others: those of `main` have 30 s after the first signal, those of `low` only KillWait.
slurm_partitions='PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL PriorityTier=9 PreemptMode=OFF MaxTime=INFINITE State=UP
PartitionName=low Nodes=ALL PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=main Nodes=ALL PriorityTier=1 GraceTime=30 Default=YES MaxTime=INFINITE State=UP'
start_slurm
make_images
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 400, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 5}
YAML
last=checkpoints/step-00000400.h5
check 0 '' "$WEFT" train lenet.yaml run.name=alone
slow() { "$cluster/hosts.sh" link 20mbit; }
fast() { "$cluster/hosts.sh" link off; }
# script NAME WORD... : makes the job script for the run of that name
script() {
    local name=$1
    shift
    check 0 '' "$WEFT" sbatch lenet.yaml --ntasks-per-node 1 "$@" run.name="$name" -o "$name.sh"
}
ended_well() { # NAME ID
    went_on "$2" "$1-$2.log"
    holds "$1 went on from a checkpoint" grep -q 'resuming from runs/' "$1-$2.log"
    check 0 '' "$WEFT" ckpt diff runs/alone/$last runs/"$1"/$last
}

script srun2 --nodes 2 --time 1m
script srun3 --nodes 3 --time 1m grid.pp=3
for n in 2 3; do sed "s/^srun --mpi=pmix .*\"\$weft\" train/mpirun --bind-to none --map-by node \"\$weft\" train/; s/srun$n/mpirun$n/g" srun$n.sh >mpirun$n.sh; done
holds 'mpirun takes the place of srun' test "$(grep -l '^mpirun ' mpirun?.sh | wc -l)" = 2
# No signal announces the time limit (URG is ignored): the ranks ask Slurm.
slow
declare -A id
names='srun2 srun3 mpirun2 mpirun3'
for name in $names; do id[$name]=$(sbatch --parsable --signal=URG@1 $name.sh); done
# All of them were requeued three times. A job that waits in the queue is started explicitly (went_on explains when).
back() {
    local name pending=() all=yes
    for name in $names; do
        ! is "${id[$name]}" JobState PENDING || pending+=("${id[$name]}")
        [ "$(field "${id[$name]}" Restarts)" -ge 3 ] || all=
    done
    sleep 2
    [ -z "$all" ] || return 0
    for name in ${pending[@]+"${pending[@]}"}; do scontrol update jobid="$name" StartTime=now || true; done
    return 1
}
until_true 50 back || { scontrol show job; cat $(printf '%s-*.log ' $names); }
fast
for name in $names; do
    log=$name-${id[$name]}.log
    stops=$(grep -c "^job ${id[$name]} ends in .* this run stops here" "$log") || true
    [ "$stops" -ge 3 ] || sed 's/^/  | /' "$log"
    holds "$name stopped by itself, before the limit, three times" test "$stops" -ge 3
    holds "Slurm stopped nothing of $name" test -z "$(grep -i 'due to time limit' "$log")"
    ended_well $name "${id[$name]}"
done

# Preemption by a job that needs all hosts.
for way in main low; do
    slow
    script $way --nodes 2 --partition $way
    job=$(sbatch --parsable $way.sh)
    until_true 60 saved runs/$way
    urgent=$(sbatch --parsable --partition urgent --nodes 3 --exclusive --output urgent.log --wrap 'sleep 3')
    until_true 90 is "$job" Restarts 1 || { scontrol show job "$job"; cat "$way-$job.log"; }
    fast
    until_true 90 is "$urgent" JobState COMPLETED
    ended_well $way "$job"
done
holds 'the one that had time saved in it' grep -q 'exit code 75' main-*.log

# A cable is pulled in the middle of a step; the processes on its host live, and end by themselves.
slow
script cut --nodes 2
job=$(sbatch --parsable cut.sh)
until_true 60 saved runs/cut
"$cluster/hosts.sh" cut n2
until_true 120 is "$job" Restarts 1 || { scontrol show job "$job"; cat "cut-$job.log"; }
nobody() { [ -z "$("$cluster/hosts.sh" on n2 'pgrep -f "[w]eft train lenet.yaml"')" ]; }
holds 'no rank is left behind the cable' until_true 60 nobody
fast
until_true 60 idle 2 || sinfo
ended_well cut "$job"
finish
