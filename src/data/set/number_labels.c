/* Recognises classes that are not stored as integer labels, but as one-hot rows (zeros with a
 * single 1 for each sample) or as whole numbers in a floating-point type. */
#include "../data_private.h"

/* ROWS_MAX: largest number of rows that are read; WIDTH_MAX: largest number of columns, and largest
 * number of values that are read */
enum { ROWS_MAX = 4096, WIDTH_MAX = 1 << 16 };

/* Properties of the rows that have been read. whole: all values are whole numbers whose absolute
 * values are below 1e9; one_hot: each row has a single 1, and zeros otherwise. */
typedef struct RowsKind {
    bool whole, one_hot;
} RowsKind;

/* Clears each property that a row does not have. */
static void rows_check(const float *value, int64_t rows, int64_t width, RowsKind *kind)
{
    for (int64_t r = 0; r < rows; ++r) {
        int64_t ones = 0, zeros = 0;
        for (int64_t i = 0; i < width; ++i) {
            const float v = value[r * width + i];
            ones += v == 1;
            zeros += v == 0;
            if (!(v > -1e9F && v < 1e9F) || v != (float)(int64_t)v) kind->whole = false;
        }
        if (ones != 1 || zeros != width - 1) kind->one_hot = false;
    }
}

/* Reads the first rows of y, and sets *kind to their properties. width: number of values in a
 * row. */
static Status read_rows(const DataSet *set, const DataArray *y, int64_t width, RowsKind *kind)
{
    Reader *reader;
    int64_t rows = y->dim[0] < ROWS_MAX ? y->dim[0] : ROWS_MAX;
    if (rows > WIDTH_MAX / width) rows = WIDTH_MAX / width;
    *kind = (RowsKind){.whole = true, .one_hot = width > 1};
    TRY(reader_new_array(&reader, set, y));
    const int64_t count = rows * width;
    uint8_t *raw = mem_new((size_t)(rows * y->sample_bytes));
    float *value = mem_new((size_t)count * sizeof *value);
    Status st = reader_get_rows(reader, 0, rows, raw);
    if (st == OK) element_scale_row(y->type, value, 1, raw, 1, count, 1.0F, 0.0F);
    if (st == OK) rows_check(value, rows, width, kind);
    mem_free(&value);
    mem_free(&raw);
    reader_free(&reader);
    return st;
}

char *number_labels_warning(const DataSet *set, const DataArray *y)
{
    const int64_t width = y->ndim == 2 ? y->dim[1] : 1;
    RowsKind kind;
    if (y->ndim > 2 || width > WIDTH_MAX || read_rows(set, y, width, &kind) != OK) return NULL;
    if (kind.one_hot)
        return mem_format("%s: %s holds one-hot rows (%lld columns, a single 1 in each row), but "
                          "labels are the numbers of classes: store the column of the 1 as an "
                          "integer, in numpy y.argmax(axis=1).astype('int32')",
                          set->path, y->name, (long long)width);
    if (!kind.whole || width > 1 || !element_is_float(y->type)) return NULL;
    return mem_format("%s: %s holds whole numbers as %s, but labels are integers: if they are "
                      "classes, store them as integers, in numpy y.astype('int32'); if they are "
                      "numbers to predict, set train.loss to one for numbers, such as mse",
                      set->path, y->name, element_name(y->type));
}
