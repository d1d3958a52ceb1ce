#!/usr/bin/env bash
# Data sets that change during a run: a file with other data ends the run with 65, and the checkpoint stays; a file that is only
# touched, replaced by the same data, or removed does not end it.
. "$(dirname "$0")/common.bash"

images() { # FIRST_BYTE OUT : makes 200 images of 4x4 in two classes
    { printf '\0\0\010\003\0\0\0\310\0\0\0\004\0\0\0\004'; tail -c "+$1" "$WEFT" | head -c 3200; } >x.idx
    { printf '\0\0\010\001\0\0\0\310'; for i in $(seq 200); do printf "\\00$((i % 2))"; done; } >y.idx
    check 0 '' "$WEFT" data import idx x.idx y.idx -o "$2"
}
images 1000 one.h5
images 9000 two.h5
images 20000 three.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: mlp, hidden: [16]}
data: {train: a.h5, test: c.h5}
train: {epochs: 1000000, batch: 20, micro_batch: 10, log_every: 1000, eval_every: 1000000, threads: 1}
optim: {lr: 0.01}
checkpoint: {every_s: 0.5, keep: 2}
X
begin() { # RANKS WORDS... : starts a run in the background and waits for its first checkpoint
    local n=$1
    shift
    rm -rf runs
    cp one.h5 a.h5; cp two.h5 b.h5; cp three.h5 c.h5
    background log timeout -k 5 100 "$WEFT" train -n "$n" job.yaml "$@"
    pid=$!
    soon compgen -G 'runs/r/checkpoints/step-*.h5' >/dev/null
}
said() { grep -qF -- "$1" log; }
ends() { # CODE TEXT
    local rc=0
    wait $pid || rc=$?
    holds "exit code $1, not $rc: $2" test "$rc" = "$1"
    holds "the log says: $2" said "$2"
    said "$2" || sed 's/^/  | /' log
}
stops() { kill -TERM $pid; ends 75 'stopped early with a checkpoint'; }
newest() { ls runs/r/checkpoints/step-*.h5 | tail -n 1; }
blank() { # FILE : sets all pixels to 0 in place
    local at
    at=$("$WEFT" data info "$1" | sed -n 's/^ *x .*at byte \([0-9]*\).*/\1/p')
    head -c 3200 /dev/zero | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

# ---- changed in place ----
begin 1
sum=$("$WEFT" ckpt info --json "$(newest)" | grep -o '"data_train":"[^"]*"')
blank a.h5
ends 65 'a.h5: was changed while this run trained on it: it was written to; it is 200x1x4x4 uint8'
holds 'it says what is left' said 'The checkpoints in runs/r/checkpoints were trained on the former data'
holds 'it is of the old data' test "$sum" = "$("$WEFT" ckpt info --json "$(newest)" | grep -o '"data_train":"[^"]*"')"
before=$(newest)
check 65 'holds other data than this run was trained on' timeout 60 "$WEFT" train job.yaml
cp one.h5 a.h5
background log timeout 60 "$WEFT" train job.yaml; pid=$!
soon said "resuming from $before"
sleep 0.5; stops

# ---- touched, replaced by the same data, removed and restored ----
begin 2
touch a.h5; soon said 'a.h5: was touched (it was written to), and holds the same data'
chmod 600 c.h5; soon said 'c.h5: was touched (its inode was changed)'
cp one.h5 new.h5; mv new.h5 a.h5; soon said 'a.h5: was touched (another file has taken its name)'
mv a.h5 away.h5; soon said 'a.h5: is gone (No such file or directory); training goes on'
mv away.h5 a.h5; chmod 600 a.h5; soon said 'a.h5: was touched (its inode was changed)'
holds 'it is said once' test "$(grep -c 'is gone' log)" = 1
rm a.h5; mkdir a.h5; soon said 'a.h5: is gone (it is a folder, not a file); training goes on'
stops
rmdir a.h5; cp one.h5 a.h5

# ---- the test set is removed: the next evaluation ends the run, which saves, and the next start evaluates first ----
train() { timeout 60 "$WEFT" train job.yaml train.epochs=40 train.eval_every=10 "$@"; }
cp three.h5 c.h5
check 0 '' train run.name=quiet
evaluations() { grep -o '"step":[0-9]*,.*"eval_loss":[^,]*' runs/$1/metrics.jsonl; }
holds 'four evaluations' test "$(evaluations quiet | wc -l)" = 4
for other in true mkdir mkfifo; do
    rm -rf runs/r once
    check 66 'the evaluation after step 200 cannot be made: c.h5: cannot be opened: ' train run.hook_wait=true 'run.hook_on=[evaluation]' \
        run.hook="[ -e once ] || { rm c.h5; $other c.h5; touch once; }"
    holds 'it is said before' grep -q 'c.h5: is gone (.*); the next evaluation opens it, and without it the run ends there, saved' both
    holds 'the run is saved' test -e "$(at r 200)"
    rm -rf c.h5; cp three.h5 c.h5
    check 0 'resuming from runs/r/checkpoints/step-00000200.h5' train
    same 400 quiet r
    holds 'each evaluation is made once' test "$(evaluations r)" = "$(evaluations quiet)"
done

# ---- replaced by other data, by a shorter file, one of several files, the test set; two ranks ----
begin 2; cp two.h5 new.h5; mv new.h5 a.h5
ends 65 'a.h5: was changed while this run trained on it: another file has taken its name'
begin 1; truncate -s 4500 a.h5
ends 65 'a.h5: was changed while this run trained on it: it has 4500 bytes'
begin 1 'data.train=[a.h5, b.h5]'; blank b.h5
ends 65 'b.h5: was changed while this run trained on it'
begin 2; blank c.h5
ends 65 'c.h5: was changed while this run evaluated on it: it was written to'
holds 'it says that the checkpoints are sound' said 'checkpoints in runs/r/checkpoints are good, because nothing was trained on this file'
holds 'a checkpoint is left' "$WEFT" ckpt check runs/r
step=$(newest); step=${step##*-0}; step=${step%.h5}
check 0 "resuming from $(newest)" timeout 60 "$WEFT" train job.yaml train.epochs=$((10#$step / 10 + 1)) # with the new data

# ---- arrays that HDF5 reads and caches ----
in_place() { # FILE : copies it into the inode of a.h5 while the run is suspended, so that the run sees only the complete file
    own "^$WEFT train" >pids
    kill -STOP $(cat pids)
    dd if="$1" of=a.h5 bs=1M conv=notrunc status=none; truncate -s "$(stat -c %s "$1")" a.h5
    kill -CONT $(cat pids)
}
changes_stored() { # WORDS... : stores a.h5 by h5repack with these words, then two.h5 in the same way in the same inode
    h5repack "$@" one.h5 one-stored.h5; h5repack "$@" two.h5 two-stored.h5
    cp one-stored.h5 a.h5; cp three.h5 c.h5; rm -rf runs
    background log timeout -k 5 100 "$WEFT" train job.yaml; pid=$!
    soon compgen -G 'runs/r/checkpoints/step-*.h5' >/dev/null
    touch a.h5; soon said 'a.h5: was touched (it was written to), and holds the same data'
    in_place two-stored.h5
    ends 65 'a.h5: was changed while this run trained on it: it '
}
moved='it holds the same data at other offsets'
# moves OLD NEW [WORDS...] : stores a.h5 by h5repack with the words OLD, then the same data with NEW in the same inode.
moves() {
    h5repack -l y:CHUNK=200 $1 one.h5 one-stored.h5; h5repack -l y:CHUNK=200 $2 one.h5 two-stored.h5
    cp one-stored.h5 a.h5; cp three.h5 c.h5; rm -rf runs
    background log timeout -k 5 100 "$WEFT" train job.yaml "${@:3}"; pid=$!
    soon compgen -G 'runs/r/checkpoints/step-*.h5' >/dev/null
    touch a.h5; soon said 'a.h5: was touched (it was written to), and holds the same data'
    in_place two-stored.h5
    ends 65 'a.h5: was changed while this run trained on it: it '
    holds "it says that $moved ($1 to $2)" said "$moved"
}
if command -v h5repack >/dev/null; then
    gzip='-l x:CHUNK=10x1x4x4 -f x:GZIP='
    plain='-l x:CHUNK=10x1x4x4 -f x:NONE'
    moves "${gzip}6" '-l x:CHUNK=7x1x4x4 -f x:GZIP=6'
    moves "${gzip}1" "${gzip}9" -n 2
    moves "$plain" "$plain -q name -z descending"
    moves "$plain" '-l x:CONTI -f x:NONE'
    moves "${gzip}6" "$plain" 'data.train=[two.h5, a.h5]'
    # an array that is read directly at its offset
    begin 1
    h5repack -q name -z descending one.h5 two-stored.h5
    in_place two-stored.h5
    ends 65 "$moved"
    # a file that is not the opened one
    h5repack ${gzip}6 one.h5 a.h5; h5repack $plain one.h5 new.h5; rm -rf runs
    background log timeout -k 5 100 "$WEFT" train job.yaml; pid=$!
    soon compgen -G 'runs/r/checkpoints/step-*.h5' >/dev/null
    mv new.h5 a.h5; soon said 'a.h5: was touched (it has '
    stops
    changes_stored -l x:CHUNK=10x1x4x4 -f x:GZIP=6
    changes_stored -l x:CHUNK=10x1x4x4
    # more than the 256 MB that HDF5 caches: 260 samples of 1 MB, of which some in the middle change
    printf '\0\0\010\003\0\0\001\004\0\0\004\0\0\0\004\0' >x.idx
    truncate -s $((16 + (260 << 20))) x.idx
    { printf '\0\0\010\001\0\0\001\004'; for i in $(seq 260); do printf "\\00$((i % 2))"; done; } >y.idx
    check 0 '' "$WEFT" data import idx x.idx y.idx -o whole.h5
    rm -rf runs a.h5; h5repack -l x:CHUNK=1x1x1024x1024 whole.h5 a.h5
    rm whole.h5 x.idx
    sed 's/, test: c.h5//' job.yaml >large.yaml
    background log timeout -k 5 100 "$WEFT" train large.yaml model.hidden=[1] train.batch=10; pid=$!
    soon compgen -G 'runs/r/checkpoints/step-*.h5' >/dev/null
    head -c 2097152 /dev/zero | tr '\0' '\177' | dd of=a.h5 bs=1M seek=130 conv=notrunc status=none
    ends 65 'a.h5: was changed while this run trained on it: it was written to'
else
    echo '  skipped: sets in chunks: there is no h5repack'
fi

finish
