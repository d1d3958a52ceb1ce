/* Imports text tables: reads files as blocks of whole records (CsvInput), and a block as records
 * and values (CsvReader); keeps vocabularies; converts values. Private to the data module.
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
    /* bytes after the end of a value that may be read: parsing and hashing load 16 bytes at once */
    CSV_OVERREAD_BYTES = 16,
    CSV_BUFFER_BYTES = CSV_BLOCK_BYTES + CSV_OVERREAD_BYTES,
    CSV_VALUE_BYTES_MAX = 1 << 20,
    CSV_COLUMNS_MAX = 1 << 16
};

void csv_texts_add(CsvTexts *texts, const char *text);
bool csv_texts_contain(const CsvTexts *texts, const char *text, size_t length);
void csv_texts_fini(CsvTexts *texts);

/* Options shared by the verbs that import text tables (a verb's member `common`), and their flags
 * except -o. test_help, share_help: help of --test and --test-share; share: default of
 * --test-share. */
typedef struct CsvOptions {
    const char *out, *test;
    FlagList test_files;
    double test_share;
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
/* Runs csv_import on these files and logs the number of records, the speed and the paths
 * written. */
Status csv_import_files(const CsvSchema *schema, const CsvOptions *options, char *const *file,
                        int count);

/* ---- files as blocks ---- */

typedef struct CsvFile {
    const char *path;
    /* number of values in a record */
    int width;
    /* owned, [width]: for each value the index of its column in the schema; -1: the value is not
     * used */
    int *column;
    /* offset in the unpacked file of the first block that has a record, which may be the header */
    int64_t first_block;
} CsvFile;
typedef struct CsvBlock {
    /* number of the block in the whole input */
    int64_t number;
    /* index of the file */
    int file;
    /* offset of the block in the unpacked file */
    int64_t offset;
    /* first_of_file: true at the beginning of a file. cut: true if the block is the beginning of
     * one record that is longer than a block. */
    bool first_of_file, cut;
    size_t bytes;
    /* CSV_BUFFER_BYTES bytes; a line break follows the block's bytes */
    char *text;
} CsvBlock;
typedef struct CsvInput {
    /* borrowed */
    const CsvSchema *schema;
    int count;
    /* owned */
    CsvFile *file;
} CsvInput;
/* Opens the input and finds each file's columns by its header or first record. ERR_NOINPUT,
 * ERR_DATA. Release with csv_input_fini, also after a failure. */
Status csv_input_init(CsvInput *input, const CsvSchema *schema, const char *const *path, int count);
void csv_input_fini(CsvInput *input);
/* Returns whether the line that begins at `at` is a comment. */
static inline bool csv_is_comment(const CsvSchema *schema, const char *at, const char *end)
{
    size_t length = schema->comment ? strlen(schema->comment) : 0;
    return length && (size_t)(end - at) >= length && memcmp(at, schema->comment, length) == 0;
}
/* Calls work once for every block, on several threads; blocks are started in order, and none after
 * a failure. worker: index of the thread, below `threads`. Returns the failure of the first block
 * that fails. *bytes grows by the bytes of text read; NULL: not counted. */
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
    /* next byte to parse; end of the block */
    char *at, *end;
    /* owned: values of the last record read */
    CsvValue *value;
    /* number of values of a record; 0: not known yet */
    int width;
    /* bytes that end an unquoted value (line break, separator, quote), each repeated in all eight
     * bytes */
    uint64_t stop[3];
} CsvReader;
/* Begins to read a block; a header is read as its first record. Records must have as many values as
 * the file's first record. any_width: the file's columns are not known yet, and records may have
 * any number of values up to CSV_COLUMNS_MAX. */
void csv_reader_init(CsvReader *reader, const CsvInput *input, const CsvBlock *block,
                     bool any_width);
void csv_reader_fini(CsvReader *reader);
/* Does the same as csv_reader_init, and skips a header. ERR_DATA. Release with csv_reader_fini,
 * also after a failure. */
Status csv_reader_begin(CsvReader *reader, const CsvInput *input, const CsvBlock *block);
/* Reads the next record; a header counts as one. *got false: none is left. ERR_DATA. */
Status csv_read_record(CsvReader *reader, bool *got);
/* Counts the remaining records without parsing them. false: the block must be parsed (it has
 * quotes, or is cut); nothing was read. */
bool csv_count_records(CsvReader *reader, int64_t *count);
/* Fails with ERR_DATA and the message "FILE: line N, column C: text". column: number from 0, or -1;
 * at: position in the block. */
Status csv_fail(const CsvReader *reader, const char *at, int column, const char *format, ...)
    BASE_PRINTF(4, 5);

/* ---- vocabularies ---- */

typedef struct CsvWord {
    /* the bytes of a word of up to 16 bytes, else two hashes of it */
    uint64_t key[2];
    /* position of the first record with the word: block << 32 | row in the block; after
     * csv_vocab_assign_ids, or if the vocabulary was read from a data set, the word's id */
    uint64_t first_or_id;
    /* number of occurrences */
    int64_t count;
    /* offset in CsvVocab.text */
    size_t offset;
    uint32_t length;
} CsvWord;
typedef struct CsvVocab {
    /* number of words, and capacity of `word` */
    int64_t count, room;
    /* entries of `slot`, a power of two */
    int64_t slots;
    /* bytes used in text, and its capacity */
    int64_t text_bytes, text_room;
    /* owned */
    CsvWord *word;
    /* owned: hash table: 0, or 1 + index of a word */
    uint32_t *slot;
    /* owned: the words one after the other */
    char *text;
} CsvVocab;
/* Adds `count` occurrences of a value. CSV_OVERREAD_BYTES bytes after the value must be readable.
 * first: position of the first record with the value; the smallest position is kept. false: too
 * many different values. */
bool csv_vocab_add(CsvVocab *vocab, const CsvValue *value, uint64_t first, int64_t count);
/* Returns a value's id, or `unknown`. The bytes after the value must be readable as in
 * csv_vocab_add. */
uint64_t csv_vocab_find(const CsvVocab *vocab, const CsvValue *value, uint64_t unknown);
/* Adds the words of other with their occurrences. false: too many different values. */
bool csv_vocab_join(CsvVocab *vocab, const CsvVocab *other);
/* Removes words with fewer than min_count occurrences and gives the others ids from first_id on,
 * sorted by bytes (sorted true) or by first occurrence; then word[0 .. count) is in the order of
 * the ids. */
void csv_vocab_assign_ids(CsvVocab *vocab, bool sorted, int64_t min_count, uint64_t first_id);
/* Returns the bytes of the longest word, at least 1. */
int64_t csv_vocab_longest(const CsvVocab *vocab);
/* Writes the words, in the order of their ids, as /vocab/NAME; the group /vocab must exist. Called
 * under hdf5_lock. */
herr_t csv_vocab_put(const CsvVocab *vocab, hid_t file, const char *name);
/* Returns a hash of the words, in the order of their ids, and of `before`, the hash of earlier
 * vocabularies. */
uint64_t csv_vocab_hash(const CsvVocab *vocab, uint64_t before);
void csv_vocab_fini(CsvVocab *vocab);

/* ---- values ---- */

bool csv_is_missing(const CsvSchema *schema, const CsvValue *value);
/* Parses a value that is one decimal number. *number: infinite if it is out of range. false: the
 * value is no such number. */
bool csv_parse_number(const CsvValue *value, double *number);
/* The next three functions convert value i of the record that was read last, which belongs to
 * column c. ERR_DATA. csv_convert_number does not apply mean and deviation. */
Status csv_convert_number(const CsvReader *r, int i, const CsvColumn *c, double *x);
Status csv_convert_label(const CsvReader *r, int i, const CsvColumn *c, int32_t *label);
/* first: first id of the field, which missing values get, except with CSV_IDS_HASH_SHARED and
 * CSV_IDS_HEX. With a vocabulary, values that are not in the vocabulary get the id first + 1. */
Status csv_convert_id(const CsvReader *r, int i, const CsvColumn *c, const CsvVocab *vocab,
                      uint64_t first, uint64_t *id);
/* Returns whether the column is a category with a vocabulary. */
static inline bool csv_has_vocab(const CsvColumn *c)
{
    return c->type == CSV_CATEGORY && c->id_rule <= CSV_IDS_SORTED;
}

/* How values are encoded, as found in the training files. All arrays are owned. */
typedef struct CsvEncoding {
    /* a vocabulary for each category */
    CsvVocab *vocab;
    /* the first id of each category, and the end of the last category's ids */
    uint64_t *first_id;
    /* mean and deviation of each number; 0 and 1 if the number is not standardised */
    double *mean, *deviation;
} CsvEncoding;
/* Allocates `vocabs` empty vocabularies; ids, means and deviations are 0. */
void csv_encoding_init(CsvEncoding *encoding, const CsvSchema *schema, int vocabs);
void csv_encoding_fini(CsvEncoding *encoding, int vocabs);
/* Converts the record that was read last: numbers to dense (a single 1 if the schema has no
 * numbers), one id per category, and the label if the schema has one; else label may be NULL.
 * ERR_DATA. */
Status csv_convert_record(const CsvReader *reader, const CsvEncoding *encoding, float *dense,
                          uint64_t *ids, int32_t *label);

/* ---- the schema and encoding that a data set stores ---- */

/* Reads the schema that a data set stores. ERR_DATA: the set stores no schema. Release with
 * csv_schema_fini, also after a failure. */
Status csv_stored_schema(CsvSchema *schema, const char *path);
/* Returns a hash of the scaling of all numbers (log; min and range, or mean and deviation) that an
 * open HDF5 file (hid_t) stores; 0: the file stores no schema, or its schema or means cannot be
 * read. Called under hdf5_lock. */
uint64_t csv_stored_scaling(int64_t file, const char *path);
/* Fills an empty encoding from the data set. ERR_DATA: the set was imported with another schema. */
Status csv_stored_encoding(CsvEncoding *encoding, const CsvSchema *schema, const DataSet *set);

#endif
