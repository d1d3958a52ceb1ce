#!/usr/bin/env bash
# The cost of a checkpoint: the time for which it stops training, compared with a copy of the bytes that a rank writes, and the rates of
# writing and loading, compared with dd, on the file system of FOLDER. All are measured alternately. Needs strace.
# usage: bench/save.sh [FOLDER]     RANKS=1  SIZE=124m  ROUNDS=3  STEPS=60  MORE="grid.zero=1 ..."
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.bash"
at=$(mktemp -d "${1:-/tmp}/weft-save-XXXXXX")
trap 'rm -rf "$at" "$tmp"' EXIT
ranks=${RANKS:-1} size=${SIZE:-124m} rounds=${ROUNDS:-3} steps=${STEPS:-60} many=()
read -ra more <<<"${MORE:-}"
[ "$ranks" = 1 ] || many=(mpirun --oversubscribe --bind-to none -n "$ranks")
${CC:-gcc} -O2 -fopenmp "$here/save_copy.c" -o "$tmp/save_copy"
${CC:-gcc} -O2 "$here/read_new.c" -o "$tmp/read_new"
head -c 400000 /dev/urandom >"$at/text"
"$weft" data import text "$at/text" -o "$at/text.h5" >/dev/null
# train COMMAND... [KEY=VALUE] : under it, with the configuration of all runs
train() {
    local key=()
    case ${!#} in checkpoint.*) key=("${!#}"); set -- "${@:1:$#-1}" ;; esac
    timeout 600 "$@" "$weft" train "$here/gpt2.yaml" run.dir="$at/runs" run.name=r run.trace=true data.train="$at/text.h5" \
        model.context=32 train.steps="$steps" train.batch=2 train.micro_batch=1 train.eval_every=0 \
        checkpoint.every_steps=$((steps / 3)) checkpoint.keep=1 checkpoint.best=false model.size="$size" \
        train.threads=$((($(nproc) + ranks - 1) / ranks)) "${more[@]}" "${key[@]}" >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
}
# Prints rank 0's spans of saves; spans with no forward pass between them are at one step boundary. The run waits for its last save,
# which is not counted.
holds() {
    sed -n 's/.*"name":"\([a-z]*\)".*"ts":\([0-9.]*\),"dur":\([0-9.]*\).*/\1 \2 \3/p' "$at/runs/r/trace.json" |
        awk -v what="$1" -v steps="$steps" '
            !begin { begin = $2 }
            $1 == "forward" { end = $2; between = 1; passes++ }
            $1 == "checkpoint" { if (between) { k++; between = 0 }; d[k] += $3 / 1000; when[k] = $2 }
            END {
                for (i = 1; i <= k && when[i] < end; i++) { sum += d[i]; if (d[i] > most) most = d[i]; else if (d[i] < most && d[i] > later && d[i] < most / 3) later = d[i] }
                step = ((end - begin) / 1000 - sum) / (steps - 1)
                printf "%s: two saves hold training up %.1f ms, %.1f ms at most at one step boundary, %.2f ms (%.1f %% of a step of %.0f ms) at a later one; all boundaries, ms:",
                    what, sum, most, later, 100 * later / step, step
                for (k = 1; k < i; k++) printf " %.1f", d[k]
                printf "\n" }'
}
# The host of a virtual machine may have taken free memory back: the first touch of such a page is then slower than a disk. So all
# free memory is first filled with the pages of a file that consists of holes: the memory that dd and a run then take has been
# touched, as on a machine that owns its memory.
truncate -s "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)K" "$at/holes"
fill() { cat "$at/holes" >/dev/null; }
drop() { dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null; }
now() { date +%s.%N; }
rate() { awk -v b="$bytes" -v s="$1" 'BEGIN { printf "%.2f", b / s / 1e9 }'; }
# between NAME CALL: seconds from the first such call on a file of that name to the end of the last, with the sync that follows
# it and not what is synced when all has been read back
between() {
    grep -E "^[0-9]+ +[0-9.]+ (pread64|pwrite64|fsync)\(.*$1" "$tmp/trace" | awk -v call="$2" '
        { counts = $3 ~ "^" call; match($0, /<[0-9.]*>$/); end = $2 + substr($0, RSTART + 1, RLENGTH - 2) }
        counts && !a { a = $2 }
        a && (counts || $3 ~ /^fsync/ && !read) { if (end > b) b = end }
        { read = !counts && (read || $3 ~ /^pread/) }
        END { print b - a }'
}
# Each rank copies its part with its own threads.
parts() { "${many[@]}" "$tmp/save_copy" $((bytes / ranks)) $((($(nproc) + ranks - 1) / ranks)) | sort -g | tail -1; }
for _ in $(seq "$rounds"); do
    for background in true false; do
        rm -rf "$at/runs"
        train "${many[@]}" checkpoint.background=$background
        holds "background=$background"
    done
    file=$(ls "$at"/runs/r/checkpoints/step-*.h5) bytes=$(stat -c %s "$file")
    printf 'file of %d MB; memcpy of a rank'"'"'s part, all ranks at once: %s ms\n' $((bytes / 1000000)) "$(parts)"
    # the last steps once more, saved while training waits: from the first byte written to the end of the last sync
    fill; a=$(now); dd if=/dev/zero of="$at/dd" bs=4M count=$((bytes / 4194304)) conv=fsync 2>/dev/null; b=$(now)
    dd_s=$(awk -v a="$a" -v b="$b" 'BEGIN { print b - a }')
    rm -rf "$at/runs" "$at/dd"
    fill
    steps=3 train strace -f --seccomp-bpf -qq -ttt -T -y -e trace=pwrite64,fsync,pread64 -o "$tmp/trace" "${many[@]}" checkpoint.background=false
    file=$(ls "$at"/runs/r/checkpoints/step-*.h5)
    write_s=$(between 'step-00000003[^ ]*part' pwrite64)
    drop "$file"; fill; a=$(now); dd if="$file" of=/dev/null bs=4M 2>/dev/null; b=$(now)
    read_s=$(awk -v a="$a" -v b="$b" 'BEGIN { print b - a }')
    drop "$file"; fill; new_s=$("$tmp/read_new" "$file")
    drop "$file"; fill
    # from where its table is opened to where the file is closed, all tensors set: calls that are few, as strace makes each slow
    steps=3 train strace -f --seccomp-bpf -qq -ttt -y -e trace=openat,close -o "$tmp/trace" "${many[@]}"
    load_s=$(awk '!/step-00000003\.h5/ { next } / openat\(/ { a = $2 } / close\(/ { b = $2 } END { print b - a }' "$tmp/trace")
    echo "dd with fsync $(rate "$dd_s") GB/s, a save's bytes $(rate "$write_s"); dd reading $(rate "$read_s") GB/s, into memory that is touched for the first time $(rate "$new_s"), a load $(rate "$load_s")"
done
