/* Writes the labels of an import as the arrays of a set of boxes. */
#include "box_set.h"

#include <string.h>

/* The arrays in memory; box_array_info has their types. */
typedef struct Arrays {
    /* owned: elements of each array */
    void *at[BOX_ARRAYS];
    /* number of rows of each array */
    int64_t rows[BOX_ARRAYS];
} Arrays;

/* Describes how a picture lies in its square of `side` pixels. fit[0]: scale of the picture;
 * fit[1], fit[2]: x and y of its upper left corner. */
static void put_fit(double fit[3], const BoxPicture *p, int side)
{
    const ImageBox at = letterbox(p->width, p->height, side);
    fit[0] = (double)side / (p->width > p->height ? p->width : p->height);
    fit[1] = at.x;
    fit[2] = at.y;
}

static void fill(Arrays *a, const BoxSet *set, const uint8_t *left_out)
{
    int64_t n = 0, m = 0, *start = a->at[BOX_ARRAY_START];
    for (int64_t i = 0; i < set->pictures; ++i) {
        const BoxPicture *p = &set->picture[i];
        if (left_out[i]) continue;
        ((int32_t *)a->at[BOX_ARRAY_SIZE])[2 * n] = p->height;
        ((int32_t *)a->at[BOX_ARRAY_SIZE])[2 * n + 1] = p->width;
        if (set->import->side)
            put_fit((double *)a->at[BOX_ARRAY_FIT] + 3 * n, p, set->import->side);
        ((int64_t *)a->at[BOX_ARRAY_IMAGE_ID])[n] = p->id;
        start[n++] = m;
        for (int64_t k = set->first[i]; k < set->first[i + 1]; ++k) {
            const BoxLabel *l = &set->label[k];
            if (l->left_out) continue;
            memcpy((double *)a->at[BOX_ARRAY_BOXES] + 4 * m, l->box, sizeof l->box);
            ((int32_t *)a->at[BOX_ARRAY_CLASS])[m] = l->class;
            ((double *)a->at[BOX_ARRAY_AREA])[m] = l->area;
            ((uint8_t *)a->at[BOX_ARRAY_CROWD])[m] = l->crowd;
            ((int64_t *)a->at[BOX_ARRAY_ID])[m++] = l->id;
        }
    }
    start[n] = m;
    for (int64_t c = 0; c < set->categories; ++c)
        ((int64_t *)a->at[BOX_ARRAY_CATEGORY_ID])[c] = set->category[c].id;
}

/* Returns the number of rows of array i of a set with `pictures` pictures and `labels` labels. */
static int64_t rows_of(const BoxSet *set, int i, int64_t pictures, int64_t labels)
{
    const int64_t rows[] = {[BOX_PER_SAMPLE] = pictures,
                            [BOX_PER_END] = pictures + 1,
                            [BOX_PER_BOX] = labels,
                            [BOX_PER_CLASS] = set->categories};
    return rows[box_array_info[i].rows];
}

static int64_t row_bytes(int i)
{
    return box_array_info[i].columns * (int64_t)element_bytes(box_array_info[i].type);
}

int64_t box_set_bytes(const BoxSet *set)
{
    int64_t bytes = 0;
    for (int i = 0; i < BOX_ARRAYS; ++i)
        if (set->import->side || !box_array_info[i].decoded_only)
            bytes += rows_of(set, i, set->pictures, set->labels) * row_bytes(i);
    return bytes;
}

/* Counts the pictures and labels that are kept, and allocates the arrays. */
static void arrays_init(Arrays *a, const BoxSet *set, const uint8_t *left_out)
{
    int64_t n = 0, m = 0;
    for (int64_t i = 0; i < set->pictures; ++i) n += !left_out[i];
    for (int64_t k = 0; k < set->labels; ++k) m += !set->label[k].left_out;
    for (int i = 0; i < BOX_ARRAYS; ++i) {
        a->rows[i] = rows_of(set, i, n, m);
        a->at[i] = mem_new((size_t)((a->rows[i] + 1) * row_bytes(i)));
    }
}

static hid_t stored_type(ElementType type)
{
    return type == ELEM_U8    ? H5T_STD_U8LE
           : type == ELEM_I32 ? H5T_STD_I32LE
           : type == ELEM_I64 ? H5T_STD_I64LE
                              : H5T_IEEE_F64LE;
}

bool box_set_put(const BoxSet *set, hid_t file, const uint8_t *left_out)
{
    Arrays a;
    bool good = true;
    arrays_init(&a, set, left_out);
    fill(&a, set, left_out);
    for (int i = 0; i < BOX_ARRAYS; ++i) {
        const BoxArrayInfo *info = &box_array_info[i];
        hsize_t dim[2] = {(hsize_t)a.rows[i], (hsize_t)info->columns};
        int64_t offset;
        if (info->decoded_only && !set->import->side) continue;
        good = good &&
               h5_put_array(file, info->name, stored_type(info->type), info->columns > 1 ? 2 : 1,
                            dim, &offset) >= 0 &&
               h5_fill_array(file, info->name, element_native(info->type), a.at[i]) >= 0;
    }
    for (int i = 0; i < BOX_ARRAYS; ++i) mem_free(&a.at[i]);
    return good;
}

bool box_set_put_squares(const BoxSet *set, hid_t file, int64_t channels, int64_t *x_offset)
{
    const int version = 1;
    const hsize_t side = (hsize_t)set->import->side;
    const hsize_t dim[4] = {(hsize_t)set->pictures, (hsize_t)channels, side, side};
    uint8_t *left_out = mem_new((size_t)set->pictures);
    const char **name = mem_new((size_t)set->categories * sizeof *name);
    for (int64_t c = 0; c < set->categories; ++c) name[c] = set->category[c].name;
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_text(file, "kind", data_kind_info(DATA_BOXES)->name) >= 0 &&
                h5_put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                h5_put_text(file, "store", "decoded") >= 0 &&
                h5_put_text(file, "filter", "bilinear") >= 0 &&
                h5_put_classes(file, name, set->categories) >= 0 &&
                h5_put_array(file, "/x", H5T_STD_U8LE, 4, dim, x_offset) >= 0 &&
                box_set_put(set, file, left_out);
    mem_free(&name);
    mem_free(&left_out);
    return good;
}
