#!/usr/bin/env bash
# Ranks that read other configurations or run other builds: one message that names the rank, exit code 78, nothing written.
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
printf 'x' | dd of=id bs=1 seek=20 conv=notrunc 2>/dev/null
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
finish
