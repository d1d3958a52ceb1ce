# The black-box tests of the executable source this file. It sets $WEFT (default build/weft), makes
# a temporary folder, $dir, and goes there, and defines checks, which count in $passed and $failed.
set -eu
WEFT=${WEFT:-build/weft}
case $WEFT in /*) ;; *) WEFT=$PWD/$WEFT;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_SIZE PMI_RANK SLURM_STEP_NUM_TASKS 2>/dev/null || true
export LC_ALL=C.UTF-8 # in other locales bash does not write $'\u00e9' as a character
export OMPI_MCA_odls_base_sigkill_timeout=0 # otherwise mpirun waits two seconds after ranks have failed
passed=0 failed=0

# check CODE TEXT COMMAND... : runs the command and checks that its exit code is CODE and that
# stdout and stderr together contain TEXT, a fixed string. Leaves them in the files out, err and
# both.
check() {
    local code=$1 text=$2 rc=0 said
    shift 2
    "$@" >out 2>err </dev/null || rc=$?
    cat out err >both
    IFS= read -rd '' said <both || true # in most cases the text is found without another process
    if [ "$rc" = "$code" ] && { [[ $said == *"$text"* ]] || grep -qF -- "$text" both; }; then passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*"; echo "  wanted exit $code and '$text', got exit $rc and:"; sed 's/^/  | /' both
    fi
}
# holds DESCRIPTION COMMAND... : checks that the command succeeds.
holds() {
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}
# soon COMMAND... : repeats the command for up to two minutes, until it succeeds. If it never does,
# prints the ends of the files log and out, and fails.
soon() {
    local n file
    for ((n = 0; n < 2400; ++n)); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "FAILED: not within two minutes: $*"
    for file in log out; do
        if [ -s $file ]; then tail -n 20 $file | sed 's/^/  | /'; fi
    done
    return 1
}
# background FILES COMMAND... : starts the command with an empty stdin; $! is its process. FILES: a file for stdout and stderr, or OUT,ERR.
# Both are emptied before the command starts: until a process has opened its output, the file would have the text of the one before.
background() {
    local out=${1%,*} err=${1#*,}
    : >"$out" 2>"$err"
    "${@:2}" >>"$out" 2>>"$err" </dev/null &
}
# own PATTERN : prints the ids of the processes that run in $dir and whose command lines match.
# Fails if there is none.
own() {
    local p found=1
    for p in $(pgrep -f "$1"); do
        if [ "/proc/$p/cwd" -ef "$dir" ]; then echo "$p"; found=0; fi
    done
    return $found
}
# rank_pids WORDS : prints a line "RANK PID" for each rank of `weft train WORDS` that runs in $dir;
# with $verb set, of `weft $verb WORDS`. WORDS: pattern of the first arguments.
rank_pids() {
    local p
    for p in $(own "^$WEFT ${verb:-train} $1"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n "s/^OMPI_COMM_WORLD_RANK=\(.*\)/\1 $p/p"
    done | sort -n
}
# rank_pid WORDS RANK : prints the process id of one of these ranks.
rank_pid() { rank_pids "$1" | sed -n "s/^$2 //p"; }
# mpi N WORDS... : runs weft with arguments WORDS on N ranks, for at most two minutes.
mpi() { timeout -k 5 120 mpirun --oversubscribe --bind-to none -n "$1" "$WEFT" "${@:2}"; }
# at RUN STEP : prints the path of the run's checkpoint of that step.
at() { printf 'runs/%s/checkpoints/step-%08d.h5' "$1" "$2"; }
# counted STEPS RANKS WORDS... : checks that the run of job.yaml that `check` has just made (the
# file both has its output) sent as many requests for tables as the plan predicts. WORDS: overrides.
counted() {
    local each
    each=$("$WEFT" plan job.yaml --json --ranks "$2" "${@:3}" | grep -o '"table_requests_in_a_step": [0-9]*' | grep -o '[0-9]*$')
    holds "$2 ranks ${*:3}: $each requests a step" grep -q "; $(($1 * each)) requests for " both
}
# same STEP RUN RUN : checks that the two runs' checkpoints of that step have the same bits.
same() { check 0 'to the bit' "$WEFT" ckpt diff "$(at "$2" "$1")" "$(at "$3" "$1")"; }
# stop_in_turn PID CONFIG : waits for a background process, which runs `weft train CONFIG` on
# several ranks. Until it ends, suspends one rank after another for 0.03 s. Returns its exit code.
stop_in_turn() {
    local victim ranks= stops=0
    while kill -0 "$1" 2>/dev/null; do
        [ $stops -gt 40 ] || ranks=$(rank_pids "$2" | cut -d' ' -f2) # after 40 stops all ranks have started
        for victim in $ranks; do
            kill -STOP "$victim" 2>/dev/null || continue
            stops=$((stops + 1))
            sleep 0.03
            kill -CONT "$victim" 2>/dev/null || true
        done
        sleep 0.02
    done
    holds 'ranks stood still' test $stops -gt 0
    wait "$1"
}
# needs_pictures DESCRIPTION : fails if this build lacks a decoder of a format of pictures, and
# prints that the described part is skipped.
needs_pictures() {
    case $("$WEFT" --version) in
    *"pictures:"*" no "*) echo "  skipped: $1: this build lacks a format of pictures"; return 1 ;;
    esac
}
# finish : prints the counts of checks, and fails if a check has failed or there was none. Every
# test ends with it.
finish() {
    echo "$(basename "$0"): $passed passed, $failed failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
