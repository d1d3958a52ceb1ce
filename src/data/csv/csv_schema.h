/* The schema of a text table, which says what each column is, and csv_import. Private to the data
 * module. */
#ifndef WEFT_DATA_CSV_SCHEMA_H
#define WEFT_DATA_CSV_SCHEMA_H

#include "data.h"

typedef enum CsvType { CSV_IGNORE, CSV_LABEL, CSV_NUMBER, CSV_CATEGORY } CsvType;
/* How the text of a category becomes an id. */
typedef enum CsvIdRule {
    /* first id of the field + 2 + index in its vocabulary, which is in order of first occurrence in
     * the training files (CSV_IDS_FIRST), or sorted by bytes (CSV_IDS_SORTED); the first two ids of
     * the field are for missing and for unknown values */
    CSV_IDS_FIRST,
    CSV_IDS_SORTED,
    /* hash: CSV_IDS_HASH, in the field's own range of ids, the first of which is for missing
     * values; CSV_IDS_HASH_SHARED, in one range that all fields share */
    CSV_IDS_HASH,
    CSV_IDS_HASH_SHARED,
    /* bits 0 to 31: the value, of up to 8 hexadecimal digits; bit 32: set if the value is missing;
     * bits from 33 on: the field's number */
    CSV_IDS_HEX
} CsvIdRule;
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
    /* true: the column may be missing from files */
    bool optional;
    /* index of the value in a record; -1: found by the name in the header, or a view */
    int position;
    /* A column with key `of` is a view: it reads the values of an earlier column. view_of: index of
     * that column. next_view: index of the first view of this column or, if this is a view, of the
     * next view of the same column. -1: none */
    int view_of, next_view;
    /* CSV_NUMBER: index among the numbers; CSV_CATEGORY: index among the categories */
    int slot;
    /* label: the texts that mean 0 and 1 */
    CsvTexts label_text[2];
    /* Members up to `range` are for numbers. has_fill: `fill` replaces a missing value. log: x
     * becomes log(1 + max(x, 0)). Then, scaled: x becomes (x - min) / range; or standardised: x
     * becomes (x - mean) / deviation. whole: a value that is no whole number of 64 bits is an
     * error. */
    bool has_fill, log, standardised, scaled, whole;
    double fill, min, range;
    /* Members from here on are for categories. */
    CsvIdRule id_rule;
    /* CSV_IDS_HASH: number of the field's ids. Both hash rules: seed, a hash of the column's
     * name */
    uint64_t id_count, seed;
    /* values that occur fewer than min_count times are unknown */
    int64_t min_count;
} CsvColumn;
typedef struct CsvSchema {
    /* owned: path for messages, and the schema's YAML text */
    char *path, *text;
    /* text for the message about a first record with too few values: its proper content;
     * NULL: the message names the schema's column; borrowed */
    const char *expected_record;
    /* byte between values */
    char separator;
    /* header: the first record of a file has the columns' names. quotes: values may be in quotes.
     * trim: blanks around values are removed. ignore_others: columns that the schema does not name
     * are allowed. */
    bool header, quotes, trim, ignore_others;
    /* owned: text at the beginning of comment lines; NULL: no comments */
    char *comment;
    /* texts that mean "missing" */
    CsvTexts missing;
    /* missing_begins[b]: a text in `missing` begins with byte b. missing_empty: the empty text is
     * in `missing`. */
    bool missing_begins[256], missing_empty;
    /* number of columns */
    int count;
    /* owned */
    CsvColumn *column;
    /* how many columns are numbers, and how many are categories */
    int numbers, categories;
    /* number of columns that are not views; a file may have more */
    int file_columns;
    /* true: a column has an explicit position (key `at`) */
    bool has_positions;
    /* size of the range of ids that all fields share; 0: each field has its own */
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
/* Ignores the label column, for tables without labels; the column may then be missing from files,
 * unless a column with key `of` reads it. */
void csv_schema_ignore_label(CsvSchema *schema);
/* Returns whether values can only be converted with vocabularies, means or deviations, which come
 * from a first pass over the training files. */
bool csv_schema_needs_statistics(const CsvSchema *schema);
/* Writes the schema's text as /schema of an open HDF5 file (hid_t). Negative: failed. Called under
 * hdf5_lock. */
int csv_schema_put(const CsvSchema *schema, int64_t file);

typedef struct CsvImport {
    const CsvSchema *schema;
    const char *const *file;
    int count;
    const char *out;
    /* path of the test set; NULL: no test set. It is made of the test_count files in test_file; if
     * test_count is 0, it is the last part of the training records, a fraction test_share. */
    const char *test;
    const char *const *test_file;
    int test_count;
    double test_share;
    int threads;
    /* true: existing files `out` and `test` are replaced */
    bool force;
} CsvImport;
/* Number of records imported to both sets, bytes of unpacked text read in the second pass, and time
 * of the import. */
typedef struct CsvResult {
    int64_t records, bytes;
    double seconds;
} CsvResult;
/* Imports text tables as one or two data sets. *result is not set if the outputs may not be
 * written. */
Status csv_import(const CsvImport *import, CsvResult *result);

#endif
