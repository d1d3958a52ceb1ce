#!/usr/bin/env bash
# Compares weft with PyTorch on one GPU, and weft's memory-bound kernels with a device copy. Writes a report in Markdown, for
# bench/results/gpu.md, to standard output; progress goes to standard error. Takes about half an hour, mostly in PyTorch's compiler;
# every measurement is a process of its own. If GPU time is limited: one workload per call, with KEEP.
#
# First every setting of both sides runs once; then the best one of each side alternately, ROUNDS times. The report has medians and
# their ratio. weft reads generated HDF5 data through its loader; PyTorch's data are on the device already.
#
# usage: bench/gpu.sh [lenet] [lenet-compiled] [resnet50] [gpt2] [kernels] >report.md     none: all of them
#   PEER="python3 bench/peer_gpu.py"  command of PyTorch's side; PEER= leaves it out, and there is no ratio
#   ROUNDS=3   BATCHES=32 (gpt2's micro-batches: "32 64" tries both)   LIMIT=300 (seconds of one measurement)
#   SETTINGS=compile  PyTorch's, for gpt2 and resnet50; "compile max-autotune" tries both, and takes minutes more
#   WEFT=build/weft, or if there is none the bundle's; it runs with the cuBLAS and cuDNN of PyTorch's packages, as PyTorch does
#   CHECK="make check-cuda"  command that is run first; the report says if it fails; with a bundle its test program; CHECK=true: none
#   CHECK_LIMIT=600  seconds that it may take
#   KEEP=FOLDER  every measurement's line of JSON is added to FOLDER/lines at once, and failed commands to FOLDER/failed
#   REHEARSE=1  tests this script: tiny models, weft on the emulated GPU (make build/emulated/weft), PyTorch on the CPU
# Exit 77: no GPU, or no PyTorch that sees it; nothing was measured.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
rehearse=${REHEARSE:-} bundle=build/bundle
[ -z "$rehearse" ] || WEFT=${WEFT:-build/emulated/weft}
if [ -z "${WEFT:-}" ] && [ ! -x build/weft ] && [ -x $bundle/bin/weft ]; then
    WEFT=$bundle/bin/weft CHECK=${CHECK:-$bundle/tests/cuda/test_cuda full}
fi
. bench/common.bash
peer=${PEER-python3 bench/peer_gpu.py} rounds=${ROUNDS:-3} limit=${LIMIT:-300} check=${CHECK:-make check-cuda} keep=${KEEP:-$tmp}
mkdir -p "$keep"

lacks() { echo "bench/gpu.sh: $1: nothing was measured" >&2; exit 77; }
say() { echo "$*" >&2; }
[ -x "$weft" ] || lacks "no $weft (make)"
if [ -z "$rehearse" ]; then
    nvidia-smi -L >"$tmp/gpus" 2>&1 && grep -q '^GPU' "$tmp/gpus" || lacks "no NVIDIA GPU here (nvidia-smi -L)"
    [ -z "$peer" ] || ${peer%% *} -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
        lacks "${peer%% *} has no PyTorch that sees the GPU (PEER= measures weft alone)"
    if [ -n "$peer" ]; then # both sides run PyTorch's cuBLAS and cuDNN
        . tools/bundle/cuda_packages.sh
        packages=$(PYTHON=${peer%% *} cuda_package_folders)
        export LD_LIBRARY_PATH=$packages${packages:+${LD_LIBRARY_PATH:+:}}${LD_LIBRARY_PATH-}
    fi
    timeout -k 5 "${CHECK_LIMIT:-600}" $check >"$keep/check" 2>&1 || { failed="FAILED, so the figures below mean little: "; tail -n 30 "$keep/check" >&2; say "bench/gpu.sh: $check failed"; }
fi

# ---- workloads: the fixed words of both commands, and the settings that are tried on each side ----
batches=${BATCHES:-32} settings=${SETTINGS:-compile}
workload() { # NAME -> weft_words, peer_words, goal, unit, weft_settings, peer_settings
    local b s
    weft_settings=() peer_settings=()
    case $1 in
    gpt2)
        weft_words="bench/gpt2.yaml --input tokens --steps 30 --warmup 10 model.context=1024 train.precision=bf16"
        peer_words="gpt2 --steps 30 --precision bf16" unit="tokens" goal=1.15
        for b in $batches; do
            weft_settings+=("train.batch=$b train.micro_batch=$b")
            for s in $settings; do peer_settings+=("--batch $b --setting $s --vocab 50304"); done
            peer_settings+=("--batch $b --setting ${settings%% *} --vocab 50304 --attention cudnn")
        done;;
    resnet50)
        weft_words="bench/resnet50.yaml --input 3x224x224 --steps 30 --warmup 10 train.precision=bf16"
        peer_words="resnet50 --steps 30 --precision bf16" unit="images" goal=1.1
        weft_settings=("train.batch=256 train.micro_batch=256")
        for s in $settings; do peer_settings+=("--batch 256 --setting $s"); done;;
    lenet | lenet-compiled)
        weft_words="bench/lenet.yaml --input 1x28x28 --steps 20000 --warmup 5000"
        peer_words="lenet --steps 4000 --warmup 1000" unit="images" goal=5
        weft_settings=("train.batch=64 train.micro_batch=64 train.precision=tf32")
        peer_settings=("--batch 64 --precision tf32 --setting eager")
        [ "$1" = lenet ] || goal=- peer_settings=("--batch 64 --precision tf32 --setting compile" "--batch 64 --precision tf32 --setting reduce-overhead");;
    *) say "bench/gpu.sh: no workload $1"; exit 64;;
    esac
    [ -z "$rehearse" ] || shrink "$1"
}
shrink() { # NAME: the same, small enough to take seconds on a CPU
    case $1 in
    gpt2)
        weft_words="bench/gpt.yaml --input tokens --steps 2 --warmup 1 train.precision=bf16 model.layers=1 model.width=32 model.heads=2 model.context=16 model.vocab=60"
        peer_words="gpt2 --steps 2 --warmup 1 --precision bf16 --layers 1 --width 32 --heads 2 --context 16 --tokens 60"
        weft_settings=("train.batch=2 train.micro_batch=2" "train.batch=4 train.micro_batch=4")
        peer_settings=("--batch 2 --setting eager" "--batch 2 --setting eager --vocab 64 --attention math");;
    resnet50)
        weft_words="bench/resnet50.yaml --input 3x32x32 --steps 1 --warmup 0 train.precision=bf16"
        peer_words="resnet50 --steps 1 --warmup 1 --precision bf16 --image 32"
        weft_settings=("train.batch=2 train.micro_batch=2") peer_settings=("--batch 2 --setting eager");;
    *)
        weft_words="bench/lenet.yaml --input 1x28x28 --steps 2 --warmup 1" peer_words="lenet --steps 2 --warmup 1"
        weft_settings=("train.batch=4 train.micro_batch=4 train.precision=tf32") peer_settings=("--batch 4 --precision tf32 --setting eager");;
    esac
    peer_words="$peer_words --device cpu"
}

# ---- one measurement: prints its line of JSON; if it fails, nothing, and the reason on standard error ----
attempt() { # COMMAND...
    say "  $*"
    timeout -k 5 "$limit" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || {
        say "    failed: $(grep . "$tmp/err" | tail -n 1)"
        { echo "$*"; cat "$tmp/err"; } >>"$keep/failed"
    }
    grep '^{' "$tmp/out" | tee -a "$keep/lines" || true
}
weft_run() { attempt "$weft" bench step $weft_words $1 train.device=cuda --json; }
peer_run() { attempt $peer $peer_words $1; }
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,}\"]*\).*/\1/p"; } # KEY
weft_rate() { rate; }
peer_rate() { field rows_per_s; }
# SIDE: weft or peer. Prints the setting with the highest rate; nothing if none worked.
best_of() {
    local -n settings=$1_settings
    local s
    for s in "${settings[@]}"; do echo "$("$1_run" "$s" | "$1_rate") $s"; done | grep -v '^ ' | sort -g | tail -n 1 | cut -d' ' -f2-
}
number() { awk -v x="$1" -v d="$2" 'BEGIN { if (x !~ /^[0-9]/) print "-"; else printf "%.*f\n", d, x }'; }
median_of() { [ -s "$1" ] && field "$2" <"$1" | median || true; } # FILE KEY

pair() { # NAME: prints a row of the table and writes the best setting of weft to $tmp/NAME.best
    local name=$1 ours theirs="" i
    workload "$name"
    say "$name: every setting once"
    ours=$(best_of weft)
    [ -z "$peer" ] || theirs=$(best_of peer)
    echo "$ours" >"$tmp/$name.best"
    : >"$tmp/weft.lines"; : >"$tmp/peer.lines"
    say "$name: in turn"
    for ((i = 0; i < rounds; i++)); do
        [ -z "$ours" ] || weft_run "$ours" >>"$tmp/weft.lines"
        [ -z "$theirs" ] || peer_run "$theirs" >>"$tmp/peer.lines"
    done
    local w p
    w=$(rate <"$tmp/weft.lines" | median) p=$(median_of "$tmp/peer.lines" rows_per_s)
    echo "| $name, $unit/s | $(number "$w" 0) | ${ours:-none worked} | $(number "$p" 0) | ${theirs:-none} |" \
        "$(awk -v w="$w" -v p="$p" 'BEGIN { if (w == "" || p == "") print "-"; else printf "**%.2f**", w / p }') | $goal |" \
        "$(number "$(median_of "$tmp/weft.lines" gflops | awk '{ print $1 / 1000 }')" 1) |" \
        "$(number "$(median_of "$tmp/weft.lines" product_gflops | awk '{ print $1 / 1000 }')" 1) |" \
        "$(number "$(median_of "$tmp/weft.lines" share)" 3) | $(number "$(median_of "$tmp/weft.lines" data_wait_share)" 4) |" \
        "$(number "$(median_of "$tmp/weft.lines" device_mb)" 0) | $(number "$(median_of "$tmp/peer.lines" device_mb)" 0) |"
}

kernels() { # NAME: measures the memory-bound kernels with weft's best setting, or its first
    workload "$1"
    local setting=${weft_settings[0]}
    [ ! -s "$tmp/$1.best" ] || setting=$(cat "$tmp/$1.best")
    say "$1: memory-bound operations"
    attempt "$weft" bench step $weft_words $setting train.device=cuda --kernels --json | grep '"bench":"kernel"' >"$tmp/kernels" || true
    echo
    echo "### $1, $setting"
    echo
    echo "| operation | input | a micro-batch has | | MB | ms | GB/s | copy's | share |"
    echo "|---|---|---|---|---|---|---|---|---|"
    while read -r line; do
        get() { echo "$line" | field "$1"; }
        echo "| $(get op) | $(get x) | $(get times) | $(get direction) | $(number "$(get bytes | awk '{ print $1 / 1e6 }')" 2) |" \
            "$(number "$(get seconds | awk '{ print 1e3 * $1 }')" 4) | $(number "$(get gb_per_s)" 0) | $(number "$(get copy_gb_per_s)" 0) |" \
            "$(number "$(get share)" 2) |"
    done <"$tmp/kernels"
}

machine() {
    if [ -n "$rehearse" ]; then echo "REHEARSAL: tiny models, weft on the emulated GPU, PyTorch on the CPU. No figure here means anything."
    else
        nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm --format=csv,noheader
        echo "\`$check\`: ${failed:-}$(grep -E 'passed, .* failed|skipped' "$keep/check" | paste -sd ';')"
    fi
    echo
    "$weft" --version | sed 's/^/    /'
    [ -z "$peer" ] || ${peer%% *} -c 'import torch; print("    PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version())'
}

[ $# -gt 0 ] || set -- lenet lenet-compiled resnet50 gpt2 kernels
echo "## $(date +%F)"
echo
machine
header="| workload | weft | setting | PyTorch | setting | ratio | goal | TFLOP/s | products' | share | data wait | MB | PyTorch's MB |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for w in "$@"; do
    [ "$w" = kernels ] && continue
    [ -z "$header" ] || printf '\n%s\n' "$header"
    header=""
    pair "$w"
done
for w in "$@"; do
    [ "$w" = kernels ] || continue
    kernels gpt2
    kernels resnet50
done
[ -z "${failed:-}" ]
