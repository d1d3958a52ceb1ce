#!/usr/bin/env bash
# Runs a test program under the tools of compute-sanitizer. Passes with a message if there is no GPU or no sanitizer. Initcheck finds
# memory that libraries leave unwritten, but not the backend's own memory, which is zeroed or filled with NaNs. Racecheck does not know
# how kernels of cuBLASLt and cuDNN synchronise (mbarriers, bulk copies): races inside them are counted and shown, but are no failures.
# usage: sanitizer.sh build/tests/cuda/test_cuda [TOOL [WORDS OF THE PROGRAM...]]      without TOOL: each tool, with the tests of operations
set -u
program=$1 tools=${2:-memcheck racecheck synccheck initcheck}
[ $# -gt 2 ] && words=("${@:3}") || words=(operations)
cuda=${CUDA_HOME:-/usr/local/cuda}
library_kernel='(nvjet_|cutlass|xmma_|cudnn|cublas|(ampere|sm[0-9]+)_)'
sanitizer=$(PATH=$PATH:$cuda/bin:$cuda/compute-sanitizer command -v compute-sanitizer)
if [ -z "$sanitizer" ]; then
    echo "  skipped: no compute-sanitizer in PATH or $cuda/bin (Debian, Ubuntu: cuda-sanitizer-VERSION; CUDA_HOME points elsewhere)"
    exit 0
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$program" "${words[@]}" >"$said" 2>&1 || { cat "$said"; echo "it fails without a sanitizer, too"; exit 1; }
if grep 'skipped: no GPU' "$said"; then exit 0; fi
failed=
for tool in $tools; do
    echo "$tool"
    "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 200 "$program" "${words[@]}" >"$said" 2>&1
    rc=$?
    grep -E '^=========|passed' "$said"
    races=$(grep -c '^========= Error: Race reported' "$said")
    library=$(grep -cE "^========= Error: Race reported.* at .*$library_kernel" "$said")
    if [ "$tool" = racecheck ] && [ $rc = 9 ] && [ "$races" -gt 0 ] && [ "$races" = "$library" ] && [ "$races" -lt 200 ]; then
        echo "$races races inside kernels of libraries, none in weft's"
    elif [ $rc != 0 ]; then
        failed="$failed $tool"
    fi
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
