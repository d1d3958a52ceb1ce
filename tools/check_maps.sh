#!/usr/bin/env bash
# Checks the maps src/MODULE/README.md (and of folders in it that have one): at most 60 lines; every source file of the folder is named
# once, those of folders with a map of their own by that map; no file is named that is not there. A line names one unit: files
# with the same stem (x.c, x.h, x.cu), or x.c and x_absent.c, which replaces it in builds without a library.
# A folder has at most 40 files besides its map: one with more gets parts, subfolders about one thing each.
set -u
cd "$(dirname "$0")/.." || exit 70
failed=0
wrong() { echo "$*"; failed=1; }
# Prints the names in backquotes at the beginning of the map's lines "* `file.c, file.h`: ...", as paths. Names under a heading with a
# folder, "## Files of `plan/`", belong to that folder.
named() { # MAP
    awk -v folder="$(dirname "$1")/" '
        /^## / { part = match($0, /`[a-z_\/]+\/`/) ? substr($0, RSTART + 1, RLENGTH - 2) : "" }
        /^\* `/ {
            split($0, word, "`")
            count = split(word[2], name, ", *")
            for (i = 1; i <= count; i++) print folder part name[i]
        }' "$1"
}
# Prints the lines of a map that name several units, as "LINE: NAMES".
several_units() { # MAP
    awk '/^\* `/ {
            split($0, word, "`")
            count = split(word[2], name, ", *")
            for (i = 1; i <= count; i++) {
                stem = name[i]
                sub(/\.[a-z]+$/, "", stem)
                sub(/_absent$/, "", stem)
                if (i == 1) first = stem
                if (stem != first) { print FNR ": " word[2]; break }
            }
        }' "$1"
}
sources() { # FOLDER: prints its files, except those of folders that have a map
    git ls-files -co --exclude-standard "$1/*.c" "$1/*.h" "$1/*.cu" "$1/*.cuh" | while read -r f; do
        d=${f%/*}
        while [ "$d" != "$1" ] && [ ! -f "$d/README.md" ]; do d=${d%/*}; done
        [ "$d" = "$1" ] && echo "$f"
    done
}
while read -r count folder; do
    [ "$count" -le 40 ] || wrong "$folder: $count files; more than 40 in a folder need parts"
done < <(git ls-files -co --exclude-standard 'src/*.c' 'src/*.h' 'src/*.cu' 'src/*.cuh' | while read -r f; do
    [ ! -f "$f" ] || echo "${f%/*}"
done | sort | uniq -c)
while read -r folder; do
    map=$folder/README.md
    if [ ! -f "$map" ]; then
        wrong "$map: is missing"
        continue
    fi
    [ "$(wc -l <"$map")" -le 60 ] || wrong "$map: more than 60 lines"
    while read -r line; do
        wrong "$map:$line: these are several units; a line names x.c and x.h, or x.c and x_absent.c, and says what is in them"
    done < <(several_units "$map")
    while read -r f; do wrong "$map: $f is named twice"; done < <(named "$map" | sort | uniq -d)
    while read -r f; do wrong "$map: does not name $f"; done < <(comm -23 <(sources "$folder" | sort) <(named "$map" | sort -u))
    while read -r f; do wrong "$map: names $f, which is not there"; done < <(comm -13 <(sources "$folder" | sort) <(named "$map" | sort -u))
done < <({ find src -mindepth 1 -maxdepth 1 -type d; find src -mindepth 3 -name README.md -printf '%h\n'; } | sort)
[ $failed = 1 ] || echo "check-maps: every file is on its map"
exit $failed
