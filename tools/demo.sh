#!/usr/bin/env bash
# Trains a convolutional network on Fashion-MNIST on two ranks, evaluates it, and says what to try next.
# usage: demo.sh WEFT [key=value ...]
set -eu
weft=$1; shift
n=1; while [ -e "runs/demo-$n" ]; do n=$((n + 1)); done
name=demo-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
say "$weft" train -n 2 jobs/fashion.yaml run.name=$name "$@"
say "$weft" eval jobs/fashion.yaml run.name=$name "$@"
cat <<TEXT

What to try next:
  $weft train -n 2 jobs/fashion-resnet18.yaml        a deeper network on the same images
  $weft train -n 2 jobs/fashion.yaml optim.name=adamw optim.lr=1e-3 run.name=adamw
  $weft plan jobs/layers.yaml                        a network given layer by layer: shapes, parameters, memory
  $weft ckpt info runs/$name/checkpoints/best.h5     what a checkpoint holds (any HDF5 tool reads it, too)
  tensorboard --logdir runs                          the curves
Your own data: any HDF5 file with samples and labels; see docs/data.md.
TEXT
