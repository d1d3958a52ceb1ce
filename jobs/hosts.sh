#!/usr/bin/env bash
# Trains on hosts without Slurm.
#   bash jobs/hosts.sh HOSTFILE CONFIG [key=value ...]
# Written by `weft sbatch`.
# Trains by mpirun on the hosts of a file, one a line: NAME slots=RANKS. Each start leaves what
# each rank said in a file of its own, in a folder with a number. A run that stopped (75: after
# run.max_time, or a rank was lost) is started again and goes on from its newest checkpoint;
# one that is complete, or that failed, is not; nor is one that three starts in turn brought
# no newer checkpoint. SIGTERM, SIGINT and SIGHUP to this script stop the run, saved, and it
# ends with 75. The hosts need a shared folder, this one, and ssh between them without a
# password.

weft=${WEFT:-weft}
hosts=$1
shift
name=weft
stopped='' mpirun='' state='' number=0
# Every second, for what is only starting may miss a signal, or be killed by it.
tell() { while kill -USR1 "$mpirun" && sleep 1; do :; done >/dev/null 2>&1 & }
hear() { stopped=yes; [ -z "$mpirun" ] || tell; }
trap hear TERM INT HUP
mpirun --version 2>&1 | grep -q 'Open MPI' || [ "$stopped" ] || { echo 'no mpirun of Open MPI is on the PATH' >&2; exit 64; }
[ -f "$hosts" ] && [ -r "$hosts" ] || { echo "$hosts: no such host file; it is a plain file, a line of it: NAME slots=RANKS" >&2; exit 66; }
# What the signal has ended, too, is no failure.
finish() {
    rm -f "$state"
    [ -z "$stopped" ] || ! goes_on "$1" || exit 75
    exit "$1"
}

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
options=(--hostfile "$hosts" --map-by slot --bind-to none)
# Hosts start with a fresh environment.
[ -z "${LD_LIBRARY_PATH:-}" ] || options+=(-x LD_LIBRARY_PATH)

state=$(mktemp) || finish 74
logs=$name-logs/$(date +%Y-%m-%d-%H%M%S)-$$
# One run for weft: what run.fresh and checkpoint.resume=no say holds for the first start.
run=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
options+=(-x WEFT_RUN)
until [ "$stopped" ]; do
    count_start "$@"
    mkdir -p "$logs/$((number += 1))" || finish 74
    export WEFT_RUN=$run:$number
    [ -z "$stopped" ] || break
    # mpirun passes USR1 on, and ends the ranks itself on any other signal: so it has a
    # process group of its own, which a terminal's signals do not reach.
    set -m
    mpirun "${options[@]}" --output-filename "$logs/$number" "$weft" train "$@" </dev/null &
    mpirun=$!
    set +m
    [ -z "$stopped" ] || tell
    # A signal ends the wait, too, perhaps as mpirun ends.
    while wait $mpirun; code=$?; kill -0 $mpirun 2>/dev/null; do :; done
    [ -z "$stopped" ] || { wait $mpirun; last=$?; [ $last = 127 ] || code=$last; }
    mpirun=
    judge "$@"
    [ "$stopped" ] || [ "$code" = 75 ] || { sleep 5 & wait $!; }
done
finish 75
