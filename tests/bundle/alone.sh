#!/usr/bin/env bash
# A copy of the bundle works where nothing but glibc, a shell and a few of its tools are: in a root folder made of those alone, under
# another path. Needs a namespace of its own (root, or a kernel that gives users theirs); else says "skipped:".
# usage: alone.sh     BUNDLE=FOLDER (default build/bundle)
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# The same folders as /usr/bin and the libraries that its programs need: no Open MPI, no HDF5, no oneDNN, no CUDA, no libstdc++.
make_root() {
    mkdir -p "$root"/{usr/bin,dev,proc,sys,tmp,opt/moved,tests/cli}
    ln -s usr/bin "$root/bin"
    for t in bash sh awk basename cat chmod cut cp date dirname env find grep head mkdir mktemp mv nproc readlink rm sed seq sleep \
        sort tail timeout tr wc; do
        cp -L "$(type -P $t)" "$root/bin/$t"
    done
    ldd "$root"/bin/* | grep -oE '/[^ :]+\.so[^ ]*' | sort -u | xargs cp -L --parents -t "$root"
    cp -r "$bundle" "$root/opt/moved/weft"
    cp "$here/alone.sh" "$root/tests/cli/alone.sh" # common.bash and the script lie next to each other
    cp "$here/../cli/common.bash" "$root/tests/cli"
}

inside() {
    export PATH=/bin HOME=/tmp TMPDIR=/tmp WEFT=/opt/moved/weft/bin/weft OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    local there=/opt/moved/weft
    . /tests/cli/common.bash
    holds 'nothing else brings libraries' test -z "$(find / -xdev -path $there -prune -o \( -name 'libmpi*' -o -name 'libhdf5*' \
        -o -name 'libdnnl*' -o -name 'libstdc++*' -o -name 'libgomp*' -o -name 'libcu*' \) -print)"
    check 0 'Open MPI' "$WEFT" --version
    check 0 'CUDA' "$WEFT" --version
    for i in $(seq 300); do echo "line $i of a text to learn"; done >text
    check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5 --test test.h5
    check 0 'good' "$WEFT" data check text.h5
    cat >a.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 16, heads: 2, context: 16}
data: {train: text.h5, test: test.h5}
train: {steps: 6, batch: 8, micro_batch: 4, threads: 1}
YAML
    check 0 'done after' "$WEFT" train a.yaml run.name=one
    check 0 'done after' timeout 240 "$WEFT" train -n 2 a.yaml run.name=two
    check 0 'done after' timeout 240 $there/bin/mpirun --oversubscribe -n 2 "$WEFT" train a.yaml run.name=three grid.pp=2
    check 0 '' "$WEFT" ckpt diff runs/one/checkpoints/step-00000006.h5 runs/two/checkpoints/step-00000006.h5
    check 0 '' "$WEFT" ckpt diff runs/one/checkpoints/step-00000006.h5 runs/three/checkpoints/step-00000006.h5
    check 78 'train.device: cuda, but ' "$WEFT" train a.yaml train.device=cuda run.name=four
    for t in test_cuda test_nccl; do
        if [ -e $there/tests/cuda/$t ]; then check 0 'skipped:' $there/tests/cuda/$t; fi
    done
    check 0 '2 passed, 0 failed' $there/check tests/parallel/test_sum_np2 tests/parallel/test_channels_np2
    finish
}

if [ "${1-}" = inside ]; then inside; exit; fi
bundle=$(cd "${BUNDLE:-build/bundle}" && pwd)
spaces="--mount --pid --fork --kill-child"
[ "$(id -u)" = 0 ] || spaces="--map-root-user $spaces"
if ! unshare $spaces true 2>/dev/null; then echo "skipped: no namespaces for this user here"; exit 0; fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
all=$(find "$bundle" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
# 60 MB with kernels for one kind of GPU; each other kind, and PTX, may take 1.5 MB
kinds=$(sed -n 's/^NVCC_ARCH.*code=\[\([^]]*\)\].*/\1/p' "$bundle/../probe.mk" | tr ',' ' ' | wc -w)
most=$((60000000 + 1500000 * (kinds > 1 ? kinds - 1 : 0)))
[ "$all" -lt $most ] || { echo "FAILED: the bundle has $all bytes, not less than $most"; exit 1; }
[ -z "$(find "$bundle" -type l)" ] || { echo "FAILED: links do not survive every copy"; exit 1; }
make_root
unshare $spaces bash -euc 'mount --rbind /dev "$1/dev"; mount --rbind /sys "$1/sys"; mount -t proc proc "$1/proc"; exec chroot "$1" /bin/bash /tests/cli/alone.sh inside' - "$root"
