#!/usr/bin/env bash
# Job scripts without Slurm: which exit codes send a job back to the queue, and the behaviour of an array's tasks and a chain's links.
# srun, scontrol and sbatch are replaced by scripts; weft is real.
jobs=$(cd "$(dirname "$0")/../../jobs" && pwd)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
make_images

# The file `plan` controls the replacement of srun: "run" trains; "dead" kills the job's script, as a dying node does; "STEP CODE"
# leaves the checkpoint of that step of an earlier run and exits with CODE; STEP 0 leaves none.
mkdir -p bin runs/images/checkpoints
check 0 '' "$WEFT" train images.yaml run.name=stock train.steps=6 checkpoint.every_steps=2 checkpoint.keep=0
cat >bin/srun <<'SH'
#!/bin/sh
read -r step code <plan
echo "$*" >>started
while [ "${1#--}" != "$1" ]; do shift; done
[ "$step" != run ] || exec "$@"
[ "$step" != dead ] || kill -KILL $PPID
[ -z "${SLURM_HOSTFILE:-}" ] || cp "$SLURM_HOSTFILE" placed
[ "$step" = 0 ] || cp "runs/stock/checkpoints/step-0000000$step.h5" runs/images/checkpoints || exit
exit "$code"
SH
cat >bin/scontrol <<'SH'
#!/bin/sh
[ "$1" != show ] || exec printf 'n%d\n' 1 2 3
echo "$*" >>queue
SH
cat >bin/sbatch <<'SH'
#!/bin/sh
echo "$*" >>submitted
echo "$((100 + $(wc -l <submitted)));cluster"
SH
chmod +x bin/srun bin/scontrol bin/sbatch
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 WEFT
# submit PLAN WORDS... : runs the job script with this plan for srun.
job=$jobs/slurm.sh
submit() { echo "$1" >plan; shift; bash "$job" images.yaml "$@"; }
requeued() { [ "$(wc -l <queue)" = "$1" ]; }
started() { [ "$(wc -l <started)" = "$1" ]; }
: >queue

check 0 '' submit run run.name=done train.steps=2
holds 'a run that is done is not started again' requeued 0
holds 'one dead rank ends the others' grep -q -- '--kill-on-bad-exit=1' started
check 75 '' submit '2 75'
holds 'a run that stopped is' requeued 1
holds 'this job' grep -qx 'requeue 7' queue
check 137 '' submit '4 137'
holds 'and one of which a rank was killed' requeued 2
check 138 '' submit '0 138' # USR1 arrives before weft has begun
check 137 '' submit '0 137'
holds 'twice without a newer checkpoint: that may have been a node, or a signal too early' requeued 4
check 137 'not started again' submit '0 137'
holds 'but not three times' requeued 4
check 75 '' submit '0 75'
check 75 '' submit '0 75'
check 75 '' submit '6 75'
check 75 '' submit '0 75'
check 75 '' submit '0 75'
holds 'progress in between counts' requeued 9
check 75 'not started again' submit '0 75'
holds 'a stop without progress is one, too' requeued 9
for code in 64 65 66 70 71 78 126; do check $code '' submit "0 $code"; done
holds 'a run that failed is not started again' requeued 9
check 74 '' submit '0 74'  # a rank was lost before there was a checkpoint
check 1 '' submit '0 1'    # srun found a node dead
check 143 'not started again' submit '0 143'
check 139 '' submit '0 139'
check 78 '' submit '0 78'
holds 'a lost rank or node is' requeued 12
: >started
for _ in 1 2 3; do check 137 '' submit dead; done
check 75 'not started again' submit dead
holds 'starts that took the script with them count, too' started 3
holds 'nothing is left in the folder of the job' test -z "$(find . -maxdepth 1 -name '*.stuck')"
export SLURM_RESTART_COUNT=0
check 0 '' submit run run.name=anew train.steps=2
check 0 'is kept in runs/anew/earlier-1' submit run run.name=anew train.steps=3 run.fresh=true
export SLURM_RESTART_COUNT=1
check 0 'this run is complete' submit run run.name=anew train.steps=3 run.fresh=true
export SLURM_RESTART_COUNT=2
check 0 'this run is complete' submit run run.name=anew train.steps=3 checkpoint.resume=no
# Another job, which was requeued before it had reached the run's folder.
export SLURM_JOB_ID=8 SLURM_RESTART_COUNT=1
check 78 'already holds a run' submit run run.name=anew train.steps=3 checkpoint.resume=no
check 0 'is kept in runs/anew/earlier-2' submit run run.name=anew train.steps=3 run.fresh=true
export SLURM_JOB_ID=7
unset SLURM_RESTART_COUNT
# If starts cannot be counted, as on a full disk, none is made: it might be the fourth, and the fifth, ...
: >queue; : >started
mkdir weft-7.stuck
check 74 'weft-7.stuck: not started without a count of starts' submit '0 75'
holds 'nothing was started, and nothing goes back to the queue' test ! -s started -a ! -s queue
rmdir weft-7.stuck
: >queue
check 137 '' submit '0 137' run.name=fresh
check 137 '' submit '0 137' run.name=fresh
check 137 'step 0' submit '0 137' run.name=fresh
holds 'also where there was no checkpoint at all' requeued 2
check 78 'optim.lrr' submit '0 0' optim.lrr=1
holds 'nothing is started of a configuration that is wrong' test ! -e runs/lrr
check 0 'runs/images/checkpoints/step-00000006.h5' "$WEFT" train --newest images.yaml
check 0 '' "$WEFT" train --newest images.yaml run.name=fresh
holds 'no checkpoint, no line' test ! -s out

# An array: the number of the last task is that of the whole array, which must not be requeued.
job=$jobs/slurm-array.sh
check 1 'SLURM_ARRAY_TASK_ID' submit run
export SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3
: >queue
check 0 '' submit run train.steps=2
check 0 '' submit run train.steps=2 run.dir=other
holds 'a task is a run of its own' test -e runs/images-3/checkpoints/step-00000002.h5
holds 'with a seed of its own' grep -q 'seed: 3$' runs/images-3/config.yaml
check 75 '' submit '0 75'
holds 'a task goes back to the queue alone' grep -qx 'requeue 7_3' queue
check 0 '' submit run train.steps=2
unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID

# One GPU for each rank, and every rank sees all GPUs.
job=$jobs/slurm-gpus.sh
: >started
check 78 '' submit '0 78'
holds 'GPUs are asked for' grep -q 'train.device=cuda$' started
holds 'and none is hidden' test "$(grep -c 'gpus-per-task' started)$(grep -c '^#SBATCH.*gpus-per-task' "$job")" = 00
: >queue

# Servers on separate nodes.
job=$jobs/slurm-servers.sh
export SLURM_JOB_NODELIST=n[1-3] SLURM_NTASKS_PER_NODE=2
: >started; : >queue; rm -f runs/images/checkpoints/*
check 75 '' submit '2 75'
holds 'ranks on two nodes, the server on the third' test "$(echo $(cat placed))" = 'n1 n1 n2 n2 n3'
holds 'as its words say' grep -q -- '--ntasks=5 .* train images.yaml grid.servers=1$' started
holds 'a run that stopped goes back to the queue' grep -qx 'requeue 7' queue
for code in 74 1; do check $code '' submit "0 $code"; done
holds 'and where a server, a node or a disk was lost' requeued 3
check 137 'not started again' submit '0 137'
check 137 '' submit '4 137'
holds 'three times without progress, not once more' requeued 4
for code in 0 64 65 66 70 71 78; do check $code '' submit "6 $code"; done
holds 'nor a run that is done, or that failed' requeued 4
: >started
for _ in 1 2 3; do check 137 '' submit dead; done
check 75 'not started again' submit dead
holds 'starts that took the script with them count, too' started 3
SERVERS=2 check 75 '' submit '0 75'
holds 'two servers' test "$(echo $(cat placed))" = 'n1 n1 n2 n3'
SERVERS=3 check 64 '3 servers leave none of 3 nodes' submit '0 75'
rm weft-7.stuck
holds 'and leaves nothing' test -z "$(find . -maxdepth 1 -name 'weft-7*')"
unset SLURM_JOB_NODELIST SLURM_NTASKS_PER_NODE
: >queue

# A chain of four jobs, each after the previous one.
job=$jobs/slurm-chain.sh
check 0 'link 4 of 4 is job 104' env -u SLURM_JOB_ID bash "$job" images.yaml 'run.name=a chain'
cat >expected <<TEXT
--parsable --job-name=weft-1-of-4 $job images.yaml run.name=a chain
--parsable --job-name=weft-2-of-4 --dependency=afterany:101 $job --chain 101 images.yaml run.name=a chain
--parsable --job-name=weft-3-of-4 --dependency=afterany:102 $job --chain 101 images.yaml run.name=a chain
--parsable --job-name=weft-4-of-4 --dependency=afterany:103 $job --chain 101 images.yaml run.name=a chain
TEXT
holds 'each link waits for the one before' cmp submitted expected
holds 'how to cancel them is said' grep -qx 'to cancel all: scancel 101 102 103 104' out
# link NUMBER PLAN WORDS...
link() {
    local first=()
    [ "$1" = 1 ] || first=(--chain 101)
    echo "$2" >plan
    SLURM_JOB_NAME=weft-$1-of-4 SLURM_JOB_ID=$((100 + $1)) bash "$job" "${first[@]}" images.yaml "${@:3}"
}
begin() { env -u SLURM_JOB_ID bash "$job" images.yaml "$@" >/dev/null; rm -f runs/images/checkpoints/*; : >started; }
begin
check 75 '' link 1 '2 75'
check 75 '' link 2 '4 75'
check 0 '' link 3 '6 0'
check 0 'nothing is left to do' link 4 '6 0'
holds 'a link behind the end starts nothing' started 3
begin
for i in 1 2; do check 75 '' link $i '0 75'; done
check 75 'not started again' link 3 '0 75'
check 75 'nothing is left to do' link 4 '2 75'
holds 'nor does one behind three without progress' started 3
begin
check 65 '' link 1 '0 65'
for i in 2 3 4; do check 65 'nothing is left to do' link $i '0 65'; done
begin
for i in 1 2 3; do check 75 '' link $i "$((2 * i)) 75"; done
check 75 'the run is not complete: submit it again' link 4 '0 75'
# Options for the first start apply to the first link.
for key in run.fresh=true checkpoint.resume=no; do
    words=(run.name=chained-${key%=*} train.steps=3 run.max_time=0.001s $key)
    begin "${words[@]}"
    for i in 1 2; do check 75 '' link $i run "${words[@]}"; done
    check 0 "resuming from runs/chained-${key%=*}/checkpoints/step-00000002.h5" link 3 run "${words[@]}"
    check 0 'nothing is left to do' link 4 run "${words[@]}"
done
holds 'a chain never goes back to the queue' requeued 0
holds 'and leaves nothing' test -z "$(find . -maxdepth 1 -name '*.chain')"
finish
