#!/usr/bin/env bash
# Trains under Slurm on several nodes with GPUs, and starts itself again when the job's time is over.
#   sbatch jobs/slurm-gpus.sh CONFIG [key=value ...]   (sbatch's own options come before the script's name)
# Written by `weft sbatch`.
# weft asks Slurm when the job ends. It saves a checkpoint early enough, which depends on the time
# of its steps and saves, and ends with 75: "start me again". The next start resumes from that
# checkpoint, also on other nodes or on another number of nodes, with the same bits. A run that is
# complete or has failed is not started again. After three consecutive starts without a newer
# checkpoint there is no fourth, because it would end in the same way.
#SBATCH --job-name=weft
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=4
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
# --signal: for clusters whose nodes have no squeue, so that weft cannot ask for the end of the job.
# Without "B:" the ranks receive the signal, and this script does not. Slurm sends it once, up to a
# minute early, and only if ranks have been started. --requeue lets Slurm also start the job again
# after a node has failed; --open-mode=append then keeps the log. --cpus-per-task: largest possible
# train.threads.
# Each rank uses one GPU and sees all GPUs of its node: --gpus-per-task would hide each GPU from the
# other ranks, and NCCL could not use NVLink.
# --mem is left out: the cluster's default applies. `weft sbatch CONFIG` plans it.

weft=${WEFT:-weft}
# Arguments of this script replace the words below that have the same key.
defaults=(train.device=cuda)
for word in "${defaults[@]}"; do
    for other in "$@"; do [ "${other%%=*}" != "${word%%=*}" ] || continue 2; done
    set -- "$@" "$word"
done
job=$SLURM_JOB_ID
state=weft-$job.stuck
finish() { rm -f "$state"; exit "$1"; }

# Prints the step of the run's newest checkpoint; 0: there is none.
steps() {
    local path
    path=$("$weft" train --newest "$@") || return
    path=${path##*step-}
    echo $((10#0${path%.h5}))
}
# Counts this start. File $state: the step at which the last starts began, and their number.
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
# Succeeds if another start may help: the run has stopped (75); a rank, a node or a disk was
# lost (74); a process was killed (above 128: out of memory, a failed node, a signal before weft
# had begun); or the ranks could not be started (1).
goes_on() { case $1 in 1 | 74 | 75 | 129 | 1[3-9]? | 2[0-9][0-9]) ;; *) return 1;; esac; }
# Returns if another start is to follow, else ends the script.
judge() {
    local after
    goes_on "$code" || finish "$code"
    after=$(steps "$@") || finish "$code"
    if [ "$after" -gt "$before" ]; then rm -f "$state"; elif [ $starts -ge 3 ]; then give_up "$code"; fi
}

# Newer versions of Slurm do not pass --cpus-per-task on to srun. --mpi: `srun --mpi=list`
# lists what the cluster supports. --kill-on-bad-exit: the other ranks do not wait for a dead
# one. --distribution=block: ranks with neighbouring numbers exchange most, so they share a
# node.
count_start "$@"
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
srun --mpi=pmix --kill-on-bad-exit=1 --distribution=block --gpu-bind=none "$weft" train "$@"
code=$?
judge "$@"
scontrol requeue "$job" || echo "the job cannot go back to the queue: submit it again" >&2
exit $code
