#!/usr/bin/env bash
# Crashes at every point of many saves. strace records the system calls of a run on 4 ranks that saves every second step. For
# each call, the run's folder is made in the states in which a crash after that call may leave it: with all writes, without
# those that were not synced, with halves of writes, with a random part of them (tests/crash/states.c). In each state
# `weft ckpt check` must find a checkpoint at least as new as the newest whose name was synced. Some states, and runs in which
# calls fail or a rank is killed, are resumed for real: they must end with the bits of an undisturbed run and leave no .part.
# usage: crash.sh     (WEFT=build/weft; strace, a C compiler; about ten minutes on two idle cores)
#   RESUMED=200 INJECTED=80 SEED=1
source_folder=$(cd "$(dirname "$0")" && pwd)
. "$source_folder/../cli/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
resumed=${RESUMED:-200} injected=${INJECTED:-80} seed=${SEED:-1} last=40
command -v strace >/dev/null || { echo "crash.sh: needs strace"; exit 1; }
${CC:-cc} -std=gnu17 -O2 -o states "$source_folder"/*.c

seq 1 60000 | gzip -n9 >noise
{ printf '\0\0\10\3\0\0\0\100\0\0\0\10\0\0\0\10'; head -c $((64 * 64)) noise; } >images
{ printf '\0\0\10\1\0\0\0\100'; tr -dc '\0-\11' <noise | head -c 64; } >labels
"$WEFT" data import idx images labels -o images.h5 >/dev/null
cat >job.yaml <<Y
run: {name: r, heartbeat_s: 0.25}
model: {name: mlp, hidden: [24]}
data: {train: images.h5, test: images.h5}
train: {steps: $last, batch: 16, micro_batch: 4, threads: 1, log_every: 1, eval_every: 1}
optim: {lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 2, keep: 2}
grid: {dp: 4}
Y
train() { timeout -k 5 120 mpirun --oversubscribe --bind-to none -n 4 "$WEFT" train job.yaml "$@" </dev/null; }
number() { printf '%08d' "$1"; }
newest=runs/r/checkpoints/step-$(number $last).h5
# whole.h5: the end of the undisturbed run; before: the folder after four steps, from which runs continue
train checkpoint.keep=100 >out 2>&1 || { cat out; exit 1; }
cp "$newest" whole.h5
rm -f runs/r/checkpoints/best.h5
for step in $(seq 6 2 $last); do rm runs/r/checkpoints/step-"$(number "$step")".h5; done
cp -r runs/r before

files=openat,creat,pwrite64,pwritev,write,writev,lseek,ftruncate,fallocate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,link,linkat
strace -f -o trace -y -x -s 1000000 -e trace=$files timeout 300 mpirun --oversubscribe --bind-to none -n 4 "$WEFT" train job.yaml >out 2>&1
check 0 "to the bit" "$WEFT" ckpt diff "$newest" whole.h5
states=$(./states trace "$dir/runs/r" before count)
echo "crash.sh: $states states of $(grep -c . trace) calls"
holds "more than 5000 states, not $states" [ "$states" -gt 5000 ]

for part in 0 1; do ./states trace "$dir/runs/r" before check "state$part" "$WEFT" $part 2 >said$part & done
wait
cat said?
holds "a good checkpoint in all states" [ "$(grep -ch ', 0 bad' said? | paste -sd+ | bc)" = 2 ]
# The check can fail: without fsync a name may reach the disk before the file's content.
grep -v sync trace >unsynced
./states unsynced "$dir/runs/r" before check state0 "$WEFT" 0 27 >said || true
holds "without a sync there are states with none" [ "$(sed -n 's/.* states, \(.*\) bad/\1/p' said)" -gt 0 ]

# continues WHAT : resumes the run in runs/r, which must end like the undisturbed one.
continues() {
    local code=0
    train >out 2>err || code=$?
    cat out err >both
    if [ $code = 0 ] && "$WEFT" ckpt diff "$newest" whole.h5 >>both 2>&1 &&
        { grep -q "this run is complete" both || [ -z "$(find runs/r -name '*.part')" ]; }; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAILED: $1: ended with $code"; sed 's/^/  | /' both; find runs/r -name '*.part'
}
RANDOM=$seed
for _ in $(seq "$resumed"); do
    state=$(((RANDOM * 32768 + RANDOM) % states))
    rm -rf runs/r
    ./states trace "$dir/runs/r" before write $state runs/r >/dev/null
    continues "state $state"
done

kinds=(pwrite64:signal=KILL fsync:signal=KILL rename:signal=KILL unlink:signal=KILL fallocate:signal=KILL
    pwrite64:error=ENOSPC pwrite64:error=EDQUOT pwrite64:error=EIO pwrite64:error=ESTALE pwrite64:error=EINTR pwrite64:retval=7
    fsync:error=EIO fsync:error=ENOSPC fsync:error=EINTR rename:error=EIO rename:error=ESTALE rename:error=EDQUOT
    fallocate:error=ENOSPC fallocate:error=EINTR unlink:error=EIO pread64:error=EIO pread64:error=ESTALE pread64:retval=7)
for i in $(seq "$injected"); do
    kind=${kinds[i % ${#kinds[@]}]}
    when=$((1 + RANDOM % 12))
    [ $((RANDOM % 3)) = 0 ] && [[ $kind != *signal* ]] && when=$when+ # this call and all later ones fail
    rm -rf runs/r
    cp -r before runs/r
    # in a subshell: strace ends by the signal that ended mpirun, which the shell would report
    (strace -f -o /dev/null -e trace="${kind%%:*}" -e inject="$kind:when=$when" timeout -k 5 120 \
        mpirun --oversubscribe --bind-to none -n 4 "$WEFT" train job.yaml >disturbed 2>&1 </dev/null) 2>/dev/null || true
    holds "$kind, call $when: not a word of a bug" sh -c '! grep -qi "bug\|sanitizer" disturbed'
    continues "$kind, call $when"
done
finish
