#!/usr/bin/env bash
# jobs/slurm.sh without Slurm: which ends send the job back to the queue. srun and scontrol are stand-ins; weft is real.
job=$(cd "$(dirname "$0")/../../jobs" && pwd)/slurm.sh
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
make_images

# What srun does in this test is in the file `plan`: "run" trains; "STEP CODE" leaves the checkpoint of that step, of a run that
# was made before, and answers the code; STEP 0 leaves none.
mkdir -p bin runs/lenet/checkpoints
check 0 '' "$WEFT" train lenet.yaml run.name=stock train.steps=6 checkpoint.every_steps=2 checkpoint.keep=0
cat >bin/srun <<'SH'
#!/bin/sh
read -r step code <plan
while [ "${1#--}" != "$1" ]; do shift; done
[ "$step" != run ] || exec "$@"
[ "$step" = 0 ] || cp "runs/stock/checkpoints/step-0000000$step.h5" runs/lenet/checkpoints || exit
exit "$code"
SH
cat >bin/scontrol <<'SH'
#!/bin/sh
echo "$*" >>queue
SH
chmod +x bin/srun bin/scontrol
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 WEFT
# submit PLAN WORDS... : the job, and what srun does in it.
submit() { echo "$1" >plan; shift; bash "$job" lenet.yaml "$@"; }
requeued() { [ "$(wc -l <queue)" = "$1" ]; }
: >queue

check 0 '' submit run run.name=done train.steps=2
holds 'a run that is done is not started again' requeued 0
check 75 '' submit '2 75'
holds 'a run that stopped is' requeued 1
holds 'this job' grep -qx 'requeue 7' queue
check 137 '' submit '4 137'
holds 'and one of which a rank was killed' requeued 2
check 138 '' submit '0 138' # USR1 before weft had begun
holds 'once without a newer checkpoint: that may have been a node, or a signal too early' requeued 3
check 137 'not started again' submit '0 137'
holds 'but not twice' requeued 3
check 75 '' submit '0 75'
check 75 '' submit '6 75'
check 75 '' submit '0 75'
holds 'progress in between counts' requeued 6
check 75 'not started again' submit '0 75'
holds 'a stop without progress is one, too' requeued 6
for code in 1 65 70 71 74 78 143; do check $code '' submit "0 $code"; done
holds 'a run that failed is not started again' requeued 6
holds 'nothing is left in the folder of the job' test -z "$(find . -maxdepth 1 -name '*.stuck')"
export SLURM_RESTART_COUNT=0
check 0 '' submit run run.name=anew train.steps=2
check 0 'is kept in runs/anew/earlier-1' submit run run.name=anew train.steps=3 run.fresh=true
export SLURM_RESTART_COUNT=1
check 0 'this run is complete' submit run run.name=anew train.steps=3 run.fresh=true
unset SLURM_RESTART_COUNT
check 137 '' submit '0 137' run.name=fresh
check 137 'step 0' submit '0 137' run.name=fresh
holds 'also where there was no checkpoint at all' requeued 7
check 78 'optim.lrr' submit '0 0' optim.lrr=1
holds 'nothing is started of a configuration that is wrong' test ! -e runs/lrr
check 0 'runs/lenet/checkpoints/step-00000006.h5' "$WEFT" train --newest lenet.yaml
check 0 '' "$WEFT" train --newest lenet.yaml run.name=fresh
holds 'no checkpoint, no line' test ! -s out
finish
