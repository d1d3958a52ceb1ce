/* Reads labels as YOLO's programs write them. Next to a folder of pictures there is a folder of
 * text files, each with a line for each box of a picture: class, x and y of the centre, width and
 * height, as fractions of the picture's sides. A line with a class and three or more points is a
 * polygon, whose bounding box is stored. A picture whose text file is missing or empty has no
 * boxes. */
#include "box_set.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LABEL_BYTES_MAX = 1 << 26, CLASS_MAX = DATA_LABELS - 1, VALUES_MAX = 1 << 16 };

typedef struct Yolo {
    BoxSet *set;
    /* owned: folder of the texts */
    char *labels;
    /* number of pictures without a text file */
    int64_t missing;
    /* largest class so far; -1: none */
    int64_t largest;
    /* owned: values of a line */
    double *value;
} Yolo;

/* Finds the folders of the pictures and of the texts. If import->labels is given, they are
 * import->images and import->labels. Otherwise, if there is a folder IMAGES/images, where IMAGES is
 * import->images, they are IMAGES/images and IMAGES/labels. Otherwise the pictures are in IMAGES,
 * and the texts in the folder whose path is IMAGES with its last part `images` replaced by
 * `labels`; if no part is `images`, the texts are in IMAGES, too. */
static void find_folders(Yolo *y)
{
    const char *images = y->set->import->images, *last = NULL;
    char *inside = mem_format("%s/images", images);
    if (y->set->import->labels) {
        y->set->root = mem_text(images);
        y->labels = mem_text(y->set->import->labels);
    } else if (access(inside, F_OK) == 0) {
        y->set->root = mem_text(inside);
        y->labels = mem_format("%s/labels", images);
    } else {
        for (const char *at = images; (at = strstr(at, "images")); ++at)
            if ((at == images || at[-1] == '/') && (at[6] == '/' || at[6] == 0)) last = at;
        y->set->root = mem_text(images);
        y->labels = last ? mem_format("%.*slabels%s", (int)(last - images), images, last + 6)
                         : mem_text(images);
    }
    mem_free(&inside);
}

/* Reads the numbers of a line. Returns the number of numbers; -1: the line has anything else, or
 * more than VALUES_MAX numbers. */
static int read_values(const char *at, double *value)
{
    int count = 0;
    for (;; ++count) {
        char *end;
        while (isspace((unsigned char)*at)) ++at;
        if (!*at) return count;
        size_t length = strcspn(at, " \t\r\v\f");
        if (count == VALUES_MAX || strspn(at, "0123456789+-.eEnaifNAIF") < length) return -1;
        value[count] = strtod(at, &end);
        if (end != at + length) return -1;
        at = end;
    }
}

/* Sets box to the bounding box of a polygon (x and y of the centre, width, height). point: x and y
 * of each point. */
static void bound(double box[4], const double *point, int points)
{
    double low[2] = {point[0], point[1]}, high[2] = {point[0], point[1]};
    for (int i = 1; i < points; ++i)
        for (int k = 0; k < 2; ++k) {
            low[k] = fmin(low[k], point[2 * i + k]);
            high[k] = fmax(high[k], point[2 * i + k]);
        }
    for (int k = 0; k < 2; ++k) {
        box[k] = (low[k] + high[k]) / 2;
        box[2 + k] = high[k] - low[k];
    }
}

static Status read_line(Yolo *y, int64_t picture, const char *text, const char *path, int64_t line)
{
    BoxSet *set = y->set;
    const double *v = y->value;
    int count = read_values(text, y->value);
    if (count == 0) return OK;
    bool polygon = count > 6 && count % 2 == 1;
    if (count != 5 && !polygon)
        return box_set_refuse_line(set, path, line,
                                   "expected class, x, y, width, height, or class and points");
    if (!(v[0] >= 0 && v[0] <= CLASS_MAX && v[0] == floor(v[0])))
        return box_set_refuse_line(set, path, line, "the class is not a whole number from 0");
    if (set->import->classes && v[0] >= (double)set->categories)
        return box_set_refuse_line(set, path, line, "the class is not among those of --classes");
    for (int i = 1; i < count; ++i)
        if (!(v[i] >= 0 && v[i] <= 1))
            return box_set_refuse_line(set, path, line, "a number is not between 0 and 1");
    BoxLabel label = {.area = -1,
                      .id = set->labels + 1,
                      .picture_id = set->picture[picture].id,
                      .category_id = (int64_t)v[0]};
    if (polygon)
        bound(label.box, v + 1, count / 2);
    else
        memcpy(label.box, v + 1, sizeof label.box);
    if (label.category_id > y->largest) y->largest = label.category_id;
    box_set_add_label(set, label);
    return OK;
}

/* Reads the text file of a picture. */
static Status read_text(Yolo *y, int64_t picture)
{
    const char *path = box_set_path(y->set, picture), *dot = strrchr(path, '.');
    char *name = mem_format("%s/%.*s.txt", y->labels, (int)(dot - path), path), *text;
    size_t bytes;
    Status st = OK;
    if (access(name, F_OK) != 0 && errno == ENOENT) {
        ++y->missing;
    } else if ((st = file_text(name, LABEL_BYTES_MAX, &text, &bytes)) == OK) {
        char *rest = text;
        int64_t number = 0;
        for (char *line; st == OK && (line = strsep(&rest, "\n"));)
            st = read_line(y, picture, line, name, ++number);
        mem_free(&text);
    }
    mem_free(&name);
    return st;
}

/* Adds classes 0 to y->largest, whose names are their numbers; used without --classes. */
static void add_numbers(Yolo *y)
{
    for (int64_t c = 0; c <= y->largest; ++c) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)c);
        box_set_add_category(y->set, c, number);
    }
}

static Status read_yolo(BoxSet *set)
{
    Yolo y = {.set = set, .largest = -1, .value = mem_new(VALUES_MAX * sizeof *y.value)};
    set->relative = true;
    find_folders(&y);
    Status st = box_set_add_folder(set, set->root);
    if (st == OK && set->import->classes) st = box_set_read_classes(set, 0);
    for (int64_t i = 0; st == OK && i < set->pictures; ++i) st = read_text(&y, i);
    if (st == OK && set->pictures && y.missing == set->pictures)
        st = fail(ERR_NOINPUT, "%s: has no labels: no picture of %s has a text there", y.labels,
                  set->root);
    if (st == OK && y.missing)
        log_info("%s: %lld of %lld pictures have no text there, and so no boxes", y.labels,
                 (long long)y.missing, (long long)set->pictures);
    if (st == OK && !set->import->classes) add_numbers(&y);
    mem_free(&y.value);
    mem_free(&y.labels);
    return st;
}

/* listed in BOX_FORMATS (data/import.h) */
const BoxFormat box_format_yolo = {.read = read_yolo};
