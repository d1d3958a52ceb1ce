/* Writer of data sets of kind table, usable from any number of threads. Inside the data module. */
#ifndef WEFT_DATA_TABLE_FILE_H
#define WEFT_DATA_TABLE_FILE_H

#include "../data_private.h"

/* contents of the file; pointers are borrowed while the writer lives */
typedef struct TableLayout {
    int64_t samples, columns, fields;
    const char *const *column_name, *const *field_name;
    uint64_t id_rows;
    /* mean subtracted from each column and deviation it was divided by; 0 and 1 for columns that
     * are not standardised; NULL: none is */
    const double *mean, *deviation;
    /* first id of each field, fields + 1 entries; NULL: all fields share their ids */
    const uint64_t *field_first;
    /* hash of all words that ids stand for; 0: there are none */
    uint64_t words;
    /* flat ids: their number, and the largest number of a sample; id_count 0: one id per field */
    int64_t id_count, id_most;
    /* names of labels 0 and 1 */
    const char *class_name[2];
    /* writes further contents, of more_bytes bytes; NULL: none */
    PartPut *more;
    void *user;
    int64_t more_bytes;
} TableLayout;
typedef struct TableWriter {
    const TableLayout *layout;
    PartFile part;
    int64_t dense_at, ids_at, first_at, y_at;
} TableWriter;

/* Lays out OUT.part. Nothing needs to be released if it fails. */
Status table_new(TableWriter *writer, const char *out, bool force, const TableLayout *layout);
/* Writes rows first .. first + count - 1; ids are NULL for flat tables. May be called from any
 * thread. */
Status table_put(const TableWriter *writer, int64_t first, int64_t count, const float *dense,
                 const uint64_t *ids, const int32_t *y);
/* Writes all flat ids and their index. */
Status table_put_flat(const TableWriter *writer, const uint64_t *ids, const uint64_t *first);
/* Finish or drop the file like part_finish and part_drop. A zeroed or finished writer may be
 * dropped. */
Status table_finish(TableWriter *writer);
void table_drop(TableWriter *writer);

#endif
