/* The meaning of a text table's columns (the schema), and csv_import. Inside the data module. */
#ifndef WEFT_DATA_CSV_SCHEMA_H
#define WEFT_DATA_CSV_SCHEMA_H

#include "data.h"

typedef enum CsvType { CSV_IGNORE, CSV_LABEL, CSV_NUMBER, CSV_CATEGORY } CsvType;
/* How a category becomes an id. */
typedef enum CsvIds {
    /* numbers of a vocabulary's words: in order of first occurrence in the training files, or
     * sorted by bytes */
    CSV_FIRST,
    CSV_SORTED,
    /* a hash, within the field's own ids, or within ids that all fields share */
    CSV_HASH,
    CSV_HASH_ALL,
    /* a number of up to 32 bits in hexadecimal digits; the field's number is in the bits above */
    CSV_HEX
} CsvIds;
/* list of texts; owned */
typedef struct CsvTexts {
    int count;
    char **text;
    size_t *length;
} CsvTexts;
typedef struct CsvColumn {
    /* owned */
    char *name;
    CsvType type;
    /* the column may be missing from files */
    bool optional;
    /* place in the file, from 0; -1: given by the header */
    int place;
    /* index of the earlier column whose values this column views, or -1; index of the next view of
     * the same values, or -1 */
    int of, also;
    /* index among the numbers, or among the categories */
    int slot;
    /* label: the texts that mean 0 and 1 */
    CsvTexts value[2];
    /* number: (x or log(1 + max(x, 0)), minus min) / range. whole: fractions are errors. */
    bool has_fill, log, standard, scaled, whole;
    double fill, min, range;
    /* category: rule for ids, number of the field's ids, seed of the hash; values that occur less
     * often than `least` are unknown */
    CsvIds ids;
    uint64_t rows, seed;
    int64_t least;
} CsvColumn;
typedef struct CsvSchema {
    /* owned: path for messages, and the whole text */
    char *path, *text;
    /* for messages about short records: what records should have; NULL: the schema says it */
    const char *expects;
    char separator;
    bool header, quotes, trim, others_ignored;
    /* owned: text that comments begin with; NULL: no comments */
    char *comment;
    CsvTexts missing;
    /* first bytes of the texts that mean "missing"; is the empty text one of them? */
    bool missing_begins[256], missing_empty;
    int count;
    /* owned */
    CsvColumn *column;
    int numbers, categories;
    /* number of columns that are not views; a file may have more columns */
    int real;
    bool placed;
    /* number of ids that all fields share; 0: each field has its own */
    uint64_t hash_rows;
} CsvSchema;
/* Reads a schema from a YAML file. ERR_CONFIG with file, line, column. Release with
 * csv_schema_fini, also after a failure. */
Status csv_schema_read(CsvSchema *schema, const char *path);
/* Does the same with a text of `bytes` bytes and a final zero byte; takes ownership of text. */
Status csv_schema_take(CsvSchema *schema, const char *path, char *text, size_t bytes);
void csv_schema_fini(CsvSchema *schema);
/* Makes the label column optional and ignores it, for tables without labels. */
void csv_schema_pass_label(CsvSchema *schema);
/* Does conversion need a pass over the values first, for vocabularies or means? */
bool csv_schema_looks(const CsvSchema *schema);
/* Writes the text as /schema of an open HDF5 file (hid_t). Negative: failed. Under hdf5_lock. */
int csv_schema_put(const CsvSchema *schema, int64_t file);

typedef struct CsvImport {
    const CsvSchema *schema;
    const char *const *file;
    int count;
    const char *out;
    /* Test set: from test_count separate files, or from the last test_share of the training
     * files' records. test NULL: no test set. */
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
