#!/usr/bin/env bash
# Only regular files are replaced, and no symbolic link is followed for a file that is written: for every file that a run leaves in its
# folder, and for the outputs of verbs, the test puts a link to a victim in its place. The victim stays unchanged; weft refuses with a
# message, or replaces the link by its file.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 "" "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<Y
run: {name: r, seed: 1, trace: true}
model: {name: mlp, hidden: [8]}
data: {train: data.h5, test: data.h5}
train: {epochs: 2, batch: 12, micro_batch: 6}
optim: {name: sgd, lr: 0.01}
checkpoint: {every_steps: 3}
Y

words="precious words of somebody else"
plant() { # LINK: points to an existing victim; LINK dangling: points to a file that must not be created
    rm -rf victim
    [ "${2:-}" = dangling ] || echo "$words" >victim
    mkdir -p "$(dirname "$1")"
    ln -sfn "$dir/victim" "$1"
}
spared() { # LINK [dangling]
    if [ "${2:-}" = dangling ]; then holds "$1: the link was followed" [ ! -e victim ]
    else holds "$1: the victim was changed" [ "$(cat victim)" = "$words" ]; fi
}
train() { timeout 100 "$WEFT" train job.yaml "$@" >out 2>err </dev/null; }

train || { echo "the run itself fails"; cat err; }
mapfile -t names < <(cd runs/r && find . -type f -printf '%P\n' | grep -v '^events\.out\.' | sort)
# files that have these names only temporarily
names+=(config.yaml.part topo.json.part metrics.jsonl.part)
holds "a run leaves fewer files than are known: ${names[*]}" [ ${#names[@]} -ge 8 ]
for name in "${names[@]}"; do
    for kind in there dangling; do
        rm -rf runs/new
        plant "runs/new/$name" $kind
        rc=0
        train run.name=new || rc=$?
        spared "$name" $kind
        if [ $rc = 0 ]; then
            case $name in
                *.part) ;; # a link that was not in the way stays
                *) holds "$name: still a link after a good run" [ ! -L "runs/new/$name" ];;
            esac
        else
            holds "$name: exit $rc" [ $rc = 74 -o $rc = 65 -o $rc = 66 -o $rc = 78 ]
            holds "$name: no word on why: $(cat err)" grep -q 'error:' err
        fi
    done
    # a resumed run
    rm -rf runs/old
    cp -r runs/r runs/old
    rm -f "runs/old/$name" runs/old/checkpoints/step-00000010.h5
    plant "runs/old/$name"
    train run.name=old || true
    spared "$name, going on"
done

# data sets: the name itself, and the temporary file
for kind in there dangling; do
    plant out.h5 $kind
    check 64 "already there" "$WEFT" data import idx x.idx y.idx -o out.h5
    spared out.h5 $kind
    check 0 "" "$WEFT" data import idx x.idx y.idx -o out.h5 --force
    spared out.h5 $kind
    holds "out.h5 is a link" [ ! -L out.h5 ]
    rm -f out.h5
    plant out.h5.part $kind
    check 0 "" "$WEFT" data import idx x.idx y.idx -o out.h5
    spared out.h5.part $kind
    rm -f out.h5 out.h5.part
    plant plan.svg $kind
    check 74 "symbolic link" "$WEFT" plan job.yaml --svg plan.svg
    spared plan.svg $kind
done

# folders, pipes and devices are not replaced under any name
mkfifo pipe
mkdir folder
ln -s pipe to-pipe
best=runs/r/checkpoints/best.h5
for out in pipe folder to-pipe; do
    check 64 "$out: is already there, and is no file" "$WEFT" data import idx x.idx y.idx -o $out
    check 64 "$out: is already there, and is no file" "$WEFT" data import idx x.idx y.idx -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" data import hdf5 data.h5 -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" data import folder . -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" data import text job.yaml -o out.h5 --test $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" ckpt export $best -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" ckpt export $best --onnx -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" ckpt import none.safetensors -o $out --force
    check 64 "$out: is already there, and is no file" "$WEFT" ckpt shrink $best --method l1 --sparsity .5 -o $out --force
done
mkfifo net.onnx.data
check 64 'net.onnx.data: is already there, and is no file' "$WEFT" ckpt export $best --onnx -o net.onnx --force
holds 'the pipes, the folder and the link are as they were' [ -p pipe -a -p net.onnx.data -a -d folder -a -L to-pipe ]
finish
