#!/usr/bin/env bash
# train.cpu: portable gives the same bits whatever instructions oneDNN and the C library may use, which shows that no sum is oneDNN's, and
# on processors of all kinds: the hashes of tests/golden/portable.txt were measured on one kind, and other kinds must give them, too.
# cores: 1
tests=$(cd "$(dirname "$0")/.." && pwd)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"

if [ "$("$WEFT" --version | sed -n 's/.*this processor has \([a-z0-9]*\).*/\1/p')" = base ]; then
    noise_idx 8 12 3 grey.h5
    printf 'model: {name: mlp}\ndata: {train: grey.h5}\n' >mlp.yaml
    check 78 'train.cpu: portable needs AVX2 and FMA, which this processor lacks' "$WEFT" plan mlp.yaml train.cpu=portable
    echo '  skipped: the bits of train.cpu: portable: this processor lacks AVX2'
    finish
    exit
fi

noise_idx 64 28 10 grey.h5
for i in $(seq 3000); do printf "\\$(printf %03o $((i * i % 61)))\\0"; done >tokens.raw
check 0 'wrote tokens.h5' "$WEFT" data import tokens tokens.raw -o tokens.h5 --bits 16 --vocab 61
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 192 --test clicks-test.h5 --test-samples 40 --threads 1
# job NAME MODEL DATA TRAIN OPTIM
job() { printf 'run: {seed: 3}\nmodel: {%s}\ndata: {train: %s}\ntrain: {threads: 1, cpu: portable, %s}\noptim: {%s}\n' "${@:2}" >"$1.yaml"; }
job mlp 'name: mlp, hidden: [300, 40]' grey.h5 'batch: 64, micro_batch: 32' 'name: adamw, lr: 0.001'
job lenet 'name: lenet' grey.h5 'batch: 32, micro_batch: 16' 'lr: 0.01, momentum: 0.9'
job resnet18 'name: resnet18' grey.h5 'batch: 8, micro_batch: 4' 'lr: 0.01, momentum: 0.9'
job mobilenet 'name: mobilenet_v2' grey.h5 'batch: 8, micro_batch: 4' 'lr: 0.01'
# even kernels, groups, channels that fill no block
job odd 'layers: [conv2d: {channels: 12, kernel: 4, stride: 2}, relu, conv2d: {channels: 18, kernel: 5, groups: 6, pad: 2}, relu,
  conv2d: {channels: 21, kernel: 1}, flatten, dense: {width: 10}]' grey.h5 'batch: 16, micro_batch: 8' 'lr: 0.01'
job gpt 'name: gpt2, layers: 2, width: 96, heads: 3, context: 64' tokens.h5 'batch: 8, micro_batch: 4' 'name: adamw, lr: 0.001'
job wide_deep 'name: wide_deep, width: 4, hidden: [40, 24]' clicks.h5 'batch: 48, micro_batch: 24, loss: sigmoid' 'name: adagrad, lr: 0.05'

# The golden hashes hold for the compiler, which chooses where multiplications and additions are fused, and for the C library's logarithms.
golden=$tests/golden/portable.txt
built="compiler $("$WEFT" --version | sed -n 's/.*compiler //p'), $(getconf GNU_LIBC_VERSION)"
if ldd "$WEFT" | grep -q libasan; then built="$built, sanitizers"; fi
grep -qxF "# $built" "$golden" || echo "  skipped: golden hashes of another build than $built"
# the hash of two steps, with one thread and with two
hash_of() { "$WEFT" verify "$1.yaml" --grids 1x1x1 --threads 1,2 --steps 2 "${@:2}" | sed -n 's/^1x1x1, threads 2 .* \([0-9a-f]\{16\}\)  same$/\1/p'; }
# limited ISA COMMAND... : oneDNN uses no instructions beyond ISA, the C library none of AVX-512
limited() { ONEDNN_MAX_CPU_ISA=$1 GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512DQ,-AVX512VL "${@:2}"; }
for model in mlp lenet resnet18 mobilenet odd gpt wide_deep; do
    default=$(hash_of $model)
    holds "$model: a hash" test -n "$default"
    holds "$model: the same bits with oneDNN limited to SSE4.1" test "$(limited SSE41 hash_of $model)" = "$default"
    if grep -qxF "# $built" "$golden"; then holds "$model: the golden hash, not $default" grep -qx "$model $default" "$golden"; fi
done
holds 'the set and the variable mean the same' test "$(WEFT_CPU=portable hash_of odd train.cpu=auto)" = "$(hash_of odd)"
holds 'the limit changes the bits of auto' test "$(limited SSE41 hash_of odd train.cpu=auto)" != "$(hash_of odd train.cpu=auto)"
holds 'other sets have other bits' test "$(hash_of odd train.cpu=avx2)" != "$(hash_of odd)"
check 0 'the same to the bit' timeout 240 "$WEFT" verify odd.yaml --grids 1x1x1,2x1x1,1x2x1 --threads 1,2,3 --steps 2
check 0 'CPU kernels: portable' env WEFT_CPU=portable "$WEFT" --version

# The kernels pass their tests, convolutions of all kinds among them, and their bits do not depend on threads.
for program in test_dnnl_conv test_dnnl_dense test_threads; do
    check 0 '0 failed' env WEFT_CPU=portable timeout 300 "$(dirname "$WEFT")/tests/tensor/$program"
done

# Refusals, resuming with another set, and ranks: one that asks for it in a job is enough.
check 78 'bf16 has no portable kernels' "$WEFT" train mlp.yaml train.steps=1 train.precision=bf16
check 78 'train.cpu: portable gives equal bits on CPUs only' "$WEFT" train mlp.yaml train.steps=1 train.device=cuda
check 0 'on cpu (portable)' "$WEFT" train mlp.yaml run.name=kept train.steps=1
check 78 'was written with `train.cpu: portable`' "$WEFT" train mlp.yaml run.name=kept train.steps=2 train.cpu=avx2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
check 0 'on cpu (portable)' timeout 240 mpirun --oversubscribe -n 1 "$WEFT" train mlp.yaml run.name=mixed train.steps=1 train.cpu=auto : \
    -n 1 -x WEFT_CPU=portable "$WEFT" train mlp.yaml run.name=mixed train.steps=1 train.cpu=auto
finish
