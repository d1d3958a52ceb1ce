#!/usr/bin/env bash
# Trains on hosts without Slurm.
#   bash jobs/hosts.sh HOSTFILE CONFIG [key=value ...]
# Written by `weft sbatch`.
# Trains by mpirun on the hosts of a file with one host per line: NAME slots=RANKS. Each start
# writes the output of each rank to a file, in a folder with a number. A run that has stopped (75:
# after run.max_time, or because a rank was lost) is started again and resumes from its newest
# checkpoint. A run that is complete or has failed is not started again; nor is one after three
# consecutive starts without a newer checkpoint. SIGTERM, SIGINT and SIGHUP to this script stop the
# run, which saves a checkpoint, and the script ends with 75. The hosts need this folder as a shared
# folder, and ssh to each other without a password.

weft=${WEFT:-weft}
hosts=$1
shift
name=weft
stopped='' mpirun='' state='' number=0
# Sends the stop request every second, because a process that is starting may miss a signal.
request_stop() { while kill -USR1 "$mpirun" && sleep 1; do :; done >/dev/null 2>&1 & }
receive_stop() { stopped=yes; [ -z "$mpirun" ] || request_stop; }
trap receive_stop TERM INT HUP
mpirun --version 2>&1 | grep -q 'Open MPI' || [ "$stopped" ] || { echo 'no mpirun of Open MPI is on the PATH' >&2; exit 64; }
[ -f "$hosts" ] && [ -r "$hosts" ] || { echo "$hosts: no such host file; it is a plain file, a line of it: NAME slots=RANKS" >&2; exit 66; }
# A command that was ended by the signal is not a failure.
finish() {
    rm -f "$state"
    [ -z "$stopped" ] || ! goes_on "$1" || exit 75
    exit "$1"
}

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
options=(--hostfile "$hosts" --map-by slot --bind-to none)
# The other hosts start with a fresh environment.
[ -z "${LD_LIBRARY_PATH:-}" ] || options+=(-x LD_LIBRARY_PATH)

state=$(mktemp) || finish 74
logs=$name-logs/$(date +%Y-%m-%d-%H%M%S)-$$
# All starts are one run for weft: run.fresh and checkpoint.resume=no apply to the first.
run=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
options+=(-x WEFT_RUN)
until [ "$stopped" ]; do
    count_start "$@"
    mkdir -p "$logs/$((number += 1))" || finish 74
    export WEFT_RUN=$run:$number
    [ -z "$stopped" ] || break
    # mpirun forwards USR1 to the ranks, and ends them on any other signal. Therefore it gets a
    # separate process group, which the signals of a terminal do not reach.
    set -m
    mpirun "${options[@]}" --output-filename "$logs/$number" "$weft" train "$@" </dev/null &
    mpirun=$!
    set +m
    [ -z "$stopped" ] || request_stop
    # A signal also interrupts wait, perhaps while mpirun ends.
    while wait $mpirun; code=$?; kill -0 $mpirun 2>/dev/null; do :; done
    [ -z "$stopped" ] || { wait $mpirun; last=$?; [ $last = 127 ] || code=$last; }
    mpirun=
    judge "$@"
    [ "$stopped" ] || [ "$code" = 75 ] || { sleep 5 & wait $!; }
done
finish 75
