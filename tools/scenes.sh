#!/usr/bin/env bash
# Composes datasets/scenes/{train,test}.h5 from Fashion-MNIST's training and test images. Does nothing if they exist.
# usage: scenes.sh WEFT
set -eu
weft=$1 from=datasets/fashion-mnist out=datasets/scenes
mkdir -p "$out"
[ -e $out/train.h5 ] || "$weft" data make scenes $from/train.h5 -o $out/train.h5 --samples 4000 --seed 1
[ -e $out/test.h5 ] || "$weft" data make scenes $from/test.h5 -o $out/test.h5 --samples 1000 --seed 2
