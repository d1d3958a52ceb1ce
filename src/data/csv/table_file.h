/* Writer of data sets of kind table, usable from any number of threads. Private to the data
 * module. */
#ifndef WEFT_DATA_TABLE_FILE_H
#define WEFT_DATA_TABLE_FILE_H

#include "../data_private.h"

/* contents of the file; pointers are borrowed while the writer is in use */
typedef struct TableLayout {
    /* number of rows; columns of numbers; fields of ids */
    int64_t samples, columns, fields;
    const char *const *column_name, *const *field_name;
    /* ids are below id_rows; 0: they have 64 bits */
    uint64_t id_rows;
    /* mean that was subtracted from each column, and deviation by which it was divided: 0 and 1 for
     * a column that is not standardised; NULL: no column is standardised */
    const double *mean, *deviation;
    /* first id of each field, and the end of the last field's ids: fields + 1 entries; NULL: all
     * fields share one range of ids, or ids have 64 bits */
    const uint64_t *field_first;
    /* hash of all vocabularies; 0: there are none */
    uint64_t vocab_hash;
    /* flat table, in which a field of a sample may have no id or several: number of all ids, and
     * the largest number of ids in a sample. flat_ids 0: each field has one id. */
    int64_t flat_ids, sample_ids_max;
    /* names of labels 0 and 1 */
    const char *class_name[2];
    /* writes further contents, of at most more_bytes bytes, with user as argument; NULL: none */
    PartPut *put_more;
    void *user;
    int64_t more_bytes;
} TableLayout;
typedef struct TableWriter {
    /* NULL: nothing to drop */
    const TableLayout *layout;
    PartFile part;
    /* file offsets of /dense, /sparse, /sparse_offset and /y */
    int64_t dense_at, ids_at, first_at, y_at;
} TableWriter;

/* Creates OUT.part and lays it out. Nothing needs to be released if it fails. Errors are those of
 * part_new. */
Status table_new(TableWriter *writer, const char *out, bool force, const TableLayout *layout);
/* Writes rows first .. first + count - 1: dense (count, columns), ids (count, fields), y (count).
 * ids NULL: the table is flat, or has no fields. May be called from any thread. ERR_IO. */
Status table_put(const TableWriter *writer, int64_t first, int64_t count, const float *dense,
                 const uint64_t *ids, const int32_t *y);
/* Writes all ids of a flat table, and the index of each bag's first id: samples * fields + 1
 * entries. ERR_IO. */
Status table_put_flat(const TableWriter *writer, const uint64_t *ids, const uint64_t *first);
/* Finish or drop the file like part_finish and part_drop. A zeroed or finished writer may be
 * dropped. */
Status table_finish(TableWriter *writer);
void table_drop(TableWriter *writer);

#endif
