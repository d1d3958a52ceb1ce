#!/usr/bin/env bash
# Which of the CPU's memory-bound kernels reach less than SHARE of the rate of a copy, with layouts that are planned for an instruction
# set: plain images, blocks of a vector's width (8 with AVX2, 16 with AVX-512), and rows. Exit code 1 if one does.
# usage: bench/kernels.sh [SHARE [NAME ...]]     SHARE: 0.3; NAME: a layer, as max_pool
#   CPU=avx2     one instruction set alone
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
least=${1:-0.3}
[ $# = 0 ] || shift
"$weft" bench kernels "$@" ${CPU:+--cpu "$CPU"} --json |
    sed 's/[{}"]//g; s/,\([a-z_]*\):/\n\1:/g; s/^bench:kernel/--/' |
    awk -F: -v least="$least" '
        function judge() {
            planned = v["layout"] == "rows" || v["layout"] == "plain" || v["layout"] == (v["cpu"] == "avx512" ? "blocks of 16" : "blocks of 8")
            if (v["op"] == "" || v["cpu"] == "base" || !planned) return
            seen += 1
            if (v["share"] >= least) return
            low += 1
            printf "%-24s %-18s %-7s %-13s %-8s %7.1f of %6.1f GB/s  %.3f\n", v["op"], v["x"], v["cpu"], v["layout"], v["direction"],
                v["gb_per_s"], v["copy_gb_per_s"], v["share"]
        }
        $1 == "--" { judge(); delete v; next }
        { v[$1] = $2 }
        END { judge(); printf "%d of %d below %s of a copy\n", low, seen, least; exit seen == 0 || low > 0 }'
