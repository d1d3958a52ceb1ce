#!/usr/bin/env bash
# Bad input of every kind, on two ranks: one message names the file and the remedy, the exit code fits, nothing is overwritten, and no
# rank hangs (each run has a time limit).
set -u
weft=$(realpath "${WEFT:-build/weft}") dir=$(mktemp -d) bad=0 good=0
trap '[ -n "${small:-}" ] && umount "$small" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export NO_COLOR=1
export OMPI_MCA_odls_base_sigkill_timeout=0 # otherwise mpirun waits two seconds after ranks have failed

# expect CODE TEXT COMMAND... : the exit code is CODE, the message contains TEXT, and exactly one line has "error:"
expect() {
    local code=$1 text=$2 rc; shift 2
    timeout -k 2 240 "$@" >out 2>err </dev/null; rc=$?
    if [ $rc = "$code" ] && grep -q -- "$text" err && [ "$(grep -c 'error:' err)" = 1 ]; then good=$((good + 1))
    else bad=$((bad + 1)); echo "wanted exit $code and '$text', got exit $rc from: $*"; sed 's/^/    /' err; fi
}
fine() { timeout -k 2 240 "$@" >out 2>err </dev/null && good=$((good + 1)) || { bad=$((bad + 1)); echo "failed: $*"; cat err; }; }
same() { [ "$(cksum <"$1")" = "$2" ] && good=$((good + 1)) || { bad=$((bad + 1)); echo "$1 was changed"; }; }

# A small data set from IDX files: 60 images of 8x8, three classes.
idx() { # IMAGES LABELS COUNT LAST-LABEL
    { printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\100'; } >"$1"
    { printf '\0\0\010\001\0\0\0\074'; for i in $(seq 59); do printf "\\00$((i % 3))"; done; printf "$3"; } >"$2"
}
idx x.idx y.idx '\002'
fine "$weft" data import idx x.idx y.idx -o data.h5
idx x.idx y9.idx '\011'
cat >job.yaml <<X
run: {name: r, seed: 1}
model: {name: mlp, hidden: [8]}
data: {train: data.h5, test: data.h5}
train: {epochs: 2, batch: 12, micro_batch: 6}
optim: {name: sgd, lr: 0.01}
X
train() { echo "$weft train -n 2 job.yaml $*"; }

: >empty.h5; echo "not a data set" >text.h5; head -c 3000 data.h5 >torn.h5; mkdir folder.h5
expect 66 'missing.h5' $(train data.train=missing.h5)
expect 66 'folder.h5' $(train data.train=folder.h5)
expect 65 'empty.h5' $(train data.train=empty.h5)
expect 65 'text.h5' $(train data.train=text.h5)
expect 65 'torn.h5' $(train data.train=torn.h5)
expect 65 'data.h5.*nothing' $(train data.x=/nothing)
[ -e runs ] && { bad=$((bad + 1)); echo "a folder was made for a run that could not start"; }

# bad labels are found by the check, and by a run whose model has fewer classes
expect 65 'y9.idx' "$weft" data import idx x.idx y9.idx -o nine.h5 --classes a,b,c
[ -e nine.h5 ] && { bad=$((bad + 1)); echo "nine.h5 was written all the same"; }
expect 78 'model.classes' $(train model.classes=2)
# a label in the middle of a file that exceeds the file's classes is found before the first step, in both files
at=$("$weft" data info data.h5 | sed -n 's|.* /y, .* at byte ||p')
cp data.h5 nine.h5; printf '\011' | dd of=nine.h5 bs=1 seek=$((at + 40 * 4)) conv=notrunc status=none
expect 65 'nine.h5: sample 40: its label in /y is 9' $(train data.train=nine.h5)
expect 65 'nine.h5: sample 40: its label in /y is 9' $(train data.test=nine.h5)
[ -e runs ] && { bad=$((bad + 1)); echo "a folder was made for a run with bad labels"; }
expect 64 'data.h5' "$weft" data import idx x.idx y.idx -o data.h5

# a checkpoint of another model, a truncated one, and a missing one
fine $(train)
sum=$(cksum <runs/r/checkpoints/best.h5)
expect 65 'best.h5' "$weft" eval job.yaml 'model.hidden=[9]' --checkpoint runs/r/checkpoints/best.h5
expect 65 'best.h5' $(train run.name=other 'model.hidden=[9]' checkpoint.resume=runs/r/checkpoints/best.h5)
head -c 2500 runs/r/checkpoints/best.h5 >torn-checkpoint.h5
expect 65 'torn-checkpoint.h5' $(train run.name=other checkpoint.resume=torn-checkpoint.h5)
expect 66 'nowhere.h5' "$weft" eval job.yaml --checkpoint nowhere.h5
expect 66 'nowhere.h5' $(train run.name=other checkpoint.resume=nowhere.h5)

# other numbers in a folder that contains a run; resuming is switched off; a folder in use
expect 78 'optim.lr' $(train optim.lr=0.5)
expect 78 'already holds a run' $(train checkpoint.resume=no)
same runs/r/checkpoints/best.h5 "$sum"
"$weft" train job.yaml run.name=busy train.epochs=1000000 train.eval_every=0 >/dev/null 2>&1 & holder=$!
for _ in $(seq 1200); do [ -e runs/busy/config.yaml ] && break; sleep 0.1; done
expect 78 'another run is using' $(train run.name=busy train.epochs=1000000 train.eval_every=0)
kill -TERM $holder; wait $holder; rc=$?
[ $rc = 75 ] && good=$((good + 1)) || { bad=$((bad + 1)); echo "SIGTERM: exit $rc, not 75"; }
ls runs/busy/checkpoints/step-*.h5 >/dev/null 2>&1 || { bad=$((bad + 1)); echo "SIGTERM left no checkpoint"; }
# the same input for the launcher of two ranks
"$weft" train -n 2 job.yaml run.name=two train.epochs=1000000 train.eval_every=0 >/dev/null 2>&1 & holder=$!
for _ in $(seq 1200); do [ -s runs/two/metrics.jsonl ] && break; sleep 0.1; done
kill -TERM $holder; wait $holder; rc=$?
[ $rc = 75 ] && good=$((good + 1)) || { bad=$((bad + 1)); echo "SIGTERM to weft -n 2: exit $rc, not 75"; }
ls runs/two/checkpoints/step-*.h5 >/dev/null 2>&1 || { bad=$((bad + 1)); echo "SIGTERM to weft -n 2 left no checkpoint"; }

# a micro-batch that does not fit; paths that cannot be written; full disks
expect 78 'does not divide' $(train run.name=fit train.batch=6 train.micro_batch=4)
: >file; expect 74 'file' $(train run.dir=file/below)
if [ "$(id -u)" = 0 ] && small=$dir/small && mkdir "$small" && mount -t tmpfs -o size=64k none "$small" 2>/dev/null; then
    expect 74 'small' $(train run.dir="$small" 'model.hidden=[200,200]')
    ls "$small"/r/checkpoints/*.part >/dev/null 2>&1 && { bad=$((bad + 1)); echo "a .part was left on the full disk"; }
else
    echo "  skipped: full disk: no root, or no tmpfs"
fi
# a test set that is bad on only one rank, with which other ranks exchange slices: no rank waits for ever, and the training is saved
for i in $(seq 3000); do printf "\\$(printf %03o $((i * i % 61)))\\0"; done >tokens.raw
fine "$weft" data import tokens tokens.raw -o tokens.h5 --bits 16 --vocab 61
# ranks compare pieces of files above 4 MB; the bad token comes after the first piece
mkdir good bad; cp tokens.h5 good/test.h5; cp tokens.h5 bad/test.h5; truncate -s 8M good/test.h5 bad/test.h5
at=$("$weft" data info tokens.h5 | sed -n 's|.* /tokens, .* at byte ||p')
printf '\377' | dd of=bad/test.h5 bs=1 seek=$((at + 2000 * 2)) conv=notrunc status=none
cat >tp.yaml <<X
run: {name: tp, seed: 1, dir: $dir/runs}
model: {name: gpt2, layers: 2, width: 16, heads: 2, context: 8}
data: {train: $dir/tokens.h5, test: test.h5}
train: {steps: 4, batch: 8, micro_batch: 2, threads: 1}
optim: {name: sgd, lr: 0.01}
X
one() { echo "-n $1 --wdir $dir/$2 $weft train $dir/tp.yaml run.name=$3"; } # RANKS FOLDER RUN
expect 65 'rank 1: .*test.h5: token 2000 .* is 255' mpirun --oversubscribe --bind-to none $(one 1 good tp2) grid.tp=2 : $(one 1 bad tp2) grid.tp=2
expect 65 'test.h5: token 2000 .* is 255' mpirun --oversubscribe --bind-to none $(one 3 good tp2pp2) grid.tp=2 grid.pp=2 : $(one 1 bad tp2pp2) grid.tp=2 grid.pp=2
expect 65 'test.h5: token 2000 .* is 255' mpirun --oversubscribe --bind-to none $(one 2 bad both) grid.tp=2
for name in tp2 tp2pp2 both; do
    fine "$weft" ckpt check runs/$name/checkpoints/step-00000004.h5
    [ -e runs/$name/checkpoints/best.h5 ] && { bad=$((bad + 1)); echo "$name: best.h5 of an evaluation that failed"; }
done
left() { # the ranks that this test has started
    local p
    for p in $(pgrep -f "$weft train.*(job|tp).yaml"); do
        case $(readlink "/proc/$p/cwd") in "$dir"*) echo "$p";; esac
    done
}
for _ in $(seq 600); do [ "$(left)" ] || break; sleep 0.1; done # mpirun may end shortly before its ranks
[ -z "$(left)" ] || { bad=$((bad + 1)); echo "ranks were left running"; kill -9 $(left); }
echo "bad input: $good passed, $bad failed"
[ $bad = 0 ]
