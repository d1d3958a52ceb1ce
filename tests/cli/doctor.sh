#!/usr/bin/env bash
# weft doctor on one machine: for each check the test creates the fault that the check must find: small mounts, limits, a busy core,
# another library, system calls that fail or are slow (strace). Each measured value is far beyond its threshold, so that a busy machine
# changes nothing.
# cores: 1
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
cores=$(nproc)
mkdir own
says() { holds "$1: $2" grep -qE "^$1 +$2" both; } # STATE TEXT (a regular expression), in the output of the last check
skipped() { echo "  skipped: $1"; }

# a single rank of a larger job
check 0 'checks in' env SLURM_NTASKS=4 SLURM_CPUS_PER_TASK=999 timeout 60 "$WEFT" doctor own
says warn 'launcher +[^ ]+: one process alone in a job of 4 tasks; try: srun weft doctor'
says warn 'cores +rank 0 on .*: the job asked for 999 CPUs a task, and the rank may use [0-9]+; try: srun -c'
holds 'a line for each check at least' test "$(wc -l <out)" -ge 25
for name in launcher cores memory /dev/shm limits versions libraries clocks 'file system' 'shared folder'; do
    says '(ok|warn)' "$name"
done
holds 'nothing stays in the folder' test -z "$(ls -A own)"
check 64 'no-such-task' "$WEFT" doctor --probe no-such-task
check 64 'the folder that runs will write to' timeout 60 "$WEFT" doctor a b
check 64 'the name of the folder is empty' timeout 60 "$WEFT" doctor ''

# a folder that does not answer; this takes some time
traced() { timeout 100 strace -f -qq -o /dev/null "$@" "$WEFT" doctor own; }
trace=
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then trace=yes; fi
if [ "$trace" ]; then traced -P own -e trace=statfs -e inject=statfs:delay_enter=12000000 >silent 2>&1 & silent=$!; fi

# a launcher of another MPI
check 78 'srun started 4 processes, but MPI counts 1' env SLURM_STEP_NUM_TASKS=4 timeout 60 "$WEFT" doctor own
says fatal launcher
check 78 '"check": "launcher", "state": "fatal"' env SLURM_STEP_NUM_TASKS=4 timeout 60 "$WEFT" doctor --json own

# more ranks than cores, and a rank with another library
library=$(ldd "$WEFT" | awk '/libyaml/ { print $3 }')
mkdir lib
cp "$library" lib
echo "another build" >>"lib/$(basename "$library")"
check 0 'libyaml' timeout 100 mpirun -n $((4 * cores)) "$WEFT" doctor own : -n 1 env LD_LIBRARY_PATH="$PWD/lib" "$WEFT" doctor own
says warn "cores .* $((4 * cores + 1)) ranks with $((4 * cores + 1)) threads share $cores cores? and take turns"
says warn "libraries +rank $((4 * cores)) on .*: libyaml[^ ]* differs from the file on most ranks; try: one version on all nodes"

# ranks on one core of many; a busy core
sh -c 'exec taskset -c 0 sh -c "while :; do :; done"' &
busy=$!
if [ "$cores" -gt 1 ]; then
    check 0 '"check": "launcher", "state": "ok"' timeout 100 mpirun -n 1 --bind-to none taskset -c 0 "$WEFT" doctor --json own
    holds 'bound to one core of many' grep -q "the ranks are bound to 1 of the $cores cores that their launcher has" out
else
    check 0 '"check": "launcher", "state": "ok"' timeout 100 taskset -c 0 "$WEFT" doctor --json own
fi
holds 'others use the core' grep -qE 'a thread ran for [0-8]?[0-9] % of the time, on CPU 0: other processes use its core' out
kill $busy

# control groups of both versions
quota() {
    local group=/sys/fs/cgroup/weft-doctor-$$ files="cpu.max cgroup.procs" words="30000 100000"
    [ -e /sys/fs/cgroup/cpu ] && group=/sys/fs/cgroup/cpu/weft-doctor-$$ files="cpu.cfs_quota_us tasks" words=30000
    if mkdir "$group" 2>/dev/null && { echo "$words" >"$group/${files% *}"; } 2>/dev/null; then
        check 0 'control groups allow 0.3 cores for 1 rank' timeout 100 sh -c "echo \$\$ >'$group/${files#* }'; exec '$WEFT' doctor none"
    else skipped "processor quota: no control group can be made here"; fi
    rmdir "$group" 2>/dev/null || true
}
# a folder that does not exist, but train would make: the nearest existing parent is checked
check 0 'the folder does not exist: checked ., where train would create it' timeout 60 "$WEFT" doctor none
holds 'and all is measured' grep -qE '^25 checks in [0-9.]+ s: [0-9]+ ok, [0-9]+ warn, 0 fatal$' both
check 0 "the folder does not exist: checked $PWD/own, where" timeout 60 "$WEFT" doctor "$PWD/own/a//b/"
holds 'nothing is made there' test -z "$(ls -A own)" -a ! -e none
# a folder that cannot be made: a check that was not measured is not reported as ok
ln -s none nowhere
check 78 'cannot make a file: No such file or directory; try: mkdir -p' timeout 60 "$WEFT" doctor nowhere
for name in space inodes 'file locks' 'sync time' 'write rate' 'read rate'; do says skip "$name +not measured"; done
says '25 checks in [0-9.]+ s: [0-9]+ ok, [0-9]+ warn, 1 fatal,' '6 skipped'
check 78 '"check": "space", "state": "skip", "measured": "not measured"' timeout 60 "$WEFT" doctor --json nowhere/
quota

if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    cat >small <<EOF
mount -t tmpfs -o size=40m,nr_inodes=60 few own && mount -t tmpfs -o size=20m small /dev/shm && cp '$(command -v sleep)' /dev/shm/nccl-used || exit
/dev/shm/nccl-used 60 &
touch -d '1 hour ago' /dev/shm/nccl-gone /dev/shm/nccl-used
(ulimit -n 300 && '$WEFT' doctor --checkpoint-mb 50 own)
rc=\$?
kill \$!
exit \$rc
EOF
    check 78 'a run could not work here: space' timeout 60 unshare --mount sh small
    says warn '/dev/shm +[^ ]+: [0-9.]+ MB free, less than 74.0 MB'
    says warn 'left in /dev/shm +[^ ]+: at least 1 file of earlier jobs, 0 B, for example /dev/shm/nccl-gone'
    says warn 'limits +rank 0 on [^ ]+: 300 open files at most, less than 544'
    says fatal 'space +[^ ]+: 41.9 MB free, less than 1 checkpoint of 50.0 MB'
    says warn 'inodes +[^ ]+: room for 5[0-9] more files, of 60'
    check 78 'cannot make a file: Read-only file system' timeout 60 unshare --mount sh -c "mount -t tmpfs -o ro few own && exec '$WEFT' doctor own"
    check 78 'cannot make the folder in own: Read-only file system' timeout 60 unshare --mount sh -c "mount -t tmpfs -o ro few own && exec '$WEFT' doctor own/a/b"
else skipped "mounts: not root, or no spaces of mounts here"; fi
if [ "$trace" ]; then
    check 0 '' traced -e trace=fsync,flock,pwrite64 -e inject=fsync:delay_enter=60000 -e inject=flock:error=ENOLCK \
        -e inject=pwrite64:delay_enter=80000
    says warn 'file locks +[^ ]+: flock: No locks available: HDF5 may refuse to open files; try: export HDF5_USE'
    says warn 'sync time +[^ ]+: [1-9][0-9][0-9]+ ms for each sync'
    says warn 'write rate +[^ ]+: [0-9.]+ MB/s; try'
    check 78 'cannot write: Disk quota exceeded; try: quota -s' traced -e trace=pwrite64 -e inject=pwrite64:error=EDQUOT
    timeout 60 strace -qq -o trace -e trace=pread64 -e inject=pread64:delay_enter=80000 "$WEFT" doctor --probe folder:all own >both
    holds 'slow reads are seen to be slow' awk '$1 == "read_bytes_per_s" { bad = !($2 > 0 && $2 < 2e7); n = 1 } END { exit bad || !n }' both
    first=$(grep -n ', 1048576, 0)' trace | head -n 1 | cut -d : -f 1) # the calls before it are the dynamic linker's
    timeout 60 strace -qq -o trace -e trace=pread64 -e inject=pread64:error=EIO:when="$first+" "$WEFT" doctor --probe folder:all own >both
    holds 'a read that fails is no failed write' sh -c 'grep -qx "write_error 0" both && grep -qx "read_error 5" both'
    wait "$silent" || true
    cp silent both
    says fatal 'file system +[^ ]+: no answer within 6 s, at statfs; try: df DIR'
    holds 'and no other check is held up' grep -q '^25 checks in' both
else skipped "failing system calls: no strace, or not allowed"; fi
finish
