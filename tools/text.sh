#!/usr/bin/env bash
# Converts the text of Debian's package bible-kjv, 4.4 MB with one verse per line, to datasets/kjv/{train,test}.h5, with one token per
# byte; the last tenth is the test set. Does nothing if they exist.
# usage: text.sh WEFT   (KJV_TEXT: another text file instead)
set -eu
weft=$1 out=datasets/kjv
[ -e "$out/train.h5" ] && [ -e "$out/test.h5" ] && exit 0
mkdir -p "$out"
text=${KJV_TEXT:-$out/kjv.txt}
if [ -z "${KJV_TEXT:-}" ]; then
    command -v bible >/dev/null || {
        echo "weft: the program bible is missing: \`make deps\` installs bible-kjv, or KJV_TEXT names another text" >&2; exit 1; }
    bible -f Gen1:1-Rev22:21 >"$text" </dev/null
fi
"$weft" data import text "$text" -o "$out/train.h5" --test "$out/test.h5" --test-share 0.1 --force
