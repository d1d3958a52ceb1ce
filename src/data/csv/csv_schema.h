/* Declares the schema of a text table, which says for each column what it is, and csv_import.
 * Private to the data module. */
#ifndef WEFT_DATA_CSV_SCHEMA_H
#define WEFT_DATA_CSV_SCHEMA_H

#include "data.h"

typedef enum CsvType { CSV_IGNORE, CSV_LABEL, CSV_NUMBER, CSV_CATEGORY } CsvType;
/* How the text of a category becomes an id. A category is a field of the table. With the first two
 * rules a field has a vocabulary. The first two ids of the field are for missing and for unknown
 * values, and the ids of the words follow in the order of the vocabulary. */
typedef enum CsvIdRule {
    /* the vocabulary is in the order of first occurrence in the training files */
    CSV_IDS_FIRST,
    /* the vocabulary is sorted by bytes */
    CSV_IDS_SORTED,
    /* a hash in the field's own range of ids; the first id is for missing values */
    CSV_IDS_HASH,
    /* a hash in one range of ids that all fields share */
    CSV_IDS_HASH_SHARED,
    /* bits 0 to 31: the value, of up to 8 hexadecimal digits; bit 32: set if the value is missing;
     * bits from 33 on: the index of the field */
    CSV_IDS_HEX
} CsvIdRule;
/* a list of texts; owns its arrays */
typedef struct CsvTexts {
    int count;
    char **text;
    /* length of each text in bytes */
    size_t *length;
} CsvTexts;
typedef struct CsvColumn {
    /* owned */
    char *name;
    CsvType type;
    /* true: the column may be missing from files */
    bool optional;
    /* index of the column's value in a record; -1: the name in the header gives it, or the column
     * is a view */
    int position;
    /* A column with key `of` is a view: it reads the values of an earlier column, whose index is
     * view_of. -1: the column is no view */
    int view_of;
    /* index of the first view of this column; if this is a view, of the next view of the same
     * column; -1: there is none */
    int next_view;
    /* CSV_NUMBER: index among the numbers; CSV_CATEGORY: index among the categories */
    int slot;
    /* CSV_LABEL: [k] has the texts that mean label k */
    CsvTexts label_text[2];

    /* Members for numbers, up to `range`. has_fill true: `fill` replaces a missing value */
    bool has_fill;
    /* true: x becomes log(1 + max(x, 0)), before it is standardised or scaled */
    bool log;
    /* true: x becomes (x - mean) / deviation, with mean and deviation of the training files
     * (CsvEncoding) */
    bool standardised;
    /* true: x becomes (x - min) / range */
    bool scaled;
    /* true: a value that is no integer of 64 bits is an error */
    bool whole;
    double fill, min, range;

    /* Members for categories, from here on. */
    CsvIdRule id_rule;
    /* CSV_IDS_HASH: number of the field's ids */
    uint64_t id_count;
    /* CSV_IDS_HASH, CSV_IDS_HASH_SHARED: seed with which values are hashed: a hash of the column's
     * name */
    uint64_t seed;
    /* values that occur fewer than min_count times in the training files are unknown */
    int64_t min_count;
} CsvColumn;
typedef struct CsvSchema {
    /* path of the schema for messages; owned */
    char *path;
    /* the schema's YAML text; owned */
    char *text;
    /* borrowed: what a record must have, for the message about a first record with too few values;
     * NULL: the message names the schema's column that has no value */
    const char *expected_record;
    /* byte between values */
    char separator;
    /* true: the first record of a file has the columns' names */
    bool header;
    /* true: values may be in quotes */
    bool quotes;
    /* true: blanks around values are removed */
    bool trim;
    /* true: files with a header may have columns that the schema does not name */
    bool ignore_others;
    /* owned: text at the beginning of comment lines; NULL: no comments */
    char *comment;
    /* texts that mean "missing" */
    CsvTexts missing;
    /* [b]: true if a text in `missing` begins with byte b */
    bool missing_begins[256];
    /* true: the empty text is in `missing` */
    bool missing_empty;
    /* number of columns */
    int count;
    /* owned, [count] */
    CsvColumn *column;
    /* number of columns of type CSV_NUMBER */
    int numbers;
    /* number of columns of type CSV_CATEGORY */
    int categories;
    /* number of columns that are not views; a file may have more */
    int file_columns;
    /* true: a column has an explicit position (key `at`) */
    bool has_positions;
    /* size of the range of ids that all fields share; 0: each field has its own range */
    uint64_t shared_ids;
} CsvSchema;
/* Reads a schema from a YAML file. ERR_CONFIG with file, line, column: the schema is wrong;
 * ERR_NOINPUT, ERR_IO, ERR_DATA: the file cannot be opened or read, or is too large. Release with
 * csv_schema_fini, also after a failure. */
Status csv_schema_read(CsvSchema *schema, const char *path);
/* Parses a schema from a text of `bytes` bytes and a final zero byte; takes ownership of text.
 * Errors and release as for csv_schema_read. */
Status csv_schema_parse(CsvSchema *schema, const char *path, char *text, size_t bytes);
void csv_schema_fini(CsvSchema *schema);
/* Ignores the label column, for tables without labels. The column may then be missing from files,
 * unless a view (key `of`) reads its values. */
void csv_schema_ignore_label(CsvSchema *schema);
/* Returns whether values can only be converted with vocabularies, means or deviations, which come
 * from a first pass over the training files. */
bool csv_schema_needs_statistics(const CsvSchema *schema);
/* Writes the schema's text as /schema of an open HDF5 file (hid_t). Negative: failed. Called under
 * hdf5_lock. */
int csv_schema_put(const CsvSchema *schema, int64_t file);

typedef struct CsvImport {
    const CsvSchema *schema;
    /* paths of the training files, [count] */
    const char *const *file;
    int count;
    /* path of the training set to write */
    const char *out;
    /* path of the test set to write; NULL: no test set */
    const char *test;
    /* paths of the test set's files, [test_count]; if test_count is 0, the test set is the end of
     * the training files */
    const char *const *test_file;
    int test_count;
    /* fraction of the records of the training files that become the test set if test_count is 0 */
    double test_share;
    int threads;
    /* true: existing files `out` and `test` are replaced */
    bool force;
} CsvImport;
typedef struct CsvResult {
    /* number of records imported to both data sets */
    int64_t records;
    /* bytes of unpacked text read in the second pass */
    int64_t bytes;
    /* time of the import */
    double seconds;
} CsvResult;
/* Imports text tables as one or two data sets. *result is not set if the import fails at once
 * because it may not write an output. ERR_USAGE, ERR_NOINPUT, ERR_DATA, ERR_IO. */
Status csv_import(const CsvImport *import, CsvResult *result);

#endif
