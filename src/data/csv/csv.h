/* Import of tables of text: files as blocks of whole records (CsvInput), records as values
 * (CsvReader), vocabularies. Inside the data module.
 *
 *     files --blocks of 4 MB, in order--> threads --survey: rows, vocabularies, means-->
 *     files --the same blocks-----------> threads --write: dense, ids, labels at their rows--> */
#ifndef WEFT_DATA_CSV_H
#define WEFT_DATA_CSV_H

#include "csv_schema.h"
#include "table_file.h"

#include <string.h>

enum {
    CSV_BLOCK = 4 << 20,
    /* bytes that may be read beyond the end of a value */
    CSV_BEYOND = 16,
    CSV_ROOM = CSV_BLOCK + CSV_BEYOND,
    CSV_VALUE_MOST = 1 << 20,
    CSV_COLUMNS_MOST = 1 << 16
};

bool csv_texts_have(const CsvTexts *texts, const char *text, size_t length);

/* Options shared by the verbs that import tables of text (a verb's field `common`), and their flags
 * except -o. */
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
     .fallback = (share), .needs = "--test", .help = (share_help)},                                \
    {"--threads", FLAG_FIELD(Options, common.threads), .value = "T", .lo = 1, .hi = 1024,          \
     .help = "threads that parse; by default one for each core"},                                  \
    FLAG_FORCE(Options, common.force)
/* clang-format on */
/* Runs csv_import on these files and logs what was done. */
Status csv_import_files(const CsvSchema *schema, const CsvOptions *options, char *const *file,
                        int count);

/* ---- files as blocks ---- */

typedef struct CsvFile {
    const char *path;
    /* number of values of a record; schema column of each, or -1 (owned) */
    int width;
    int *column;
    /* offset of the block with the first record */
    int64_t begin;
} CsvFile;
typedef struct CsvBlock {
    /* number of the block in the whole input */
    int64_t number;
    int file;
    /* offset of the block in the unpacked file */
    int64_t at;
    /* first: first block of its file. torn: the last record is longer than a block and has no end
     * here. */
    bool first, torn;
    size_t bytes;
    /* CSV_ROOM bytes; a line break follows the text */
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
/* Is the line that begins at `at` a comment? */
static inline bool csv_is_comment(const CsvSchema *schema, const char *at, const char *end)
{
    size_t length = schema->comment ? strlen(schema->comment) : 0;
    return length && (size_t)(end - at) >= length && memcmp(at, schema->comment, length) == 0;
}
/* Calls work for every block, each once, on several threads; blocks are started in order. Returns
 * the failure of the first block that fails. *bytes, unless NULL: grows by the bytes of text
 * read. */
typedef Status CsvWork(void *user, int worker, CsvBlock *block);
Status csv_pass(const CsvInput *input, int threads, CsvWork *work, void *user, int64_t *bytes);

/* ---- a block as records ---- */

typedef struct CsvValue {
    const char *text;
    size_t length;
} CsvValue;
typedef struct CsvReader {
    const CsvInput *input;
    const CsvBlock *block;
    char *at, *end;
    /* owned: values of the last record read */
    CsvValue *value;
    int width;
    /* bytes that end an unquoted value, each repeated in all eight bytes */
    uint64_t stop[3];
} CsvReader;
/* Begins to read a block. Records must have as many values as the file's first record, unless wide:
 * then up to CSV_COLUMNS_MOST. */
void csv_reader_init(CsvReader *reader, const CsvInput *input, const CsvBlock *block, bool wide);
void csv_reader_fini(CsvReader *reader);
/* csv_reader_init that also skips a header. ERR_DATA. Release with csv_reader_fini in any case. */
Status csv_reader_begin(CsvReader *reader, const CsvInput *input, const CsvBlock *block);
/* Reads the next record; a header counts as one. *got false: none is left. ERR_DATA. */
Status csv_next(CsvReader *reader, bool *got);
/* Counts the remaining records without parsing them. false: the block needs parsing (quotes, or a
 * torn record); nothing was read. */
bool csv_count(CsvReader *reader, int64_t *count);
/* ERR_DATA with the message "FILE: line N, column C: text". column: number from 0, or -1; at:
 * position in the block. */
Status csv_fail(const CsvReader *reader, const char *at, int column, const char *format, ...)
    BASE_PRINTF(4, 5);

/* ---- vocabularies ---- */

typedef struct CsvWord {
    uint64_t key[2];
    /* block and row of the first record with the word; after csv_vocab_done: its id */
    uint64_t first;
    int64_t count;
    size_t at;
    uint32_t length;
} CsvWord;
typedef struct CsvVocab {
    int64_t count, room, places, bytes, bytes_room;
    /* owned */
    CsvWord *word;
    /* hash table of `places` entries, a power of two: 0, or 1 + index of a word */
    uint32_t *place;
    char *text;
} CsvVocab;
/* Adds `count` occurrences of a value, which has CSV_BEYOND readable bytes behind it. first:
 * position of its first record; the smallest is kept. false: too many different values. */
bool csv_vocab_add(CsvVocab *vocab, const CsvValue *value, uint64_t first, int64_t count);
/* Returns a value's id, or `unknown`. */
uint64_t csv_vocab_find(const CsvVocab *vocab, const CsvValue *value, uint64_t unknown);
bool csv_vocab_join(CsvVocab *vocab, const CsvVocab *other);
/* Removes words with fewer than `least` occurrences and numbers the others from id on, sorted by
 * bytes or by first occurrence; they are then word[0 .. count). */
void csv_vocab_done(CsvVocab *vocab, bool sorted, int64_t least, uint64_t id);
/* Returns the bytes of the longest word, at least 1. */
int64_t csv_vocab_width(const CsvVocab *vocab);
/* Writes the numbered words as /vocab/NAME; the group exists. Called under hdf5_lock. */
herr_t csv_vocab_put(const CsvVocab *vocab, hid_t file, const char *name);
/* Returns a hash of the numbered words in order and of `before`, the hash of earlier
 * vocabularies. */
uint64_t csv_vocab_hash(const CsvVocab *vocab, uint64_t before);
void csv_vocab_fini(CsvVocab *vocab);

/* ---- values ---- */

bool csv_missing(const CsvSchema *schema, const CsvValue *value);
/* Parses a decimal number that fills the value; infinite if out of range. */
bool csv_number(const CsvValue *value, double *number);
/* Convert the value at index `at` of a record, of column c: number (before mean and deviation),
 * label, id. ERR_DATA. */
Status csv_value_number(const CsvReader *r, int at, const CsvColumn *c, double *x);
Status csv_value_label(const CsvReader *r, int at, const CsvColumn *c, int32_t *label);
/* Are the ids of a category column numbers of a vocabulary's words? */
static inline bool csv_has_words(const CsvColumn *c)
{
    return c->type == CSV_CATEGORY && c->ids <= CSV_SORTED;
}
/* first: first id of the field, which stands for missing values. With a vocabulary the next id
 * stands for values that are not in it. */
Status csv_value_id(const CsvReader *r, int at, const CsvColumn *c, const CsvVocab *vocab,
                    uint64_t first, uint64_t *id);

/* Results of the training set, beyond the schema. Owned arrays: vocabularies
 * per category; the first id of each category, and one more entry for the end; mean and deviation
 * per number, 0 and 1 if it is not standardised. */
typedef struct CsvMeaning {
    CsvVocab *vocab;
    uint64_t *first;
    double *mean, *deviation;
} CsvMeaning;
/* Allocates `vocabs` empty vocabularies; all numbers are 0, deviations included. */
void csv_meaning_init(CsvMeaning *is, const CsvSchema *schema, int vocabs);
void csv_meaning_fini(CsvMeaning *is, int vocabs);
/* Converts the current record: numbers to dense (1 if the schema has none), one id per category,
 * and the label if the schema has one. ERR_DATA. */
Status csv_record(const CsvReader *reader, const CsvMeaning *is, float *dense, uint64_t *ids,
                  int32_t *label);

/* ---- the schema and vocabularies that a data set stores ---- */

/* Reads the schema that a set stores. ERR_DATA: it stores none. Release with csv_schema_fini, also
 * after a failure. */
Status csv_stored_schema(CsvSchema *schema, const char *path);
/* Returns a hash of what the import did to each number, by the schema and the means that an open
 * HDF5 file (hid_t) stores; 0: it stores no schema. Called under hdf5_lock. */
uint64_t csv_stored_scaling(int64_t file, const char *path);
/* Fills an empty CsvMeaning from the set. ERR_DATA: the set was imported with another schema. */
Status csv_stored_meaning(CsvMeaning *is, const CsvSchema *schema, const DataSet *set);

#endif
