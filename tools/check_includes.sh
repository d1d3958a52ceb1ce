#!/usr/bin/env bash
# Checks that includes point one way: a file of module M includes only public headers (include/M.h, include/M/*.h) of M and of modules
# before it in the given order, and private headers of its module, by a relative path that does not leave the module. If a module's
# folders have an order, a file in one includes headers of its folder and of those before it only; files outside of the folders include
# all. Only tensor and layers may name an operation (OP_*): all others use OpInfo's flags. Waits with a time limit use the monotonic clock:
# only base/cond.c makes them (futexes use it by default).
set -u
bad=0 i=0
declare -A order
declare -A folders=([parallel]="world order transport shm watch mpi nccl" [pipeline]="plan run")
for r in "$@"; do order[$r]=$i; i=$((i + 1)); done
resolved() { # PATH: prints it without ".." and without the folders that these leave
    local path=$1
    while [[ $path =~ ^(.*/)?([^/.][^/]*)/\.\./(.*)$ ]]; do path=${BASH_REMATCH[1]}${BASH_REMATCH[3]}; done
    echo "$path"
}
check() {   # FILE ROOM
    local inc name
    while read -r inc; do
        name=${inc%.h}
        [ -e "include/$inc" ] && name=${name%%/*}
        if [ -n "${order[$name]:-}" ]; then
            [ "${order[$name]}" -le "${order[$2]}" ] || { echo "$1: module $2 includes $inc, a module below it"; bad=1; }
        elif [ "$name" != "$inc" ] && [[ $1 == src/* ]]; then
            [ -e "$(dirname "$1")/$inc" ] || { echo "$1: includes $inc, which is not its own module's"; bad=1; }
        fi
        if [[ $inc == *../* ]]; then
            case $(resolved "$(dirname "$1")/$inc") in "src/$2"/*) ;; *) echo "$1: reaches out of its module: $inc"; bad=1;; esac
        fi
    done < <(sed -n 's/^#include "\(.*\)"/\1/p' "$1")
}
for r in "$@"; do
    for f in "include/$r.h" "include/$r"/*.h; do [ -e "$f" ] && check "$f" "$r"; done
    while read -r f; do check "$f" "$r"; done < <(find "src/$r" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null | sort)
done
while read -r d; do [ -n "${order[$(basename "$d")]:-}" ] || { echo "$d: not a module of the Makefile"; bad=1; }; done < <(find src -mindepth 1 -maxdepth 1 -type d)
if grep -rnE '\bOP_[A-Z]|"tensor/op_list\.h"' src include | grep -vE '^(src|include)/(tensor|layers)[./]'; then
    echo "check-includes: these name operations: ask op_info()'s flags instead (include/tensor/op_info.h)"; bad=1
fi
for m in "${!folders[@]}"; do
    below=${folders[$m]}
    for own in ${folders[$m]}; do
        below=${below#"$own"}; below=${below# }
        [ -d "src/$m/$own" ] || { echo "src/$m/$own: the order of folders names it, and it is not there"; bad=1; }
        for b in $below; do
            if grep -rn "^#include \"\(\.\./\)\?$b/" "src/$m/$own"; then echo "check-includes: src/$m/$own includes $b/, a folder below it"; bad=1; fi
        done
    done
    while read -r d; do
        case " ${folders[$m]} " in *" $(basename "$d") "*) ;; *) echo "$d: not in the order of the module's folders"; bad=1;; esac
    done < <(find "src/$m" -mindepth 1 -maxdepth 1 -type d)
done
waits='pthread_(cond|mutex|rwlock)_(timed|clock)|sem_(timed|clock)wait|mq_timed|FUTEX_CLOCK_REALTIME|(cnd|mtx)_timed'
if grep -rnE "$waits" src include | grep -v '^src/base/cond.c:'; then
    echo "check-includes: these waits go by the wall clock, or may: use cond_wait_for (base.h)"; bad=1
fi
[ $bad = 0 ] && echo "check-includes: includes point one way"
exit $bad
