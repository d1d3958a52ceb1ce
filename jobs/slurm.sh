#!/usr/bin/env bash
# Trains under Slurm, and goes on by itself when the job's time is over.
#   sbatch jobs/slurm.sh jobs/fashion.yaml [key=value ...]        (sbatch's own options come before the script's name)
# Two minutes before the time limit Slurm sends USR1 to the ranks: weft saves a checkpoint and ends with 75, "start me again",
# and the job goes back to the queue. The same command then goes on from that checkpoint, also on other nodes or another
# number of them, with the same bits. A run that is complete, or that failed, is not started again.
#SBATCH --job-name=weft
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
# --signal without "B:" signals the ranks and not this script. Give it longer where a step or a checkpoint takes minutes.
# --requeue lets Slurm start the job again after a node has failed, too. --cpus-per-task: what train.threads may be.

# pmix is what Open MPI needs (`srun --mpi=list` shows what a cluster has). Newer Slurm no longer hands --cpus-per-task on.
srun --mpi=pmix --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "${WEFT:-weft}" train "$@"
code=$?
[ $code = 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
