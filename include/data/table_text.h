/* Records of text files as inputs of a model of a table. */
#ifndef WEFT_DATA_TABLE_TEXT_H
#define WEFT_DATA_TABLE_TEXT_H

#include "data/loader.h"

/* Converts records of text files to inputs of a model that was trained on an imported table, with
 * that set's schema, vocabularies, means and deviations. A label column is not needed. */
typedef struct TableText TableText;
/* schema: path of a YAML file; NULL: the schema stored in the set. Owner of *text: the caller.
 * ERR_NOINPUT, ERR_CONFIG; ERR_DATA: the set stores no schema, or was imported with another one. */
Status table_text_new(TableText **text, const DataSet *set, const char *schema);
void table_text_free(TableText **text);
/* Does conversion depend on the set's content, by a vocabulary or a mean? */
bool table_text_learnt(const TableText *text);
/* Reads the records of a file (plain or gzip) in order, and calls take, on this thread, for each
 * batch of up to `most` samples. Returns take's error; ERR_NOINPUT; or, after take has been called
 * for all earlier records, ERR_DATA with file, line and column. */
typedef Status TableTextTake(void *user, const Batch *batch);
Status table_text_read(const TableText *text, const char *path, int most, TableTextTake *take,
                       void *user);

#endif
