/* Writing a data set of kind table, from any number of threads; inside the data module. */
#ifndef WEFT_DATA_TABLE_FILE_H
#define WEFT_DATA_TABLE_FILE_H

#include "data_private.h"

/* borrowed while the writer lives */
typedef struct TableLayout {
    int64_t samples, columns, fields;
    const char *const *column_name, *const *field_name;
    uint64_t id_rows;
    /* of standardised columns what was taken away and divided by, of others 0 and 1; NULL: none
     * is */
    const double *mean, *deviation;
    /* fields + 1: where each field's ids begin; NULL: they share all */
    const uint64_t *field_first;
    /* a hash of all words that ids stand for; 0: there are none */
    uint64_t words;
    /* Flat ids: how many, and most of a sample; 0: one a field. */
    int64_t id_count, id_most;
    /* names of labels 0 and 1 */
    const char *class_name[2];
    /* puts further contents, and takes so many bytes for them; NULL: none */
    PartPut *more;
    void *user;
    int64_t more_bytes;
} TableLayout;
typedef struct TableWriter {
    const TableLayout *layout;
    PartFile part;
    int64_t dense_at, ids_at, first_at, y_at;
} TableWriter;

/* Lays OUT.part out. Nothing to release where it failed. */
Status table_new(TableWriter *writer, const char *out, bool force, const TableLayout *layout);
/* Rows first .. first + count; of flat tables without ids. Any thread. */
Status table_put(const TableWriter *writer, int64_t first, int64_t count, const float *dense,
                 const uint64_t *ids, const int32_t *y);
/* All flat ids and their index. */
Status table_put_flat(const TableWriter *writer, const uint64_t *ids, const uint64_t *first);
/* As part_finish and part_drop; a writer that was never new, or is done with, may be dropped. */
Status table_finish(TableWriter *writer);
void table_drop(TableWriter *writer);

#endif
