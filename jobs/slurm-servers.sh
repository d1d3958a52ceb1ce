#!/usr/bin/env bash
# Trains under Slurm with servers on separate nodes: the last SERVERS (1) nodes run one server each, which has all memory of its node
# for rows. The other nodes run --ntasks-per-node ranks each, which compute.
#   sbatch jobs/slurm-servers.sh jobs/wide-deep.yaml [key=value ...]      SERVERS=2 sbatch --nodes 6 ...: 4 nodes compute, 2 serve
# The job goes back to the queue as in slurm.sh, with the same functions.
#SBATCH --job-name=weft
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
set -u
weft=${WEFT:-weft} servers=${SERVERS:-1} tasks=${SLURM_NTASKS_PER_NODE:-1}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
compute=$((${#nodes[@]} - servers))
[ "$compute" -gt 0 ] || { echo "$servers servers leave none of ${#nodes[@]} nodes to compute" >&2; exit 64; }

set -- "$@" "grid.servers=$servers"
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

count_start "$@"
# One line per rank: servers are the last ranks of a job.
export SLURM_HOSTFILE=weft-$job.hosts
for ((i = 0; i < compute; ++i)); do for ((k = 0; k < tasks; ++k)); do echo "${nodes[i]}"; done; done >"$SLURM_HOSTFILE"
for ((i = compute; i < ${#nodes[@]}; ++i)); do echo "${nodes[i]}"; done >>"$SLURM_HOSTFILE"
ranks=$(wc -l <"$SLURM_HOSTFILE")

export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
srun --mpi=pmix --kill-on-bad-exit=1 --distribution=arbitrary --ntasks="$ranks" "$weft" train "$@"
code=$?
rm -f "$SLURM_HOSTFILE"
judge "$@"
scontrol requeue "$job" || echo "the job cannot go back to the queue: submit it again" >&2
exit $code
