#!/usr/bin/env bash
# weft predict with a detector: its best boxes are those of weft eval, for each way to store and place pictures; scores, names, drawings;
# it needs no data set; pictures and options that it refuses.
# cores: 0.4
pictures=$PWD/tests/image/pictures
. "$(dirname "$0")/common.bash"
needs_pictures 'all of this' || exit 0
mkdir photos
cp "$pictures"/{plain.jpg,exif6.jpg,lossy.webp,grey16.png} photos # 21 x 18 pixels; exif6.jpg 12 x 9, upright 9 x 12
cat >boxes.json <<'END'
{"images": [{"id": 3, "file_name": "plain.jpg"}, {"id": 5, "file_name": "exif6.jpg"}, {"id": 8, "file_name": "lossy.webp"},
  {"id": 9, "file_name": "grey16.png"}],
 "annotations": [{"id": 1, "image_id": 3, "category_id": 4, "bbox": [2, 3, 12, 9]}, {"id": 2, "image_id": 5, "category_id": 7, "bbox": [1, 1, 6, 7]},
  {"id": 3, "image_id": 8, "category_id": 7, "bbox": [0, 0, 8, 8]}, {"id": 4, "image_id": 9, "category_id": 4, "bbox": [4, 5, 9, 9]}],
 "categories": [{"id": 4, "name": "sea lion"}, {"id": 7, "name": "cat"}]}
END
check 0 '' "$WEFT" data import coco photos boxes.json -o files.h5 --orient
check 0 '' "$WEFT" data import coco photos boxes.json -o side64.h5 --size 64
check 0 '' "$WEFT" data import coco photos boxes.json -o side40.h5 --size 40 --orient
cat >files.yaml <<'YAML'
model:
  {name: yolov5n, depth_multiple: 0.1, width_multiple: 0.05, anchors: [6, 8, 8, 6, 10, 10, 12, 9, 9, 12, 14, 14, 16, 16, 20, 14, 14, 20]}
data:  {train: files.h5, test: files.h5, letterbox: 64, augment: [flip]}
train: {steps: 60, batch: 4, micro_batch: 2, threads: 1, loss: yolo, ema: 0.9, eval_every: 60}
optim: {lr: 0.5, momentum: 0.9}
YAML
sed 's/files.h5/side64.h5/g; s/letterbox: 64, //' files.yaml >side64.yaml
sed 's/files.h5/side40.h5/g' files.yaml >side40.yaml
# Print image, class and the five numbers of the best box of each image, from the file of `weft eval --results` and from the JSON of
# `weft predict` for files, or for samples of a set.
best_of_eval() { tr -d '[]{},:"' <"$1" | awk '!best[$2] || $NF > score[$2] { best[$2] = 1; score[$2] = $NF; line[$2] = $2 " " $4 " " $6 " " $7 " " $8 " " $9 " " $11 }
    END { for (i in line) print line[i] }' | sort -n; }
best_of_predict() { sed 's/"sea lion"/4/g; s/"cat"/7/g; s/plain.jpg/3/; s/exif6.jpg/5/; s/lossy.webp/8/; s/grey16.png/9/; s|photos/||
    s/"[a-z0-9]*.h5", "sample": 0/3/; s/"[a-z0-9]*.h5", "sample": 1/5/; s/"[a-z0-9]*.h5", "sample": 2/8/; s/"[a-z0-9]*.h5", "sample": 3/9/' "$1" | tr -d '[]{},:"' |
    awk '{ print $2, $9, $15, $17, $19, $21, $13 }' | sort -n; }
same_boxes() { # WHAT: the lines of got are those of want, within a unit of the last place
    holds "$net: four pictures have boxes" test "$(wc -l <got)" = 4
    holds "$net: the best boxes of $1, $(paste -sd';' got), are those of weft eval, $(paste -sd';' want)" \
        awk 'NR == FNR { for (k = 1; k <= 7; ++k) want[FNR, k] = $k; next }
            { for (k = 1; k <= 7; ++k) { d = $k - want[FNR, k]; if (d > 1e-3 || d < -1e-3) exit 1 } }' want got
}
for net in files side64 side40; do
    check 0 '' "$WEFT" train $net.yaml
    check 0 'AP' "$WEFT" eval $net.yaml --results eval.json
    check 0 '"sample": 3' "$WEFT" predict $net.yaml $net.h5 --json --score 0.0001
    best_of_eval eval.json >want
    best_of_predict out >got
    same_boxes samples
    mv $net.h5 away.h5 # the checkpoint suffices
    check 0 '"boxes": [{"class": "' "$WEFT" predict $net.yaml photos/* --json --score 0.0001
    best_of_predict out >got
    same_boxes files
    mv away.h5 $net.h5
done
predict() { "$WEFT" predict files.yaml "$@"; }
check 0 'exif6.jpg: ' predict photos/* --score 0.001
holds 'pictures are upright as in the import' grep -qE '^photos/exif6.jpg: [0-9]+ boxes?, 9x12 pixels$' out
holds 'scores fall, and are above the least' awk '/^photos/ { last = 1; next } { n += 1; s = $0; sub(/:.*/, "", s); sub(/.* /, "", s)
    if (s + 0 > last || s + 0 < 0.001) exit 1; last = s + 0 } END { exit n < 4 }' out
holds 'boxes are in the picture' awk '/^photos/ { split($(NF - 1), size, "x"); next }
    { split($0, part, /[ ,]*(x|y|width|height) /); if (part[2] + part[4] > size[1] + 0.1 || part[3] + part[5] > size[2] + 0.1) exit 1 }' out
holds 'not more than 300' awk '/^photos/ && $2 > 300 { exit 1 }' out
holds 'names' grep -qE '^  (sea lion|cat) 0[.][0-9]{3}: x ' out
cp out ema
check 0 '' predict photos/* --score 0.001 --no-ema
holds 'the average is not taken' test "$(cmp -s out ema; echo $?)" = 1
check 0 'plain.jpg: 0 boxes, 21x18 pixels' predict photos/plain.jpg --score 1
holds 'no line of a box' test "$(wc -l <out)" = 1
check 0 'plain.jpg' predict photos/plain.jpg
cp out usual
check 0 '' predict photos/plain.jpg --score 0.25
holds '0.25 by default' cmp out usual
check 0 'exif6.jpg: its EXIF orientation, 6, is not applied' "$WEFT" predict side64.yaml photos/exif6.jpg
holds 'the picture as it is stored' grep -q '12x9 pixels' out

# Drawings.
check 0 '' predict photos/* --score 0.001 --draw new/drawn
cp out text
holds 'four files' test "$(ls new/drawn | paste -sd' ')" = 'exif6.png grey16.png lossy.png plain.png'
check 0 '' predict new/drawn/plain.png new/drawn/exif6.png --score 1
holds 'as wide and high as before' test "$(grep -oE '[0-9]+x[0-9]+' out | paste -sd' ')" = '21x18 9x12'
check 64 'plain.png: is already there' predict photos/plain.jpg --draw new/drawn
cp new/drawn/plain.png before
check 0 '' predict photos/plain.jpg --draw new/drawn --force --score 1
holds 'without boxes it is another picture' test "$(cmp -s before new/drawn/plain.png; echo $?)" = 1
check 64 'photos/grey16.png: is one of the files that are read' predict photos/plain.jpg photos/grey16.png --draw photos --force
check 64 'two pictures would be drawn to d/plain.png' predict photos/plain.jpg new/drawn/plain.png --draw d
holds 'no folder is made' test ! -e d
touch file
check 64 "--draw: 'file' is no folder" predict photos/plain.jpg --draw file
check 74 'file' predict photos/plain.jpg --draw file/d
check 64 '--force needs --draw' predict photos/plain.jpg --force

# Samples of sets, of which the true boxes are drawn, and larger drawings.
check 0 '' predict photos/plain.jpg files.h5 --samples 1-2 --score 1 --draw set --zoom 3
holds 'files and samples in turn' test "$(cut -d' ' -f1 out | paste -sd' ')" = 'photos/plain.jpg: files.h5:1: files.h5:2:'
holds 'a drawing each' test "$(ls set | paste -sd' ')" = 'files-1.png files-2.png plain.png'
check 0 '' predict photos/exif6.jpg --score 1 --draw set --zoom 3
check 0 '' predict set/plain.png set/exif6.png set/files-1.png --score 1
holds 'three times as wide and high' test "$(grep -oE '[0-9]+x[0-9]+' out | paste -sd' ')" = '63x54 27x36 27x36'
holds 'the picture with its true box is another one' test "$(cmp -s set/exif6.png set/files-1.png; echo $?)" = 1
check 0 '21x18 pixels' "$WEFT" predict side64.yaml side64.h5 --samples 0 --draw set
check 0 '64x55 pixels' predict set/side64-0.png
check 64 'set/files-1.png: is already there' predict files.h5 --samples 0-1 --draw set
check 64 '--samples 2-4: files.h5 has 4 samples' predict files.h5 --samples 2-4
check 64 '--samples 2-1: expected' predict files.h5 --samples 2-1
check 64 '--samples: chooses samples of data sets, and photos/plain.jpg is none' predict photos/plain.jpg --samples 1
check 64 '--zoom needs --draw' predict photos/plain.jpg --zoom 2

# Pictures and options that are refused.
head -c 300 photos/plain.jpg >cut.jpg
check 65 '2 of 3 files could not be read' predict cut.jpg photos/plain.jpg none.jpg --draw some
holds 'the other is drawn' test "$(ls some)" = plain.png
holds 'both are named' test "$(grep -c '^weft: error: \(cut\|none\).jpg' err)" = 2
check 66 'none.jpg' predict none.jpg
check 64 '--top: this model finds boxes' predict photos/plain.jpg --top 3
check 64 '--score' predict photos/plain.jpg --score 1.5
check 64 '--schema' predict photos/plain.jpg --schema x.yaml
check 78 'data.letterbox=96: is 96, but the model in' predict photos/plain.jpg data.letterbox=96

# A checkpoint that does not describe its samples.
check 0 '' "$WEFT" ckpt export runs/files/checkpoints/best.h5 -o net.safetensors
check 0 '' "$WEFT" ckpt import net.safetensors -o import.h5
check 0 '' predict photos/* --score 0.001 --checkpoint import.h5
holds 'the training set describes them' cmp out ema
sed 's/letterbox: 64, //' files.yaml >no-side.yaml
check 78 'files.h5 holds pictures of many sizes' "$WEFT" predict no-side.yaml photos/* --checkpoint import.h5
check 0 '' "$WEFT" predict no-side.yaml photos/* --score 0.001 --checkpoint runs/files/checkpoints/best.h5
holds 'a checkpoint of weft has the size' cmp out ema
mkdir -p few/a few/b
cp photos/plain.jpg few/a
cp photos/grey16.png few/b
check 0 '' "$WEFT" data import folder few -o set.h5 --short 16
printf 'model: {name: mlp, hidden: [4]}\ndata: {train: set.h5}\ntrain: {steps: 1, batch: 2, threads: 1}\n' >mlp.yaml
check 0 '' "$WEFT" train mlp.yaml
check 78 'set.h5 is no set of boxes, but train.loss is yolo' "$WEFT" predict no-side.yaml photos/plain.jpg --checkpoint import.h5 data.train=set.h5
check 64 '--score: this model finds no boxes' "$WEFT" predict mlp.yaml photos/plain.jpg --score 0.5
check 65 'set.h5: holds samples of kind image, but runs/files/checkpoints/best.h5 of kind boxes' "$WEFT" predict no-side.yaml set.h5 --checkpoint runs/files/checkpoints/best.h5
check 64 '--draw: this model finds no boxes' "$WEFT" predict mlp.yaml photos/plain.jpg --draw d
finish
