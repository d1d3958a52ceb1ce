#!/usr/bin/env bash
# weft data import folder: its messages, exit codes, any number of ranks and threads, interruption and resuming, and the content of the
# file.
# cores: 1
pictures=$PWD/tests/image/pictures
. "$(dirname "$0")/common.bash"
needs_pictures 'all of this' || exit 0
mkdir -p photos/cat photos/dog/old photos/.cache
cp "$pictures"/plain.jpg "$pictures"/alpha.png "$pictures"/lossy.webp photos/cat
cp "$pictures"/exif6.jpg photos/dog/old
cp "$pictures"/cmyk.jpg photos/dog
echo loose | tee photos/list.txt >photos/readme.txt
check 0 "" "$WEFT" data import folder photos -o a.h5 --short 16
holds "the log counts hidden names" grep -qF "skipping 1 hidden name (.cache)" both
holds "the log counts files outside the classes" grep -qF "skipping 2 files that are in no class (" both
holds "what was written is said" grep -qF \
    "wrote a.h5: 5 pictures of 2 classes; 1 with an EXIF orientation, not applied (--orient does)" both
holds "uneven classes show" grep -qF "a class has 2 to 3 pictures" both
check 0 "3 channels, 16 x 16 pixels" "$WEFT" data info a.h5
holds "classes are counted" grep -qE '1 +dog +2 samples' out
check 0 "good, 5 samples" "$WEFT" data check a.h5
check 64 "--force" "$WEFT" data import folder photos -o a.h5
picture=$(find photos -type f | sort | head -n 1)
check 64 'is one of the files that are read' "$WEFT" data import folder photos -o "$picture" --force
check 0 "; 1 with an EXIF orientation, applied" "$WEFT" data import folder photos -o b.h5 --short 16 --orient --bicubic
holds "other pixels" sh -c '! cmp -s a.h5 b.h5'
check 64 "--store encoded keeps the files as they are" "$WEFT" data import folder photos -o c.h5 --store encoded --short 256
check 64 "" "$WEFT" data import folder photos -o c.h5 --store raw
check 64 "expected one folder" "$WEFT" data import folder -o c.h5
check 66 "nowhere" "$WEFT" data import folder nowhere -o c.h5
check 66 "list.csv" "$WEFT" data import folder photos -o c.h5 --list list.csv
printf 'cat/plain.jpg,7\ndog/cmyk.jpg,7,8\n' >list.csv
check 65 "list.csv: line 2: a picture with several labels" "$WEFT" data import folder photos -o c.h5 --list list.csv
printf 'no picture\n' >photos/cat/notes.txt
check 65 "1 of 6 files cannot be used" "$WEFT" data import folder photos -o c.h5 --store encoded
holds "which one is said, and why" grep -qF "photos/cat/notes.txt: no picture" both
holds "no file stays" test ! -e c.h5
check 0 "wrote c.h5: 5 pictures of 2 classes; 1 left out" "$WEFT" data import folder photos -o c.h5 --store encoded --broken skip
check 0 "c.h5: good, 5 samples" "$WEFT" data check c.h5
check 0 "x_bytes" "$WEFT" data info c.h5
check 65 "c.h5: is a set of encoded pictures, whose arrays are plain already; use it as it is" "$WEFT" data import hdf5 c.h5 -o copy.h5
holds "what was kept is gone" test ! -e c.h5.part -a ! -e c.h5.part.journal

# Classes in the order of a list or of another data set: a class without pictures stays, and a folder that is not in the list is an
# error.
mkdir -p less/dog less/empty
cp "$pictures"/plain.jpg less/dog
printf 'eel\r\ndog\n\ncat\nempty\n' >names.txt
check 0 "1 pictures of 4 classes" "$WEFT" data import folder less -o less.h5 --classes names.txt
check 0 '"class_names": ["eel", "dog", "cat", "empty"], "class_counts": [0, 1, 0, 0]' "$WEFT" data info --json less.h5
check 0 "5 pictures of 2 classes" "$WEFT" data import folder photos -o d.h5 --classes a.h5 --broken skip
check 0 '"class_names": ["cat", "dog"], "class_counts": [3, 2]' "$WEFT" data info --json d.h5
check 0 "5 pictures of 4 classes" timeout 100 "$WEFT" data import folder -n 2 photos -o e.h5 --classes less.h5 --broken skip
check 0 '"class_counts": [0, 2, 3, 0]' "$WEFT" data info --json e.h5
check 65 "class 'empty' is not among the 2 classes of a.h5" "$WEFT" data import folder less -o f.h5 --classes a.h5
printf 'cat/plain.jpg,dog\ndog/cmyk.jpg,yak\n' >list.csv
check 65 "class 'yak' is not among the 4 classes of names.txt" "$WEFT" data import folder photos -o f.h5 --list list.csv --classes names.txt
printf 'cat/plain.jpg,2\ndog/cmyk.jpg,1\n' >list.csv
check 0 "2 pictures of 4 classes" "$WEFT" data import folder photos -o f.h5 --list list.csv --classes names.txt
check 0 '"class_counts": [0, 1, 1, 0]' "$WEFT" data info --json f.h5
printf 'dog\ncat\ndog\n' >twice.txt
check 65 "classes 0 and 2 are both named 'dog'" "$WEFT" data import folder less -o g.h5 --classes twice.txt
check 66 "nowhere.txt" "$WEFT" data import folder less -o g.h5 --classes nowhere.txt

# 2,600 pictures in eleven blocks: on one rank, on three with two threads each, and interrupted in the middle.
for i in $(seq 1 2600); do
    case $((i % 4)) in 0) p=plain.jpg;; 1) p=interlaced.png;; 2) p=exif$((i % 8 + 1)).jpg;; 3) p=alpha.webp;; esac
    echo "$pictures/$p,${p%.*}"
done >many.csv
check 0 "wrote one.h5: 2600 pictures of 5 classes" "$WEFT" data import folder . --list many.csv -o one.h5 --short 24 --threads 1
check 0 "wrote three.h5" timeout 240 "$WEFT" data import folder -n 3 . --list many.csv -o three.h5 --short 24 --threads 2
holds "the same bytes on three ranks" cmp one.h5 three.h5
check 0 "" "$WEFT" data import folder . --list many.csv -o one_e.h5 --store encoded --threads 1
check 0 "" timeout 240 "$WEFT" data import folder -n 2 . --list many.csv -o two_e.h5 --store encoded --threads 3
holds "the same bytes on two ranks" cmp one_e.h5 two_e.h5
cat many.csv many.csv many.csv many.csv >long.csv # slow enough to be interrupted
check 0 "wrote whole.h5" "$WEFT" data import folder . --list long.csv -o whole.h5 --short 24
background said "$WEFT" data import folder . --list long.csv -o stop.h5 --short 24 --threads 1
pid=$!
# it begins, or ends before the test notices
until [ -s stop.h5.part ] || ! kill -0 $pid 2>/dev/null; do sleep 0.005; done
kill -TERM $pid 2>/dev/null || true
rc=0
wait $pid || rc=$?
if [ $rc = 0 ]; then echo "  skipped: what a stop says: the import was done before the signal came"
else
    holds "stopped, not ended with $rc" test $rc = 75
    holds "how to go on is said" grep -qF "the same command continues from the complete blocks" said
fi
check 0 "wrote stop.h5" timeout 240 "$WEFT" data import folder -n 2 . --list long.csv -o stop.h5 --short 24 --force
holds "the same bytes after a stop" cmp whole.h5 stop.h5
finish
