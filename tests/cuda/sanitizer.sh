#!/usr/bin/env bash
# The operations of a test program under each tool of compute-sanitizer. Says so and passes where there is no GPU or no sanitizer.
# Initcheck sees what libraries leave unwritten; the backend's own memory is zeroed, and the test fills it with NaNs.
# usage: sanitizer.sh build/tests/cuda/test_cuda
set -u
program=$1
cuda=${CUDA_HOME:-/usr/local/cuda}
sanitizer=$(PATH=$PATH:$cuda/bin:$cuda/compute-sanitizer command -v compute-sanitizer)
if [ -z "$sanitizer" ]; then
    echo "  skipped: no compute-sanitizer in PATH or $cuda/bin (Debian, Ubuntu: cuda-sanitizer-VERSION; CUDA_HOME points elsewhere)"
    exit 0
fi
out=$("$program" operations 2>&1) || { echo "$out"; echo "it fails without a sanitizer, too"; exit 1; }
if grep 'skipped: no GPU' <<<"$out"; then exit 0; fi
failed=
for tool in memcheck racecheck synccheck initcheck; do
    echo "$tool"
    "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 "$program" operations |
        grep -E '^=========|passed' || true
    [ "${PIPESTATUS[0]}" = 0 ] || failed="$failed $tool"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
