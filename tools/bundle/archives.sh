#!/usr/bin/env bash
# Makes static libraries for a bundle's program, without the tables for C++ exceptions, because they are C.
# usage: archives.sh FOLDER "FLAGS" -l:libNAME.a...     CC from the environment
set -eu
folder=$1 flags=$2
shift 2
mkdir -p "$folder"
for name in "$@"; do
    file=${name#-l:}
    # the path at which the linker finds it
    path=$(echo 'int main(void) { return 0; }' | ${CC:-cc} -x c -o /dev/null - $flags "$name" -Wl,--verbose 2>/dev/null |
        sed -n "s|^attempt to open \(.*/$file\) succeeded\$|\1|p" | tail -n 1)
    [ -n "$path" ] || { echo "make bundle: no $file" >&2; exit 1; }
    objcopy -R .eh_frame -R .rela.eh_frame "$path" "$folder/$file"
    readlink -f "$path" >"$folder/$file.from"
done
