#!/usr/bin/env bash
# Failures of mpirun itself: it cannot connect ranks, it fails after they have ended, or it is killed.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: mlp, hidden: [8]}
data: {train: data.h5}
train: {steps: 4, batch: 12, micro_batch: 6, threads: 1}
X
real=$(command -v mpirun)
mkdir bin
# mpirun LINES : makes a script that replaces mpirun.
mpirun_is() { printf '#!/bin/bash\n%s\n' "$1" >bin/mpirun; chmod +x bin/mpirun; }
with() { PATH=$dir/bin:$PATH timeout 120 "$@"; }

# It fails at its end, as it does under load: the run is complete nevertheless.
mpirun_is "'$real' \"\$@\"; rc=\$?; echo 'mpirun: something of its own'; [ \$rc = 0 ] && exit 1; exit \$rc"
check 0 'the same to the bit' with "$WEFT" verify job.yaml --steps 2 --grids 1x1x1,2x1x1
check 0 '' with "$WEFT" train -n 2 job.yaml run.name=end
check 0 '' with "$WEFT" run -n 2 -- weft train job.yaml run.name=end2
holds 'no start is made again' test "$(grep -c 'start 2' both)" = 0
# It fails earlier: the run has failed, and its output is kept.
mpirun_is 'echo "mpirun: cannot do anything"; exit 1'
check 70 'exit code 1' with "$WEFT" verify job.yaml --steps 2 --grids 1x1x1,2x1x1
holds "mpirun's words are kept" grep -q 'mpirun: cannot do anything' both
check 74 'mpirun: cannot do anything' with "$WEFT" train -n 2 job.yaml run.name=none
holds 'the same command would not help' test "$(grep -c 'start the same command' both)" = 0
check 64 'mpirun: cannot do anything' with "$WEFT" run -n 2 -- weft train job.yaml run.name=none

# Its first start fails, as it does now and then next to another mpirun that ends: the ranks are started again.
fails_once() { # COMMAND... : runs the command with an mpirun that fails at its first call and works afterwards
    rm -f calls
    mpirun_is "echo >>'$dir/calls'; [ \$(wc -l <'$dir/calls') -gt 1 ] || exit 1; exec '$real' \"\$@\""
    with "$@"
}
check 0 'starting the ranks again' fails_once "$WEFT" train -n 2 job.yaml run.name=again
same 4 end again
check 0 'starting the ranks again' fails_once "$WEFT" eval -n 2 job.yaml run.name=again data.test=data.h5
check 0 'the same to the bit' fails_once "$WEFT" verify job.yaml --steps 2 --grids 2x1x1,1x2x1
holds 'verify says that it starts ranks again' grep -q 'starting the ranks again' both
check 0 'start 2' fails_once "$WEFT" run -n 2 -- weft train job.yaml run.name=again2
# It only fails for this run: there are three starts, and not more.
rm -f calls
mpirun_is "case \" \$* \" in *' job.yaml '*) echo >>'$dir/calls'; exit 1 ;; esac; exec '$real' \"\$@\""
check 1 'starting the ranks again' with "$WEFT" train -n 2 job.yaml run.name=never
holds 'three starts' test "$(wc -l <calls)" = 3

# It is killed while the ranks train: weft ends them before it ends itself or makes another start, so that no two write to the folder.
background out "$WEFT" train -n 2 job.yaml run.name=orphans train.steps=100000000
job=$!
soon test -s runs/orphans/metrics.jsonl
kill -KILL "$(pgrep -P $job)"
rc=0
wait $job || rc=$?
holds "its ranks have ended, $rc" test $rc = 74 -a -z "$(own "^$WEFT train .*run.name=orphans ")"
check 0 '' "$WEFT" train -n 2 job.yaml run.name=orphans train.steps=6

# It is killed, and so is the next one: that does not show whether ranks can be started.
for kills in 1 2; do
    rm -rf runs/killed
    check 0 '' timeout 60 "$WEFT" train job.yaml run.name=killed train.steps=2
    echo 0 >count
    mpirun_is "n=\$(cat '$dir/count'); echo \$((n + 1)) >'$dir/count'; [ \$n -lt $kills ] && kill -KILL \$\$; exec '$real' \"\$@\""
    check 0 '' with "$WEFT" run -n 2 -- weft train job.yaml run.name=killed train.steps=2
done

# Ranks that die in MPI_Init. Which of mpirun's messages appear depends on which rank fails first, and where.
its_words() { grep -Eq 'MPI_INIT has failed|An error occurred in MPI_Init|shared-memory backing' both; }
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    small() { timeout 120 unshare -m bash -c 'mount -t tmpfs -o size=1m tmpfs /dev/shm && "$@"' - "$@"; }
    check 74 '/dev/shm, which ranks of a host use for messages, has 1.0 MB free' small "$WEFT" train -n 2 job.yaml run.name=small
    holds "mpirun's words are passed on: $(cat both)" its_words
    holds 'the same command would not help' test "$(grep -c 'start the same command' both)" = 0
    check 64 '/dev/shm, which ranks of a host use for messages' small "$WEFT" run -n 2 -- weft train job.yaml run.name=small
    check 70 'its output is above' small "$WEFT" verify job.yaml --steps 2 --grids 1x1x1,2x1x1
    holds "mpirun's words are above" its_words
    check 74 '/dev/shm, which ranks of a host use for messages' small "$WEFT" eval -n 2 job.yaml --checkpoint "$(at killed 2)" data.test=data.h5
else
    echo '  skipped: no file system can be mounted here, so /dev/shm stays large'
fi
finish
