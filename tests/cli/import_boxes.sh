#!/usr/bin/env bash
# weft data import coco, yolo and voc, and weft data make scenes: what they store, their messages and exit codes, any number of ranks,
# and what data info and data check say of the sets.
# cores: 1
pictures=$PWD/tests/image/pictures
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
needs_pictures 'all of this' || exit 0
mkdir -p photos/more
cp "$pictures"/plain.jpg "$pictures"/plain.png "$pictures"/exif6.jpg photos # 21 x 18 pixels, 21 x 18, 12 x 9
cp "$pictures"/lossy.webp photos/more

# Images out of order, ids with gaps, a category without boxes, a crowd, a polygon, a box without area and one there twice, an image
# without boxes, sizes that are not given.
cat >good.json <<'END'
{"info": {"description": "a test", "numbers": [1, [2, {"x": null}]]},
 "annotations": [
  {"id": 7, "image_id": 30, "category_id": 9, "bbox": [1.5, 2, 10, 5.25], "area": 40.5, "iscrowd": 0,
   "segmentation": [[1.5, 2, 11.5, 2, 11.5, 7.25]]},
  {"id": 3, "image_id": 4, "category_id": 2, "bbox": [0, 0, 21, 18], "area": 300, "iscrowd": 1,
   "segmentation": {"size": [18, 21], "counts": "a\\b`c"}},
  {"bbox": [3, 4, 0, 6], "id": 12, "category_id": 9, "image_id": 30},
  {"id": 8, "image_id": 4, "category_id": 9, "bbox": [1, 1, 3, 3], "area": 9, "iscrowd": 0},
  {"id": 9, "image_id": 4, "category_id": 9, "bbox": [1, 1, 3, 3], "area": 9, "iscrowd": 0}],
 "images": [
  {"id": 30, "file_name": "plain.png", "width": 21, "height": 18, "license": 3},
  {"id": 4, "file_name": "plain.jpg", "height": 18, "width": 21},
  {"id": 17, "file_name": "more/lossy.webp"}],
 "categories": [{"id": 9, "name": "dog", "supercategory": "animal"}, {"id": 2, "name": "cat"}, {"id": 5, "name": "yak"}]}
END
check 65 "no image has a box of category 5, 'yak'" "$WEFT" data import coco photos good.json -o a.h5
holds "no file stays" test ! -e a.h5
check 0 "wrote a.h5: 3 pictures, 5 boxes of 3 classes; 1 around crowds; 1 without area; 1 listed twice" \
    "$WEFT" data import coco photos good.json -o a.h5 --allow-empty
check 0 "boxes data set, 3 samples" "$WEFT" data info a.h5
holds "the files are stored" grep -qF '/x_bytes' out
holds "boxes of classes are counted" grep -qE '2  dog +4 boxes, category 9' out
holds "and those of an empty class" grep -qE '1  yak +0 boxes, category 5' out
holds "so are the others" grep -qF '5, of which 1 around crowds and 1 without area' out
holds "and pictures" grep -qF 'at most 3 boxes; 1 pictures have none' out
check 0 '"category_ids": [2, 5, 9], "box_counts": [1, 0, 4]' "$WEFT" data info --json a.h5
check 0 "a.h5: good, 3 samples" "$WEFT" data check a.h5
dump() { # ARRAY FILE: prints its values in one line
    h5dump -y -w 0 -d "$1" "$2" | sed -n '/DATA {/,/}/p' | sed '1d;$d' | tr -d '\n' | sed 's/  */ /g'
}
holds "boxes are grouped by image, in the file's order" test "$(dump /boxes a.h5)" = " 0, 0, 21, 18, 1, 1, 3, 3, 1, 1, 3, 3, 1.5, 2, 10, 5.25, 3, 4, 0, 6"
holds "their numbers" test "$(dump /box_id a.h5)" = " 3, 8, 9, 7, 12"
holds "their classes" test "$(dump /box_class a.h5)" = " 0, 2, 2, 2, 2"
holds "their areas" test "$(dump /box_area a.h5)" = " 300, 9, 9, 40.5, 0"
holds "crowds" test "$(dump /box_crowd a.h5)" = " 1, 0, 0, 0, 0"
holds "where images begin" test "$(dump /box_start a.h5)" = " 0, 3, 3, 5"
holds "images in the order of their ids" test "$(dump /image_id a.h5)" = " 4, 17, 30"
gzip -k good.json
check 0 "wrote gz.h5" "$WEFT" data import coco photos good.json.gz -o gz.h5 --allow-empty
holds "the same bytes of a packed file" cmp a.h5 gz.h5
check 0 "wrote two.h5" timeout 100 "$WEFT" data import coco -n 2 photos good.json -o two.h5 --allow-empty
holds "and on two ranks" cmp a.h5 two.h5

# whole pictures in squares of 32: 21 x 18 becomes 32 x 27, with margins of 2 above
check 0 "wrote s.h5" "$WEFT" data import coco photos good.json -o s.h5 --allow-empty --size 32
check 0 "3 channels, 32 x 32 pixels" "$WEFT" data info s.h5
check 0 "s.h5: good, 3 samples" "$WEFT" data check s.h5
holds "scale and place" test "$(dump /fit s.h5 | cut -d, -f1-3)" = " 1.52381, 0, 2"
holds "margins are grey" test "$(h5dump -y -d '/x[0,0,1,0;;1,1,1,3]' s.h5 | grep -o '114, 114, 114')" = "114, 114, 114"
check 64 "--size" "$WEFT" data import coco photos good.json -o s.h5 --size 4
printf 'model: {name: lenet}\ndata: {train: s.h5}\n' >t.yaml
check 78 "set train.loss: yolo" "$WEFT" train t.yaml
check 0 "go together" "$WEFT" data check a.h5 gz.h5
check 64 "is one of the files that are read" "$WEFT" data import coco photos good.json -o good.json --force
check 65 "is a set of boxes" "$WEFT" data import hdf5 a.h5 -o c.h5

# files that cannot be used
bad() { # STATUS MESSAGE SED: good.json, changed
    sed "$3" good.json >bad.json
    check "$1" "$2" "$WEFT" data import coco photos bad.json -o b.h5 --allow-empty
}
head -c 700 good.json >cut.json
check 65 "cut.json: byte 700" "$WEFT" data import coco photos cut.json -o b.h5
check 66 "nowhere.json" "$WEFT" data import coco photos nowhere.json -o b.h5
bad 65 "bad.json: box 7 of image 30 (plain.png): a number is not finite" 's/1.5, 2, 10/NaN, 2, 10/'
bad 65 "bad.json: box 7 of image 30 (plain.png): it reaches beyond the image by more than a pixel" 's/1.5, 2, 10/12.5, 2, 10/'
bad 65 "bad.json: box 7 of image 30 (plain.png): its width or height is negative" 's/1.5, 2, 10/1.5, 2, -10/'
bad 65 "bad.json: box 8 of image 5: there is no such image" 's/"id": 8, "image_id": 4/"id": 8, "image_id": 5/'
bad 65 "there is no category 1" 's/"id": 8, "image_id": 4, "category_id": 9/"id": 8, "image_id": 4, "category_id": 1/'
bad 65 "two annotations have the id 8" 's/"id": 9, "image_id": 4/"id": 8, "image_id": 4/'
bad 65 "two images have the id 4" 's/"id": 17/"id": 4/'
bad 65 "is not below a folder" 's/plain.png/..\/plain.png/'
bad 65 "lacks id, image_id, category_id or bbox" 's/"id": 12, //'
bad 65 "no list 'categories'" 's/"categories"/"kinds"/'
bad 65 "a bbox has 3 numbers" 's/1.5, 2, 10/1.5, 2/'
bad 66 "photos/gone.png: image 30 of bad.json is missing; correct the path, or leave such images out with --broken skip" 's/plain.png/gone.png/'
bad 65 "image 30: plain.png: its labels are of an image of 22x18 pixels, the file has 21x18" 's/"plain.png", "width": 21/"plain.png", "width": 22/'
bad 65 "its EXIF orientation swaps them: give --orient" \
    's/"plain.jpg", "height": 18, "width": 21/"exif6.jpg", "height": 12, "width": 9/; s/0, 0, 21, 18/0, 0, 9, 12/'
check 0 "wrote o.h5" "$WEFT" data import coco photos bad.json -o o.h5 --allow-empty --orient
check 0 "o.h5: good, 3 samples" "$WEFT" data check o.h5
printf 'no picture\n' >photos/text.png
bad 65 "image 30: photos/text.png: no picture" 's/plain.png/text.png/'
holds "the number of files is said" grep -qF "1 of 3 files cannot be used" both
check 0 "; 2 boxes left out; 1 pictures left out" sh -c \
    "sed 's/plain.png/text.png/; s/\[0, 0, 21, 18\]/[0, 0, 21, 28]/; s/\[1, 1, 3, 3\], \"area\": 9, \"iscrowd\": 0}]/[1, 1, Infinity, 3]}]/' good.json >bad.json
    '$WEFT' data import coco photos bad.json -o b.h5 --allow-empty --broken skip"
holds "which box" grep -qF "leaving out box 3 of image 4 (plain.jpg): it reaches beyond" both
holds "which picture" grep -qF "image 30: photos/text.png: no picture" both
# pictures that do not fit their labels are not called broken
for i in $(seq 12); do
    cp photos/plain.png "photos/unfit$i.png"
    echo "{\"id\": $i, \"file_name\": \"unfit$i.png\", \"width\": 22, \"height\": 18}"
done | paste -sd, | sed 's/.*/{"images": [&], "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3], "area": 9, "iscrowd": 0}], "categories": [{"id": 1, "name": "dog"}]}/' >unfit.json
check 65 "none of 12 files can be used" "$WEFT" data import coco photos unfit.json -o u.h5 --allow-empty --broken skip
holds "how many more" grep -qF "and 2 more pictures cannot be used" both
check 0 "b.h5: good, 2 samples" "$WEFT" data check b.h5

# YOLO's texts: the class of a box is its number; a polygon is its bounding box
mkdir -p yolo/images/a yolo/labels/a
cp photos/plain.png yolo/images/a/1.png
cp photos/plain.jpg yolo/images/2.jpg
cp photos/exif6.jpg yolo/images/3.jpg
printf '1 0.5 0.5 0.5 1\r\n\n0 0.1 0.2 0.3 0.2 0.3 0.6 0.1 0.6\n' >yolo/labels/a/1.txt
printf '' >yolo/labels/2.txt
check 0 "wrote y.h5: 3 pictures, 2 boxes of 2 classes; 1 with an EXIF orientation, not applied (--orient does)" "$WEFT" data import yolo yolo -o y.h5
holds "texts that are missing are counted" grep -qF "1 of 3 pictures have no text there" both
check 0 '"class_names": ["0", "1"]' "$WEFT" data info --json y.h5
holds "boxes in pixels" test "$(dump /boxes y.h5)" = " 5.25, 0, 10.5, 18, 2.1, 3.6, 4.2, 7.2"
printf 'cat\ndog\nyak\n' >names.txt
# names in YOLO's data.yaml: a list, or numbers with names in any order
printf 'path: ../yolo  # a folder\ntrain: images\nval: images\nnc: 2\nnames: [cat, "dog"]\n' >data.yaml
check 0 "2 boxes of 2 classes" "$WEFT" data import yolo yolo -o n.h5 --classes data.yaml
check 0 '"class_names": ["cat", "dog"]' "$WEFT" data info --json n.h5
printf 'names:\n  1: traffic light\n  0: person\ndownload: |\n  names: none\n' >data.yml
check 0 "2 boxes of 2 classes" "$WEFT" data import yolo yolo -o n.h5 --force --classes data.yml
check 0 '"class_names": ["person", "traffic light"]' "$WEFT" data info --json n.h5
yaml() { # MESSAGE TEXT: a data.yaml that cannot be used
    printf "$2" >bad.yaml
    check 65 "bad.yaml:$1" "$WEFT" data import yolo yolo -o q.h5 --classes bad.yaml
}
yaml '1:1: the key `names` is missing' 'train: images\n'
yaml '2:8: expected a list of names' 'nc: 2\nnames: cat\n'
yaml '3:3: the keys of `names` are not the numbers of its classes, from 0' 'names:\n  0: cat\n  2: dog\n'
yaml '3:3: this class has a name already' 'names:\n  0: cat\n  00: dog\n'
yaml "3:3: '0' is given twice, first in line 2" 'names:\n  0: cat\n  0: dog\n'
yaml '3:3: expected the name of a class' 'names:\n- cat\n- ~\n'
yaml '1:5: `nc` is not the number of `names`' 'nc: 3\nnames: [cat, dog]\n'
yaml "2:1: YAML: did not find expected ',' or ']'" 'names: [cat\n'
yaml ' classes 0 and 1 are both named' 'names: [cat, cat]\n'
yaml ' names no classes' 'names: []\n'
check 66 "none.yaml" "$WEFT" data import yolo yolo -o q.h5 --classes none.yaml
check 65 "expected a text with the name of a class in each line, a YAML file" "$WEFT" data import yolo yolo -o q.h5 --classes good.json
check 65 "category 2, 'yak'" "$WEFT" data import yolo yolo/images -o z.h5 --classes names.txt
check 0 "2 boxes of 3 classes" "$WEFT" data import yolo yolo/images yolo/labels -o z.h5 --classes names.txt --allow-empty
check 0 '"class_names": ["cat", "dog", "yak"]' "$WEFT" data info --json z.h5
echo '3 0.5 0.5 0.1 0.1' >>yolo/labels/2.txt
check 65 "labels/2.txt: line 1: the class is not among those of --classes" "$WEFT" data import yolo yolo -o z.h5 --force --classes names.txt
echo '1 0.5 0.5 0.1 0.1 0.9' >yolo/labels/2.txt
check 65 "labels/2.txt: line 1: expected class, x, y, width, height" "$WEFT" data import yolo yolo -o z.h5 --force
echo '1 0.5 0.5 nan 0.1' >yolo/labels/2.txt
check 65 "labels/2.txt: line 1: a number is not between 0 and 1" "$WEFT" data import yolo yolo -o z.h5 --force
check 0 "; 1 boxes left out" "$WEFT" data import yolo yolo -o z.h5 --force --broken skip
check 66 "has no labels" "$WEFT" data import yolo photos/more -o z.h5 --force

# Pascal VOC: corners from 1, both included; parts of an object have boxes that are not read
mkdir -p voc/Annotations voc/JPEGImages
cp photos/plain.jpg voc/JPEGImages/1.jpg
cp photos/plain.png voc/JPEGImages/2.png
cat >voc/Annotations/1.xml <<'END'
<?xml version="1.0"?><!-- a comment -->
<annotation verified="a > b"><filename>1.jpg</filename><size><width>21</width><height>18</height><depth>3</depth></size><segmented/>
<object><name>dog &amp; cat</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>21</xmax><ymax>18</ymax></bndbox>
<part><name>head</name><bndbox><xmin>3</xmin><ymin>3</ymin><xmax>4</xmax><ymax>4</ymax></bndbox></part></object>
</annotation>
END
sed 's/1.jpg/2.png/; s/dog &amp; cat/ape/; s/<difficult>1/<difficult>0/; s/<xmin>1</<xmin>5</' voc/Annotations/1.xml >voc/Annotations/2.xml
sed -i 's/<size>/<size><channels>3<\/channels>/; s/<\/size>/<channels>3<\/channels><\/size>/' voc/Annotations/2.xml
check 0 "wrote v.h5: 2 pictures, 2 boxes of 2 classes; 1 around crowds" "$WEFT" data import voc voc -o v.h5
check 0 '"class_names": ["ape", "dog & cat"]' "$WEFT" data info --json v.h5
holds "boxes from 0" test "$(dump /boxes v.h5)" = " 0, 1, 21, 17, 4, 1, 17, 17"
holds "classes by name" test "$(dump /box_class v.h5)" = " 1, 0"
echo 2 >list.txt
check 0 "wrote w.h5: 1 pictures, 1 boxes of 1 classes" "$WEFT" data import voc voc -o w.h5 --list list.txt
check 65 "class 'dog & cat' is not among those of names.txt" "$WEFT" data import voc voc -o w.h5 --force --classes names.txt
sed -i 's/<\/object>//' voc/Annotations/2.xml
check 65 "voc/Annotations/2.xml: byte" "$WEFT" data import voc voc -o w.h5 --force
check 66 "Annotations: is missing" "$WEFT" data import voc photos -o w.h5 --force

# A set whose pictures are damaged: all are listed.
offset=$("$WEFT" data info a.h5 | sed -n 's/.*\/x_bytes.*at byte \([0-9]*\)/\1/p')
cp a.h5 d.h5
for i in 0 $(dump /x_offset a.h5 | tr -d , | cut -d' ' -f3); do printf 'no' | dd of=d.h5 bs=1 seek=$((offset + i)) conv=notrunc status=none; done
check 65 "sample 0: no picture" "$WEFT" data check d.h5
holds "the other is named, too" grep -qF "d.h5: sample 1: no picture" both

# A set whose labels are damaged: all problems are listed.
offset=$("$WEFT" data info a.h5 | sed -n 's/.*\/boxes.*at byte \([0-9]*\)/\1/p')
cp a.h5 d.h5
for i in 1 2; do printf '\377\377\377\377\377\377\377\377' | dd of=d.h5 bs=1 seek=$((offset + 32 * i)) conv=notrunc status=none; done
check 65 "2 problems of its labels, of which all are listed above" "$WEFT" data check d.h5
holds "each is named" test "$(grep -c 'd.h5: box [12] is not finite' both)" = 2

# Scenes composed of images: the same bytes for any number of threads.
make_images
check 0 "wrote scenes.h5: 20 scenes" "$WEFT" data make scenes images.h5 -o scenes.h5 --samples 20 --side 64 --threads 1
check 0 "wrote scenes2.h5: 20 scenes" "$WEFT" data make scenes images.h5 -o scenes2.h5 --samples 20 --side 64 --threads 2
holds "one thread and two write the same bytes" cmp scenes.h5 scenes2.h5
check 0 "scenes.h5: good, 20 samples" "$WEFT" data check scenes.h5
check 64 "already there" "$WEFT" data make scenes images.h5 -o scenes.h5
check 65 "v.h5: is no set of images; scenes are made from squares of grey bytes" "$WEFT" data make scenes v.h5 -o no.h5
check 66 "none.h5" "$WEFT" data make scenes none.h5 -o no.h5
holds "no file stays" test ! -e no.h5 -a ! -e no.h5.part
finish
