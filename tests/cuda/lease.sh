#!/usr/bin/env bash
# Tests bench/lease.sh with programs that only imitate the real ones: the choice of the stage, a command that hangs and is ended while the
# others run, the time limit of a stage, the limit of 8 files, and the final message. Also tests the places in which a bundle searches
# for CUDA's libraries.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/cli/common.bash"
mkdir -p tree/bench/results tree/tests/cuda tree/tools/bundle tree/.lease bundle/bin bundle/tests/cuda tools fakes
cp "$root"/bench/lease.sh tree/bench
cp "$root"/tests/cuda/sanitizer.sh tree/tests/cuda
cp "$root"/tools/bundle/cuda_packages.sh tree/tools/bundle
export PATH=$dir/tools:$PATH NAP=0 FAKES=$dir/fakes

# ---- an imitated machine with a GPU, and a bundle ----
pretend() { { echo '#!/bin/bash'; cat; } >"$1" && chmod +x "$1"; } # FILE
pretend tools/nvidia-smi <<'X'
[ -e "$FAKES/gpu" ] || exit 9
case $1 in -L) echo 'GPU 0: Pretended H100' ;; --query*) echo 'Pretended H100, 580.1' ;; esac
X
pretend bundle/bin/weft <<'X'
echo "weft $*" >>"$FAKES/calls"
sleep "$NAP"
case $1 in bench) echo "{\"bench\":\"step\",\"tokens_per_s\":${RATE:-100}}" ;; esac
X
pretend bundle/tests/cuda/test_cuda <<'X'
echo "test_cuda $*" >>"$FAKES/calls"
sleep "$NAP"
[ "${BLIND:-none}" != "$1" ] || echo '  skipped: no GPU (no driver)'
if [ "${HANG:-none}" = "$1" ] && [ ! -e "$FAKES/hung" ]; then # only once: the command and its child, in another process group, ignore SIGTERM
    : >"$FAKES/hung"
    trap '' TERM
    timeout 1000 sleep 987.65 &
    wait
    sleep 987.65
fi
[ "${BREAK:-none}" != "$1" ]
X
cp bundle/tests/cuda/test_cuda bundle/tests/cuda/test_nccl
pretend tree/tests/cuda/gpus.sh <<'X'
echo "gpus $ONE_CARD $UNTIL_S" >>"$FAKES/calls"
X
pretend tree/tests/cuda/card.sh <<'X'
echo "card $WEFT" >>"$FAKES/calls"
X
pretend tree/bench/gpu.sh <<'X'
echo "gpu $*" >>"$FAKES/calls"
for i in 1 2 3 4 5 6 7 8 9; do echo "$i" >"$KEEP/file$i"; done
mkdir -p "$KEEP/folder/deep"; echo deep >"$KEEP/folder/deep/file"
head -c 300000 /dev/zero | tr '\0' x >"$KEEP/failed"; printf '\nthe end\n' >>"$KEEP/failed"
echo '# a report'
X
pretend tools/compute-sanitizer <<'X'
echo "sanitizer $1 $2" >>"$FAKES/calls"
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
X
pretend tools/ncu <<'X'
echo 'kernel,ms'
X
rows() { # STAGE[=TEXT]... : bench/results/leases.md gets a row of each stage; without a text all its commands have passed
    local s text
    printf '| date | card | driver | stage | what came of it |\n|---|---|---|---|---|\n' >tree/bench/results/leases.md
    for s in "$@"; do
        text='7 of 7 passed'
        case $s in *=*) text=${s#*=} ;; esac
        echo "| 2026-11-30 | some card | 580 | ${s%%=*} | $text |" >>tree/bench/results/leases.md
    done
    printf '\n| 9 | of another table |\n' >>tree/bench/results/leases.md
}
lease() { rm -rf "$FAKES"/{calls,hung} back; OUT=$dir/back "$dir/tree/bench/lease.sh" "$@"; }
called() { grep -qF -- "$1" "$FAKES/calls"; }
logged() { grep -qE -- "$1" back/stage*.log; }

# ---- requirements ----
rows
check 77 'no NVIDIA GPU here' lease
: >fakes/gpu
check 66 'no .lease/weft.tgz: make lease builds it' lease
tar -czf tree/.lease/weft.tgz bundle
check 64 'usage: bench/lease.sh [STAGE...]' lease 7
check 64 'stage 6 compares two builds or settings' lease 6
mkdir mine && : >mine/file
check 64 'is not empty: name another folder' env OUT="$dir/mine" tree/bench/lease.sh 1

# ---- choice of the stage, and messages ----
check 0 '9 of 9 passed' lease
holds 'stage 1 comes first' test -s back/stage1.log
holds 'the operations' called 'test_cuda operations '
holds 'the large models' called 'test_cuda full '
holds 'two seeds' test "$(grep -c '^test_cuda operations' fakes/calls)" = 2
holds 'three rates' test "$(grep -c tokens_per_s back/lines)" = 3
holds 'a row to add' logged "^[|] $(date +%F) [|] Pretended H100 [|] 580.1 [|] 1 [|] 9 of 9 passed [|]$"
holds 'what comes next' logged '^Next: bench/lease.sh 2$'
rows 1
check 0 '11 of 11 passed' lease
holds 'then stage 2' logged '^Next: bench/lease.sh 3$'
holds 'memcheck' called 'sanitizer --tool memcheck'
holds 'racecheck' called 'sanitizer --tool racecheck'
# races that the sanitizer reports: races in cuBLASLt are shown, races in weft are failures
races() { pretend "$1" <<X
echo '========= Error: Race reported between Read access at $2+0xb30'
echo '=========     and Write access at $2+0x2fb0 [48 hazards]'
exit 9
X
}
races tools/racing 'nvjet_sm90_tss_32x64_64x16_2x1_v_bz_splitK_NTN'
mkdir -p racing && mv tools/racing racing/compute-sanitizer
check 0 "1 races inside kernels of libraries, none in weft's" env PATH="$dir/racing:$PATH" "$root/tests/cuda/sanitizer.sh" bundle/tests/cuda/test_cuda racecheck
check 1 'failed: memcheck' env PATH="$dir/racing:$PATH" "$root/tests/cuda/sanitizer.sh" bundle/tests/cuda/test_cuda memcheck
races racing/compute-sanitizer 'void <unnamed>::row_sums<float>(float *)'
check 1 'failed: racecheck' env PATH="$dir/racing:$PATH" "$root/tests/cuda/sanitizer.sh" bundle/tests/cuda/test_cuda racecheck
holds 'what a user does' called "card $(sed -n 's/.*env WEFT=\([^ ]*\) tests.*/\1/p' back/stage2.log)"
# A stage is repeated until all of its commands have passed.
for text in '3 of 8 passed; memcheck: FAILED, exit 9, 3 s' '17 of 7 passed' '0 of 0 passed' 'broken off'; do
    rows 1="$text" 2 3 4 5
    check 0 '9 of 9 passed' lease
    holds "a row that says '$text' is not the last word on stage 1" logged '^Next: bench/lease.sh 6$'
done
rows 1='3 of 8 passed; memcheck: FAILED' 1 2
check 0 'passed' lease
holds 'a later row is' test -s back/stage3.log
rows 1 2='10 of 11 passed; racecheck: left out' 3='8 of 8 passed'
check 0 '9 of 9 passed' lease 1
holds 'the next stage is one that has not passed' logged '^Next: bench/lease.sh 2$'
rows 1 2 4
check 0 'passed' lease
holds 'stage 3 by its row that is missing' logged '^Next: bench/lease.sh 5$'
holds 'lenet and gpt2' called 'gpu lenet gpt2'
holds 'kernels' grep -q 'kernel,ms' back/kernels.csv
rows 1 2 3 4
check 0 'passed' lease
holds 'stage 5' called 'gpus '
holds 'ranks through host memory' called 'bench step -n 2 '
rows 1 2 3 4 5
AFTER='RATE=200 train.threads=3' check 0 'after / before 2.0000' lease
holds 'one call with the key' test "$(grep -c 'train.threads=3' fakes/calls)" = 1
holds 'the next one is a cure, too' logged '^Next: bench/lease.sh 6$'
rm -f tree/.lease/before.tgz
sed -i 's/RATE:-100/RATE:-50/' bundle/bin/weft && tar -czf tree/.lease/before.tgz bundle
check 0 'after / before 2.0000' lease 6
rm tree/.lease/before.tgz

# ---- several stages in one call ----
check 0 '9 of 9 passed' lease 1 2
holds 'the second one, too' grep -qE '^[|] .* [|] 2 [|] 11 of 11 passed [|]$' back/console
holds 'an archive of each' test "$(ls back | tr '\n' ' ')" = 'console stage1.tgz stage2.tgz '
holds 'with its log' test "$(tar -tzf back/stage2.tgz | grep -c 'stage2/stage2.log')" = 1
BREAK=full check 1 '11 of 11 passed' lease 1 2
STAGE_S=20 check 1 'stage 2: left out: the 20 s are over' lease 1 2
check 64 'usage: bench/lease.sh' lease 1 7

# ---- faults ----
rows
BREAK=operations check 1 '7 of 9 passed; operations, seed' lease 1
holds 'mend it, and run it again' logged '^Next: mend what failed; then bench/lease.sh 1$'
BLIND=full check 1 'all tests, large models: FAILED, exit 77' lease 1
HANG=operations LIMIT=2 check 1 'ENDED after 2 s, its time limit' lease 1
holds 'the others ran' logged '^8 of 9 passed; operations, seed [0-9]*: ENDED after 2 s'
holds 'and nothing goes on' test -z "$(grep -ls 'sleep.987[.]65' /proc/[0-9]*/cmdline)"
NAP=2 STAGE_S=8 check 1 "left out: the stage's 8 s are over" lease 1
holds 'what was left out is in the row' logged '^[|] .* [|] 1 [|] [2-3] of 9 passed; .*left out'
broken_off() {
    rm -rf back
    NAP=100 OUT=$dir/back "$dir/tree/bench/lease.sh" 1 >said 2>&1 &
    soon grep -qs 'weft and its libraries' back/stage1.log
    kill -TERM $!
    wait $! && return 1
    grep -q 'broken off' back/stage1.log && grep -q '^Next: mend' back/stage1.log
}
holds 'a stage that is ended says how far it came' broken_off

# ---- returned files: at most 8, none too long ----
FILE_BYTES=100000 check 0 'passed' lease 3
holds '8 files at most' test "$(find back -type f | wc -l)" -le 8
holds 'no folder' test -z "$(find back -mindepth 1 -type d)"
holds 'none is too long' test -z "$(find back -type f -size +100000c)"
holds 'the end of a long one' grep -qx 'the end' back/failed
holds 'the report' grep -qx '# a report' back/report.md
holds 'the others lie in an archive' test "$(tar -tzf back/more.tgz | grep -c 'file')" = 10

# ---- places where a bundle searches for CUDA's libraries ----
mkdir -p b system packages/nvidia/{cu13,nccl}/lib
cp "$root"/tools/bundle/{env.sh,cuda_packages.sh} b
printf 'libweft-one.so.1\nlibweft-two.so.2\n' >b/cuda_libraries
: >system/libweft-one.so.1
pretend tools/packages-python <<X
echo asked >>$dir/python-calls
echo $dir/packages/nvidia/cu13/lib:$dir/packages/nccl/lib
X
path_of() { env -u LD_LIBRARY_PATH PYTHON=packages-python CUDA_HOME="$dir/cuda" "$@" sh -c 'bundle=b; . b/env.sh; echo "$LD_LIBRARY_PATH"'; }
check 0 "b/lib:$dir/system:$dir/cuda/lib64:$dir/packages/nvidia/cu13/lib:$dir/packages/nccl/lib" path_of LD_LIBRARY_PATH="$dir/system"
: >system/libweft-two.so.2
rm python-calls
check 0 "b/lib:$dir/system:$dir/cuda/lib64" path_of LD_LIBRARY_PATH="$dir/system"
holds 'Python is not asked where all is there' test ! -e python-calls
check 0 "$dir/cuda/lib64" path_of PYTHON=no-such-python
finish
