#!/usr/bin/env bash
# Trains under Slurm, and goes on by itself when the job's time is over.
#   sbatch jobs/slurm.sh jobs/fashion.yaml [key=value ...]        (sbatch's own options come before the script's name)
# weft asks Slurm when the job ends, and stops before that, as much earlier as its own steps and saves take: it saves a
# checkpoint and ends with 75, "start me again", and the job goes back to the queue. The same command then goes on from that
# checkpoint, also on other nodes or another number of them, with the same bits. So it does where a rank was killed (srun then
# says 137, whatever the others say): memory ran out, or a node failed; 138 is a USR1 that came before weft had begun. A run
# that is complete, or that failed, is not started again; nor is one that ended twice without a newer checkpoint, for a third
# time would end likewise.
#SBATCH --job-name=weft
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
# --signal is for where nodes cannot ask (no squeue there). Without "B:" it goes to the ranks and not to this script. Slurm sends
# it once, up to a minute early, and to nobody where no rank has been started yet.
# --requeue lets Slurm start the job again after a node has failed, too. --cpus-per-task: what train.threads may be.
weft=${WEFT:-weft}
stuck=weft-$SLURM_JOB_ID.stuck # in the job's folder: the last start brought no newer checkpoint

# The step of the run's newest checkpoint, 0 where it has none.
steps() {
    local path
    path=$("$weft" train --newest "$@") || return
    path=${path##*step-}
    echo $((10#0${path%.h5}))
}

before=$(steps "$@") || exit
# pmix is what Open MPI needs (`srun --mpi=list` shows what a cluster has). Newer Slurm no longer hands --cpus-per-task on.
srun --mpi=pmix --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "$weft" train "$@"
code=$?
case $code in 75 | 137 | 138) ;; *) rm -f "$stuck"; exit $code;; esac
after=$(steps "$@") || exit $code
if [ "$after" -gt "$before" ]; then
    rm -f "$stuck"
elif [ -e "$stuck" ]; then
    echo "not started again: twice in turn there was no checkpoint newer than that of step $before" >&2
    rm -f "$stuck"
    exit $code
else
    echo "$before" >"$stuck"
fi
scontrol requeue "$SLURM_JOB_ID"
exit $code
