/* Writes data sets of kind table: /dense, /y and, if there are fields, /sparse. The file is laid
 * out first and then filled by row number, so that threads may write rows in any order with the
 * same result. */
#include "table_file.h"

/* Writes the attributes about ids and, if it is known, the array /field_first. Lays out /sparse
 * and, in a flat table, /sparse_offset. */
static herr_t put_ids(TableWriter *w, hid_t file)
{
    const TableLayout *l = w->layout;
    hsize_t dim[2] = {(hsize_t)l->samples, (hsize_t)l->fields}, count = (hsize_t)l->flat_ids;
    hsize_t offsets = dim[0] * dim[1] + 1, bounds = dim[1] + 1;
    int64_t offset, rows = (int64_t)l->id_limit;
    herr_t rc = h5_put_names(file, "fields", l->field_name, l->fields);
    if (rc >= 0) rc = h5_put_numbers(file, "id_rows", H5T_STD_I64LE, H5T_NATIVE_INT64, &rows, 0);
    if (rc >= 0 && l->vocab_hash) {
        char hash[20];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)l->vocab_hash);
        rc = h5_put_text(file, "vocabulary_hash", hash);
    }
    if (rc >= 0 && l->flat_ids > 0) {
        rc =
            h5_put_numbers(file, "id_most", H5T_STD_I64LE, H5T_NATIVE_INT64, &l->sample_ids_max, 0);
        if (rc >= 0) rc = h5_put_array(file, "/sparse", H5T_NATIVE_UINT64, 1, &count, &w->ids_at);
        if (rc >= 0)
            rc = h5_put_array(file, "/sparse_offset", H5T_NATIVE_UINT64, 1, &offsets,
                              &w->sparse_offset_at);
    } else if (rc >= 0) {
        rc = h5_put_array(file, "/sparse", H5T_NATIVE_UINT64, 2, dim, &w->ids_at);
    }
    if (rc < 0 || !l->field_first) return rc;
    rc = h5_put_array(file, "/field_first", H5T_NATIVE_UINT64, 1, &bounds, &offset);
    return rc < 0 ? rc : h5_fill_array(file, "/field_first", H5T_NATIVE_UINT64, l->field_first);
}

static herr_t put_doubles(hid_t file, const char *name, const double *value, int64_t count)
{
    hsize_t n = (hsize_t)count;
    int64_t offset;
    herr_t rc = h5_put_array(file, name, H5T_IEEE_F64LE, 1, &n, &offset);
    return rc < 0 ? rc : h5_fill_array(file, name, H5T_NATIVE_DOUBLE, value);
}

static herr_t put_all(void *user, hid_t file)
{
    TableWriter *w = user;
    const TableLayout *l = w->layout;
    int version = 1;
    hsize_t dim[2] = {(hsize_t)l->samples, (hsize_t)l->columns};
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                h5_put_text(file, "kind", "table") >= 0 &&
                h5_put_classes(file, l->class_name, 2) >= 0 &&
                h5_put_names(file, "columns", l->column_name, l->columns) >= 0 &&
                h5_put_array(file, "/dense", H5T_NATIVE_FLOAT, 2, dim, &w->dense_at) >= 0 &&
                h5_put_array(file, "/y", H5T_NATIVE_INT32, 1, dim, &w->y_at) >= 0;
    if (good && l->fields > 0) good = put_ids(w, file) >= 0;
    if (good && l->mean)
        good = put_doubles(file, "/dense_mean", l->mean, l->columns) >= 0 &&
               put_doubles(file, "/dense_deviation", l->deviation, l->columns) >= 0;
    if (good && l->put_more) good = l->put_more(l->user, file) >= 0;
    return good ? 0 : -1;
}

Status table_new(TableWriter *w, const char *out, bool force, const TableLayout *layout)
{
    const TableLayout *l = layout;
    *w = (TableWriter){.layout = layout, .part.fd = -1};
    int64_t row_bytes = l->columns * 4 + 4 + l->fields * 8;
    int64_t bytes = l->samples * row_bytes + l->flat_ids * 8 + l->more_bytes;
    Status st = part_new(&w->part, out, force, bytes, put_all, w);
    if (st != OK) *w = (TableWriter){.part.fd = -1};
    return st;
}

Status table_put(const TableWriter *w, int64_t first, int64_t count, const float *dense,
                 const uint64_t *ids, const int32_t *y)
{
    int64_t dense_bytes = w->layout->columns * 4, id_bytes = w->layout->fields * 8;
    TRY(part_write(&w->part, dense, count * dense_bytes, w->dense_at + first * dense_bytes));
    if (ids) TRY(part_write(&w->part, ids, count * id_bytes, w->ids_at + first * id_bytes));
    part_begin_sync(&w->part, count * dense_bytes, w->dense_at + first * dense_bytes);
    if (ids) part_begin_sync(&w->part, count * id_bytes, w->ids_at + first * id_bytes);
    return part_write(&w->part, y, count * 4, w->y_at + first * 4);
}

Status table_put_flat(const TableWriter *w, const uint64_t *ids, const uint64_t *bag_first)
{
    const TableLayout *l = w->layout;
    TRY(part_write(&w->part, ids, l->flat_ids * 8, w->ids_at));
    return part_write(&w->part, bag_first, (l->samples * l->fields + 1) * 8, w->sparse_offset_at);
}

Status table_finish(TableWriter *w)
{
    w->layout = NULL;
    return part_finish(&w->part);
}

void table_drop(TableWriter *w)
{
    if (w->layout) part_drop(&w->part);
    w->layout = NULL;
}
