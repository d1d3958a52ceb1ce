#!/usr/bin/env bash
# Ranks that read different configurations or run different builds: one message names the rank, exit code 78, nothing is written.
# cores: 0.3
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<X
run: {name: r, seed: 1}
model: {name: mlp, hidden: [8]}
data: {train: data.h5}
train: {steps: 3, batch: 12, micro_batch: 2, threads: 1}
X
sed 's/seed: 1/seed: 2/' job.yaml >other.yaml
cp "$WEFT" other-weft
objcopy --dump-section .note.gnu.build-id=id other-weft
byte=$(od -An -tu1 -j20 -N1 id) # another value of one byte of the identity
printf "\\$(printf %o $((byte ^ 1)))" | dd of=id bs=1 seek=20 conv=notrunc 2>/dev/null
objcopy --update-section .note.gnu.build-id=id other-weft

mpirun_three() { timeout -k 2 240 mpirun --oversubscribe -n 2 "$WEFT" train job.yaml : -n 1 "$@"; }
check 78 "rank 2: this rank's configuration says \`run.seed: 2\`, rank 0's \`run.seed: 1\`" mpirun_three "$WEFT" train other.yaml
holds 'one message' test "$(grep -c 'error:' both)" = 1
check 78 "rank 2: this rank's configuration says \`train.batch: 24\`" mpirun_three "$WEFT" train job.yaml train.batch=24
check 78 "rank 2: this rank's configuration says \`grid.dp: 3\`, rank 0's \`no grid.dp\`" mpirun_three "$WEFT" train job.yaml grid.dp=3
check 78 'rank 2: command line: nonsense=5: unknown section' mpirun_three "$WEFT" train job.yaml nonsense=5
holds 'one message' test "$(grep -c 'error:' both)" = 1
check 66 'rank 2: nowhere.yaml: cannot open' mpirun_three "$WEFT" train nowhere.yaml
check 78 'rank 2: this rank runs another build of weft than rank 0' mpirun_three ./other-weft train job.yaml
holds 'one message' test "$(grep -c 'error:' both)" = 1
holds 'nothing was written' test ! -e runs
check 0 'done after' mpirun_three "$WEFT" train job.yaml
rm -r runs

# Differences outside of the configuration. The last rank has another environment, or works in the folder `other`.
here=$PWD
other() { timeout -k 2 240 mpirun --oversubscribe -n 2 "$WEFT" train "$@" : -n 1 -wdir "$here/other" "$WEFT" train "$@"; }
with() { local set=$1; shift; timeout -k 2 240 mpirun --oversubscribe -n 2 "$WEFT" train job.yaml "$@" : -n 1 -x "$set" "$WEFT" train job.yaml "$@"; }
mkdir other
cp data.h5 job.yaml other
host=$(hostname)
cmp_sizes() { [ "$(wc -c <"$1")" = "$(wc -c <"$2")" ]; }

check 78 "rank 2: environment variables on $host: ONEDNN_DEFAULT_FPMATH_MODE=BF16; on $host (rank 0): none" with ONEDNN_DEFAULT_FPMATH_MODE=BF16
holds 'one message' test "$(grep -c 'error:' both)" = 1
if [ "$("$WEFT" --version | sed -n 's/.*this processor has \([a-z0-9]*\).*/\1/p')" = base ]; then
    echo '  skipped: fewer instructions for one rank: this processor has none to spare'
else
    check 78 "rank 2: train.cpu on $host: " with ONEDNN_MAX_CPU_ISA=SSE41
fi
holds 'nothing was written' test ! -e runs

# Copies of the data: all is as before; then other bytes in as many; none.
check 0 'done after' other job.yaml "run.dir=$here/runs"
{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\101'; } >z.idx
check 0 '' "$WEFT" data import idx z.idx y.idx -o other/data.h5 --force
holds 'as large' cmp_sizes data.h5 other/data.h5
check 78 "rank 2: data.train's file on $host: $(wc -c <data.h5) bytes with hash" other job.yaml "run.dir=$here/runs" run.name=z
check 78 "rank 2: data.test's file on $host: $(wc -c <data.h5) bytes with hash" other job.yaml "run.dir=$here/runs" run.name=z "data.train=$here/data.h5" data.test=data.h5
rm other/data.h5
check 78 "rank 2: data.train's file on $host: no file to read (No such file or directory)" other job.yaml "run.dir=$here/runs" run.name=z
holds 'nothing was written' test ! -e runs/z -a ! -e other/runs
cp data.h5 other

# The run's folder, by a path that means another one to one rank; empty, and with a run of its own.
check 78 "rank 2: runs/f on $host is another folder than rank 0's, on $host" other job.yaml run.name=f
(cd other && check 0 'done after' "$WEFT" train job.yaml run.name=f)
check 78 "rank 2: runs/f on $host is another folder than rank 0's" other job.yaml run.name=f
check 0 'done after' other job.yaml run.name=f "run.dir=$here/runs"
holds 'one owner, who has ended' grep -q '"ended":true' runs/f/owner-*

# A schedule file.
schedule() { # FORWARDS : stage 0 does this number of forwards before its first backward
    local i
    echo stage,task,chunk,micro
    for i in 0 1 2 3 4 5; do echo "1,forward,0,$i"; echo "1,backward,0,$i"; done | sed 's/,0,/,1,/'
    for i in 0 1 2 3 4 5; do
        [ "$i" -lt "$1" ] || echo "0,backward,0,$((i - $1))"
        echo "0,forward,0,$i"
    done
    for ((i = 6 - $1; i < 6; ++i)); do echo "0,backward,0,$i"; done
}
schedule 2 >plan.csv
schedule 3 >other/plan.csv
two() { timeout -k 2 240 mpirun --oversubscribe -n 1 "$WEFT" train "$@" : -n 1 -wdir "$here/other" "$WEFT" train "$@"; }
words=(job.yaml "run.dir=$here/runs" run.name=plan grid.pp=2 grid.pipeline_schedule=file:plan.csv)
check 78 "rank 1: grid.pipeline_schedule's file on $host: $(wc -c <plan.csv) bytes with hash" two "${words[@]}"
cp plan.csv other
check 0 'done after' two "${words[@]}"

# Threads by themselves: what the rank with the fewest cores has.
if [ "$(nproc)" -gt 1 ]; then
    sed 's/, threads: 1//' job.yaml >auto.yaml
    free=$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')
    check 0 '2 ranks x 1 thread on cpu' timeout -k 2 240 mpirun --oversubscribe --bind-to none -n 1 "$WEFT" train auto.yaml run.name=t : \
        -n 1 taskset -c "$free" "$WEFT" train auto.yaml run.name=t
else
    echo '  skipped: one rank with fewer cores: there is one core'
fi

# A processor of another make, as the kernel shows it, is said and trains.
sed 's/^model name.*/model name\t: Another Processor/' /proc/cpuinfo >cpuinfo
cat >renamed <<'SH'
#!/bin/sh
mount --bind cpuinfo /proc/cpuinfo && exec "$@"
SH
chmod +x renamed
if grep -q 'Another' cpuinfo && unshare -m ./renamed true 2>/dev/null; then
    check 0 'rank 2 on '"$host"' has another processor (Another Processor) than rank 0' \
        mpirun_three unshare -m ./renamed "$WEFT" train job.yaml
    holds 'once' test "$(grep -c 'has another processor' both)" = 1
else
    echo '  skipped: a processor of another make: no mounts are allowed here, or none of its name'
fi

# Another C library on one rank: a library before it says so.
if ! command -v cc >/dev/null || ldd "$WEFT" | grep -q libasan; then
    echo '  skipped: another C library: no C compiler, or a build with sanitizers'
else
    echo 'const char *gnu_get_libc_version(void); const char *gnu_get_libc_version(void) { return "2.99"; }' >libc.c
    cc -shared -fPIC -o libc.so libc.c
    check 78 "rank 2: the C library on $host: glibc 2.99; on $host (rank 0): glibc" with "LD_PRELOAD=$here/libc.so"
fi
finish
