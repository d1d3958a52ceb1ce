#!/usr/bin/env bash
# Trains under Slurm in a chain of 4 jobs, each of which goes on where the last one ended.
#   bash jobs/slurm-chain.sh CONFIG [key=value ...]
# Written by `weft sbatch`.
# weft asks Slurm when the job ends, and stops before that, as much earlier as its own steps
# and saves take: it saves a checkpoint and ends with 75, "start me again". The next start
# goes on from that checkpoint, also on other nodes or another number of them, with the same
# bits. A run that is complete, or that failed, is not started again; nor is one that three
# starts in turn brought no newer checkpoint, for a fourth would end likewise.
#SBATCH --job-name=weft
#SBATCH --nodes=2
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

self=$(realpath -- "$0") first=
[ "${1:-}" != --chain ] || { first=$2; shift 2; }
given=("$@")
weft=${WEFT:-weft}
links=4 name=weft
# The links have it in common.
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
# One run for weft: what run.fresh and checkpoint.resume=no say holds for the first link.
if [[ $SLURM_JOB_NAME == *-of-$links ]]; then
    link=${SLURM_JOB_NAME%-of-*}
    export WEFT_RUN=$(printf '%016d:%d' "${first:-$SLURM_JOB_ID}" "${link##*-}")
fi
# The links that are left are told, and end at once.
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
if is_last; then
    echo 'the chain is over, and the run is not complete: submit it again' >&2
    rm -f "$state"
fi
exit $code
