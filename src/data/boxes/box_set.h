/* Pictures with labelled boxes while they are imported or made: the list that the reader of a
 * format (coco_read.c, yolo_read.c, voc_read.c) or a maker of pictures (make_scenes.c,
 * random_boxes.c) fills, and its checks (box_set.c). */
#ifndef WEFT_DATA_BOX_SET_H
#define WEFT_DATA_BOX_SET_H

#include "../data_private.h"
#include "../folder/folder.h"

/* a picture */
typedef struct BoxPicture {
    int64_t id;
    /* offset of its path in BoxSet.text */
    size_t path;
    /* size in pixels, in which the boxes are given; 0: not known yet */
    int32_t height, width;
    /* true: box_set_check_labels has checked the labels of this picture */
    bool checked;
} BoxPicture;

/* a labelled box */
typedef struct BoxLabel {
    /* x, y, width, height in pixels. With BoxSet.relative, until the picture's size is known: x and
     * y of the centre, width, height, as fractions (0 to 1) of the picture's sides. */
    double box[4];
    /* area in pixels, for COCO's evaluation; negative: not given, and replaced by the area of the
     * box when the labels are checked */
    double area;
    int64_t id, picture_id, category_id;
    /* indices of picture and class, set by box_set_order */
    int64_t picture;
    int32_t class;
    /* crowd: the box is around a group. left_out: the label is not stored. */
    bool crowd, left_out;
} BoxLabel;

/* a class */
typedef struct BoxCategory {
    int64_t id;
    /* owned */
    char *name;
} BoxCategory;

typedef struct BoxSet BoxSet;
struct BoxSet {
    /* the import, borrowed; file or folder of the labels, else of the pictures, for messages,
     * borrowed */
    const BoxImport *import;
    const char *source;
    /* true: boxes are added as fractions of the picture's sides (BoxLabel.box) */
    bool relative;
    /* owned: folder of the pictures; NULL: import->images */
    char *root;
    /* owned */
    BoxPicture *picture;
    BoxLabel *label;
    BoxCategory *category;
    /* numbers of pictures, labels and classes, and numbers for which memory is allocated */
    int64_t pictures, labels, categories, picture_room, label_room, category_room;
    /* owned: paths, each with a zero byte */
    char *text;
    size_t text_bytes, text_room;
    /* owned, set by box_set_order: index of the first label of each picture, and the end of the
     * last picture's labels: pictures + 1 entries */
    int64_t *first;
    /* number of labels and lines that were refused, without labels of pictures that are left out;
     * among the stored labels, number of boxes around crowds, of boxes without area, and of boxes
     * that equal an earlier box of their picture */
    int64_t left_out, crowds, without_area, duplicates;
};
void box_set_fini(BoxSet *set);
/* Append a picture, whose path is relative to the folder of the pictures; a label; a class. */
void box_set_add_picture(BoxSet *set, BoxPicture picture, const char *path);
void box_set_add_label(BoxSet *set, BoxLabel label);
void box_set_add_category(BoxSet *set, int64_t id, const char *name);
static inline const char *box_set_path(const BoxSet *set, int64_t picture)
{
    return set->text + set->picture[picture].path;
}
/* Sorts pictures and classes by id, and groups labels by picture; labels of a picture keep their
 * order. Removes labels that name a picture or class that does not exist if import->skip_broken is
 * set; otherwise they are ERR_DATA, and so are ids that occur twice. */
Status box_set_order(BoxSet *set);
/* Checks the labels of each picture whose size is known and that has not been checked before, and
 * makes its relative boxes absolute; their reader has checked them. Labels that cannot be used are
 * left out with a warning if import->skip_broken is set; otherwise ERR_DATA names the first of
 * them. */
Status box_set_check_labels(BoxSet *set);
/* ERR_DATA: there is no box; or a class has no box, and empty classes are not allowed. */
Status box_set_check_classes(const BoxSet *set);
/* Leaves out the labels of pictures that are left out, checks the classes again, and counts crowds,
 * boxes without area and duplicates. left_out[i] is not 0 if picture i is left out. */
Status box_set_close(BoxSet *set, const uint8_t *left_out);
/* Writes the arrays of box_array_info. left_out: as in box_set_close. Returns false if this
 * fails. */
bool box_set_put(const BoxSet *set, hid_t file, const uint8_t *left_out);
/* Does the same for a set that weft makes: all pictures are kept, and are squares of import->side.
 * Also writes attributes and classes, and lays out the pixels, (N,channels,side,side). *x_offset:
 * their offset in the file. */
bool box_set_put_squares(const BoxSet *set, hid_t file, int64_t channels, int64_t *x_offset);

/* Adds the pictures below dir, in the order of folder_scan_flat, with ids from 1. Files whose names
 * do not end in .jpg, .jpeg, .png or .webp are skipped. */
Status box_set_add_folder(BoxSet *set, const char *dir);
/* Reads the classes from import->classes, with ids from `first` on. */
Status box_set_read_classes(BoxSet *set, int64_t first);
/* Leaves a line of labels out, with a warning, if import->skip_broken is set; otherwise fails. */
Status box_set_refuse_line(BoxSet *set, const char *path, int64_t line, const char *why);

#endif
