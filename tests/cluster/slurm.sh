#!/usr/bin/env bash
# Slurm itself, on two hosts of one machine: jobs/slurm.sh trains with srun to the same bits as one rank; a job whose time
# limit comes leaves a checkpoint, ends with 75, goes back to the queue and then on, to the same bits.
# usage: slurm.sh     (WEFT=build/weft; needs root; 40 s on two idle cores)
hosts=2
. "$(dirname "$0")/slurm.bash"
job=$cluster/../../jobs/slurm.sh

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
