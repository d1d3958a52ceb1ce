#!/usr/bin/env bash
# Slurm itself, on three hosts of one machine: jobs/slurm.sh trains with srun to the same bits as one rank, and so does
# jobs/slurm-one-node.sh, a detector too. What `weft sbatch`
# writes: a job whose time limit comes leaves a checkpoint, ends with 75, goes back to the queue and then on, to the same bits; so
# does one of which a node dies in mid-step, on those that are left; one that is cancelled stays so; an array's tasks are runs of
# their own, and one that is stopped goes back alone; a chain's jobs come one after the other.
# usage: slurm.sh     (WEFT=build/weft; needs root; three minutes on two busy cores)
hosts=3
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

# A detector, on two nodes with two tasks each, and on one node.
make_detector
detector_last=checkpoints/step-00000005.h5
check 0 'AP50' "$WEFT" train yolo.yaml run.name=yolo
check 0 '' timeout 120 sbatch --wait -o yolo-four.log "$job" yolo.yaml run.name=yolo-four
holds 'four ranks of a detector on two hosts' grep -q '^4 ranks.*allreduce: shm and mpi' yolo-four.log
check 0 '' timeout 120 sbatch --wait -o yolo-node.log "${job%.sh}-one-node.sh" yolo.yaml run.name=yolo-node
holds 'four on one' grep -q '^4 ranks.*allreduce: shm' yolo-node.log
for name in four node; do
    check 0 'to the bit' "$WEFT" ckpt diff runs/yolo/$detector_last runs/yolo-$name/$detector_last
    holds 'AP is printed' grep -q AP50 yolo-$name.log
done

# A step takes half a second over this link, so the limit comes long before the end. No signal announces it (URG is ignored): Slurm
# sends the signal once, in one of its two checks of limits per minute, and it is lost if srun has not started the ranks yet. The ranks
# ask Slurm. The folder and the arguments need quotes, and sbatch is called in another folder.
shared=$PWD odd="it's a \"folder\" #1"
mkdir "$odd"
cd "$odd"
"$cluster/hosts.sh" link 50mbit
check 0 '' "$WEFT" sbatch ../lenet.yaml --nodes 2 --ntasks-per-node 2 --time 1m grid.pp=2 data.train=../images.h5 "run.name=long run" -o long.sh
id=$(cd / && sbatch --parsable --signal=URG@1 "$shared/$odd/long.sh")
long=long_run-$id.log
until_true 90 is "$id" Restarts 1 || { scontrol show job "$id"; cat "$long" || true; }
holds 'the time limit leads to exit code 75' grep -q 'exit code 75' "$long"
holds 'by itself, before the limit' grep -q "^job $id ends in .* this run stops here" "$long"
holds 'Slurm stopped nothing' test -z "$(grep -i 'time limit' "$long")"
holds 'and to a checkpoint' test -n "$(saved 'runs/long run')" -a ! -e "runs/long run/$last"
"$cluster/hosts.sh" link off
until_true 60 idle
went_on "$id" "$long"
holds 'it went on from there' grep -q 'resuming from runs/long run/checkpoints/' "$long"
check 0 '' "$WEFT" ckpt diff ../runs/alone/$last "runs/long run/$last"
cd "$shared"

# The job is cancelled after it has begun to save.
"$cluster/hosts.sh" link 50mbit
check 0 '' "$WEFT" sbatch lenet.yaml --nodes 2 --ntasks-per-node 2 grid.pp=2 checkpoint.every_steps=2 run.name=dies -o dies.sh
id=$(sbatch --parsable dies.sh run.dir=cancelled)
until_true 60 saved cancelled/dies
scancel "$id"
until_true 60 is "$id" JobState CANCELLED || field "$id" JobState
until_true 60 idle
sleep 3
holds 'what was cancelled stays so' is "$id" JobState CANCELLED
holds 'and is not in the queue again' is "$id" Restarts 0

# A node dies in the middle of a step: all its processes and its cable at once.
id=$(sbatch --parsable dies.sh)
until_true 60 saved runs/dies
kill -KILL "$(cat /run/hosts/n2)"
until_true 90 is "$id" Restarts 1 || { scontrol show job "$id"; cat "dies-$id.log"; }
"$cluster/hosts.sh" link off
until_true 60 idle 2 || sinfo
went_on "$id" "dies-$id.log"
holds 'a dead node leads back to the queue, and on' grep -q 'resuming from runs/dies/checkpoints/' "dies-$id.log"
check 0 '' "$WEFT" ckpt diff runs/alone/$last runs/dies/$last

# An array: the second, last task has the array's number. Its hook waits at the end of an epoch for ten seconds, in which it receives a
# stop request, however fast the machine is; the first task never waits.
cat >hook.sh <<'SH'
run=$(sed -n 's/.*"run": *"\([^"]*\)".*/\1/p')
touch "at-$run"
until [ -e "go-$run" ]; do sleep 0.1; done
SH
touch go-task-1
last=checkpoints/step-00000030.h5
check 0 '' "$WEFT" sbatch lenet.yaml --array 1-2 --ntasks-per-node 2 train.steps=30 run.name=task run.hook='sh hook.sh' 'run.hook_on=[epoch]' \
    run.hook_wait=true run.hook_s=10 -o array.sh
id=$(sbatch --parsable array.sh)
until_true 60 test -e at-task-2 || cat "task-${id}_2.log"
scancel --signal=USR1 "${id}_2"
until_true 60 is "${id}_2" Restarts 1 || { scontrol show job "$id"; cat "task-${id}_2.log"; }
touch go-task-2
until_true 60 is "${id}_1" JobState COMPLETED
holds 'a task that was stopped goes back to the queue' is "${id}_2" Restarts 1
holds 'alone' is "${id}_1" Restarts 0
went_on "${id}_2" "task-${id}_2.log"
[ -e runs/task-2/$last ] || { scontrol show job "$id"; cat "task-${id}_2.log"; }
holds 'both are done, with numbers of their own' test -e runs/task-1/$last -a -e runs/task-2/$last
check 65 '' "$WEFT" ckpt diff runs/task-1/$last runs/task-2/$last

# A chain that is shorter than its run.
ended() { [ "$(field "$1" JobState)" = FAILED ]; }
check 0 '' "$WEFT" sbatch lenet.yaml --chain 3 --ntasks-per-node 2 train.steps=1000000 run.max_time=2s run.name=chain -o chain.sh
check 0 'link 3 of 3' bash chain.sh
ids=$(sed -n 's/^link .* is job //p' out)
for id in $ids; do until_true 60 ended "$id"; done
holds 'each link went on where the last one ended' test "$(cat $(printf 'chain-%s.log ' $ids) | grep -c 'resuming from')" = 2
holds 'and the last one says that there is more to do' grep -q 'the run is not complete' "chain-${ids##*[!0-9]}.log"
finish
