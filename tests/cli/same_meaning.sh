#!/usr/bin/env bash
# Files whose shapes fit but whose numbers have different meanings: types that imply other scales, channels in the last dimension, a
# table in place of pictures. Accepted data give the same figures as the file whose meaning is certain.
# usage: same_meaning.sh     (WEFT=build/weft; needs h5import)
pictures=$(cd "$(dirname "$0")/../image/pictures" && pwd)
. "$(dirname "$0")/common.bash"
command -v h5import >/dev/null || { echo "  skipped: all of this: there is no h5import"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
# values COUNT BYTES : prints the bytes (in printf's notation) COUNT times.
values() { for _ in $(seq "$1"); do printf "$2"; done; }
# whole OUT TYPE SIZE DIMS : writes x.bin and labels as an HDF5 file of another program.
whole() { rm -f "$1"; h5import x.bin -dims "$4" -path x -type "$2" -size "$3" y.bin -dims 16 -path y -type UIN -size 8 -o "$1"; }
for _ in 1 2 3 4; do printf '\0\1\2\3'; done >y.bin
# sixteen pictures of 20, 90, 160 and 230, as three types
for _ in 1 2 3 4; do values 64 '\24'; values 64 '\132'; values 64 '\240'; values 64 '\346'; done >x.bin
whole u8.h5 UIN 8 16,1,8,8
for _ in 1 2 3 4; do values 64 '\24\0'; values 64 '\132\0'; values 64 '\240\0'; values 64 '\346\0'; done >x.bin
whole i16.h5 IN 16 16,1,8,8
for _ in 1 2 3 4; do values 64 '\0\0\240\101'; values 64 '\0\0\264\102'; values 64 '\0\0\40\103'; values 64 '\0\0\146\103'; done >x.bin
whole f32.h5 FP 32 16,1,8,8
whole rows_f32.h5 FP 32 16,64
cat >a.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {train: u8.h5, test: u8.h5}
train: {epochs: 4, batch: 8, micro_batch: 8, threads: 1, log_every: 1000, eval_every: 0}
optim: {lr: 0.01}
YAML
train() { timeout 100 "$WEFT" train a.yaml "$@"; }
evaluate() { timeout 100 "$WEFT" eval a.yaml run.name=a "$@"; }
check 0 'evaluation after step 8' train run.name=a
check 0 'top-1' evaluate
loss=$(grep '^loss' out)
unlike="f32.h5: its samples are float32 and multiplied by 1, but those of u8.h5 are uint8 and multiplied by 0.00392157"
check 65 "$unlike" train run.name=b data.test=f32.h5
check 65 "$unlike" evaluate data.test=f32.h5
holds 'data.train can be the same set' grep -qF 'weft eval can use data.train=f32.h5 instead' both
check 65 "set data.scale to one factor for both" "$WEFT" data check u8.h5 f32.h5
check 65 "of float32, those of u8.h5" train run.name=b 'data.train=[u8.h5,f32.h5]'
check 0 "$loss" evaluate data.test=f32.h5 data.scale=0.00392156862745098
check 0 "$loss" evaluate data.train=f32.h5 data.test=f32.h5 data.scale=0.00392156862745098
check 0 'top-1' evaluate data.scale=0.00392157
then='was trained on samples that were multiplied by 0.00392157'
check 65 "$then" evaluate data.train=f32.h5 data.test=f32.h5
check 65 "$then" train run.name=b data.train=f32.h5 data.test=f32.h5 "checkpoint.resume=$(at a 8)"
# data.scale makes scales equal, and is compared if both are known
as='(uint8) are multiplied by 1, as data.scale says'
check 65 "u8.h5: its samples $as, but $(at a 8) was trained on samples that were multiplied by 0.00392157, of type uint8" evaluate \
    "--checkpoint=$(at a 8)" data.scale=1
check 65 "$as" train run.name=b data.scale=1 "checkpoint.resume=$(at a 8)"
check 65 'its samples are 20 to 230 after data.scale' evaluate data.train=f32.h5 data.test=f32.h5 data.scale=1
check 0 'is data.scale right?' evaluate data.train=f32.h5 data.test=f32.h5 data.scale=0.00001
check 0 "model.init_from: u8.h5: its samples $as" train run.name=i1 data.scale=1 "model.init_from=$(at a 8)"
check 0 'model.init_from: f32.h5: its samples (float32) are multiplied by 1, but' train run.name=i2 data.train=f32.h5 data.test=f32.h5 \
    "model.init_from=$(at a 8)"
check 0 'beginning with' train run.name=i3 "model.init_from=$(at a 8)"
holds 'nothing is said of one scale' sh -c '! grep -q "model.init_from: u8" both'
check 0 '' train run.name=f data.train=f32.h5 data.test=f32.h5
check 65 '(float32) are multiplied by 0.5, as data.scale says' "$WEFT" eval a.yaml run.name=f data.train=f32.h5 data.test=f32.h5 data.scale=0.5
check 0 '' train run.name=half data.scale=0.5
check 0 '' "$WEFT" eval a.yaml run.name=half data.scale=0.5
check 0 '' "$WEFT" data check f32.h5 i16.h5
check 0 'evaluation' train run.name=c data.train=f32.h5 data.test=i16.h5
# the same type with other ranges: 0 to 1 and 20 to 230
for _ in 1 2 3 4; do values 64 '\0\0\0\0'; values 64 '\0\0\200\76'; values 64 '\0\0\0\77'; values 64 '\0\0\200\77'; done >x.bin
whole unit.h5 FP 32 16,1,8,8
differ='unit.h5: its values are 0 to 1, mean 0.4375, and those of f32.h5 are 20 to 230, mean 125'
check 0 "$differ" "$WEFT" data check f32.h5 unit.h5
holds 'they do not go together' sh -c '! grep -q "go together" out'
check 0 "$differ" train run.name=r1 data.train=f32.h5 data.test=unit.h5
check 0 "$differ" train run.name=r2 'data.train=[f32.h5,unit.h5]' data.test=f32.h5
check 0 "$differ" "$WEFT" eval a.yaml run.name=f data.train=f32.h5 data.test=unit.h5
check 0 'f32.h5 and i16.h5 go together: shapes, types, scales and ranges of samples are compatible, and classes have no names' "$WEFT" data check f32.h5 i16.h5
whole unit_rows.h5 FP 32 16,64
check 0 'unit_rows.h5: its values are 0 to 1' "$WEFT" data check rows_f32.h5 unit_rows.h5
# the checkpoint keeps the range and is compared with each data set
of_f="and those of the training of runs/f/checkpoints/best.h5 are 20 to 230, mean 125"
unit() { timeout 100 "$WEFT" "$1" a.yaml data.train=unit.h5 data.test=unit.h5 "${@:2}"; }
check 0 '20, 230, 125' h5dump -a input_range runs/f/checkpoints/best.h5
check 0 "unit.h5: its values are 0 to 1, mean 0.4375, $of_f" unit eval run.name=f
check 0 "and those of the training of $(at f 8) are 20 to 230, mean 125" unit train run.name=r3 "checkpoint.resume=$(at f 8)" train.epochs=5
check 0 "model.init_from: unit.h5: its values are 0 to 1, mean 0.4375, and those of the training of $(at f 8) are 20" \
    unit train run.name=r4 "model.init_from=$(at f 8)"
check 0 'loss' "$WEFT" eval a.yaml run.name=f data.train=unit.h5 data.test=f32.h5 # only the kind of data.train has an effect here
check 0 '' unit eval run.name=f data.scale=255
holds 'data.scale makes them alike' sh -c '! grep -q warning both'
check 0 '' "$WEFT" eval a.yaml run.name=f data.train=f32.h5 data.test=i16.h5
holds 'nothing is said of one range' sh -c '! grep -q warning both'
check 0 '' unit train run.name=unit
check 0 'i16.h5: its values are 20 to 230, mean 125, and those of the training of runs/unit/checkpoints/best.h5 are 0 to 1, mean 0.4375' \
    "$WEFT" eval a.yaml run.name=unit data.train=i16.h5 data.test=i16.h5
check 0 'pictures have values from 0 to 255 after data.scale, and the samples that runs/unit/checkpoints/best.h5 was trained on from 0 to 1: is data.scale' \
    "$WEFT" predict a.yaml run.name=unit "$pictures/grey.png" data.scale=1
check 0 '' "$WEFT" predict a.yaml run.name=unit "$pictures/grey.png" data.scale=0.00392157
holds 'nothing is said of the right factor' sh -c '! grep -q warning both'
# types imply other scales, but both models read values from 0 to 1: bytes of 0 to 255, and unit.h5
for _ in 1 2 3 4; do values 64 '\0'; values 64 '\100'; values 64 '\200'; values 64 '\377'; done >x.bin
whole byte.h5 UIN 8 16,1,8,8
byte() { timeout 100 "$WEFT" "$1" a.yaml data.train=byte.h5 data.test=byte.h5 "${@:2}"; }
check 65 'weft eval can use data.train=byte.h5 instead' "$WEFT" eval a.yaml run.name=unit data.train=unit.h5 data.test=byte.h5
check 0 'byte.h5, 16 samples' byte eval run.name=unit
check 0 'beginning with' byte train run.name=r6 "model.init_from=$(at unit 8)"
holds 'nothing is said of types whose values are alike' sh -c '! grep -q warning both'
check 0 'resuming from' byte train run.name=r7 "checkpoint.resume=$(at unit 8)" train.epochs=5
check 0 'unit.h5, 16 samples' unit eval run.name=r6
check 65 'multiplied by 1, of type float32' byte eval run.name=f
check 0 'byte.h5, 16 samples' byte eval run.name=f data.scale=1
# normalisation is taken into account: (f32 - 125) / 100 and (unit - 0.5) / 0.4 are alike, but not unit with the mean of f32
by() { timeout 100 "$WEFT" "$1" a.yaml "data.train=$2" "data.test=$2" "data.mean=[$3]" "data.std=[$4]" "${@:5}"; }
check 0 '' by train f32.h5 125 100 run.name=by
check 0 'unit.h5: its values are -1.25 to -1.24, mean -1.24562, after data.mean and data.std, and those of the training of' \
    by eval unit.h5 125 100 run.name=by
check 0 'as the keys of data say' by eval unit.h5 0.5 0.4 run.name=by
holds 'the inputs are alike' sh -c '! grep -q "its values are" both'
# the same for bytes: 0 and 1 compared with 0 and 255
for _ in 1 2 3 4; do values 128 '\0'; values 128 '\1'; done >x.bin
whole bits.h5 UIN 8 16,1,8,8
for _ in 1 2 3 4; do values 128 '\0'; values 128 '\377'; done >x.bin
whole full.h5 UIN 8 16,1,8,8
check 0 'full.h5: its values are 0 to 1, mean 0.5, and those of bits.h5 are 0 to 0.00392157' train run.name=r5 data.train=bits.h5 data.test=full.h5
check 0 'full.h5: its values are 0 to 1, mean 0.5, and those of the training of runs/r5/checkpoints/best.h5 are 0 to 0.00392157' \
    "$WEFT" eval a.yaml run.name=r5 data.train=full.h5 data.test=full.h5
# a sample is read completely: the first 65,536 values of these samples are 0
{ head -c 65536 /dev/zero; for _ in $(seq 64); do printf '\4%.0s' {1..1024}; done; } >one.bin
for _ in $(seq 16); do cat one.bin; done >x.bin
whole centre.h5 UIN 8 16,1,512,256
tr '\4' '\377' <x.bin >y2 && mv y2 x.bin
whole bright.h5 UIN 8 16,1,512,256
check 0 'bright.h5: its values are 0 to 1, mean 0.5, and those of centre.h5 are 0 to 0.0156863' "$WEFT" data check centre.h5 bright.h5
# targets that are numbers: 1 to 4 and 1000 to 4000
numbers() { h5import x.bin -dims 16,64 -path x -type FP -size 32 n.bin -dims 16 -path y -type FP -size 32 -o "$1"; }
for _ in 1 2 3 4; do values 64 '\0\0\240\101'; values 64 '\0\0\264\102'; values 64 '\0\0\40\103'; values 64 '\0\0\146\103'; done >x.bin
for _ in 1 2 3 4; do printf '\0\0\200\77\0\0\0\100\0\0\100\100\0\0\200\100'; done >n.bin
numbers one.h5
for _ in 1 2 3 4; do printf '\0\0\172\104\0\0\372\104\0\200\73\105\0\0\172\105'; done >n.bin
numbers thousand.h5
targets='thousand.h5: its targets are 1000 to 4000, mean 2500, and those of'
mse() { timeout 100 "$WEFT" "$1" a.yaml train.loss=mse optim.lr=1e-9 "data.train=$2" "data.test=$3" "${@:4}"; }
check 0 "$targets one.h5 are 1 to 4, mean 2.5" mse train one.h5 thousand.h5 run.name=mse
check 0 "$targets one.h5 are 1 to 4, mean 2.5" "$WEFT" data check one.h5 thousand.h5
check 0 "$targets the training of runs/mse/checkpoints/best.h5 are 1 to 4" mse eval thousand.h5 thousand.h5 run.name=mse
# classes that are not stored as labels: whole numbers as floats, a row of zeros with a 1 for each sample
as_labels() { check 65 "$1" "$WEFT" train a.yaml run.name=labels "data.train=$2" "data.test=$2"; }
whole_numbers="one.h5: /y holds whole numbers as float32, but labels are integers: if they are classes, store them as integers, in numpy y.astype"
as_labels "$whole_numbers" one.h5
check 0 "$whole_numbers" "$WEFT" data check one.h5
check 0 'one.h5: good' "$WEFT" data check one.h5 train.loss=mse
holds 'nothing is said of targets' sh -c '! grep -q warning both'
one_hot() { h5import x.bin -dims 16,64 -path x -type FP -size 32 n.bin -dims 16,4 -path y -type "$2" -size "$3" -o "$1"; }
for _ in 1 2 3 4; do printf '\1\0\0\0\0\1\0\0\0\0\1\0\0\0\0\1'; done >n.bin
one_hot hot.h5 UIN 8
for _ in $(seq 16); do printf '\0\0\0\0\0\0\0\0\0\0\200\77\0\0\0\0'; done >n.bin
one_hot hot_f.h5 FP 32
hot='/y holds one-hot rows (4 columns, a single 1 in each row), but labels are the numbers of classes: store the column of the 1'
for set in hot hot_f; do as_labels "$set.h5: $hot" $set.h5; done
check 65 "hot.h5: $hot" "$WEFT" data check hot.h5
check 0 "hot_f.h5: $hot" "$WEFT" data check hot_f.h5
for _ in $(seq 16); do printf '\1\0\1\0'; done >n.bin
one_hot several.h5 UIN 8
as_labels 'several.h5: /y has the shape 16x4; labels are integers (N)' several.h5
for _ in 1 2 3 4; do printf '\0\0\0\77\0\0\0\100\0\0\100\100\0\0\200\100'; done >n.bin
numbers parts.h5
as_labels 'parts.h5: has no class labels: its targets are numbers, and train.loss softmax needs one integer a sample: set train.loss to one for numbers (mse' parts.h5
# pictures are bytes: a model of other numbers needs data.scale
check 65 'runs/f/checkpoints/best.h5 was trained on samples that were not bytes (16x1x8x8 float32' "$WEFT" predict a.yaml run.name=f "$pictures/grey.png"
check 0 'grey.png: ' "$WEFT" predict a.yaml run.name=f "$pictures/grey.png" data.scale=1
# the same for tables, and for rows of weft predict
for _ in 1 2 3 4; do values 64 '\24'; values 64 '\132'; values 64 '\240'; values 64 '\346'; done >x.bin
whole rows_u8.h5 UIN 8 16,64
check 0 '' train run.name=rows data.train=rows_u8.h5 data.test=rows_u8.h5
check 65 'rows_f32.h5: its samples are float32' "$WEFT" predict a.yaml run.name=rows data.train=rows_u8.h5 rows_f32.h5
check 65 "$then" "$WEFT" predict a.yaml run.name=rows data.train=rows_f32.h5 rows_f32.h5
check 65 "$as" "$WEFT" predict a.yaml run.name=rows data.train=rows_u8.h5 rows_u8.h5 data.scale=1
check 0 '' train run.name=rows_half data.train=rows_u8.h5 data.test=rows_u8.h5 data.scale=0.5
check 65 'multiplied by 0.00392157, but' "$WEFT" predict a.yaml run.name=rows_half data.train=rows_u8.h5 rows_u8.h5
check 0 'rows_u8.h5' "$WEFT" predict a.yaml run.name=rows data.train=rows_u8.h5 rows_u8.h5 --json
check 0 '' train run.name=rows_f data.train=rows_f32.h5 data.test=rows_f32.h5
check 0 'unit_rows.h5: its values are 0 to 1, mean 0.4375, and those of the training of runs/rows_f/checkpoints/best.h5 are 20 to 230' \
    "$WEFT" predict a.yaml run.name=rows_f data.train=rows_f32.h5 unit_rows.h5
check 0 '' "$WEFT" predict a.yaml run.name=rows_f data.train=rows_f32.h5 rows_f32.h5
holds 'nothing is said of the same rows' sh -c '! grep -q warning both'
check 65 'rows_u8.h5: holds samples of kind table, but u8.h5 of kind image' train run.name=b data.test=rows_u8.h5
check 78 'rows_u8.h5 is a table of 64 columns, not a set of pictures, and data.mean has 3 values' \
    train run.name=b data.test=rows_u8.h5 'data.mean=[0.4,0.5,0.6]' 'data.std=[1,1,1]' data.train=rows_u8.h5

# Mean and deviation of the checkpoint apply, whatever data.train contains now: the figures are the same, and keys with other values are
# refused.
idx() { printf '\0\0\10\3\0\0\0\20\0\0\0\10\0\0\0\10' >images; cat x.bin >>images; "$WEFT" data import idx images labels -o "$1" >/dev/null 2>&1; }
{ printf '\0\0\10\1\0\0\0\20'; cat y.bin; } >labels
idx own.h5
cp x.bin kept.bin
for _ in 1 2 3 4; do values 64 '\1'; values 64 '\2'; values 64 '\3'; values 64 '\4'; done >x.bin
idx dark.h5
mv kept.bin x.bin
check 0 '' train run.name=own data.train=own.h5 data.test=own.h5
own() { timeout 100 "$WEFT" eval a.yaml run.name=own data.test=own.h5 "$@"; }
check 0 '' own data.train=own.h5
loss=$(grep '^loss' out)
check 0 "$loss" own data.train=dark.h5
by='by mean 0.490196 and deviation 0.306911'
holds 'a line says so' grep -qF "dark.h5: samples are normalised $by, as those that runs/own/checkpoints/best.h5 was trained on, not by mean 0.0098" both
# without data.train, too: the checkpoint says how samples are scaled and which classes there are
grep -v '^data' a.yaml >bare.yaml
bare() { timeout 100 "$WEFT" eval bare.yaml "run.name=$1" "${@:2}"; }
check 0 "$loss" bare own data.test=own.h5
holds 'a line says whose they are' grep -qF 'own.h5 is evaluated without data.train: scale, mean, deviation and classes are those in runs/own/checkpoints/best.h5' both
check 0 '' "$WEFT" eval a.yaml run.name=half data.scale=0.5
half=$(grep '^loss' out)
check 0 "$half" bare half data.test=u8.h5
cp y.bin four.bin
for _ in 1 2 3 4; do printf '\0\1\0\1'; done >y.bin
whole two.h5 UIN 8 16,1,8,8
cp four.bin y.bin
check 0 '' evaluate data.test=two.h5
two=$(grep '^loss' out)
check 0 "$two" bare a data.test=two.h5
check 65 "$then" bare a data.test=f32.h5
whole rows_u8.h5 UIN 8 16,64
for _ in 1 2 3 4; do printf '\0\1\0\1'; done >y.bin
whole two_rows.h5 UIN 8 16,64
cp four.bin y.bin
check 0 '' "$WEFT" eval a.yaml run.name=rows data.train=rows_u8.h5 data.test=two_rows.h5
rows=$(grep '^loss' out)
check 0 "$rows" bare rows data.test=two_rows.h5
check 78 'data.test (not set): no test data' bare a
said="as the keys of data say, but those that runs/own/checkpoints/best.h5 was trained on $by"
check 0 "normalised without mean and deviation, $said" own data.train=own.h5 data.normalize=false
check 0 "normalised by mean 0.5 and deviation 0.3, $said" own data.train=own.h5 'data.mean=[0.5]' 'data.std=[0.3]'
check 0 '' own data.train=own.h5 "data.mean=[$(h5dump -m %.9g -a mean own.h5 | sed -n 's/.*(0): //p')]" "data.std=[$(h5dump -m %.9g -a std own.h5 | sed -n 's/.*(0): //p')]"
holds 'nothing is said of the same' sh -c '! grep -q normalised both'
check 0 'own.h5: samples are normalised without mean' train run.name=plain data.train=own.h5 data.test=own.h5 data.normalize=false model.init_from="$(at own 8)"
check 0 "dark.h5: samples are normalised by mean 0.00980392 and deviation 0.00438445, those that $(at own 8) was trained on were $by" \
    train run.name=on data.train=dark.h5 data.test=own.h5 checkpoint.resume="$(at own 8)" train.epochs=5

# Channels in the last dimension are not guessed. 16 pictures of 8 x 8 x 3.
for _ in 1 2 3; do cat x.bin; done >y3 && mv y3 x.bin
whole last.h5 UIN 8 16,8,8,3
guess='/x has the shape 16x8x8x3, which may be 8 channels of 8x3 pixels or 8x8 pixels of 3 channels: set data.layout'
check 65 "$guess" "$WEFT" data info last.h5
check 65 "$guess" "$WEFT" data check last.h5
check 65 "$guess" train run.name=b data.train=last.h5 data.test=last.h5
check 65 "$guess" evaluate data.test=last.h5
check 0 '8 channels, 8 x 3 pixels, NCHW' "$WEFT" data info last.h5 data.layout=nchw
check 0 '3 channels, 8 x 8 pixels, NHWC' "$WEFT" data info last.h5 data.layout=nhwc
check 0 'evaluation' train run.name=d data.train=last.h5 data.test=last.h5 data.layout=nhwc
whole first.h5 UIN 8 16,3,8,8
check 0 '3 channels, 8 x 8 pixels, NCHW' "$WEFT" data info first.h5
whole four.h5 UIN 8 16,4,16,3
check 0 '4 channels, 16 x 3 pixels, NCHW' "$WEFT" data info four.h5
check 0 '' "$WEFT" plan a.yaml --input 32x8x3 model.classes=4
# A cube of 8 x 8 x 8 has one shape in both orders, and a model that flattens takes 1 x 4 x 16 and tables of 64 columns for 1 x 8 x 8:
# the checkpoint tells them apart.
head -c 1024 x.bin >one.bin
for _ in 1 2 3 4 5 6 7 8; do cat one.bin; done >x.bin
whole cube.h5 UIN 8 16,8,8,8
cube() { timeout 100 "$WEFT" "$1" a.yaml data.train=cube.h5 data.test=cube.h5 "${@:2}"; }
check 0 '' cube train run.name=cube data.layout=nhwc
check 0 'top-1' cube eval run.name=cube data.layout=nhwc
order='cube.h5: its pixels are read in the order nchw, but nhwc for the training of runs/cube/checkpoints/best.h5: set data.layout'
check 65 "$order" cube eval run.name=cube data.layout=nchw
check 65 "$order" cube train run.name=b data.layout=nchw checkpoint.resume=runs/cube/checkpoints/best.h5
check 0 "model.init_from: $order" cube train run.name=i4 data.layout=nchw model.init_from=runs/cube/checkpoints/best.h5
mv one.bin x.bin
whole flat.h5 UIN 8 16,1,4,16
whole table.h5 UIN 8 16,64
other() { timeout 100 "$WEFT" "$1" a.yaml "data.train=$2" "data.test=$2" "${@:3}"; }
shape="but pictures of 1x8x8 for the training of runs/a/checkpoints/best.h5: name data"
check 65 "flat.h5: its samples are pictures of 1x4x16, $shape" other eval flat.h5 run.name=a
check 65 "table.h5: its samples are rows of 64 columns, $shape" other eval table.h5 run.name=a
check 65 "$shape" other train flat.h5 run.name=b checkpoint.resume=runs/a/checkpoints/best.h5
check 0 "model.init_from: flat.h5: its samples are pictures of 1x4x16, $shape" other train flat.h5 run.name=i5 \
    model.init_from=runs/a/checkpoints/best.h5
check 65 'u8.h5: its samples are pictures of 1x8x8, but rows of 64 columns for the training of' other eval u8.h5 run.name=rows
check 65 'but rows of 64 columns for the training of' "$WEFT" predict a.yaml run.name=rows u8.h5
# a table without names of columns, and another with names
for i in 0 1; do
    awk -v add=$i 'BEGIN { print "y,n"; for (i = 0; i < 40; ++i) printf "%d,%d\n", i % 2, i + add }' >named.csv
    printf 'columns:\n  y: label\n  n: number\n' >named.yaml
    check 0 'wrote' "$WEFT" data import csv named.csv --schema named.yaml -o named.h5 --threads 1 --force
    [ $i = 1 ] || { h5copy -i named.h5 -o plain.h5 -s /dense -d /x && h5copy -i named.h5 -o plain.h5 -s /y -d /y; }
done
check 0 '' other train plain.h5 run.name=bare
unnamed='named.h5: the names of its columns cannot be compared with those of the training of runs/bare/'
check 0 "$unnamed" other eval named.h5 run.name=bare
check 0 '' other eval plain.h5 run.name=bare
holds 'nothing is said of its own data' sh -c '! grep -q "cannot be compared" both'
finish
