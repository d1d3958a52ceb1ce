/* Reads text files as input of a model that was trained on a table. */
#ifndef WEFT_DATA_TABLE_TEXT_H
#define WEFT_DATA_TABLE_TEXT_H

#include "data/loader.h"

/* Converts rows of text files to inputs of a model that was trained on an imported table. Uses the
 * schema, vocabularies, means and deviations that the data set of this table stores. A label column
 * is not needed. */
typedef struct TableTextReader TableTextReader;
/* Makes a reader. set: the imported table. schema: path of a YAML file; NULL: the schema that the
 * set stores. ERR_NOINPUT, ERR_CONFIG. ERR_DATA: the set has no schema, or its schema differs from
 * the given one. Release with table_text_free. */
Status table_text_new(TableTextReader **reader, const DataSet *set, const char *schema);
void table_text_free(TableTextReader **reader);
/* Returns true if the conversion uses a vocabulary or a mean, which come from the content of the
 * set. The set must then be the training set. */
bool table_text_needs_training_set(const TableTextReader *reader);
/* Reads the rows of a file (plain or gzip) in order, and calls `visit` on this thread for each
 * batch of up to rows_max rows. Returns the error of `visit`. ERR_NOINPUT: the file cannot be
 * opened. ERR_DATA: a row is invalid; the message has file, line and column, and `visit` has been
 * called for all earlier rows. */
typedef Status TableTextTake(void *user, const MicroBatch *batch);
Status table_text_read(const TableTextReader *reader, const char *path, int rows_max,
                       TableTextTake *visit, void *user);

#endif
