/* Imports text tables: reads files as blocks that end between records (CsvInput), and a block as
 * records and values (CsvReader); keeps vocabularies; converts values. Private to the data module.
 *
 *     files --blocks of 4 MB, in order--> threads --first pass: rows, vocabularies, means
 *     files --the same blocks-----------> threads --second pass: numbers, ids, labels--> OUT */
#ifndef WEFT_DATA_CSV_H
#define WEFT_DATA_CSV_H

#include "csv_schema.h"
#include "table_file.h"

#include <string.h>

enum {
    CSV_BLOCK_BYTES = 4 << 20,
    /* number of bytes after the end of a value that may be read, because parsing and hashing load
     * 16 bytes at once */
    CSV_OVERREAD_BYTES = 16,
    CSV_BUFFER_BYTES = CSV_BLOCK_BYTES + CSV_OVERREAD_BYTES,
    CSV_VALUE_BYTES_MAX = 1 << 20,
    CSV_COLUMNS_MAX = 1 << 16
};

void csv_texts_add(CsvTexts *texts, const char *text);
bool csv_texts_contain(const CsvTexts *texts, const char *text, size_t length);
void csv_texts_fini(CsvTexts *texts);

/* Options that `weft data import csv` and `weft data import criteo` share: member `common` of their
 * options. CSV_FLAGS has the flags that set them, except -o. test_help: help of --test. share,
 * share_help: default and help of --test-share. */
typedef struct CsvOptions {
    /* paths of the data sets to write; test NULL: no second data set */
    const char *out, *test;
    FlagList test_files;
    double test_share;
    /* 0: one thread for each core */
    int64_t threads;
    bool force;
} CsvOptions;
/* clang-format off */
#define CSV_FLAGS(Options, test_help, share, share_help)                                           \
    {"--test", FLAG_FIELD(Options, common.test), .value = "OUT", .writes = true,                   \
     .help = (test_help)},                                                                         \
    {"--test-files", FLAG_FIELD(Options, common.test_files), .value = "FILE,...",                  \
     .needs = "--test", .help = "files of the second data set; by default the end of FILE..."},    \
    {"--test-share", FLAG_FIELD(Options, common.test_share), .value = "S", .hi = 1,                \
     .default_text = (share), .needs = "--test", .help = (share_help)},                            \
    {"--threads", FLAG_FIELD(Options, common.threads), .value = "T", .lo = 1, .hi = 1024,          \
     .help = "threads that parse; by default one for each core"},                                  \
    FLAG_FORCE(Options, common.force)
/* clang-format on */
/* Runs csv_import on `count` files and logs the number of records, the speed and the paths of the
 * data sets. */
Status csv_import_files(const CsvSchema *schema, const CsvOptions *options, char *const *file,
                        int count);

/* ---- files as blocks ---- */

typedef struct CsvFile {
    const char *path;
    /* number of values in a record */
    int width;
    /* owned, [width]: for each value of a record the index of its column in the schema; -1: the
     * value is not used */
    int *column;
    /* offset, in the unpacked file, of the first block that has a record; the record may be the
     * header */
    int64_t first_block_offset;
} CsvFile;
typedef struct CsvBlock {
    /* number of the block, counted from 0 through all files */
    int64_t number;
    /* index of the block's file in CsvInput.file */
    int file;
    /* offset of the block in the unpacked file */
    int64_t offset;
    /* true: the file begins with this block */
    bool first_of_file;
    /* true: the block has no complete record, and the file goes on: its text is the beginning of
     * one record, or of one comment, that is longer than a block */
    bool cut;
    /* length of the block's text */
    size_t bytes;
    /* buffer of CSV_BUFFER_BYTES bytes; a line break follows the block's text */
    char *text;
} CsvBlock;
typedef struct CsvInput {
    /* borrowed */
    const CsvSchema *schema;
    /* number of files */
    int count;
    /* owned, [count] */
    CsvFile *file;
} CsvInput;
/* Opens the input and finds each file's columns by its header or first record. ERR_NOINPUT,
 * ERR_DATA, ERR_IO. Release with csv_input_fini, also after a failure. */
Status csv_input_init(CsvInput *input, const CsvSchema *schema, const char *const *path, int count);
void csv_input_fini(CsvInput *input);
/* Returns whether the line that begins at `at` is a comment. */
static inline bool csv_is_comment(const CsvSchema *schema, const char *at, const char *end)
{
    size_t length = schema->comment ? strlen(schema->comment) : 0;
    return length && (size_t)(end - at) >= length && memcmp(at, schema->comment, length) == 0;
}
/* Calls `work` once for each block, on `threads` threads. Blocks are begun in their order; after a
 * failure no further block is begun. worker: index of the thread, below `threads`. Returns OK, or
 * the failure of the block with the lowest number. Adds the bytes of unpacked text to *bytes,
 * unless `bytes` is NULL. */
typedef Status CsvBlockWork(void *user, int worker, CsvBlock *block);
Status csv_for_each_block(const CsvInput *input, int threads, CsvBlockWork *work, void *user,
                          int64_t *bytes);

/* ---- a block as records ---- */

typedef struct CsvValue {
    const char *text;
    size_t length;
} CsvValue;
typedef struct CsvReader {
    const CsvInput *input;
    const CsvBlock *block;
    /* next byte to parse */
    char *at;
    /* end of the block's text */
    char *end;
    /* owned: values of the record that was read last */
    CsvValue *value;
    /* number of values of a record; 0: not known yet */
    int width;
    /* bytes that end an unquoted value (line break, separator, quote), each repeated in all eight
     * bytes */
    uint64_t stop[3];
} CsvReader;
/* Begins to read a block; if the file has a header, the header is the first record. Records must
 * have as many values as the file's first record. any_width true: the file's columns are not known
 * yet, and the record may have any number of values up to CSV_COLUMNS_MAX. */
void csv_reader_init(CsvReader *reader, const CsvInput *input, const CsvBlock *block,
                     bool any_width);
void csv_reader_fini(CsvReader *reader);
/* Does the same as csv_reader_init, and skips a header. ERR_DATA. Release with csv_reader_fini,
 * also after a failure. */
Status csv_reader_begin(CsvReader *reader, const CsvInput *input, const CsvBlock *block);
/* Reads the next record; a header counts as one. *got false: none is left. ERR_DATA. */
Status csv_read_record(CsvReader *reader, bool *got);
/* Counts the remaining records without parsing them. Returns false, and reads nothing, if they must
 * be parsed, because the block has quotes or is cut. */
bool csv_count_records(CsvReader *reader, int64_t *count);
/* Fails with ERR_DATA and the message "FILE: line N, column C: text". at: position in the block, by
 * which the line is found. column: index of the value in the record; -1: no column is named. */
Status csv_fail(const CsvReader *reader, const char *at, int column, const char *format, ...)
    BASE_PRINTF(4, 5);

/* ---- vocabularies ---- */

typedef struct CsvWord {
    /* the bytes of a word of up to 16 bytes, else two hashes of it */
    uint64_t key[2];
    /* position of the first record with the word: number of the block << 32 | index of the record
     * in the block; after csv_vocab_assign_ids, or if the vocabulary was read from a data set, the
     * word's id */
    uint64_t first_or_id;
    /* number of occurrences */
    int64_t count;
    /* offset of the word in CsvVocab.text */
    size_t offset;
    /* bytes of the word */
    uint32_t length;
} CsvWord;
typedef struct CsvVocab {
    /* number of words */
    int64_t count;
    /* capacity of `word` */
    int64_t room;
    /* number of entries of `slot`, a power of two */
    int64_t slots;
    /* bytes used in `text` */
    int64_t text_bytes;
    /* capacity of `text` in bytes */
    int64_t text_room;
    /* owned, [count] */
    CsvWord *word;
    /* owned, [slots]: hash table; an entry is 0, or 1 + the index of a word */
    uint32_t *slot;
    /* owned: the words one after the other */
    char *text;
} CsvVocab;
/* Adds `count` occurrences of a value. CSV_OVERREAD_BYTES bytes after the value must be readable.
 * first: position of the first record with these occurrences (CsvWord.first_or_id); the smallest
 * position of a word is kept. Returns false if there are too many different values. */
bool csv_vocab_add(CsvVocab *vocab, const CsvValue *value, uint64_t first, int64_t count);
/* Returns a value's id (CsvWord.first_or_id), or `unknown` if the vocabulary does not have the
 * value. The bytes after the value must be readable as in csv_vocab_add. */
uint64_t csv_vocab_find(const CsvVocab *vocab, const CsvValue *value, uint64_t unknown);
/* Adds the words of `other` with their occurrences. Returns false if there are too many different
 * words. */
bool csv_vocab_join(CsvVocab *vocab, const CsvVocab *other);
/* Removes words with fewer than min_count occurrences. Sorts the remaining words by their bytes
 * (sorted true) or by their first occurrence, and gives them ids from first_id on in this order. */
void csv_vocab_assign_ids(CsvVocab *vocab, bool sorted, int64_t min_count, uint64_t first_id);
/* Returns the length of the longest word in bytes, at least 1. */
int64_t csv_vocab_longest(const CsvVocab *vocab);
/* Writes the words, in the order of their ids, as /vocab/NAME; the group /vocab must exist. Called
 * under hdf5_lock. */
herr_t csv_vocab_put(const CsvVocab *vocab, hid_t file, const char *name);
/* Returns a hash of the words, in the order of their ids, and of `before`, the hash of earlier
 * vocabularies. */
uint64_t csv_vocab_hash(const CsvVocab *vocab, uint64_t before);
void csv_vocab_fini(CsvVocab *vocab);

/* ---- values ---- */

/* Returns whether the value is one of the schema's texts that mean "missing". */
bool csv_is_missing(const CsvSchema *schema, const CsvValue *value);
/* Parses a value that is one decimal number. *number: infinite if the number is out of range.
 * Returns false if the value is anything else. */
bool csv_parse_number(const CsvValue *value, double *number);
/* csv_convert_number, csv_convert_label and csv_convert_id convert value i of the record that was
 * read last, by the rules of column c. ERR_DATA. csv_convert_number applies all rules but mean and
 * deviation. */
Status csv_convert_number(const CsvReader *r, int i, const CsvColumn *c, double *x);
Status csv_convert_label(const CsvReader *r, int i, const CsvColumn *c, int32_t *label);
/* first: first id of the field, which is the id of missing values; it is not used with
 * CSV_IDS_HASH_SHARED and CSV_IDS_HEX. If the column has a vocabulary, a value that is not in it
 * gets the id first + 1. */
Status csv_convert_id(const CsvReader *r, int i, const CsvColumn *c, const CsvVocab *vocab,
                      uint64_t first, uint64_t *id);
/* Returns whether the column is a category with a vocabulary. */
static inline bool csv_has_vocab(const CsvColumn *c)
{
    return c->type == CSV_CATEGORY && c->id_rule <= CSV_IDS_SORTED;
}

/* How values are encoded, as found in the training files. All arrays are owned. */
typedef struct CsvEncoding {
    /* vocabulary of each category; empty if the category has no vocabulary */
    CsvVocab *vocab;
    /* first id of each category; then the end of the last category's ids */
    uint64_t *first_id;
    /* mean of each number; 0 if the number is not standardised */
    double *mean;
    /* deviation of each number; 1 if the number is not standardised */
    double *deviation;
} CsvEncoding;
/* Allocates `vocabs` empty vocabularies, and first ids, means and deviations, which are 0. */
void csv_encoding_init(CsvEncoding *encoding, const CsvSchema *schema, int vocabs);
void csv_encoding_fini(CsvEncoding *encoding, int vocabs);
/* Converts the record that was read last. dense: its numbers, or a single 1 if the schema has no
 * numbers. ids: one id for each category. *label: its label; NULL is allowed if the schema has
 * none. ERR_DATA. */
Status csv_convert_record(const CsvReader *reader, const CsvEncoding *encoding, float *dense,
                          uint64_t *ids, int32_t *label);

/* ---- the schema and encoding that a data set stores ---- */

/* Reads the schema that a data set stores. ERR_DATA: the set stores no schema. Release with
 * csv_schema_fini, also after a failure. */
Status csv_stored_schema(CsvSchema *schema, const char *path);
/* Returns a hash of how the numbers of a data set were scaled: log; min and range, or mean and
 * deviation. file: the open HDF5 file (hid_t); path: its path, for messages. Returns 0 if the
 * file stores no schema, or if its schema or means cannot be read. Called under hdf5_lock. */
uint64_t csv_stored_scaling(int64_t file, const char *path);
/* Fills an empty encoding from the data set. ERR_DATA: the set was imported with another schema. */
Status csv_stored_encoding(CsvEncoding *encoding, const CsvSchema *schema, const DataSet *set);

#endif
