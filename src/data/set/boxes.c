/* Handles the labels of a set of boxes. Has the table of the arrays in which a file stores them;
 * importers write these arrays, and facts.c finds them. Reads the complete arrays into memory,
 * checks them, and counts the labels. */
#include "../data_private.h"

#include <math.h>
#include <string.h>

/* largest number of problems that `weft data check` lists */
enum { LISTED_MAX = 100 };

/* the row of each BoxArray (data/boxes.h) */
const BoxArrayInfo box_array_info[BOX_ARRAYS] = {
    [BOX_ARRAY_SIZE] = {"/size", ELEM_I32, 2, BOX_PER_SAMPLE, false},
    [BOX_ARRAY_FIT] = {"/fit", ELEM_F64, 3, BOX_PER_SAMPLE, true},
    [BOX_ARRAY_BOXES] = {"/boxes", ELEM_F64, 4, BOX_PER_BOX, false},
    [BOX_ARRAY_CLASS] = {"/box_class", ELEM_I32, 1, BOX_PER_BOX, false},
    [BOX_ARRAY_START] = {"/box_start", ELEM_I64, 1, BOX_PER_END, false},
    [BOX_ARRAY_AREA] = {"/box_area", ELEM_F64, 1, BOX_PER_BOX, false},
    [BOX_ARRAY_CROWD] = {"/box_crowd", ELEM_U8, 1, BOX_PER_BOX, false},
    [BOX_ARRAY_ID] = {"/box_id", ELEM_I64, 1, BOX_PER_BOX, false},
    [BOX_ARRAY_IMAGE_ID] = {"/image_id", ELEM_I64, 1, BOX_PER_SAMPLE, false},
    [BOX_ARRAY_CATEGORY_ID] = {"/category_id", ELEM_I64, 1, BOX_PER_CLASS, false},
};

const char *box_arrays_find_bad(const DataArray box[BOX_ARRAYS], int64_t samples, bool encoded)
{
    const int64_t rows[] = {[BOX_PER_SAMPLE] = samples,
                            [BOX_PER_END] = samples + 1,
                            [BOX_PER_BOX] = box[BOX_ARRAY_BOXES].dim[0],
                            [BOX_PER_CLASS] = box[BOX_ARRAY_CATEGORY_ID].dim[0]};
    for (int i = 0; i < BOX_ARRAYS; ++i) {
        const BoxArrayInfo *info = &box_array_info[i];
        const DataArray *a = &box[i];
        if (info->decoded_only && encoded) {
            if (a->ndim != 0) return info->name;
            continue;
        }
        if (a->ndim != (info->columns > 1 ? 2 : 1) || a->type != info->type || a->offset < 0 ||
            a->dim[0] != rows[info->rows] || a->dim[1] != info->columns)
            return info->name;
    }
    return NULL;
}

/* ---- reading ---- */

static Status read_array(const DataSet *set, BoxArray which, void **to)
{
    const DataArray *a = &set->box[which];
    Reader *reader;
    *to = NULL;
    if (a->ndim == 0) return OK;
    TRY(reader_new_array(&reader, set, a));
    *to = mem_new((size_t)a->dim[0] * (size_t)a->sample_bytes);
    Status st = reader_get_rows(reader, 0, a->dim[0], *to);
    reader_free(&reader);
    return st;
}

static Status read_arrays(DataBoxes *b, const DataSet *set)
{
    void **const to[BOX_ARRAYS] = {[BOX_ARRAY_SIZE] = (void **)&b->size,
                                   [BOX_ARRAY_FIT] = (void **)&b->fit,
                                   [BOX_ARRAY_BOXES] = (void **)&b->box,
                                   [BOX_ARRAY_CLASS] = (void **)&b->class,
                                   [BOX_ARRAY_START] = (void **)&b->start,
                                   [BOX_ARRAY_AREA] = (void **)&b->area,
                                   [BOX_ARRAY_CROWD] = (void **)&b->crowd,
                                   [BOX_ARRAY_ID] = (void **)&b->id,
                                   [BOX_ARRAY_IMAGE_ID] = (void **)&b->image_id,
                                   [BOX_ARRAY_CATEGORY_ID] = (void **)&b->category_id};
    Status st = OK;
    *b = (DataBoxes){.pictures = set->samples,
                     .boxes = set->box[BOX_ARRAY_BOXES].dim[0],
                     .classes = (int)set->box[BOX_ARRAY_CATEGORY_ID].dim[0]};
    for (int i = 0; st == OK && i < BOX_ARRAYS; ++i) st = read_array(set, (BoxArray)i, to[i]);
    return st;
}

size_t data_boxes_bytes(const DataSet *set)
{
    size_t bytes = 0;
    for (int i = 0; i < BOX_ARRAYS; ++i)
        if (set->box[i].ndim > 0)
            bytes += (size_t)set->box[i].dim[0] * (size_t)set->box[i].sample_bytes;
    return bytes;
}

void data_boxes_free(DataBoxes *b)
{
    mem_free(&b->size);
    mem_free(&b->fit);
    mem_free(&b->box);
    mem_free(&b->class);
    mem_free(&b->start);
    mem_free(&b->area);
    mem_free(&b->crowd);
    mem_free(&b->id);
    mem_free(&b->image_id);
    mem_free(&b->category_id);
}

void data_boxes_map_classes(DataBoxes *b, const DataSet *set)
{
    for (int64_t k = 0; k < b->boxes; ++k) b->class[k] = (int32_t)label_class(set, b->class[k]);
}

/* ---- checks ---- */

/* Problems of a set's labels. */
typedef struct Problems {
    /* path of the set; borrowed */
    const char *path;
    /* true: problems are counted, and the first LISTED_MAX are logged; false: the first problem is
     * an error */
    bool lists_problems;
    /* number of problems so far */
    int64_t count;
} Problems;

/* Reports a problem of a picture, box or class: `what` names this kind of thing, `number` is its
 * index, `why` says what is wrong. */
static Status problem(Problems *p, const char *what, int64_t number, const char *why)
{
    if (!p->lists_problems)
        return fail(ERR_DATA, "%s: %s %lld %s; import it again", p->path, what, (long long)number,
                    why);
    if (p->count++ < LISTED_MAX) log_warn("%s: %s %lld %s", p->path, what, (long long)number, why);
    return OK;
}

/* Returns whether /box_start rises from 0 to the number of boxes. If it does not, no box can be
 * checked. */
static bool start_rises(const DataBoxes *b)
{
    bool good = b->start[0] == 0 && b->start[b->pictures] == b->boxes;
    for (int64_t i = 0; good && i < b->pictures; ++i) good = b->start[i] <= b->start[i + 1];
    return good;
}

/* Returns a text that says what is wrong with box k; NULL: the box is good. size: height and width
 * of its picture. */
static const char *check_box(const DataBoxes *b, int64_t k, const int32_t size[2])
{
    const double *box = b->box + 4 * k;
    for (int i = 0; i < 4; ++i)
        if (!isfinite(box[i])) return "is not finite";
    if (box[2] < 0 || box[3] < 0) return "has a negative side";
    if (box[0] > size[1] || box[1] > size[0] || box[0] + box[2] < 0 || box[1] + box[3] < 0)
        return "is outside of its picture";
    if (b->class[k] < 0 || b->class[k] >= b->classes) return "has no class of the set";
    if (!isfinite(b->area[k]) || b->area[k] < 0) return "has an impossible area";
    if (b->crowd[k] > 1) return "is neither around a group nor not (/box_crowd)";
    return NULL;
}

static Status check_labels(const DataBoxes *b, Problems *p)
{
    if (!start_rises(b))
        return fail(ERR_DATA,
                    "%s: /box_start does not rise from 0 to the %lld boxes; import it again",
                    p->path, (long long)b->boxes);
    for (int64_t i = 0; i < b->pictures; ++i) {
        const int32_t *size = b->size + 2 * i;
        if (size[0] < 1 || size[1] < 1) TRY(problem(p, "picture", i, "has an impossible /size"));
        if (b->image_id[i] < 0 || (i > 0 && b->image_id[i] <= b->image_id[i - 1]))
            TRY(problem(p, "picture", i, "has an /image_id that does not rise"));
        if (b->fit && !(isfinite(b->fit[3 * i]) && b->fit[3 * i] > 0 && b->fit[3 * i + 1] >= 0 &&
                        b->fit[3 * i + 2] >= 0))
            TRY(problem(p, "picture", i, "has an impossible /fit"));
        for (int64_t k = b->start[i]; k < b->start[i + 1]; ++k) {
            const char *why = check_box(b, k, size);
            if (why) TRY(problem(p, "box", k, why));
        }
    }
    for (int c = 0; c < b->classes; ++c)
        if (b->category_id[c] < 0 || (c > 0 && b->category_id[c] <= b->category_id[c - 1]))
            TRY(problem(p, "class", c, "has a /category_id that does not rise"));
    return OK;
}

static Status read_and_check(DataBoxes *b, const DataSet *set, Problems *p)
{
    Status st = read_arrays(b, set);
    if (st == OK) st = check_labels(b, p);
    if (st != OK) data_boxes_free(b);
    return st;
}

Status data_boxes_read(DataBoxes *boxes, const DataSet *set)
{
    return read_and_check(boxes, set, &(Problems){.path = set->path});
}

Status boxes_check(const DataSet *set, DataBoxes *boxes)
{
    Problems p = {.path = set->path, .lists_problems = true};
    TRY(read_and_check(boxes, set, &p));
    if (p.count == 0) return OK;
    data_boxes_free(boxes);
    return fail(ERR_DATA,
                "%s: %lld problems of its labels, of which %s listed above; import it "
                "again",
                set->path, (long long)p.count, p.count > LISTED_MAX ? "100 are" : "all are");
}

/* ---- counts ---- */

int64_t data_boxes_most(const DataBoxes *b)
{
    int64_t most = 0;
    for (int64_t i = 0; i < b->pictures; ++i) {
        int64_t n = 0;
        for (int64_t k = b->start[i]; k < b->start[i + 1]; ++k) n += !b->crowd[k];
        if (n > most) most = n;
    }
    return most;
}

Status boxes_find_most(DataSet *set)
{
    DataBoxes b = {.pictures = set->samples, .boxes = set->box[BOX_ARRAY_BOXES].dim[0]};
    Status st = read_array(set, BOX_ARRAY_START, (void **)&b.start);
    if (st == OK) st = read_array(set, BOX_ARRAY_CROWD, (void **)&b.crowd);
    if (st == OK && start_rises(&b)) set->box_most = data_boxes_most(&b);
    data_boxes_free(&b);
    return st;
}

BoxCounts box_counts(const DataBoxes *b)
{
    BoxCounts c = {.of_class = mem_new((size_t)(b->classes + 1) * sizeof *c.of_class)};
    for (int64_t i = 0; i < b->pictures; ++i) {
        int64_t n = b->start[i + 1] - b->start[i];
        c.empty_pictures += n == 0;
        if (n > c.boxes_max) c.boxes_max = n;
    }
    for (int64_t k = 0; k < b->boxes; ++k) {
        ++c.of_class[b->class[k]];
        c.crowds += b->crowd[k];
        c.without_area += b->box[4 * k + 2] == 0 || b->box[4 * k + 3] == 0;
    }
    return c;
}
