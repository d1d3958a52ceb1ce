#!/usr/bin/env bash
# Finds rows of tables that are in no list: constant data that other files could use, but no file refers to. The build then fails.
# usage: check_rows.sh LIB.a...
export LC_ALL=C
tests='backend_poison' # rows for tests only
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT
nm -A --defined-only "$@" 2>/dev/null | awk 'NF > 2 && $(NF - 1) ~ /^[DR]$/ { split($1, at, ":"); print $NF, at[1], at[2] }' | sort -u >"$work/rows"
bad=0
while read -r name library object; do
    case " $tests " in *" $name "*) continue ;; esac
    # the row's own file may refer to it
    ar p "$library" "$object" >"$work/object.o"
    if ! objdump -r "$work/object.o" | awk '/^RELOCATION/ { debug = /[[][.]debug/ } !debug' | grep -qE "[ .]$name([-+]0x[0-9a-f]+)?\$"; then
        echo "$name ($(basename "$library" .a)/${object%.o}.c) stands in no list: add its line to the table, or make it static" >&2
        bad=1
    fi
done < <(join -v 1 "$work/rows" <(nm -A --undefined-only "$@" 2>/dev/null | awk '{ print $NF }' | sort -u))
exit $bad
