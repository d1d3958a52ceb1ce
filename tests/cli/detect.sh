#!/usr/bin/env bash
# Detectors: training with mosaics, an average and warm-ups has the same bits on any grid and after resuming on another one in the
# middle of an epoch; evaluations give the same numbers on any number of ranks; files of results; keys and sets that do not go together.
pictures=$PWD/tests/image/pictures
. "$(dirname "$0")/common.bash"
needs_pictures 'all of this' || exit 0

# 21 pictures of 21 x 18, one to three boxes each, of two classes with ids 4 and 9; a third class has none
mkdir photos
for i in $(seq 21); do cp "$pictures/plain.png" photos/$i.png; done
awk 'BEGIN {
    printf "{\"images\": ["
    for (i = 1; i <= 21; ++i) printf "%s{\"id\": %d, \"file_name\": \"%d.png\", \"width\": 21, \"height\": 18}", (i > 1 ? ", " : ""), 3 * i, i
    printf "], \"annotations\": ["
    for (i = 1; i <= 21; ++i) for (k = 0; k <= i % 3; ++k) printf "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": [%d, %d, %d, %d], \"iscrowd\": %d}", \
        (n++ ? ", " : ""), n, 3 * i, (k % 2 ? 9 : 4), k + i % 5, k * 3, 6 + i % 4, 5 + i % 7, (i == 8 && k == 2)
    printf "], \"categories\": [{\"id\": 9, \"name\": \"b\"}, {\"id\": 4, \"name\": \"a\"}, {\"id\": 7, \"name\": \"none\"}]}"
}' >labels.json
check 0 'wrote set.h5: 21 pictures, 42 boxes of 3 classes; 1 around crowds' "$WEFT" data import coco photos labels.json -o set.h5 --allow-empty
cat >job.yaml <<'YAML'
model: {name: yolov5n, width_multiple: 0.03}
data:
  {train: set.h5, test: set.h5, letterbox: 64, mosaic: 0.5, affine_scale: [0.5, 1.5], affine_shift: 0.1, augment: [flip],
   color_jitter: [0.4, 0, 0.7, 0.015], normalize: false}
train: {steps: 7, batch: 8, micro_batch: 2, threads: 1, loss: yolo, ema: 0.99, ema_ramp: 5}
optim: {lr: 0.08, momentum: 0.9, warmup_steps: 4, warmup_bias_lr: 0.8, warmup_momentum: 0.8}
YAML
last=checkpoints/step-00000007.h5
check 0 'AP50' "$WEFT" train job.yaml run.name=one checkpoint.every_steps=4
check 0 '' "$WEFT" train -n 3 job.yaml run.name=three grid.zero=2 train.threads=2
check 0 'to the bit' "$WEFT" ckpt diff runs/one/$last runs/three/$last
check 0 'resuming from' "$WEFT" train -n 2 job.yaml run.name=parts checkpoint.resume=runs/one/checkpoints/step-00000004.h5 grid.pp=2 \
    grid.pipeline_schedule=zero-bubble
check 0 'to the bit' "$WEFT" ckpt diff runs/one/$last runs/parts/$last
numbers() { sed -n '/eval_loss/s/,"seconds".*//p' "runs/$1/metrics.jsonl"; }
holds "evaluations: $(numbers one) and $(numbers three)" test -n "$(numbers one)" -a "$(numbers one)" = "$(numbers three)"
lines() { sed -n '/"box_loss"/{s/"samples_per_s":[^,]*,//; s/,"time_s".*//; p}' "runs/$1/metrics.jsonl"; }
holds "lines of steps: $(lines one) and $(lines three)" test -n "$(lines one)" -a "$(lines one)" = "$(lines three)"
adds() { sed -n "s/.*\"$1loss\":\([^,]*\),.*\"$1box_loss\":\([^,]*\),\"$1object_loss\":\([^,]*\),\"$1class_loss\":\([^,}]*\).*/\1 \2 \3 \4/p" runs/one/metrics.jsonl |
    awk '{ d = $1 - $2 - $3 - $4; if (!($2 > 0 && $3 > 0 && $4 > 0 && d * d < 1e-12)) exit 1 } END { exit !NR }'; }
holds "the parts of a step's loss add up: $(lines one)" adds ''
holds "and those of an evaluation: $(numbers one)" adds eval_

check 0 'AR_100' "$WEFT" eval job.yaml run.name=one --results one.json --per-class
grep -v '^time' out >one
check 0 '' "$WEFT" eval -n 2 job.yaml run.name=one grid.pp=2 --results two.json --per-class
holds 'the same numbers on two stages' diff one <(grep -v '^time' out)
holds 'and the same boxes' cmp one.json two.json
# Over TCP, as between nodes, where messages between stages go only one way in an evaluation.
check 0 '' env OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo timeout 60 "$WEFT" eval -n 2 job.yaml run.name=one grid.pp=2 grid.transport=mpi --per-class
holds 'the same numbers over TCP' diff one <(grep -v '^time' out)
holds "a file of results: $(head -c 200 one.json)" grep -q '"image_id": 3, "category_id": [49], "bbox": \[' one.json

# Classes: boxes that are not crowds; the class without boxes has no AP, and the means leave it out, as pycocotools does.
holds "boxes of each class: $(tail -n 4 one)" test "$(tail -n 3 one | awk '{ print $2, $3 }' | paste -sd,)" = 'a 27,none 0,b 14'
holds 'a class without boxes has no AP' grep -qE '^ +1 none +0 +- +-$' one
mean() { awk -v k="$2" -v name="$1" '$1 == name { want = $2 } /^    [02] / { sum += $k } END { d = want - sum / 2; exit !(want > 0 && d < 2e-6 && d > -2e-6) }' one; }
holds "AP is the mean over classes with boxes: $(cat one)" mean AP 4
holds 'and so is AP50' mean AP50 5
check 0 '{"class": "none", "boxes": 0, "AP": -1, "AP50": -1}' "$WEFT" eval job.yaml run.name=one --json --per-class
holds 'JSON has the other numbers, too' grep -q '"AP_small":' out

check 0 'loaded as 320x320' "$WEFT" bench io set.h5 --seconds 0.1
check 78 'data.letterbox' "$WEFT" train job.yaml run.name=no data.letterbox=0
check 78 'data.center_crop' "$WEFT" train job.yaml run.name=no data.center_crop=32
check 78 'takes two numbers' "$WEFT" train job.yaml run.name=no data.affine_scale=[0.5]
finish
