/* Declares the writer of data sets of kind table, which any number of threads may use. Private to
 * the data module. */
#ifndef WEFT_DATA_TABLE_FILE_H
#define WEFT_DATA_TABLE_FILE_H

#include "../data_private.h"

/* contents of the file; the layout and its pointers are borrowed while the writer is in use */
typedef struct TableLayout {
    /* number of rows */
    int64_t samples;
    /* number of columns; they have the numbers of the table */
    int64_t columns;
    /* number of fields; they have the ids of the table */
    int64_t fields;
    const char *const *column_name, *const *field_name;
    /* ids are below id_limit; 0: they have 64 bits */
    uint64_t id_limit;
    /* mean that was subtracted from each column, 0 if the column is not standardised; NULL: no
     * column is standardised */
    const double *mean;
    /* deviation by which each column was divided, 1 if the column is not standardised */
    const double *deviation;
    /* first id of each field, and the end of the last field's ids: fields + 1 entries; NULL: all
     * fields share one range of ids, or ids have 64 bits */
    const uint64_t *field_first;
    /* hash of all vocabularies; 0: there are none */
    uint64_t vocab_hash;
    /* A table is flat if a field of a sample may have no id, or several. flat_ids: number of all
     * ids of a flat table; 0: the table is not flat, each field has one id */
    int64_t flat_ids;
    /* largest number of ids of a sample; used in a flat table only */
    int64_t sample_ids_max;
    /* names of labels 0 and 1 */
    const char *class_name[2];
    /* writes further contents to the file; called with `user`; NULL: there are none */
    PartPut *put_more;
    void *user;
    /* upper bound of the bytes that put_more writes */
    int64_t more_bytes;
} TableLayout;
typedef struct TableWriter {
    /* NULL: table_drop has nothing to drop */
    const TableLayout *layout;
    PartFile part;
    /* offsets in the file of /dense, /sparse, /sparse_offset and /y */
    int64_t dense_at, ids_at, sparse_offset_at, y_at;
} TableWriter;

/* Creates OUT.part and lays it out. Nothing needs to be released if it fails. Returns the errors of
 * part_new. */
Status table_new(TableWriter *writer, const char *out, bool force, const TableLayout *layout);
/* Writes rows `first` to first + count - 1: dense (count, columns), ids (count, fields), labels y
 * (count). ids NULL: the table is flat, or has no fields. May be called from any thread. ERR_IO. */
Status table_put(const TableWriter *writer, int64_t first, int64_t count, const float *dense,
                 const uint64_t *ids, const int32_t *y);
/* Writes all ids of a flat table. A bag is the ids of one field in one sample. bag_first: index of
 * the first id of each bag, then the number of all ids: samples * fields + 1 entries. ERR_IO. */
Status table_put_flat(const TableWriter *writer, const uint64_t *ids, const uint64_t *bag_first);
/* table_finish and table_drop finish and drop the file as part_finish and part_drop do. A zeroed or
 * finished writer may be dropped. */
Status table_finish(TableWriter *writer);
void table_drop(TableWriter *writer);

#endif
