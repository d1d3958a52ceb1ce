#!/usr/bin/env bash
# Trains under Slurm in a chain of 4 jobs, each of which continues where the previous one ended.
#   bash jobs/slurm-chain.sh CONFIG [key=value ...]
# Written by `weft sbatch`.
# weft asks Slurm when the job ends. It saves a checkpoint early enough, which depends on the time
# of its steps and saves, and ends with 75: "start me again". The next start resumes from that
# checkpoint, also on other nodes or on another number of nodes, with the same bits. A run that is
# complete or has failed is not started again. After three consecutive starts without a newer
# checkpoint there is no fourth, because it would end in the same way.
#SBATCH --job-name=weft
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
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
# --mem is left out: the cluster's default applies. `weft sbatch CONFIG` plans it.

self=$(realpath -- "$0") first=
[ "${1:-}" != --chain ] || { first=$2; shift 2; }
given=("$@")
weft=${WEFT:-weft}
links=4 name=weft
# All links share this state file.
state=weft-$(printf '%s\n' "$@" | cksum | cut -d' ' -f1).chain
if [ -z "${SLURM_JOB_ID:-}" ]; then
    [ -f "$self" ] || { echo "a chain is begun by its file's name: bash FILE" >&2; exit 64; }
    rm -f "$state"
    dependency=() first=() ids=()
    for ((link = 1; link <= links; ++link)); do
        id=$(sbatch --parsable --job-name="$name-$link-of-$links" "${dependency[@]}" "$self" "${first[@]}" "${given[@]}") || exit
        id=${id%%;*}
        ids+=("$id")
        echo "link $link of $links is job $id"
        dependency=(--dependency="afterany:$id") first=(--chain "${ids[0]}")
    done
    echo "to cancel all: scancel ${ids[*]}"
    exit
fi
# All links are one run for weft: run.fresh and checkpoint.resume=no apply to the first link.
if [[ $SLURM_JOB_NAME == *-of-$links ]]; then
    link=${SLURM_JOB_NAME%-of-*}
    export WEFT_RUN=$(printf '%016d:%d' "${first:-$SLURM_JOB_ID}" "${link##*-}")
fi
# Records the end in the state file, so that the links that are left end at once.
finish() {
    if is_last; then rm -f "$state"; else echo "over $1" >"$state"; fi
    exit "$1"
}
is_last() { [[ $SLURM_JOB_NAME != *-of-$links || $SLURM_JOB_NAME == *-$links-of-$links ]]; }
word='' number=''
[ ! -e "$state" ] || read -r word number <"$state"
if [ "$word" = over ]; then
    echo "nothing is left to do: an earlier job of this chain ended with $number"
    finish "$number"
fi

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
srun --mpi=pmix --kill-on-bad-exit=1 --distribution=block "$weft" train "$@"
code=$?
judge "$@"
if is_last; then
    echo 'the chain is over, and the run is not complete: submit it again' >&2
    rm -f "$state"
fi
exit $code
