#!/usr/bin/env bash
# Runs the GPU tests and benchmarks in stages, for a GPU that is available only for a few minutes; one call runs one stage. The machine
# needs CUDA's libraries (a PyTorch has them) and this repository with the archive that `make lease` builds (.lease/weft.tgz).
#
# usage: bench/lease.sh [STAGE...]   several run one after the other, while time is left; without STAGE: the first stage that has no row with "N of N passed" in bench/results/leases.md
#   1  right?        every operation, compared with the CPU's, twice with random seeds; models; first rates
#   2  safe?         compute-sanitizer; a user's commands on the GPU and on the CPU; the largest micro-batch; memory compared with the plan
#   3  gpt2, lenet   compared with PyTorch; milliseconds of each kernel
#   4  resnet50      compared with PyTorch; memory-bound kernels compared with a device copy
#   5  NCCL          alone; ranks that share the GPU, through host memory and by NCCL
#   6  a cure        compares two settings or builds (before, after, before), then tests the operations. AFTER="NAME=VALUE key=value ...":
#                    environment and keys of "after", as AFTER=WEFT_ATTENTION_SCRATCH=256; or .lease/before.tgz, an archive of the
#                    build "before" (from its tree: make lease LEASE=.lease/before.tgz)
#      WORKLOAD=gpt2|resnet50|lenet
#
#   OUT=FOLDER        empty folder for all results, at most 8 files of at most 16 MiB (default: a new folder in out/)
#   STAGE_S=540       seconds of the whole call, including unpacking; commands that do not fit are left out and listed
#   LIMIT=SECONDS     an upper bound on each command's own time limit
#   REHEARSE=1        tests this script: on the emulated GPU (make build/emulated/weft build/tests/cuda/test_cuda_emulated
#                     build/tests/cuda/test_nccl_emulated), with tiny models
# Exit 0: every command passed; 1: some did not; 64: no such stage; 66: no archive; 77: no GPU.
set -u
cd "$(dirname "$0")/.." || exit 70
here=$PWD
rehearse=${REHEARSE:-} stage_s=${STAGE_S:-540} limit=${LIMIT:-100000} workload=${WORKLOAD:-gpt2}
file_bytes=${FILE_BYTES:-16000000} last_stage=6
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

stop() { echo "bench/lease.sh: $2" >&2; exit "$1"; }
# Prints the stages that have a row in which all commands passed: "9 of 9 passed".
ran() {
    awk -F'|' '$5 ~ /^ *[0-9]+ *$/ && match($6, /[0-9]+ of [0-9]+ passed/) {
        split(substr($6, RSTART, RLENGTH), word, " ")
        if (word[1] + 0 > 0 && word[1] + 0 == word[3] + 0) print $5 + 0
    }' bench/results/leases.md 2>/dev/null
}
first_left() { # STAGE...: prints the first stage that has not passed, apart from STAGE...; the last stage if all have
    local s
    for ((s = 1; s < last_stage; s++)); do ran | cat - <(printf '%s\n' "$@") | grep -qx "$s" || break; done
    echo "$s"
}
# Several stages: each is a call of this script with the time that is left; its files become one archive, its output is in `console`.
if [ $# -gt 1 ]; then
    for s; do case $s in [1-6]) ;; *) exec "$0" "$s" ;; esac; done
    OUT=${OUT:-out/stages-$(date +%m%d-%H%M%S)}
    mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 74
    [ -z "$(ls -A "$OUT")" ] || stop 64 "OUT=$OUT is not empty: name another folder"
    parts=$(mktemp -d) rc=0
    trap 'rm -rf "$parts"' EXIT
    for s; do
        left=$((stage_s - SECONDS))
        [ "$left" -ge 30 ] || { echo "stage $s: left out: the $stage_s s are over" | tee -a "$OUT/console"; rc=1; continue; }
        STAGE_S=$left OUT=$parts/stage$s "$0" "$s" 2>&1 | tee -a "$OUT/console"
        [ "${PIPESTATUS[0]}" = 0 ] || rc=1
        [ ! -d "$parts/stage$s" ] || tar -C "$parts" -czf "$OUT/stage$s.tgz" "stage$s"
    done
    exit $rc
fi
stage=${1:-$(first_left)}
case $stage in [1-6]) ;; *) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 64;; esac
OUT=${OUT:-out/stage$stage-$(date +%m%d-%H%M%S)}
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 74
[ -z "$(ls -A "$OUT")" ] || stop 64 "OUT=$OUT is not empty: name another folder, as what lies there would be packed"
log=$OUT/stage$stage.log
work=$(mktemp -d)
: >"$log"

# ---- commands, each under a time limit ----

names=() ends=()
say() { echo "$*" | tee -a "$log"; }
remaining() { echo $((stage_s - SECONDS)); }
# Prints the processes of a session: all that a command has started, in any process group.
session_processes() { # SESSION
    local stat line
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        set -- "$1" ${line##*) }
        [ "$5" = "$1" ] && echo "$stat" | cut -d/ -f3
    done
}
# run WHAT SECONDS COMMAND... : standard output goes to $to if it is set, all else to the log. Processes that are left are killed.
child=
run() {
    local what=$1 seconds=$2 rc=0 start=$SECONDS left pids before
    shift 2
    [ "$seconds" -le "$limit" ] || seconds=$limit
    left=$(remaining)
    names+=("$what")
    if [ "$left" -lt 5 ]; then
        ends+=("left out: the stage's $stage_s s are over")
        return 1
    fi
    [ "$seconds" -le "$left" ] || seconds=$left
    say "== $what: at most $seconds s: $*"
    before=$(stat -c %s "$log")
    setsid timeout -k 5 "$seconds" "$@" >>"${to:-$log}" 2>>"$log" </dev/null &
    child=$!
    { wait $child; rc=$?; } 2>/dev/null
    pids=$(session_processes $child)
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
    child=
    # a test program that sees no GPU skips its tests and exits with 0, which is a failure here
    if [ $rc = 0 ] && tail -c +$((before + 1)) "$log" | grep -q 'skipped: no GPU'; then rc=77; fi
    case $rc in
    0) ends+=("passed, $((SECONDS - start)) s") ;;
    124 | 137) ends+=("ENDED after $seconds s, its time limit") ;;
    *) ends+=("FAILED, exit $rc, $((SECONDS - start)) s") ;;
    esac
    say "   ${ends[-1]}"
    return $rc
}
to_file() { local to=$OUT/$1; shift; run "$@"; } # FILE WHAT SECONDS COMMAND...
# Finds a tool of CUDA in PATH or CUDA_HOME; a rehearsal works without it.
tool() { # NAME -> its path, in $found
    found=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:${CUDA_HOME:-/usr/local/cuda}/compute-sanitizer command -v "$1")
    [ -n "$found" ] || { say "   no $1 in PATH or ${CUDA_HOME:-/usr/local/cuda}/bin"; [ -n "$rehearse" ]; }
}

# ---- the files of results ----

# Leaves at most 8 files: those without a fixed name go to one archive. Of a long file only the end is kept.
bound_files() {
    local f keep=() more=()
    for f in "$OUT"/*; do
        if [ -f "$f" ] && [ "$(stat -c %s "$f")" -gt "$file_bytes" ]; then
            tail -c $((file_bytes - 1000)) "$f" >"$work/end"
            { echo "(the last $((file_bytes - 1000)) of $(stat -c %s "$f") bytes)"; cat "$work/end"; } >"$f"
        fi
        case ${f##*/} in
        stage*.log | report.md | lines | failed | check | kernels.csv | lt.log) keep+=("$f") ;;
        *) more+=("${f##*/}") ;;
        esac
    done
    # at most seven files and the archive
    for f in "${keep[@]:7}"; do more+=("${f##*/}"); done
    [ ${#more[@]} -gt 0 ] || return 0
    tar -C "$OUT" -czf "$work/more.tgz" -- "${more[@]}" 2>>"$log" && (cd "$OUT" && rm -rf -- "${more[@]}")
    if [ "$(stat -c %s "$work/more.tgz")" -le "$file_bytes" ]; then mv "$work/more.tgz" "$OUT/more.tgz"
    else say "${more[*]}: more than $file_bytes bytes when they are packed: left behind"; fi
}
summary() {
    local i passed=0 what card=emulated driver=-
    [ -n "$rehearse" ] || IFS=, read -r card driver < <(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    say ""
    say "stage $stage, after $SECONDS s:"
    for i in "${!names[@]}"; do
        say "  ${names[i]}: ${ends[i]:-broken off}"
        case ${ends[i]:-} in passed*) passed=$((passed + 1)) ;; esac
    done
    what="$passed of ${#names[@]} passed"
    for i in "${!names[@]}"; do case ${ends[i]:-broken off} in passed*) ;; *) what="$what; ${names[i]}: ${ends[i]:-broken off}" ;; esac; done
    say "$what"
    say "The row for bench/results/leases.md:"
    say "| $(date +%F) | $card | ${driver# } | $stage | $what |"
    say "What came back is in $OUT."
    if [ "$passed" = "${#names[@]}" ] && [ "$passed" -gt 0 ]; then
        say "Next: bench/lease.sh $(first_left "$stage")"
        return 0
    fi
    say "Next: mend what failed; then bench/lease.sh $stage"
    return 1
}
finish() {
    local rc=0 pids
    trap - EXIT
    pids=${child:+$(session_processes "$child")}
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
    summary || rc=1
    bound_files
    rm -rf "$work"
    exit $rc
}

# ---- functions of several stages ----

unpack() { # ARCHIVE FOLDER
    mkdir -p "$work/$2" && tar -C "$work/$2" -xzf "$1" || stop 66 "$1 cannot be unpacked: build it again with make lease"
}
step_words() { # WORKLOAD -> $words
    case $1 in
    gpt2) words="bench/gpt2.yaml --input tokens --steps 20 model.context=1024 train.precision=bf16 train.batch=32 train.micro_batch=32" ;;
    resnet50) words="bench/resnet50.yaml --input 3x224x224 --steps 20 train.precision=bf16 train.batch=256 train.micro_batch=256" ;;
    lenet) words="bench/lenet.yaml --input 1x28x28 --steps 5000 train.precision=tf32 train.batch=64 train.micro_batch=64" ;;
    *) stop 64 "no workload $1" ;;
    esac
    [ -n "$rehearse" ] || return 0
    case $1 in
    gpt2) words="bench/gpt.yaml --input tokens --steps 2 --warmup 1 model.layers=1 model.width=32 model.heads=2 model.context=16 model.vocab=60 train.precision=bf16 train.batch=2 train.micro_batch=2" ;;
    resnet50) words="bench/resnet50.yaml --input 3x32x32 --steps 1 --warmup 0 train.precision=bf16 train.batch=2 train.micro_batch=2" ;;
    lenet) words="bench/lenet.yaml --input 1x28x28 --steps 2 --warmup 1 train.precision=tf32 train.batch=4 train.micro_batch=4" ;;
    esac
}
few_steps() { # WORKLOAD STEPS -> $words: only these steps, without a warm-up
    step_words "$1"
    words=${words/--steps 20/--steps $2}
    case $words in *--warmup*) ;; *) words="$words --warmup 0" ;; esac
}
rate() { # WORKLOAD
    step_words "$1"
    to_file lines "rate of $1" 60 "$weft" bench step $words train.device=cuda --json
}
beside_pytorch() { # SECONDS WORKLOAD...
    local python=${PYTHON:-python3} seconds=$1
    shift
    if [ -n "$rehearse" ] && ! "$python" -c 'import torch' 2>/dev/null; then
        say "   $python has no PyTorch: the rehearsal measures weft alone"
        python=
    fi
    to_file report.md "$* beside PyTorch" "$seconds" env KEEP="$OUT" CHECK=true ROUNDS=2 LIMIT=120 WEFT="$weft" REHEARSE="$rehearse" \
        PEER="${python:+$python bench/peer_gpu.py}" bench/gpu.sh "$@"
}
kernel_times() { # WORKLOAD: one step, each kernel's time
    few_steps "$1" 1
    tool ncu || { names+=("kernels of $1"); ends+=("left out: no ncu"); return; }
    to_file kernels.csv "kernels of $1" 100 ${found:+"$found" --metrics gpu__time_duration.sum --clock-control none --csv} \
        "$weft" bench step $words train.cuda_graphs=off train.device=cuda
}
sanitize() { # TOOL SECONDS WORDS OF test_cuda...
    local tool=$1 seconds=$2
    shift 2
    tool compute-sanitizer || { names+=("$tool of $*"); ends+=("left out: no compute-sanitizer"); return; }
    run "$tool of $*" "$seconds" ${found:+tests/cuda/sanitizer.sh} "$test_cuda" ${found:+"$tool"} "$@"
}

# ---- the stages ----

stage_1() {
    local all=operations other= seed=$((RANDOM + 1))
    [ -z "$rehearse" ] || all=squares other=sums
    run "$all, seed $seed" 90 "$test_cuda" "$all" $seed
    for w in gpt2 resnet50 lenet; do rate $w; done
    seed=$((RANDOM + 1))
    run "$all, seed $seed" 90 "$test_cuda" "$all" $seed
    run "all tests" 120 "$test_cuda" $other $((RANDOM + 1))
    run "all tests, large models" 150 "$test_cuda" ${other:-full} $((RANDOM + 1))
}
stage_2() {
    local parts="losses slices sums squares updates layouts" all=operations seconds=220
    [ -z "$rehearse" ] || parts=squares all=squares seconds=480
    run "what a user does" $seconds env WEFT="$weft" tests/cuda/card.sh
    sanitize memcheck 150 $all
    for part in $parts; do sanitize racecheck 40 $part; done
    sanitize racecheck 150 $all
}
stage_3() {
    beside_pytorch 390 lenet gpt2
    kernel_times gpt2
    few_steps gpt2 3
    run "which algorithms cuBLASLt takes" 40 env CUBLASLT_LOG_LEVEL=5 CUBLASLT_LOG_FILE="$OUT/lt.log" \
        "$weft" bench step $words train.device=cuda
}
stage_4() {
    beside_pytorch 420 resnet50 kernels
    kernel_times resnet50
}
stage_5() {
    local until=300
    [ -z "$rehearse" ] || until=30
    run "NCCL by itself" 120 "$test_nccl"
    run "ranks that share the GPU" $((until + 70)) env ONE_CARD="$weft" UNTIL_S=$until RUN_S=60 NCCL_DEBUG=WARN tests/cuda/gpus.sh
    for n in 1 2; do
        step_words lenet
        to_file lines "lenet on $n ranks, through host memory" 30 "$weft" bench step -n $n ${words/--steps 5000/--steps 500} train.device=cuda --json
    done
}
stage_6() {
    local side variables=() keys="" w before=$weft after=$weft
    for w in ${AFTER:-}; do case $w in *.*=*) keys="$keys $w" ;; *) variables+=("$w") ;; esac; done
    if [ -f .lease/before.tgz ] && [ -z "$rehearse" ]; then
        unpack .lease/before.tgz before
        before=$work/before/bundle/bin/weft
    fi
    step_words "$workload"
    for side in before after before; do
        if [ $side = before ]; then
            to_file "$side.lines" "$workload, $side" 80 "$before" bench step $words train.device=cuda --json
        else
            to_file "$side.lines" "$workload, $side" 80 env ${variables[@]+"${variables[@]}"} "$after" bench step $words $keys train.device=cuda --json
        fi
    done
    rates() { sed -n 's/.*"[a-z]*_per_s":\([0-9.]*\).*/\1/p' "$OUT/$1.lines"; }
    say "$workload: before $(rates before | tr '\n' ' '), after $(rates after); after / before $(awk -v a="$(rates after)" \
        -v b="$(rates before | awk '{ s += $1 } END { print NR ? s / NR : 0 }')" 'BEGIN { printf "%.4f", (b > 0 ? a / b : 0) }')"
    cat "$OUT"/{before,after}.lines >>"$OUT/lines"
    run "operations" 150 env ${variables[@]+"${variables[@]}"} "$test_cuda" ${rehearse:+squares} ${rehearse:-operations}
}

# ---- the machine and the programs ----

archive=.lease/weft.tgz
[ "$stage" != 6 ] || [ -n "${AFTER:-}" ] || [ -f .lease/before.tgz ] ||
    stop 64 "stage 6 compares two builds or settings: bring .lease/before.tgz, or set AFTER (see the head of this script)"
trap 'exit 143' TERM INT HUP
trap 'rm -rf "$work"' EXIT
if [ -n "$rehearse" ]; then
    weft=$here/build/emulated/weft test_cuda=$here/build/tests/cuda/test_cuda_emulated test_nccl=$here/build/tests/cuda/test_nccl_emulated
    export EMULATE_GPUS=1
    for program in "$weft" "$test_cuda" "$test_nccl"; do [ -x "$program" ] || stop 66 "no $program (make ${program#"$here"/})"; done
else
    nvidia-smi -L 2>/dev/null | grep -q '^GPU' || stop 77 "no NVIDIA GPU here (nvidia-smi -L)"
    [ -f $archive ] || stop 66 "no $archive: make lease builds it where weft is developed; copy it here"
    unpack $archive after
    weft=$work/after/bundle/bin/weft test_cuda=$work/after/bundle/tests/cuda/test_cuda test_nccl=$work/after/bundle/tests/cuda/test_nccl
fi
trap finish EXIT
# PyTorch's libraries first, where there is a PyTorch: both sides run the same cuBLAS and cuDNN
. tools/bundle/cuda_packages.sh
packages=$(cuda_package_folders)
[ -n "$rehearse" ] || export LD_LIBRARY_PATH=$packages${packages:+${LD_LIBRARY_PATH:+:}}${LD_LIBRARY_PATH-}
[ -n "$rehearse" ] || run "the machine" 20 nvidia-smi
say "the program: $(cat "$work/after/bundle/COMMIT" 2>/dev/null || echo 'of this working tree')"
run "weft and its libraries" 30 "$weft" --version
"stage_$stage"
