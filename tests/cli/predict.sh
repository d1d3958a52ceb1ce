#!/usr/bin/env bash
# weft predict: its probabilities give the loss of weft eval; it needs no data set; a broken picture does not affect the others; models
# of grey pictures; checkpoints of an older weft.
# usage: predict.sh     (WEFT=build/weft)
pictures=$(cd "$(dirname "$0")/../image/pictures" && pwd)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
needs_pictures 'all of this' || exit 0
mkdir -p set/cat "set/sea lion" set/zebra
cp "$pictures"/{plain.jpg,grey.png,422.jpg,exif6.jpg} set/cat
cp "$pictures"/{plain.png,rgb16.png,lossy.webp} "set/sea lion"
cp "$pictures"/{cmyk.jpg,palette_alpha.png,exif8.webp,grey16.png} set/zebra
check 0 '11 pictures of 3 classes' "$WEFT" data import folder set -o set.h5 --short 16 --orient
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, flatten, dense: {width: 3}]}
data:  {train: set.h5, test: set.h5, augment: [flip]}
train: {steps: 12, batch: 4, micro_batch: 4, threads: 1}
optim: {lr: 0.05, momentum: 0.9}
YAML
predict() { local config=$1; shift; "$WEFT" predict "$config" "$@"; }
# CONFIG: prints the negative mean logarithm of the right classes' probabilities.
own_loss() { awk -F'"' '{ class = $4; sub("set/", "", class); sub("/.*", "", class)
    n = split($0, part, "{\"class\": \"")
    for (i = 2; i <= n; ++i) if (index(part[i], class "\"") == 1) { p = part[i]; sub(".*probability\": ", "", p); sum -= log(p + 0) } }
    END { print sum / NR }' answers; }
same_loss() { # CONFIG DATA
    local loss own
    check 0 '' "$WEFT" train "$1"
    check 0 'eval_loss' "$WEFT" eval "$1" --json
    loss=$(sed -n 's/.*"eval_loss": \([0-9.]*\).*/\1/p' out)
    mv "$2" away.h5
    check 0 '"class": "sea lion", "index": 1' predict "$1" set/*/* --json --top 3
    cp out answers
    own=$(own_loss)
    holds "$1: the loss of what is predicted, $own, is that of weft eval, $loss" awk "BEGIN { d = $own - $loss; exit !(d < 1e-4 && d > -1e-4) }"
}
check 0 '' "$WEFT" data import folder set -o files.h5 --store encoded --orient
sed 's/set.h5/files.h5/g; s/augment: \[flip\]/resize: 20, random_crop: 16/; s/lr: 0.05/lr: 0.002/' net.yaml >files.yaml
same_loss files.yaml files.h5
same_loss net.yaml set.h5
mv away.h5 set.h5
# The samples of a set are the pictures that were imported, in their order.
check 0 '"sample": 10' predict net.yaml set.h5 --json --top 3
predict net.yaml set/*/* set/*/* --json --top 3 | sed 's/.*"classes"//; 11q' >want # 22 files are computed in batches of 16, like sets
holds 'the same probabilities' cmp want <(sed 's/.*"classes"//' out)
predict net.yaml set.h5 | sed -n '4,6p' >some
check 0 'set.h5:3: ' predict net.yaml set.h5 --samples 3-5
holds 'three samples' cmp out some
for short in 9 14; do # other crops of the middle, another filter, and pictures that the import has not rotated
    check 0 '' "$WEFT" data import folder set -o "set-$short.h5" --short $short --bicubic
    sed "s/set.h5/set-$short.h5/g" net.yaml >"net-$short.yaml"
    same_loss "net-$short.yaml" "set-$short.h5"
done
holds 'a line each' [ "$(wc -l <answers)" = 11 ]
holds 'probabilities fall' awk -F'probability": ' '{ if ($2 + 0 < $3 + 0 || $3 + 0 < $4 + 0) exit 1 }' answers
head -c 100 "$pictures/plain.jpg" >cut.jpg
echo 'no picture' >text.png
check 65 'cut.jpg: ' predict net.yaml set/cat/plain.jpg cut.jpg text.png none.jpg set/zebra/cmyk.jpg --top 1
holds 'the others are answered' [ "$(grep -c '^set/[a-z]*/[a-z]*.jpg: [a-z ]* [0-9.]* %$' out)" = 2 ]
holds 'all that are broken are named' [ "$(grep -c '^weft: error: .*\(text.png\|none.jpg\|cut.jpg\)' err)" = 3 ]
check 78 'data.center_crop=9: is 9, but the model in' predict net.yaml set/cat/plain.jpg data.center_crop=9
check 0 'plain.jpg' predict net.yaml set/cat/plain.jpg; cp out usual
check 0 'plain.jpg' predict net.yaml set/cat/plain.jpg data.normalize=false
holds 'data.normalize counts' [ "$(cat out)" != "$(cat usual)" ]
check 66 'none.jpg' predict net.yaml none.jpg
# A PNG of one pixel by ten million, all zeros. gzip compresses it and computes the checksum.
bytes() { printf "$(printf '%08x' "$1" | sed 's/../\\x&/g')"; }
chunk() { # NAME, with the content of the file body
    bytes "$(wc -c <body)"
    { printf %s "$1"; cat body; } | tee chunk
    bytes "$(gzip -n <chunk | tail -c 8 | od -An -N 4 -t u4 --endian=little | tr -d ' ')"
}
{
    printf '\x89PNG\r\n\x1a\n'
    { bytes 1; bytes 10000000; printf '\1\0\0\0\0'; } >body
    chunk IHDR
    { printf '\x78\x9c'; head -c 20000000 /dev/zero | gzip -n | tail -c +11 | head -c -8; bytes $(((20000000 % 65521) << 16 | 1)); } >body
    chunk IDAT
    : >body
    chunk IEND
} >thin.png
check 65 'thin.png: 1x10000000 pixels are too narrow to be resized to 256' predict files.yaml thin.png set/cat/plain.jpg data.resize=256
holds 'the other is answered' grep -q '^set/cat/plain.jpg: ' out
check 0 'thin.png: ' predict files.yaml thin.png
mkfifo pipe.jpg
check 65 'pipe.jpg: is not a picture' predict net.yaml pipe.jpg set
check 65 '"error": "cut.jpg' predict net.yaml --json cut.jpg set/cat/plain.jpg
check 0 'plain.jpg: ' predict net.yaml set/cat/plain.jpg run.name=net --checkpoint runs/net/checkpoints/step-00000012.h5
check 64 'missing files' predict net.yaml
check 64 'missing configuration' "$WEFT" predict
check 66 'no checkpoint' predict net.yaml set/cat/plain.jpg run.name=other

# Files that are not pictures, and pictures with one channel.
yes | head -c 5000 >text
check 0 '' "$WEFT" data import text text -o text.h5
cat >gpt.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 8, heads: 1, context: 8}
data:  {train: text.h5}
train: {steps: 1, batch: 2, threads: 1}
YAML
check 0 '' "$WEFT" train gpt.yaml
check 78 'predict takes pictures or rows' predict gpt.yaml set/cat/plain.jpg
noise_idx 32 16 3 grey.h5
check 0 '' "$WEFT" train net.yaml run.name=grey data.train=grey.h5 data.test=grey.h5 train.steps=2
rm grey.h5
check 0 'set/cat/plain.jpg: ' predict net.yaml run.name=grey data.train=grey.h5 data.test=grey.h5 set/cat/plain.jpg --top 2
# Samples of a data set of floats, of any number of channels, are prepared as in evaluation, without data.scale.
if command -v h5import >/dev/null; then
    awk 'BEGIN { for (i = 0; i < 12 * 18; ++i) print (i * 7 % 11) / 10 }' >x.txt
    seq 0 11 | awk '{ print $1 % 3 }' >y.txt
    h5import x.txt -dims 12,2,3,3 -path x -type TEXTFP -size 32 y.txt -dims 12 -path y -type TEXTIN -size 32 -o floats.h5
    printf 'data: {train: floats.h5, test: floats.h5, layout: nchw}\nmodel: {layers: [flatten, dense: {width: 3}]}\n' >floats.yaml
    printf 'train: {steps: 20, batch: 12, threads: 1}\nrun: {name: floats}\noptim: {lr: 0.5}\n' >>floats.yaml
    check 0 'on 12 samples' "$WEFT" train floats.yaml
    check 0 'eval_loss' "$WEFT" eval floats.yaml --json
    loss=$(sed -n 's/.*"eval_loss": \([0-9.]*\).*/\1/p' out)
    check 0 'floats.h5:0' predict floats.yaml floats.h5 --top 3
    own=$(awk '{ want = " " (NR - 1) % 3 " "; p = $0; sub(/^[^ ]*/, "", p); p = substr(p, index(p, want) + 3); sum -= log(p / 100) } END { print sum / NR }' out)
    holds "the loss of what is predicted, $own, is that of weft eval, $loss" awk "BEGIN { d = $own - $loss; exit !(d < 1e-3 && d > -1e-3) }"
    check 65 'takes samples of 2 channels' predict floats.yaml floats.h5 set/cat/plain.jpg
    # A model of numbers predicts its targets; from rows, lines of CSV.
    awk 'BEGIN { for (i = 0; i < 48; ++i) print (i * 5 % 13) / 10 }' >x.txt
    awk '{ v[NR % 4] = $1 } NR % 4 == 0 { print v[1] - v[2]; print 2 * v[3] + 1 }' x.txt >y.txt
    h5import x.txt -dims 12,4 -path x -type TEXTFP -size 32 y.txt -dims 12,2 -path y -type TEXTFP -size 32 -o rows.h5
    sed 's/floats/rows/g; s/, layout: nchw//; s/flatten, dense: {width: 3}/dense: {width: 2}/; s/train: {/train: {loss: mse, /; s/20, batch/50, batch/' floats.yaml >rows.yaml
    check 0 'on 12 samples' "$WEFT" train rows.yaml
    check 0 'eval_loss' "$WEFT" eval rows.yaml --json
    loss=$(sed -n 's/.*"eval_loss": \([0-9.]*\).*/\1/p' out)
    check 0 ',' predict rows.yaml rows.h5
    own=$(paste -d, out <(paste -d, - - <y.txt) | awk -F, '{ sum += ($1 - $3) ^ 2 + ($2 - $4) ^ 2 } END { print sum / NR / 2 }')
    holds "the loss of the predicted numbers, $own, is that of weft eval, $loss" awk "BEGIN { d = $own - $loss; exit !(d < 1e-5 && d > -1e-5) }"
    check 0 '"row": 3, "values": [' predict rows.yaml rows.h5 --samples 3 --json
    for key in resize=5 random_crop=2 'color_jitter=[1,1,1,0.5]' augment=[crop] erasing=0.5; do
        check 78 'rows.h5 holds no images; remove it' "$WEFT" train rows.yaml run.name=no "data.$key"
    done
    check 64 'predicts numbers, not classes' predict rows.yaml rows.h5 --top 2
    h5import x.txt -dims 12,1,2,2 -path x -type TEXTFP -size 32 y.txt -dims 12,2 -path y -type TEXTFP -size 32 -o pixels.h5
    sed 's/rows/pixels/g; s/dense/flatten, dense/' rows.yaml >pixels.yaml
    check 0 'on 12 samples' "$WEFT" train pixels.yaml
    check 0 'pixels.h5:11: ' predict pixels.yaml pixels.h5 data.train=none.h5
    check 65 'set data.scale to the factor' predict pixels.yaml set/cat/grey.png
    check 0 'set/cat/grey.png: ' predict pixels.yaml set/cat/grey.png data.scale=0.00392157
else echo '  skipped: a data set of floats: there is no h5import'; fi
finish
