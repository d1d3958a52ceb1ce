#!/usr/bin/env bash
# COCO's evaluation by weft, hotcoco and pycocotools, on the same random boxes: seconds, and differences of results.
# usage: bench/detection.sh     (after make build/bench/detect_bench; PYTHON= a Python with numpy, pycocotools and hotcoco)
set -eu
folder=$(mktemp -d) python=${PYTHON:-python3}
trap 'rm -rf "$folder"' EXIT
"$python" bench/detection.py make "$folder"
"${BUILD:-build}/bench/detect_bench" "$folder" 2 >"$folder/numbers"
"$python" bench/detection.py compare "$folder" "$folder/numbers"
