#!/usr/bin/env bash
# A pipe, a folder or a device in place of a file: one message names it at once, and no process waits in open().
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: mlp, hidden: [8]}
data: {train: data.h5, test: data.h5}
train: {steps: 4, batch: 12, micro_batch: 6, threads: 1}
checkpoint: {every_steps: 2}
X
check 0 '' timeout 60 "$WEFT" train job.yaml
good=runs/r/checkpoints/step-00000002.h5
mkfifo pipe pipe.h5 pipe.safetensors pipe.png pipe.csv
mkdir folder folder.h5 pictures
echo 1,2 >a.csv
echo "columns: {a: {type: label}, b: {type: number}}" >schema
ln -s /dev/zero zero
ln -s /dev/zero zero.h5
ln -s /dev/zero zero.safetensors

# refused CODE NAME COMMAND... : ends within 20 s with this code and one message that contains the name.
refused() {
    local rc=0
    timeout -k 1 20 "${@:3}" >out 2>err </dev/null || rc=$?
    if [ $rc = "$1" ] && grep -q "error: .*$2" err && [ "$(grep -c error: err)" = 1 ]; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "FAILED: ${*:3}: wanted exit $1 and '$2', got $rc:"; sed 's/^/  | /' err; fi
}

for odd in pipe folder zero; do
    refused 66 $odd "$WEFT" train $odd
    refused 66 $odd "$WEFT" plan $odd
    refused 66 $odd "$WEFT" run -- weft train $odd
    refused 66 $odd "$WEFT" run --hostfile $odd -- weft train job.yaml
    refused 66 $odd.h5 "$WEFT" train -n 2 job.yaml data.train=$odd.h5
    for key in data.train data.test checkpoint.resume model.init_from; do
        refused 66 $odd.h5 "$WEFT" train job.yaml run.name=new $key=$odd.h5
    done
    for verb in 'data info' 'data check' 'ckpt info'; do refused 66 $odd.h5 "$WEFT" $verb $odd.h5; done
    refused 66 $odd.h5 "$WEFT" ckpt diff $good $odd.h5
    refused 66 $odd.h5 "$WEFT" eval job.yaml --checkpoint $odd.h5
    refused 66 $odd.h5 "$WEFT" ckpt export $odd.h5 -o new.safetensors
    refused 66 $odd "$WEFT" data import idx $odd y.idx -o new.h5
    refused 66 $odd "$WEFT" data import idx x.idx $odd -o new.h5
    refused 66 $odd "$WEFT" data import cifar $odd -o new.h5
    refused 66 $odd "$WEFT" data import text $odd -o new.h5
    refused 66 $odd "$WEFT" data import tokens $odd --bits 16 -o new.h5
    refused 66 $odd "$WEFT" data import hdf5 $odd -o new.h5
    refused 66 $odd "$WEFT" data import csv $odd --schema schema -o new.h5
    refused 66 $odd "$WEFT" data import csv a.csv --schema $odd -o new.h5
    refused 66 $odd "$WEFT" data import criteo $odd -o new.h5
    check 65 "$odd: is not a picture: it is not a regular file" timeout 20 "$WEFT" predict job.yaml $odd
    refused 66 $odd "$WEFT" data import folder pictures --list $odd -o new.h5
    refused 66 $odd "$WEFT" ckpt shrink $good --method l1 --sparsity 0.5 --config $odd -o new.h5
    refused 66 $odd "$WEFT" plan job.yaml --ranks 2 grid.pp=2 grid.pipeline_schedule=file:$odd
done
for odd in pipe zero; do refused 66 $odd.safetensors "$WEFT" ckpt import $odd.safetensors -o new.h5; done
holds 'nothing was made' test ! -e new.h5 -a ! -e new.safetensors

# The same among the files of a run.
for made in mkfifo mkdir 'ln -s /dev/zero'; do
    $made runs/r/checkpoints/step-00000009.h5
    timeout -k 1 30 "$WEFT" train job.yaml >out 2>&1 </dev/null && rc=0 || rc=$?
    holds "a start passes it over ($rc)" test $rc = 0
    holds 'and says so' grep -q 'step-00000009.h5.*; skipping it' out
    holds 'it goes on from the good one' grep -q 'step-00000004.h5' out || cat out
    check 65 'step-00000009.h5: bad' timeout 20 "$WEFT" ckpt check runs/r
    holds 'it names the file that the start took' grep -q 'a run resumes from step-00000004.h5' out
    rm -rf runs/r/checkpoints/step-00000009.h5
    mv runs/r/checkpoints/best.h5 best.h5
    $made runs/r/checkpoints/best.h5
    refused 66 best.h5 "$WEFT" eval job.yaml
    refused 66 'step-00000004.h5 is good' "$WEFT" predict job.yaml none.png
    rm -rf runs/r/checkpoints/best.h5
    mv best.h5 runs/r/checkpoints/best.h5
done
for name in metrics.jsonl owner-99 config.yaml hang-host.txt metrics.jsonl.part; do
    cp -r runs/r runs/odd
    rm -f runs/odd/$name runs/odd/checkpoints/step-00000004.h5
    mkfifo runs/odd/$name
    timeout -k 1 30 "$WEFT" train job.yaml run.name=odd >out 2>&1 </dev/null && rc=0 || rc=$?
    case $name in
    metrics.jsonl|owner-99) holds "a pipe as $name is refused ($rc)" test $rc = 74; holds "$name is named" grep -q "$name.*not a plain file" out;;
    *) holds "a pipe as $name is replaced or left alone ($rc)" test $rc = 0;;
    esac
    rm -rf runs/odd
done

# A configuration is read more than once, a host file only once: the latter may be an unnamed pipe.
check 66 'read more than once' timeout 20 bash -c '"$0" train <(cat job.yaml)' "$WEFT"
check 66 'read more than once' timeout 20 bash -c 'cat job.yaml | "$0" train /dev/stdin' "$WEFT"
check 64 ':1: expected NAME' timeout 20 bash -c '"$0" run --hostfile <(sleep 0.2; echo a b c) -- weft train job.yaml' "$WEFT"
finish
