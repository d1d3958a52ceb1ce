#!/usr/bin/env bash
# Trains under Slurm on one node, and goes on by itself when the job's time is over.
#   sbatch jobs/slurm-one-node.sh CONFIG [key=value ...]   (sbatch's own options come before the script's name)
# Written by `weft sbatch`.
# weft asks Slurm when the job ends, and stops before that, as much earlier as its own steps
# and saves take: it saves a checkpoint and ends with 75, "start me again". The next start
# goes on from that checkpoint, also on other nodes or another number of them, with the same
# bits. A run that is complete, or that failed, is not started again; nor is one that three
# starts in turn brought no newer checkpoint, for a fourth would end likewise.
#SBATCH --job-name=weft
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
# --signal is for where nodes cannot ask (no squeue there). Without "B:" it goes to the ranks
# and not to this script. Slurm sends it once, up to a minute early, and to nobody where no
# rank has been started yet. --requeue lets Slurm start the job again after a node has failed,
# too; --open-mode=append keeps the log then. --cpus-per-task: what train.threads may be.
# --mem is not said: it is the cluster's default, or what `weft sbatch CONFIG` plans.

weft=${WEFT:-weft}
job=$SLURM_JOB_ID
state=weft-$job.stuck
finish() { rm -f "$state"; exit "$1"; }

# The step of the run's newest checkpoint, 0 where it has none.
steps() {
    local path
    path=$("$weft" train --newest "$@") || return
    path=${path##*step-}
    echo $((10#0${path%.h5}))
}
# Counts this start. $state: the step that the last starts began at, and how many they were.
count_start() {
    local step=none
    starts=0
    before=$(steps "$@") || finish $?
    [ ! -e "$state" ] || read -r step starts <"$state"
    [ "$step" = "$before" ] || starts=0
    [ $((starts += 1)) -le 3 ] || give_up 75
    echo "$before $starts" >"$state" || { echo "$state: not started without a count of starts" >&2; finish 74; }
}
give_up() {
    echo "not started again: three times in turn there was no checkpoint newer than that of step $before" >&2
    finish "$1"
}
# Another start may go on: the run stopped (75), a rank, a node or a disk was lost (74), a
# process was killed (above 128: memory ran out, a node failed, a signal came before weft had
# begun), the ranks could not be started (1).
goes_on() { case $1 in 1 | 74 | 75 | 129 | 1[3-9]? | 2[0-9][0-9]) ;; *) return 1;; esac; }
# Returns where another start is to be made.
judge() {
    local after
    goes_on "$code" || finish "$code"
    after=$(steps "$@") || finish "$code"
    if [ "$after" -gt "$before" ]; then rm -f "$state"; elif [ $starts -ge 3 ]; then give_up "$code"; fi
}

# Newer Slurm does not hand --cpus-per-task on to srun. --mpi: `srun --mpi=list` shows what a
# cluster has. --kill-on-bad-exit: where one rank is dead the others do not wait for it.
# Neighbours in number talk most, so they share a node.
count_start "$@"
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
srun --mpi=pmix --kill-on-bad-exit=1 --distribution=block "$weft" train "$@"
code=$?
judge "$@"
scontrol requeue "$job" || echo "the job cannot go back to the queue: submit it again" >&2
exit $code
