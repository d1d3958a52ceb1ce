/* Declares the list of pictures with labelled boxes that are imported or made. The reader of a
 * format (coco_read.c, yolo_read.c, voc_read.c) or a maker of pictures (make_scenes.c,
 * random_boxes.c) fills it; box_set.c orders and checks it, and box_put.c writes it. */
#ifndef WEFT_DATA_BOX_SET_H
#define WEFT_DATA_BOX_SET_H

#include "../data_private.h"
#include "../folder/folder.h"

typedef struct BoxPicture {
    int64_t id;
    /* offset of its path in BoxSet.text */
    size_t path;
    /* size in pixels of the picture to which the labels belong; 0: not known yet */
    int32_t height, width;
    /* true: box_set_check_labels has checked the labels of this picture */
    bool checked;
} BoxPicture;

typedef struct BoxLabel {
    /* x, y, width, height in pixels. If BoxSet.relative is true, box_set_check_labels sets these
     * values; before, box has x and y of the centre, width and height, as fractions (0 to 1) of the
     * picture's sides. */
    double box[4];
    /* area in pixels, for COCO's evaluation; negative: not given, box_set_check_labels sets it to
     * the area of the box */
    double area;
    int64_t id, picture_id, category_id;
    /* index of its picture, set by box_set_order */
    int64_t picture;
    /* index of its class, set by box_set_order */
    int32_t class;
    /* true: the box is around a group of objects, or its object is marked as difficult (VOC) */
    bool crowd;
    /* true: the label is not stored */
    bool left_out;
} BoxLabel;

/* a class */
typedef struct BoxCategory {
    int64_t id;
    /* owned */
    char *name;
} BoxCategory;

typedef struct BoxSet BoxSet;
struct BoxSet {
    /* borrowed */
    const BoxImport *import;
    /* name for messages, borrowed: path of the labels or, if it is not given, of the pictures; of a
     * set that weft makes, path of the set */
    const char *source;
    /* true: boxes are added as fractions of the picture's sides (BoxLabel.box) */
    bool relative;
    /* owned: folder of the pictures; NULL: it is import->images */
    char *root;
    /* owned, [pictures] */
    BoxPicture *picture;
    /* owned, [labels] */
    BoxLabel *label;
    /* owned, [categories]: the classes */
    BoxCategory *category;
    /* number of pictures, of labels and of classes */
    int64_t pictures, labels, categories;
    /* capacity of `picture`, of `label` and of `category` */
    int64_t picture_room, label_room, category_room;
    /* owned: paths of the pictures, each with a final zero byte */
    char *text;
    /* bytes used in `text` */
    size_t text_bytes;
    /* capacity of `text` */
    size_t text_room;
    /* owned, set by box_set_order: index of the first label of each picture, and the end of the
     * last picture's labels: pictures + 1 entries */
    int64_t *first;
    /* number of labels and of lines that were refused; labels of pictures that are left out do not
     * count */
    int64_t left_out;
    /* number of stored boxes with BoxLabel.crowd */
    int64_t crowds;
    /* number of stored boxes without area */
    int64_t without_area;
    /* number of stored boxes that equal an earlier box of their picture */
    int64_t duplicates;
};
void box_set_fini(BoxSet *set);
/* Appends a picture. path: relative to the folder of the pictures. */
void box_set_add_picture(BoxSet *set, BoxPicture picture, const char *path);
void box_set_add_label(BoxSet *set, BoxLabel label);
/* Appends a class. */
void box_set_add_category(BoxSet *set, int64_t id, const char *name);
/* Returns the path of a picture, relative to the folder of the pictures. */
static inline const char *box_set_path(const BoxSet *set, int64_t picture)
{
    return set->text + set->picture[picture].path;
}
/* Sorts pictures and classes by id, and groups labels by picture; the labels of a picture keep
 * their order. A label of a picture or class that does not exist is removed if import->skip_broken
 * is true, else it is ERR_DATA. It is also ERR_DATA if two pictures, two classes or two labels have
 * the same id. */
Status box_set_order(BoxSet *set);
/* Checks the labels of each picture whose size is known and whose labels have not been checked.
 * Makes relative boxes absolute; the reader of the format has checked their numbers. A label that
 * cannot be used is left out with a warning if import->skip_broken is true, else it is ERR_DATA. */
Status box_set_check_labels(BoxSet *set);
/* Checks the classes. ERR_DATA: there is no box; or a class has no box, and import->allow_empty is
 * false. */
Status box_set_check_classes(const BoxSet *set);
/* Leaves out the labels of pictures that are left out, checks the classes again, and counts boxes
 * around groups, boxes without area and duplicates. left_out[i] is not 0 if picture i is left
 * out. */
Status box_set_close(BoxSet *set, const uint8_t *left_out);
/* Returns the bytes of the arrays that box_set_put writes if nothing is left out, without the gaps
 * between them. */
int64_t box_set_bytes(const BoxSet *set);
/* Writes the arrays of box_array_info. left_out: as in box_set_close. Returns false if this
 * fails. */
bool box_set_put(const BoxSet *set, hid_t file, const uint8_t *left_out);
/* Writes the arrays of a set that weft makes, whose pictures are all kept and are squares of
 * import->side pixels. Also writes attributes and classes, and lays out the array of pixels,
 * (N,channels,side,side); *x_offset: its offset in the file. Returns false if this fails. */
bool box_set_put_squares(const BoxSet *set, hid_t file, int64_t channels, int64_t *x_offset);

/* Adds the pictures below folder `dir`, in the order of folder_scan_flat, with ids from 1. Files
 * whose names do not end in .jpg, .jpeg, .png or .webp are skipped. */
Status box_set_add_folder(BoxSet *set, const char *dir);
/* Reads the classes from import->classes, with ids from `first` on. */
Status box_set_read_classes(BoxSet *set, int64_t first);
/* Refuses a line of labels: leaves it out with a warning if import->skip_broken is true, else fails
 * with ERR_DATA. why: what is wrong with the line. */
Status box_set_refuse_line(BoxSet *set, const char *path, int64_t line, const char *why);

#endif
