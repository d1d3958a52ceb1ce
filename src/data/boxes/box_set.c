/* Lists the pictures, labels and classes of an import, brings them into the order in which they are
 * stored, and checks the labels. A label that cannot be used is an error that names the label. With
 * --broken skip the label is left out instead, and the log names the first LISTED_MAX of them. */
#include "box_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* pixels by which a box may reach beyond its picture, since tools round */
static const double SLACK = 1;
/* largest number of labels and lines left out that the log names one by one */
enum { LISTED_MAX = 10 };

static void *grow(void *array, int64_t count, int64_t *room, size_t each)
{
    if (count < *room) return array;
    *room = *room ? 2 * *room : 256;
    return mem_resize(array, (size_t)*room * each);
}

void box_set_add_picture(BoxSet *set, BoxPicture picture, const char *path)
{
    size_t bytes = strlen(path) + 1;
    set->picture = grow(set->picture, set->pictures, &set->picture_room, sizeof *set->picture);
    while (set->text_bytes + bytes > set->text_room) {
        set->text_room = set->text_room ? 2 * set->text_room : 1 << 16;
        set->text = mem_resize(set->text, set->text_room);
    }
    picture.path = set->text_bytes;
    memcpy(set->text + set->text_bytes, path, bytes);
    set->text_bytes += bytes;
    set->picture[set->pictures++] = picture;
}

void box_set_add_label(BoxSet *set, BoxLabel label)
{
    set->label = grow(set->label, set->labels, &set->label_room, sizeof *set->label);
    set->label[set->labels++] = label;
}

void box_set_add_category(BoxSet *set, int64_t id, const char *name)
{
    set->category =
        grow(set->category, set->categories, &set->category_room, sizeof *set->category);
    set->category[set->categories++] = (BoxCategory){id, mem_text(name)};
}

void box_set_fini(BoxSet *set)
{
    for (int64_t c = 0; c < set->categories; ++c) mem_free(&set->category[c].name);
    mem_free(&set->category);
    mem_free(&set->picture);
    mem_free(&set->label);
    mem_free(&set->text);
    mem_free(&set->root);
    mem_free(&set->first);
}

Status box_set_add_folder(BoxSet *set, const char *dir)
{
    static const char *const suffix[] = {".jpg", ".jpeg", ".png", ".webp"};
    FolderFiles files = {0};
    int64_t skipped = 0;
    Status st = folder_scan_flat(&files, dir);
    for (int64_t i = 0; st == OK && i < files.count; ++i) {
        const char *path = files_path(&files, i) + strlen(dir) + 1, *dot = strrchr(path, '.');
        int k = 0;
        while (dot && k < 4 && strcasecmp(dot, suffix[k]) != 0) ++k;
        if (dot && k < 4)
            box_set_add_picture(set, (BoxPicture){.id = set->pictures + 1}, path);
        else
            ++skipped;
    }
    if (st == OK && skipped)
        log_info("%s: skipping %lld files that are not .jpg, .jpeg, .png or .webp", dir,
                 (long long)skipped);
    files_fini(&files);
    return st;
}

Status box_set_read_classes(BoxSet *set, int64_t first)
{
    const char *path = set->import->classes, *dot = strrchr(path, '.');
    ClassNames names;
    if (dot && strcmp(dot, ".json") == 0)
        return fail(ERR_DATA,
                    "%s: expected a text with the name of a class in each line, a YAML file with "
                    "`names`, or a data set; convert this file to one of them",
                    path);
    TRY(folder_read_classes(&names, path));
    for (int64_t i = 0; i < names.count; ++i) box_set_add_category(set, first + i, names.name[i]);
    class_names_free(&names);
    return OK;
}

/* Refuses a label: leaves it out with a warning if import->skip_broken is true, else fails with
 * ERR_DATA. why: what is wrong with the label. */
static Status refuse(BoxSet *set, BoxLabel *l, const char *why)
{
    const char *path = "", *open = "", *close = "";
    if (l->picture >= 0 && l->picture < set->pictures && set->first)
        path = box_set_path(set, l->picture), open = " (", close = ")";
    if (!set->import->skip_broken)
        return fail(ERR_DATA,
                    "%s: box %lld of image %lld%s%s%s: %s; correct it, or leave such boxes out "
                    "with --broken skip",
                    set->source, (long long)l->id, (long long)l->picture_id, open, path, close,
                    why);
    l->left_out = true;
    if (set->left_out++ < LISTED_MAX)
        log_warn("%s: leaving out box %lld of image %lld%s%s%s: %s", set->source, (long long)l->id,
                 (long long)l->picture_id, open, path, close, why);
    return OK;
}

Status box_set_refuse_line(BoxSet *set, const char *path, int64_t line, const char *why)
{
    if (!set->import->skip_broken)
        return fail(ERR_DATA,
                    "%s: line %lld: %s; correct it, or leave such boxes out with --broken skip",
                    path, (long long)line, why);
    if (set->left_out++ < LISTED_MAX)
        log_warn("%s: leaving out line %lld: %s", path, (long long)line, why);
    return OK;
}

/* ---- order ---- */

static int by_picture_id(const void *left, const void *right)
{
    const BoxPicture *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_category_id(const void *left, const void *right)
{
    const BoxCategory *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_number(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static Status twice_fail(const BoxSet *set, const char *what, int64_t id)
{
    return fail(ERR_DATA, "%s: two %s have the id %lld; number them anew", set->source, what,
                (long long)id);
}

/* Sorts pictures and classes by id. */
static Status sort_by_id(BoxSet *set)
{
    if (set->pictures)
        qsort(set->picture, (size_t)set->pictures, sizeof *set->picture, by_picture_id);
    if (set->categories)
        qsort(set->category, (size_t)set->categories, sizeof *set->category, by_category_id);
    for (int64_t i = 1; i < set->pictures; ++i)
        if (set->picture[i].id == set->picture[i - 1].id)
            return twice_fail(set, "images", set->picture[i].id);
    for (int64_t i = 1; i < set->categories; ++i)
        if (set->category[i].id == set->category[i - 1].id)
            return twice_fail(set, "categories", set->category[i].id);
    return OK;
}

static Status check_label_ids(const BoxSet *set)
{
    int64_t *id = mem_new((size_t)(set->labels + 1) * sizeof *id);
    Status st = OK;
    for (int64_t i = 0; i < set->labels; ++i) id[i] = set->label[i].id;
    if (set->labels) qsort(id, (size_t)set->labels, sizeof *id, by_number);
    for (int64_t i = 1; st == OK && i < set->labels; ++i)
        if (id[i] == id[i - 1]) st = twice_fail(set, "annotations", id[i]);
    if (st == OK && set->labels && id[0] == 0)
        log_warn(
            "%s: annotation 0: COCO's evaluation takes a detection that matches it for a false "
            "one; number annotations from 1",
            set->source);
    mem_free(&id);
    return st;
}

/* Finds the picture and the class of each label. Refuses labels that have none. */
static Status find_ids(BoxSet *set)
{
    for (int64_t i = 0; i < set->labels; ++i) {
        BoxLabel *l = &set->label[i];
        const BoxPicture picture = {.id = l->picture_id};
        const BoxCategory category = {.id = l->category_id};
        const BoxPicture *p = set->pictures == 0
                                  ? NULL
                                  : bsearch(&picture, set->picture, (size_t)set->pictures,
                                            sizeof picture, by_picture_id);
        const BoxCategory *c = set->categories == 0
                                   ? NULL
                                   : bsearch(&category, set->category, (size_t)set->categories,
                                             sizeof category, by_category_id);
        char why[80];
        l->picture = p ? p - set->picture : -1;
        l->class = c ? (int32_t)(c - set->category) : -1;
        snprintf(why, sizeof why, "there is no category %lld", (long long)l->category_id);
        if (!p)
            TRY(refuse(set, l, "there is no such image"));
        else if (!c)
            TRY(refuse(set, l, why));
    }
    return OK;
}

Status box_set_order(BoxSet *set)
{
    TRY(sort_by_id(set));
    TRY(check_label_ids(set));
    TRY(find_ids(set));
    int64_t *first = mem_new((size_t)(set->pictures + 1) * sizeof *first);
    int64_t *next = mem_new((size_t)(set->pictures + 1) * sizeof *next);
    BoxLabel *sorted = mem_new((size_t)(set->labels + 1) * sizeof *sorted);
    for (int64_t i = 0; i < set->labels; ++i)
        if (!set->label[i].left_out) ++first[set->label[i].picture + 1];
    for (int64_t i = 0; i < set->pictures; ++i) first[i + 1] += first[i];
    memcpy(next, first, (size_t)(set->pictures + 1) * sizeof *next);
    for (int64_t i = 0; i < set->labels; ++i)
        if (!set->label[i].left_out) sorted[next[set->label[i].picture]++] = set->label[i];
    mem_free(&set->label);
    mem_free(&next);
    set->label = sorted;
    set->labels = first[set->pictures];
    set->first = first;
    return OK;
}

/* ---- labels ---- */

/* Makes a relative box absolute. */
static void make_absolute(BoxLabel *l, const BoxPicture *p)
{
    double *b = l->box, width = p->width, height = p->height;
    b[0] = (b[0] - b[2] / 2) * width;
    b[1] = (b[1] - b[3] / 2) * height;
    b[2] *= width;
    b[3] *= height;
}

/* Returns what is wrong with an absolute box; NULL: the box is good. */
static const char *check_absolute(const BoxLabel *l, const BoxPicture *p)
{
    const double *b = l->box;
    for (int i = 0; i < 4; ++i)
        if (!isfinite(b[i])) return "a number is not finite";
    if (b[2] < 0 || b[3] < 0) return "its width or height is negative";
    if (b[0] < -SLACK || b[1] < -SLACK || b[0] + b[2] > p->width + SLACK ||
        b[1] + b[3] > p->height + SLACK)
        return "it reaches beyond the image by more than a pixel";
    return NULL;
}

Status box_set_check_labels(BoxSet *set)
{
    for (int64_t i = 0; i < set->pictures; ++i) {
        BoxPicture *p = &set->picture[i];
        if (p->checked || p->width == 0) continue;
        p->checked = true;
        for (int64_t k = set->first[i]; k < set->first[i + 1]; ++k) {
            BoxLabel *l = &set->label[k];
            if (set->relative) make_absolute(l, p);
            const char *why = set->relative ? NULL : check_absolute(l, p);
            if (!why && !isfinite(l->area)) why = "its area is negative or not finite";
            if (why) TRY(refuse(set, l, why));
            if (l->area < 0) l->area = l->box[2] * l->box[3];
        }
    }
    return OK;
}

/* ---- the end ---- */

/* Counts a picture's boxes that are around groups, have no area, or equal an earlier box. */
static void count_traits(BoxSet *set, int64_t picture)
{
    for (int64_t k = set->first[picture]; k < set->first[picture + 1]; ++k) {
        const BoxLabel *l = &set->label[k];
        if (l->left_out) continue;
        set->crowds += l->crowd;
        set->without_area += l->box[2] == 0 || l->box[3] == 0;
        bool twice = false;
        for (int64_t m = set->first[picture]; m < k && !twice; ++m) {
            const BoxLabel *earlier = &set->label[m];
            twice = !earlier->left_out && earlier->class == l->class &&
                    memcmp(earlier->box, l->box, sizeof l->box) == 0;
        }
        set->duplicates += twice;
    }
}

Status box_set_check_classes(const BoxSet *set)
{
    int64_t *count = mem_new((size_t)(set->categories + 1) * sizeof *count), kept = 0, empty = -1;
    int64_t empties = 0;
    for (int64_t k = 0; k < set->labels; ++k)
        if (!set->label[k].left_out) ++count[set->label[k].class], ++kept;
    for (int64_t c = set->categories - 1; c >= 0; --c)
        if (count[c] == 0) empty = c, ++empties;
    mem_free(&count);
    if (kept == 0) return fail(ERR_DATA, "%s: there is no box", set->source);
    if (empties == 0 || set->import->allow_empty) return OK;
    return fail(ERR_DATA,
                "%s: no image has a box of category %lld, '%s'%s: remove the category, or give "
                "--allow-empty",
                set->source, (long long)set->category[empty].id, set->category[empty].name,
                empties > 1 ? ", nor of others" : "");
}

Status box_set_close(BoxSet *set, const uint8_t *left_out)
{
    for (int64_t i = 0; i < set->pictures; ++i) {
        for (int64_t k = set->first[i]; k < set->first[i + 1]; ++k)
            set->label[k].left_out |= left_out[i] != 0;
        count_traits(set, i);
    }
    if (set->left_out > LISTED_MAX)
        log_warn("and %lld more boxes are left out", (long long)(set->left_out - LISTED_MAX));
    return box_set_check_classes(set);
}
