#!/usr/bin/env bash
# Trains YOLOv5n on scenes of Fashion-MNIST's garments on two ranks, evaluates it with COCO's twelve numbers, draws the boxes that it finds
# in eight test scenes, and prints what to try next.
# usage: demo_detect.sh WEFT [key=value ...]
set -eu
weft=$1; shift
n=1; while [ -e "runs/detect-$n" ]; do n=$((n + 1)); done
name=detect-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
say "$weft" data info datasets/scenes/train.h5
say "$weft" train -n 2 jobs/scenes-yolov5n.yaml run.name=$name "$@"
say "$weft" eval jobs/scenes-yolov5n.yaml run.name=$name "$@"
say "$weft" predict jobs/scenes-yolov5n.yaml datasets/scenes/test.h5 --samples 0-7 --draw runs/$name/drawn --zoom 4 run.name=$name "$@"
cat <<TEXT

The eight scenes are in runs/$name/drawn: found boxes with class and score in the colour of the class, true boxes white and dashed.
What to try next:
  $weft eval jobs/scenes-yolov5n.yaml run.name=$name --results boxes.json   COCO's file of results, for pycocotools
  $weft train -n 2 jobs/scenes-yolov5n.yaml grid.pp=2 run.name=stages      the same bits, as a pipeline
  $weft plan jobs/yolov5n-coco.yaml --input 3x640x640 model.classes=80     YOLOv5n on COCO: memory and operations
Your own pictures: weft data import coco, yolo or voc; see docs/detection.md.
TEXT
