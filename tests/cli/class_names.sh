#!/usr/bin/env bash
# Labels are matched by the names of classes between any two lists of names: training and test set, lists of files, and a checkpoint
# that is resumed, evaluated, used for predictions or as model.init_from. Each picture has one grey, so a model that distinguishes all
# greys of the training set has a known confusion matrix. Types, layouts and labels with other meanings are tested, too.
# usage: class_names.sh     (WEFT=build/weft)
pictures=$(cd "$(dirname "$0")/../image/pictures" && pwd)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
# idx OUT CLASSES GREY:LABEL:COUNT... : makes a data set of 8x8 pictures of one grey each, in this order; CLASSES "": without names.
idx() {
    local out=$1 classes=$2 total=0 part grey label count
    shift 2
    for part; do total=$((total + ${part##*:})); done
    local size
    size=$(printf '\\%o\\%o' $((total / 256)) $((total % 256)))
    printf "\0\0\10\3\0\0$size\0\0\0\10\0\0\0\10" >images
    printf "\0\0\10\1\0\0$size" >labels
    for part; do
        IFS=: read -r grey label count <<<"$part"
        head -c $((count * 64)) /dev/zero | tr '\0' "\\$(printf %o "$grey")" >>images
        head -c "$count" /dev/zero | tr '\0' "\\$(printf %o "$label")" >>labels
    done
    "$WEFT" data import idx images labels -o "$out" --force ${classes:+--classes "$classes"} >/dev/null 2>&1
}
# cat 20, dog 90, eel 160, fox 230
idx train.h5 cat,dog,eel,fox 20:0:24 90:1:24 160:2:24 230:3:24
idx test.h5 cat,eel,fox 20:0:10 160:1:7 230:1:3 230:2:10   # without dogs; three eels look like foxes
idx turned.h5 fox,eel,dog,cat 230:0:10 160:1:10 90:2:10 20:3:5 90:3:5
idx more.h5 ant,cat,dog,eel,fox 20:1:10 90:2:10 160:3:10 230:4:10
idx ants.h5 ant,cat,dog,eel,fox 20:1:10 90:0:1
idx wolf.h5 cat,wolf,eel,fox 20:0:10
cat >a.yaml <<'YAML'
model: {name: mlp, hidden: [32]}
data: {train: train.h5, test: test.h5}
train: {epochs: 60, batch: 32, micro_batch: 32, threads: 1, log_every: 1000, eval_every: 0}
optim: {name: adam, lr: 0.01}
YAML
train() { timeout 100 "$WEFT" train a.yaml "$@"; }
evaluate() { timeout 100 "$WEFT" eval a.yaml run.name=a "$@"; }
check 0 'top-1 90.00 %' train run.name=a
holds 'a line says so' grep -qF "test.h5: labels are matched by the names of classes: it has 3 of the 4 classes of train.h5 and lacks 'dog'" both
check 0 'top-1       100.00 %' evaluate data.test=train.h5
holds 'nothing is said of equal lists' sh -c '! grep -q "matched by the names" both'
check 0 'top-1       90.00 %' evaluate
holds 'the eels that look like foxes' grep -qE '^ 2 eel +0 +0 +7 +3$' out
holds 'a class without samples is a row' grep -qE '^ 1 dog +0 +0 +0 +0$' out
check 0 '"classes": ["cat", "dog", "eel", "fox"]' evaluate --json
check 0 'top-1       87.50 %' evaluate data.test=turned.h5
holds 'cats that look like dogs' grep -qE '^ 0 cat +5 +5 +0 +0$' out
check 0 "which no sample may have" evaluate data.test=more.h5
holds 'all of them' grep -qF 'top-1       100.00 %' out
check 65 "sample 10 is of the class 'ant' (label 0), which the model does not have" evaluate data.test=ants.h5
check 65 "'wolf' (class 1) is not among them, and 'dog' (their class 1) is not among its own" evaluate data.test=wolf.h5
check 65 "'wolf' (class 1) is not among them" train run.name=b data.test=wolf.h5
holds 'on two ranks as on one' sh -c 'timeout 100 "$0" eval -n 2 a.yaml run.name=a data.test=turned.h5 2>/dev/null | grep -qF "87.50 %"' "$WEFT"
check 0 '4 classes: cat, dog, eel, fox' "$WEFT" ckpt info runs/a/checkpoints/best.h5
check 0 'classes' h5dump -a classes runs/a/checkpoints/best.h5

# Names that look alike, and one that would reverse the direction of text.
idx nfc.h5 $'cat,caf\u00e9,eel,fox' 20:0:10 90:1:10
idx nfd.h5 $'cat,cafe\u0301,eel,fox' 20:0:10 90:1:10
check 65 "'cafe\\u0301' (class 1) is not among them, and 'caf\\u00e9' (their class 1) is not among its own" "$WEFT" data check nfc.h5 nfd.h5
idx bidi.h5 $'cat,do\u202eg,eel,fox' 20:0:10 90:1:10
check 65 "'do\\u202eg' (class 1) is not among them" evaluate data.test=bidi.h5
check 0 'do\u202eg' "$WEFT" data info bidi.h5
check 0 '' train run.name=bidi data.train=bidi.h5 data.test=bidi.h5 train.epochs=1
check 0 'do\u202eg' timeout 100 "$WEFT" eval a.yaml run.name=bidi data.train=bidi.h5 data.test=bidi.h5
check 0 'do\u202eg' "$WEFT" ckpt info runs/bidi/checkpoints/best.h5
check 66 'no\u202e.h5' "$WEFT" data info $'no\u202e.h5'

# In a list of files the first file's order applies; the test set uses the run's order.
check 0 'top-1 100.00 %' train run.name=list 'data.train=[turned.h5,train.h5]' data.test=more.h5 train.epochs=90
check 0 '4 classes: fox, eel, dog, cat' "$WEFT" ckpt info runs/list/checkpoints/best.h5
check 65 "wolf.h5: its classes are not those of train.h5" train run.name=c 'data.train=[train.h5,wolf.h5]'

# A checkpoint's order applies to evaluations and resumed runs, whatever order the data have now.
check 0 'top-1       90.00 %' evaluate data.train=turned.h5
check 65 "its classes are not those of runs/a/checkpoints" evaluate data.train=wolf.h5
last=$(ls runs/a/checkpoints/step-*.h5)
check 0 "turned.h5: labels are matched by the names of classes, which are in another order than those of $last" \
    train run.name=from checkpoint.resume="$last" data.train=turned.h5 data.test=train.h5 train.epochs=130 optim.lr=1e-9
holds 'it goes on from what it has learnt' grep -qF 'top-1 100.00 %' both
check 0 '4 classes: cat, dog, eel, fox' "$WEFT" ckpt info "$(ls runs/from/checkpoints/step-*.h5 | tail -1)"
check 65 "its classes are not those of $last" train run.name=none checkpoint.resume="$last" data.train=wolf.h5 data.test=wolf.h5

# Under the same path, the same samples with other class numbers are the same data; other names are other data.
cp train.h5 kept.h5
idx train.h5 dog,cat,fox,eel 20:1:24 90:0:24 160:3:24 230:2:24
check 0 'this run is complete' train run.name=a
holds 'the result, too' grep -qF 'top-1 90.00 %' both
idx train.h5 dog,cat,fox,eel 20:0:24 90:1:24 160:2:24 230:3:24
check 65 'holds other data than this run was trained on' train run.name=a
cp kept.h5 train.h5

# model.init_from with the same classes in another order, other classes of the same number, and another number of classes.
check 0 'top-1 100.00 %' train run.name=begun model.init_from="$last" data.train=turned.h5 data.test=train.h5 train.epochs=1 optim.lr=1e-9
check 0 "class 1 is 'dog' in $last and 'wolf' in wolf.h5" train run.name=wolf model.init_from="$last" data.train=wolf.h5 data.test=wolf.h5 train.epochs=1
holds 'the data'"'"'s names' sh -c '"$0" ckpt info runs/wolf/checkpoints/best.h5 | grep -q "cat, wolf, eel, fox"' "$WEFT"
check 0 'begins anew' train run.name=less model.init_from="$last" data.train=test.h5 data.test=test.h5 train.epochs=1
holds 'no names are compared' sh -c '! grep -qE "matched by the names|class 1 is" both'

# If only one side has names, labels are matched by number, and one line says so. Labels above a file's list are refused everywhere.
idx bare.h5 '' 20:0:10 90:1:10 160:2:10 230:3:10
check 0 "bare.h5: has no names of classes, so labels are matched by number: 0 is 'cat', as in runs/a/checkpoints/" evaluate data.test=bare.h5
holds 'by number they are the same' grep -qF 'top-1       100.00 %' out
check 0 "train.h5: labels are matched by number, since bare.h5 has no names of classes: 0 is 'cat' here" train run.name=bare data.train=bare.h5 data.test=train.h5 train.epochs=1
check 0 "since bare.h5 has no names of classes: 0 is 'cat' here" "$WEFT" data check bare.h5 train.h5
idx ebb.h5 eel,fox,cat,dog 160:0:24 230:1:24 20:2:24 90:3:24
check 0 'top-1 100.00 %' train run.name=mixed 'data.train=[bare.h5,train.h5,ebb.h5]' data.test=ebb.h5
holds 'one line of the file without names' [ "$(grep -c 'has no names of classes' both)" = 1 ]
check 0 '4 classes: cat, dog, eel, fox' "$WEFT" ckpt info runs/mixed/checkpoints/best.h5
# A checkpoint without names, like older ones, from data without names.
idx train.h5 cat,dog,eel,fox 20:0:24 90:1:24 160:2:24 230:3:24
if command -v h5import >/dev/null; then
tail -c +17 images >x.bin; tail -c +9 labels >y.bin
h5import x.bin -dims 96,1,8,8 -path x -type UIN -size 8 y.bin -dims 96 -path y -type UIN -size 8 -o nameless.h5
check 0 'top-1 100.00 %' train run.name=nameless data.train=nameless.h5 data.test=nameless.h5
cp runs/nameless/checkpoints/best.h5 older.h5
check 0 '' "$WEFT" ckpt info older.h5
holds 'a checkpoint without names' sh -c '! grep -q "4 classes" out'
older="train.h5: labels are matched by number, since older.h5 has no names of classes: 0 is 'cat' here"
check 0 "$older" evaluate data.test=train.h5 --checkpoint older.h5
holds 'it says it once' [ "$(grep -c 'matched by number' both)" = 1 ]
holds 'and evaluates' grep -qF 'top-1       100.00 %' out
check 0 "$older" train run.name=older checkpoint.resume=older.h5 train.epochs=130 optim.lr=1e-9
holds 'mean and deviation are new, and said' grep -qF 'those that older.h5 was trained on were without mean and deviation' both
check 0 'older.h5 names no classes: their numbers are printed' "$WEFT" predict a.yaml --checkpoint older.h5 data.train=train.h5 "$pictures/grey.png" --top 4
# Without names the data's original numbers are printed, whatever number labels start from.
tr '\0\1\2\3' '\1\2\3\4' <y.bin >y1.bin
h5import x.bin -dims 96,1,8,8 -path x -type UIN -size 8 y1.bin -dims 96 -path y -type UIN -size 8 -o based.h5
check 0 'top-1 100.00 %' train run.name=based data.train=based.h5 data.test=based.h5 data.label_base=1
based=(run.name=based data.train=based.h5 data.test=based.h5 data.label_base=1)
check 0 '"classes": ["1", "2", "3", "4"], "confusion": [[24, 0, 0, 0], ' "$WEFT" eval a.yaml "${based[@]}" --json
check 0 ' 4 4                  0      0      0     24' "$WEFT" eval a.yaml "${based[@]}" --per-class
holds 'columns have the same numbers' grep -qE '^ +1      2      3      4$' out
check 0 '' "$WEFT" predict a.yaml "${based[@]}" "$pictures/grey.png" --top 4
holds 'predictions, too' [ "$(sed 's/.*grey.png[^0-9]*//' out | tr ',' '\n' | awk '{ print $1 }' | sort | xargs)" = '1 2 3 4' ]
check 0 "model.init_from: nameless.h5 names no classes, so what was learnt is taken by number: 0 is 'cat' in $last" \
    train run.name=taken model.init_from="$last" data.train=nameless.h5 data.test=nameless.h5 train.epochs=1
else echo '  skipped: a checkpoint without names: there is no h5import'; fi

# Rows of a table whose two answers have swapped numbers in another import: the figures, confusions and predicted names are the same.
seq 1 200 | awk '{ print $1 % 2 ? "yes" : "no", ($1 % 2 ? 1 : -1) * (1 + $1 % 7) }' OFS=, >rows.csv
for pair in yes:no no:yes; do
    printf 'header: false\ncolumns: {answer: {type: label, one: %s, zero: %s}, n: number}\n' "${pair%:*}" "${pair#*:}" >schema.yaml
    check 0 wrote "$WEFT" data import csv rows.csv --schema schema.yaml -o "${pair%:*}.h5"
done
rows() { timeout 100 "$WEFT" "$1" a.yaml run.name=rows "${@:2}"; }
check 0 'top-1 100.00 %' rows train data.train=yes.h5 data.test=yes.h5 train.epochs=20
for test in yes no; do
    check 0 'top-1       100.00 %' rows eval data.train=yes.h5 data.test=$test.h5
    grep -E '^ [01] |^loss' out >"$test.seen"
    check 0 '' rows predict data.train=$test.h5 yes.h5 --top 1
    cut -d' ' -f2 out >"$test.names"
done
holds 'the same loss and confusions' cmp yes.seen no.seen
holds 'the same names of predictions' cmp yes.names no.names
holds 'which are the right ones' sh -c 'cut -d, -f1 rows.csv | cmp - yes.names'

# Two sets are compared before any training.
check 0 "it has 3 of the 4 classes of train.h5 and lacks 'dog'" "$WEFT" data check train.h5 test.h5
holds 'they go together' grep -q 'train.h5 and test.h5 go together.*and classes are matched by their names' out
check 0 'compatible, and so are the names of classes' "$WEFT" data check train.h5 train.h5
check 65 "sample 10 is of the class 'ant'" "$WEFT" data check train.h5 ants.h5
check 65 "'wolf' (class 1) is not among them" "$WEFT" data check train.h5 wolf.h5

# Labels that start from 1: a warning names the remedy with the right number of classes.
idx letters.h5 '' 20:1:24 90:2:24 160:3:24
odd="letters.h5: labels are 1 to 3, so 1 of 4 classes have no sample: if labels count from 1, set data.label_base: 1"
check 0 "$odd" "$WEFT" data check letters.h5
check 0 "$odd" train run.name=letters data.train=letters.h5 data.test=letters.h5 train.epochs=1
check 0 'top-1 100.00 %' train run.name=base data.train=letters.h5 data.test=letters.h5 data.label_base=1
check 0 '3 classes: 1, 2, 3' "$WEFT" ckpt info runs/base/checkpoints/best.h5
# A checkpoint records the number from which its labels started: the same file is tested with and without the key.
wide() { timeout 100 "$WEFT" "$1" a.yaml data.train=letters.h5 data.test=letters.h5 model.classes=4 "${@:2}"; }
check 0 'top-1 100.00 %' wide train run.name=wide data.label_base=1
check 0 'top-1       100.00 %' wide eval run.name=wide data.label_base=1
base="letters.h5: its labels count from 0, but 1 for the training of runs/wide/checkpoints/best.h5: set data.label_base"
check 65 "$base" wide eval run.name=wide
check 65 "$base" wide train run.name=none2 checkpoint.resume=runs/wide/checkpoints/best.h5
check 0 "model.init_from: $base" wide train run.name=wide2 model.init_from=runs/wide/checkpoints/best.h5 train.epochs=1
idx void.h5 '' 20:0:24 90:1:24 160:255:24
check 0 'void.h5: labels are 0 to 1, and 255, so 253 of 256 classes have no sample' "$WEFT" data check void.h5
idx plain.h5 '' 20:0:24 90:1:24
check 65 'void.h5: sample 48: its label in /y is 255, but there are 2 classes (0 to 1)' train run.name=void data.train=plain.h5 data.test=void.h5
check 0 '24 samples with the label 255 are left out' "$WEFT" data import hdf5 void.h5 -o kept.h5 --drop-label 255 --force
check 0 'kept.h5: good, 48 samples' "$WEFT" data check kept.h5

idx late.h5 '' 20:1:10 90:2:10
holds 'the import says so' sh -c '"$0" data import idx images labels -o x.h5 2>&1 | grep -qF "x.h5: labels are 1 to 2, so 1 of 3 classes have no sample: if labels count from 1, set data.label_base: 1"' "$WEFT"
idx three.h5 '' 20:0:24 90:1:24 160:2:24
shifted='late.h5: labels are 1 to 2, and those of three.h5 are 0 to 2: if the first count from 1, every sample is taken for the class after its own'
check 0 "$shifted" train run.name=late data.train=three.h5 data.test=late.h5 train.epochs=1
check 0 "$shifted" train run.name=late2 'data.train=[three.h5,late.h5]' data.test=three.h5 train.epochs=1
check 0 "$shifted" "$WEFT" data check three.h5 late.h5
idx onward.h5 '' 20:1:10 90:2:10 160:3:10
check 65 'onward.h5: sample 20: its label in /y is 3, but there are 3 classes (0 to 2); correct the data set or model.classes; if labels count from 1' "$WEFT" data check three.h5 onward.h5
check 65 'onward.h5: sample 20: its label in /y is 3, but there are 3 classes (0 to 2); correct the data set or model.classes; if labels count from 1' train run.name=late3 data.train=three.h5 data.test=onward.h5
check 0 'test.h5: labels are matched by the names' train run.name=by_name data.test=test.h5 train.epochs=1
idx nocat.h5 cat,dog,eel,fox 90:1:10 160:2:10
check 0 '' train run.name=by_name2 data.test=nocat.h5 train.epochs=1
holds 'nothing is shifted by name' sh -c '! grep -q "count from" both'

# A folder and files of other programs: the messages name the importer.
mkdir -p photos/cat
check 66 'weft data import folder photos -o FILE.h5' "$WEFT" data info photos
for f in a.csv:csv a.txt:text a.npz:h5py t10k-labels-idx1-ubyte.gz:idx; do
    echo some words >"${f%%:*}"
    check 65 "${f##*:}" "$WEFT" data info "${f%%:*}"
done
finish
