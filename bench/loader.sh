#!/usr/bin/env bash
# The rate of the loader's thread on 500x375 JPEGs, compared with only decoding them; then the opening of a data set as long as ImageNet.
# usage: bench/loader.sh [FILE.h5]      a file of encoded pictures; default: makes one (Python with h5py and Pillow: PYTHON=)
set -eu
weft=${WEFT:-build/weft} python=${PYTHON:-python3} folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
file=${1:-$folder/pictures.h5}
[ $# -gt 0 ] || "$python" bench/encoded.py "$file"
taskset -c "${CORE:-0}" "$weft" bench io "$file" --seconds "${SECONDS_EACH:-24}"
"$python" bench/encoded.py "$folder/long.h5" 8 1281167 32x24
"$weft" bench io "$folder/long.h5" --seconds 2
