#!/usr/bin/env bash
# Converts Fashion-MNIST's four IDX files to datasets/fashion-mnist/{train,test}.h5. Does nothing if they exist.
# usage: data.sh WEFT   (FASHION_MNIST: the folder of the IDX files)
set -eu
weft=$1 out=datasets/fashion-mnist
raw=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -d "$raw" ] || raw=$out/raw
classes=T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,"Ankle boot"
mkdir -p "$out"
for part in train:train test:t10k; do
    to=$out/${part%%:*}.h5 from=$raw/${part##*:}
    [ -e "$to" ] && continue
    "$weft" data import idx "$from-images-idx3-ubyte.gz" "$from-labels-idx1-ubyte.gz" --classes "$classes" -o "$to"
done
