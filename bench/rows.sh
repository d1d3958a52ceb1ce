#!/usr/bin/env bash
# The row store of sparse tables on one core: adding, finding and updating random rows (row-wise Adagrad), compared with random reads
# and writes of as many bytes, and the memory of Criteo's 33.8 million rows of 16 floats. Exit code 1 if finding or updating reaches
# less than SHARE of the rate of those reads and writes, or the rows need more than GB.
# usage: make bench && bench/rows.sh [SHARE [GB]]     0.6 and 3.4; takes 7 GB of memory for half a minute
#   BUILD=build   where the programs were built
set -eu
share=${1:-0.6} most=${2:-3.4}
figures=$("${BUILD:-build}/bench/rows_bench")
echo "$figures"
awk -v share="$share" -v most="$most" '
    function need(good, what) { if (!good) { print "missed: " what; bad = 1 } }
    / floats and 1 of state: / { sub(/.* of state: /, ""); need($1 <= most && $3 <= most && $6 <= most, most " GB"); ++seen }
    /^(find|update) / { match($0, /: [0-9.]+/); need(substr($0, RSTART + 2) + 0 >= share, $1 " at " share); ++seen }
    END { exit bad || seen != 3 }' <<<"$figures"
