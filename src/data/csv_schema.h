/* What the columns of a table of text mean, and its import; inside the data module. */
#ifndef WEFT_DATA_CSV_SCHEMA_H
#define WEFT_DATA_CSV_SCHEMA_H

#include "data.h"

typedef enum CsvType { CSV_IGNORE, CSV_LABEL, CSV_NUMBER, CSV_CATEGORY } CsvType;
/* How a category becomes an id. */
typedef enum CsvIds {
    /* numbered in the order of the training file, or sorted by bytes */
    CSV_FIRST,
    CSV_SORTED,
    /* by a hash, among the field's own ids, or among those that all fields share */
    CSV_HASH,
    CSV_HASH_ALL,
    /* hexadecimal digits of 32 bits, with the field above them */
    CSV_HEX
} CsvIds;
/* owned */
typedef struct CsvTexts {
    int count;
    char **text;
    size_t *length;
} CsvTexts;
typedef struct CsvColumn {
    /* owned */
    char *name;
    CsvType type;
    /* files without it are good, too */
    bool optional;
    /* Its place in the file, from 0; -1: where the header says. */
    int place;
    /* Another view of the values of that column, which is above it, or -1; and the next view of the
     * same values, or -1. */
    int of, also;
    /* among the numbers, or the categories */
    int slot;
    /* label: the texts of 0 and of 1 */
    CsvTexts value[2];
    /* number: (log(1 + max(x, 0)) or x - min) / range; whole: others are errors */
    bool has_fill, log, standard, scaled, whole;
    double fill, min, range;
    /* category: ids of the field; rarer values than `least` are unknown */
    CsvIds ids;
    uint64_t rows, seed;
    int64_t least;
} CsvColumn;
typedef struct CsvSchema {
    /* owned: where it comes from, for messages, and all of it */
    char *path, *text;
    /* what records have, for messages where they have less; NULL: the schema says it */
    const char *expects;
    char separator;
    bool header, quotes, trim, others_ignored;
    /* owned; NULL: no comments */
    char *comment;
    CsvTexts missing;
    /* first bytes of them; and whether no text at all is one */
    bool missing_begins[256], missing_empty;
    int count;
    /* owned */
    CsvColumn *column;
    int numbers, categories;
    /* those that are no views; they need not be all that a file has */
    int real;
    bool placed;
    /* of ids that all fields share; 0: each has its own */
    uint64_t hash_rows;
} CsvSchema;
/* Reads a schema in YAML. ERR_CONFIG with file, line, column. Release with csv_schema_fini, after a
 * failure, too. */
Status csv_schema_read(CsvSchema *schema, const char *path);
/* The same of a text of so many bytes, with a zero byte behind them, which is taken over. */
Status csv_schema_take(CsvSchema *schema, const char *path, char *text, size_t bytes);
void csv_schema_fini(CsvSchema *schema);
/* For those who have a table without labels: its column is passed over, and need not be there. */
void csv_schema_pass_label(CsvSchema *schema);
/* Is there anything to find in values before it is known what they become: vocabularies, means? */
bool csv_schema_looks(const CsvSchema *schema);
/* The text as /schema of an open HDF5 file (hid_t), negative: it failed. Under hdf5_lock. */
int csv_schema_put(const CsvSchema *schema, int64_t file);

typedef struct CsvImport {
    const CsvSchema *schema;
    const char *const *file;
    int count;
    const char *out;
    /* The test set, of files of its own, test_count of them, or of the last test_share of the
     * others'; NULL: none, and no files of it */
    const char *test;
    const char *const *test_file;
    int test_count;
    double test_share;
    int threads;
    bool force;
} CsvImport;
typedef struct CsvDone {
    int64_t records, bytes;
    double seconds;
} CsvDone;
Status csv_import(const CsvImport *import, CsvDone *done);

#endif
