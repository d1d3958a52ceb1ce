#!/usr/bin/env bash
# The patches of docs/how-to: each applies to a clean copy of the sources, compiles and does what its page describes. Most patches add
# one file and one line. Objects built for this test are copied, so that only the files of the patches are compiled; a second set of
# patches (a curve, a model, a metric, an operation with parameters, a loss, an augmentation) is applied to the copy with the operation.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"
. "$here/tests/cli/images.bash"
built=$(dirname "$WEFT")
skip= # reason of the failure
command -v patch >/dev/null || command -v git >/dev/null || skip="neither patch nor git is here, to apply the patches"
[ -e "$built/probe.mk" ] || skip="$WEFT lies in no build folder, so its objects cannot be used"

# rows_of PATCH NEW: the patch has NEW new files, adds NEW lines to other files, and removes none.
rows_of() {
    awk -v new_files="$2" '/^diff --git/ { ++files; new = 0 } /^new file/ { ++made; new = 1 }
        /^[+]/ && !/^[+][+][+]/ && !new { ++rows } /^-/ && !/^---/ { ++gone }
        END { exit !(files == 2 * new_files && made == new_files && rows == new_files && !gone) }' "$1"
}
one_row() { rows_of "$1" 1; }
# The lines around a row may have changed, since rows of your own stand there: patch needs none of them, and git apply -C0 neither.
again="correct its hunk, as docs/how-to/README.md says, and the page"
apply() { # NAME TREE [--dry-run]
    (cd "$2" && if command -v patch >/dev/null; then patch -p1 -s -f ${3:-}; else git apply -C0 ${3:+--check}; fi) <"$here/tests/how-to/$1.patch"
}
# patched NAME FILES: applies tests/how-to/NAME.patch to the sources and builds them in the folder NAME, which compiles FILES files.
patched() {
    local file=$here/tests/how-to/$1.patch rc=0
    holds "$1.patch is one new file and one row" one_row "$file"
    [ -z "$skip" ] || return 0
    mkdir -p "$1/build"
    (cd "$here" && cp -a Makefile VERSION LICENSE include src tools "$dir/$1")
    cp -a "$built/obj" "$built/lib" "$built/probe.mk" "$1/build"
    apply "$1" "$1" || rc=$?
    holds "$1.patch applies; if it does not, $again" test $rc = 0
    local made=$1/$(sed -n '/^--- .dev.null$/{ n; s,^+++ b/,,p }' "$file")
    holds "$made fits 100 columns" test -z "$(awk 'length > 100' "$made")"
    if command -v clang-format >/dev/null; then
        holds "$made is laid out as all C" clang-format --style="file:$here/.clang-format" --dry-run -Werror "$made"
    fi
    make -C "$1" -j2 BUILD=build weft >"$1.log" 2>&1 || { rc=$?; tail -n 20 "$1.log"; }
    holds "what $1.patch makes is built; if a row has gone to a wrong place, $again" test $rc = 0
}
# compiles NAME COUNT: compiles the new file and the files that include the list.
compiles() {
    [ -n "$skip" ] || holds "$1.patch compiles its own file and those that read the list only" test "$(grep -c '^  cc ' "$1.log")" = "$2"
}

# page_agrees PAGE NAME [ROWS]: the patch contains the lines that the page shows with a +, among them ROWS rows of lists (1).
page_agrees() {
    local page=$here/docs/how-to/$1
    sed -n '/^```diff/,/^```$/p' "$page" | grep '^+' >shown
    holds "$1 shows lines of $2.patch" test -z "$(grep -vxFf "$here/tests/how-to/$2.patch" shown)"
    holds "$1 shows the rows" test "$(grep -c '^+    _(' shown)" = "${3:-1}"
    holds "$1 has fewer than 130 lines" test "$(wc -l <"$page")" -lt 130
}
whole() { holds "$1.patch is shown whole" test "$(wc -l <shown)" = "$(grep -c '^+' "$here/tests/how-to/$1.patch")"; }
page_agrees add-a-verb.md verb
holds 'add-a-verb.md shows the whole patch' test "$(wc -l <shown)" = "$(grep -c '^+' "$here/tests/how-to/verb.patch")"
page_agrees add-an-importer.md importer
page_agrees add-a-layer.md layer
holds 'add-a-layer.md shows the whole patch' test "$(wc -l <shown)" = "$(grep -c '^+' "$here/tests/how-to/layer.patch")"
page_agrees add-an-operation.md operation
page_agrees add-a-schedule.md schedule
holds 'add-a-schedule.md shows the whole patch' test "$(wc -l <shown)" = "$(grep -c '^+' "$here/tests/how-to/schedule.patch")"
page_agrees add-an-optimizer.md optimizer
page_agrees add-a-curve.md curve
whole curve
page_agrees add-a-model.md model
whole model
page_agrees add-a-metric.md metric 0
whole metric
page_agrees add-an-augmentation.md augmentation 0
whole augmentation
page_agrees add-an-operation-with-parameters.md parameters 2
page_agrees add-a-loss.md loss 2
for name in curve model; do holds "$name.patch is one new file and one row" rows_of "$here/tests/how-to/$name.patch" 1; done
for name in parameters loss; do holds "$name.patch is two new files and two rows" rows_of "$here/tests/how-to/$name.patch" 2; done
for file in "$here"/tests/how-to/*.patch; do
    name=$(basename "$file" .patch)
    [ -n "$skip" ] || holds "$name.patch applies; if it does not, $again" apply "$name" "$here" --dry-run
done
patched verb
compiles verb 2
patched importer
compiles importer 2
patched layer
compiles layer 2
patched operation
[ -n "$skip" ] || holds 'operation.patch compiles tensor and layers only' sh -c "! grep '^  cc ' operation.log | grep -v ' src/tensor/\| src/layers/'"
patched schedule
compiles schedule 7 # the option, its rule and its kind; the table of forms; the actions of one stage, for training and for weft generate
patched optimizer
compiles optimizer 2
if [ -n "$skip" ]; then
    echo "skipped: $skip"
    finish
    exit
fi

make_images
check 0 'how many samples (at least 1; default 10)' verb/build/weft data head --help
check 0 '' verb/build/weft data head images.h5 --count 3
holds 'the verb prints the labels' diff <(od -An -v -tu1 -w1 -j8 -N3 labels | awk '{ print $1 }') out
check 0 '' verb/build/weft data head images.h5
holds 'ten are its default' test "$(wc -l <out)" = 10
check 64 'a whole number from 1' verb/build/weft data head images.h5 --count 0
check 64 'did you mean weft data head?' verb/build/weft data haed images.h5
check 66 'none.h5' verb/build/weft data head none.h5
check 65 'has no labels' sh -c 'verb/build/weft data import text noise -o text.h5 && verb/build/weft data head text.h5'
check 0 '.B weft data head' verb/build/weft help --man

# The layer equals conv2d with as many groups as channels, to the last digit.
losses() { sed -n 's/.*"step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/p' "runs/$1/metrics.jsonl"; }
net() {   # NAME LAYERS
    cat >"$1.yaml" <<YAML
model: {layers: [$2, flatten, dense: {width: 10}]}
data:  {train: images.h5}
train: {steps: 30, batch: 32, micro_batch: 8, threads: 1, log_every: 1}
optim: {lr: 0.05, momentum: 0.9}
YAML
}
net by-layer 'conv2d: {channels: 6, kernel: 5}, depthwise_conv2d: {name: each, kernel: 3, stride: 2, pad: same}, relu'
net by-groups 'conv2d: {channels: 6, kernel: 5}, conv2d: {name: each, channels: 6, groups: 6, kernel: 3, stride: 2, pad: same}, relu'
check 0 'depthwise_conv2d+relu' layer/build/weft plan by-layer.yaml
check 0 'done' layer/build/weft train by-layer.yaml
check 0 'done' "$WEFT" train by-groups.yaml
holds 'the layer trains' test "$(losses by-layer | wc -l)" = 30
holds 'the layer gives the losses of conv2d with groups' diff <(losses by-layer) <(losses by-groups)
check 78 'depthwise_conv2d needs kernel' layer/build/weft plan by-layer.yaml model.layers='[depthwise_conv2d, flatten, dense: {width: 10}]'
check 78 'depthwise_conv2d takes no attribute' layer/build/weft plan by-layer.yaml model.layers='[depthwise_conv2d: {groups: 2}]'

# The operation trains on two replicas as on one, its gradient matches differences, and backends without it refuse it.
net curved 'conv2d: {channels: 6, kernel: 5}, softsign, flatten, dense: {width: 16}, softsign'
check 0 'softsign' operation/build/weft plan curved.yaml
check 0 'done' operation/build/weft train curved.yaml
check 0 'done' operation/build/weft train -n 2 curved.yaml run.name=two grid.dp=2
holds 'the operation trains' test "$(losses curved | wc -l)" = 30
holds 'the operation gives the same losses on two ranks' diff <(losses curved) <(losses two)
holds 'the loss falls' awk -v a="$(losses curved | head -n 1 | cut -d' ' -f2)" -v b="$(losses curved | tail -n 1 | cut -d' ' -f2)" 'BEGIN { exit !(b < a) }'
check 78 "there is no layer 'softsign'" "$WEFT" plan curved.yaml
if grep -q '^HAVE_CUDA := 1' "$built/probe.mk"; then
    check 78 "layer softsign1: the cuda backend has no operation 'softsign'" operation/build/weft plan curved.yaml train.device=cuda --gpu h100
fi
# More patches in the same copy; their rows of the gradient test are those on the pages.
for name in curve model metric parameters loss; do
    holds "$name.patch applies; if it does not, $again" apply $name operation
done
cp -a "$here/tests" operation
rows=$(sed -n 's/.*`\({"[a-z0-9_]*", .*}\)`.*/    \1,/p' "$here"/docs/how-to/add-an-operation-with-parameters.md "$here"/docs/how-to/add-a-loss.md)
holds 'the pages have a row each for the test of gradients' test "$(wc -l <<<"$rows")" = 2
awk -v rows="$rows" '/^    {"mse_loss"/ { print rows } { print }' "$here/tests/layers/gradient_cases.h" >operation/tests/layers/gradient_cases.h
make -C operation -j2 BUILD=build weft build/tests/layers/test_gradients >test.log 2>&1 || tail -n 20 test.log
holds 'the tests of gradients take the operations, too' operation/build/tests/layers/test_gradients >gradients
more=operation/build/weft
check 0 '' "$more" help
holds 'the metric is a word' grep -q 'auto|.*|perplexity[|;]' out
holds 'the loss is a word' grep -q 'softmax|.*|poisson[|;]' out
net divided 'flatten, dense: {width: 10}'
check 0 'done' "$more" train divided.yaml train.steps=4 optim.momentum=0 optim.lr_schedule=harmonic optim.lr=0.06 optim.lr_end=0.012
rates() { sed -n 's/.*"step":[0-9]*,.*"lr":\([^,}]*\).*/\1/p' runs/divided/metrics.jsonl | xargs printf '%.6f '; }
holds 'the curve divides the rate by 1, 2, 3, 4' test "$(rates)" = '0.060000 0.030000 0.020000 0.015000 '
check 78 'is 0, which the curve never reaches' "$more" train divided.yaml optim.lr_schedule=harmonic optim.lr_end=0
check 0 'done' "$more" train divided.yaml run.name=default train.steps=1 optim.lr_schedule=harmonic
holds 'the default of the curve is set' grep -q 'lr_end: 0.0001' runs/default/config.yaml
check 78 'optim.power=2: is used only by polynomial' "$more" train divided.yaml optim.lr_schedule=harmonic optim.power=2
echo 'model: {name: allcnn, classes: 10}' >allcnn.yaml
check 0 '1,369,738 trained parameters' "$more" plan allcnn.yaml --input 3x32x32
check 0 'best.h5' "$more" train divided.yaml run.name=perplexity data.test=images.h5 train.steps=4 train.eval_every=2 checkpoint.best_metric=perplexity
# A set with float targets, by the commands of add-a-loss.md.
sed -n '/^seq /,/^h5import/p' "$here/docs/how-to/add-a-loss.md" >make_numbers
holds 'add-a-loss.md makes a set' test "$(wc -l <make_numbers)" = 2
check 0 '' sh -e make_numbers
numbers=(train divided.yaml run.name=numbers data.train=numbers.h5 'model.layers=[dense: {width: 1}]' optim.lr=0.01)
check 65 'set train.loss to one for numbers (' "$more" "${numbers[@]}"
holds 'the message names all losses for numbers' grep -q '(mse,.* poisson[,)]' both
check 0 'done' "$more" "${numbers[@]}" train.loss=poisson
holds 'poisson falls' awk -v a="$(losses numbers | head -n 1 | cut -d' ' -f2)" -v b="$(losses numbers | tail -n 1 | cut -d' ' -f2)" 'BEGIN { exit !(b < a - 0.5) }'
net plain 'flatten, dense: {name: a, width: 16}, relu, dense: {name: b, width: 10}'
net scaled 'flatten, dense: {name: a, width: 16}, layer_scale, relu, dense: {name: b, width: 10}'
check 0 'done' "$more" train plain.yaml train.steps=2
check 0 'done' "$more" train scaled.yaml train.steps=2
holds 'factors of 1 change nothing at first' test "$(losses plain | head -n 1)" = "$(losses scaled | head -n 1)"
cat >tokens.yaml <<'END'
model:
  context: 16
  layers: [embedding: {vocab: 256, width: 32}, layer_scale: {init: normal, init_std: 1}, dense: {width: 64}, gelu, dense: {width: 32},
           dense: {width: 256}]
data: {train: text.h5}
train: {batch: 8, micro_batch: 4, threads: 1}
END
check 0 'the same to the bit' timeout 240 "$more" verify tokens.yaml --grids 1x1x1,1x1x2 --steps 2
holds 'the factors are trained' test "$(losses plain | tail -n 1)" != "$(losses scaled | tail -n 1)"
holds "augmentation.patch applies; if it does not, $again" apply augmentation operation
make -C operation BUILD=build build/obj/src/data/picture/augment.o build/obj/src/data/kinds.o >test.log 2>&1 || tail -n 20 test.log
holds 'augmentation.patch is compiled' grep -q 'cc .*augment.c' test.log

# npy TYPE SHAPE FILE: writes the header of numpy.save and then the bytes from stdin.
npy() {
    local head="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
    { printf '\223NUMPY\1\0\166\0%-117s\n' "$head"; cat; } >"$3"
}
import="importer/build/weft data import npy"
tail -c +17 images | npy '|u1' '(200, 28, 28)' x.npy
tail -c +9 labels | npy '|u1' '(200,)' y.npy
tail -c +9 labels | od -An -v -tu1 -w1 | awk '{ printf "\\%o\\0\\0\\0", $1 }' >wide
printf "$(cat wide)" | npy '<i4' '(200,)' y4.npy
check 0 'wrote npy.h5' $import x.npy y.npy -o npy.h5
check 0 'wrote npy4.h5' $import x.npy y4.npy -o npy4.h5
for set in npy npy4; do
    holds "$set.h5 holds what the IDX files make" diff <("$WEFT" data info images.h5 | tail -n +2) <("$WEFT" data info $set.h5 | tail -n +2)
    check 0 '200 samples' "$WEFT" data check $set.h5
    for array in "x $((200 * 28 * 28))" "y $((200 * 4))"; do # only part of the file is compared: HDF5 writes the time into it
        at=$("$WEFT" data info $set.h5 | sed -n "s|.* /${array% *}, .* at byte ||p")
        holds "/${array% *} of $set.h5 lies somewhere" test "$at" -gt 0
        holds "/${array% *} of $set.h5 has the same bytes" cmp -i "$at" -n "${array#* }" images.h5 $set.h5
    done
done
head -c 5000 x.npy >short.npy
check 65 'shorter or longer' $import short.npy y.npy -o bad.h5
check 65 'is no .npy file' $import images y.npy -o bad.h5
check 65 'not one label for each image' $import x.npy x.npy -o bad.h5
check 65 'is not images' $import y.npy y.npy -o bad.h5
head -c 200 x.npy | tail -c +129 | npy '<f4' '(18,)' float.npy
check 65 'no little-endian integers' $import x.npy float.npy -o bad.h5
tr '\0-\11' '\360-\371' <labels | tail -c +9 | npy '|i1' '(200,)' minus.npy
check 65 'label 0 is none of' $import x.npy minus.npy -o bad.h5
check 66 'none.npy' $import none.npy y.npy -o bad.h5
check 64 '-o OUT is missing' $import x.npy y.npy
cp x.npy kept.npy
check 64 'x.npy: is one of the files that are read' $import x.npy y.npy -o ./x.npy --force
holds 'an importer cannot destroy its input' cmp x.npy kept.npy
cat >job.yaml <<X
run: {seed: 1}
model: {name: mlp, hidden: [16, 16, 16, 16]}
data: {train: images.h5}
train: {steps: 2, batch: 32, micro_batch: 4, threads: 1}
X
new="grid.pp=2 grid.pipeline_schedule=breadth-first"
check 0 'breadth-first: all forwards, chunk by chunk' schedule/build/weft help
check 0 'schedule breadth-first: 2 stages, 8 micro-batches a replica' schedule/build/weft plan job.yaml $new
fetched() { # SCHEDULE: prints the bytes per step
    schedule/build/weft plan "$here/jobs/gpt-text.yaml" --input tokens model.vocab=256 train.micro_batch=2 train.batch=32 --ranks 4 grid.pp=2 grid.zero=3 \
        grid.transport=mpi grid.bucket_mb=0.5 grid.pipeline_schedule="$1" --json | grep -o '"gathered_param_bytes": [0-9]*' | head -n 1 | cut -d' ' -f2
}
holds 'it gathers parameters seldom' test $((4 * $(fetched breadth-first))) -le "$(fetched interleaved)"
check 78 'more than the' schedule/build/weft plan job.yaml $new grid.chunks=9
check 0 'same' timeout 240 schedule/build/weft verify job.yaml --grids 1x1x1,1x2x1 --steps 2 ${new#* } grid.chunks=3 'model.hidden=[16,16,16,16,16]'
cp -a "$here/tests" schedule
make -C schedule -j2 BUILD=build build/tests/config/test_bad_input >test.log 2>&1 || tail -n 20 test.log
holds 'messages that name the schedules are still those expected' schedule/build/tests/config/test_bad_input >bad_input
sed -i 's/BACKWARD_WHOLE/BACKWARD_HALVES/' schedule/src/schedule/breadth_first.c
make -C schedule -j2 BUILD=build weft >test.log 2>&1 || tail -n 20 test.log
check 70 'breadth-first: stage 0: .backward is BACKWARD_HALVES' schedule/build/weft plan job.yaml $new
holds 'no file is left of a bad one' sh -c '! ls bad.h5* 2>/dev/null'

# RMSProp's first step moves every number by ten times the rate: w - lr g / (sqrt(0.01 g g) + eps).
weft=optimizer/build/weft
cat >rms.yaml <<'END'
model: {layers: [flatten, dense: {width: 24}, relu, dense: {width: 10}]}
data: {train: images.h5}
train: {batch: 16, micro_batch: 4, steps: 3, threads: 1}
optim: {name: rmsprop, lr: 0.0125}
END
check 0 '|rmsprop|' "$weft" help
holds 'the help of a constant names it' grep -qE 'optim.eps .*[ ,]rmsprop[,:]' out
holds 'and its default' grep -q 'default: 0.999; rmsprop: 0.99' out
for lr in 0.0125 1e-30; do check 0 '' "$weft" train rms.yaml run.name=lr-$lr optim.lr=$lr train.steps=1; done
values() { h5dump -y -d /params/dense2.bias "runs/lr-$1/checkpoints/step-00000001.h5" | awk '/ DATA {/ { on = 1; next } on && /}/ { exit } on' | tr -d ',' | xargs -n 1; }
distances() { paste <(values 0.0125) <(values 1e-30) | awk '{ d = $1 - $2; printf "%.3f\n", d < 0 ? -d : d }' | sort -u; }
holds 'the first step is ten times as long as the rate' test "$(distances)" = 0.125
holds 'its constants have defaults of their own' grep -q 'beta2: 0.99' runs/lr-0.0125/config.yaml
check 0 '/optim/mean_of_squares/' "$weft" ckpt info runs/lr-0.0125/checkpoints/step-00000001.h5
check 0 'the same to the bit' "$weft" verify rms.yaml --grids 1x1x1,2x1x1 --zero 0,3
check 0 'rmsprop, lr 0.5' "$weft" plan rms.yaml optim.name=sgd 'optim.groups=[{roles: bias, name: rmsprop, lr: 0.5}]'
check 78 'rmsprop has no momentum' "$weft" plan rms.yaml 'optim.groups=[{roles: bias, name: rmsprop, momentum: 0.9}]'
# Incomplete additions: a row that lacks a field is refused at every start, and a row outside of all lists fails the build.
sed -i '/slot_name/d' optimizer/src/optim/rmsprop.c
make -C optimizer -j2 BUILD=build weft >test.log 2>&1 || tail -n 20 test.log
check 70 'optimizer rmsprop: .slots is not the number of names in .slot_name' "$weft" train rms.yaml
sed -i '/_(rmsprop)/d' optimizer/src/optim/rules.c
holds 'a row in no list is not built' test "$(make -C optimizer BUILD=build weft >test.log 2>&1; echo $?)" != 0
holds 'and named' grep -q 'optim_rmsprop (optim/rmsprop.c) stands in no list' test.log
finish
