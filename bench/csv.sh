#!/usr/bin/env bash
# The import of tables, in MB of text per second, compared with the disk's write rate: many copies of the Adult file by its schema, and
# clicks in Criteo's format. Three rounds each. THREADS=: number of threads (default: all cores); COPIES=: copies of the Adult file;
# WHERE=: folder on the disk to use.
# usage: bench/csv.sh
set -eu
weft=${WEFT:-build/weft} folder=$(mktemp -d "${WHERE:-/tmp}/weft-csv.XXXXXX")
trap 'rm -rf "$folder"' EXIT
threads=${THREADS:-$(nproc)} copies=${COPIES:-100}
gunzip -c datasets/adult/adult.data.gz | grep . >"$folder/one.csv"
for ((i = 0; i < copies; ++i)); do cat "$folder/one.csv"; done >"$folder/adult.csv"
awk -v n=$((copies * 10000)) 'BEGIN {
    srand(1)
    for (i = 0; i < n; ++i) {
        line = int(rand() < 0.256)
        for (c = 0; c < 13; ++c) line = line "\t" (rand() < 0.2 ? "" : int(exp(rand() * 8)))
        for (c = 0; c < 26; ++c) line = line "\t" (rand() < 0.1 ? "" : sprintf("%08x", int(rand() * 4294967295)))
        print line
    }
}' >"$folder/clicks.txt"
import() { "$weft" data import "$@" --threads "$threads" -o "$folder/out.h5" --force 2>&1 | sed -n 's/.*, \(.* of text .*\)/\1/p'; }
for round in 1 2 3; do
    echo "round $round, $threads threads"
    echo "  csv, vocabularies  $(import csv "$folder/adult.csv" --schema datasets/adult/adult.yaml)"
    echo "  criteo, ids        $(import criteo "$folder/clicks.txt")"
    echo "  criteo, hashed     $(import criteo "$folder/clicks.txt" --rows 1000001)"
    echo "  the disk, written  $(dd if="$folder/adult.csv" of="$folder/copy" bs=4M conv=fsync 2>&1 | sed -n 's/.*, //p')"
    rm -f "$folder/copy"
done
