/* Tables of text: the files as blocks of whole records (CsvInput), records as values (CsvReader),
 * vocabularies. Inside the data module.
 *
 *     files --blocks of 4 MB, in order--> threads --survey: rows, vocabularies, means-->
 *     files --the same blocks-----------> threads --write: dense, ids, labels at their rows-->
 */
#ifndef WEFT_DATA_CSV_H
#define WEFT_DATA_CSV_H

#include "csv_schema.h"
#include "table_file.h"

#include <string.h>

enum {
    CSV_BLOCK = 4 << 20,
    /* bytes that may be read behind a value */
    CSV_BEYOND = 16,
    CSV_ROOM = CSV_BLOCK + CSV_BEYOND,
    CSV_VALUE_MOST = 1 << 20,
    CSV_COLUMNS_MOST = 1 << 16
};

bool csv_texts_have(const CsvTexts *texts, const char *text, size_t length);

/* What verbs that import tables of text have among their options, as `common`; and its flags, but
 * for -o. */
typedef struct CsvOptions {
    const char *out, *test;
    FlagList test_files;
    double test_share;
    int64_t threads;
    bool force;
} CsvOptions;
/* clang-format off */
#define CSV_FLAGS(Options, test_help, share, share_help)                                           \
    {"--test", FLAG_FIELD(Options, common.test), .value = "OUT", .help = (test_help)},             \
    {"--test-files", FLAG_FIELD(Options, common.test_files), .value = "FILE,...",                  \
     .needs = "--test", .help = "the files it is made of; without them the end of FILE..."},       \
    {"--test-share", FLAG_FIELD(Options, common.test_share), .value = "S", .hi = 1,                \
     .fallback = (share), .needs = "--test", .help = (share_help)},                                \
    {"--threads", FLAG_FIELD(Options, common.threads), .value = "T", .lo = 1, .hi = 1024,          \
     .help = "that parse; by default one for each core"},                                          \
    {"--force", FLAG_FIELD(Options, common.force), .help = "write over files that are there"}
/* clang-format on */
/* csv_import of these files, and what was done as lines of the log. */
Status csv_import_files(const CsvSchema *schema, const CsvOptions *options, char *const *file,
                        int count);

/* ---- files as blocks ---- */

typedef struct CsvFile {
    const char *path;
    /* values of a record; for each the schema's column, or -1. Owned */
    int width;
    int *column;
    /* where the block with the first record begins */
    int64_t begin;
} CsvFile;
typedef struct CsvBlock {
    /* among all of the input */
    int64_t number;
    int file;
    /* where it begins in the unpacked file */
    int64_t at;
    /* the file's first; its last record has no end, for it is longer than a block, */
    bool first, torn;
    size_t bytes;
    /* CSV_ROOM; a line break comes behind it */
    char *text;
} CsvBlock;
typedef struct CsvInput {
    /* borrowed */
    const CsvSchema *schema;
    int count;
    /* owned */
    CsvFile *file;
} CsvInput;
/* Finds each file's columns by its header or its first record. ERR_NOINPUT, ERR_DATA. Release with
 * csv_input_fini, after a failure, too. */
Status csv_input_init(CsvInput *input, const CsvSchema *schema, const char *const *path, int count);
void csv_input_fini(CsvInput *input);
/* Is the line that begins at `at` one of comment? */
static inline bool csv_is_comment(const CsvSchema *schema, const char *at, const char *end)
{
    size_t length = schema->comment ? strlen(schema->comment) : 0;
    return length && (size_t)(end - at) >= length && memcmp(at, schema->comment, length) == 0;
}
/* Every block once, each on some thread, the first ones first. The failure of the first block that
 * fails comes out. *bytes, where given: of text. */
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
    /* owned; of the last record */
    CsvValue *value;
    int width;
    /* bytes that end a value without quotes, eight times each */
    uint64_t stop[3];
} CsvReader;
/* The width of a block's file is taken, unless wide: then records may have any, up to
 * CSV_COLUMNS_MOST. */
void csv_reader_init(CsvReader *reader, const CsvInput *input, const CsvBlock *block, bool wide);
void csv_reader_fini(CsvReader *reader);
/* csv_reader_init, and past a header. ERR_DATA; release in every case. */
Status csv_reader_begin(CsvReader *reader, const CsvInput *input, const CsvBlock *block);
/* *got false: no record is left. ERR_DATA. The header is a record, too. */
Status csv_next(CsvReader *reader, bool *got);
/* How many records are left, without a look at what is in them; false, and nothing is done: that is
 * not enough here. */
bool csv_count(CsvReader *reader, int64_t *count);
/* ERR_DATA "FILE: line N, column C: what": column: its number from 0, or -1; at: in the block. */
Status csv_fail(const CsvReader *reader, const char *at, int column, const char *format, ...)
    BASE_PRINTF(4, 5);

/* ---- vocabularies ---- */

typedef struct CsvWord {
    uint64_t key[2];
    /* the block and the row of the first record that has it; once it is done: the id */
    uint64_t first;
    int64_t count;
    size_t at;
    uint32_t length;
} CsvWord;
typedef struct CsvVocab {
    int64_t count, room, places, bytes, bytes_room;
    /* owned */
    CsvWord *word;
    /* places of them, a power of two: 0, or 1 + the word */
    uint32_t *place;
    char *text;
} CsvVocab;
/* Values: with CSV_BEYOND bytes behind them that may be read. first: later ones are greater.
 * false: there are too many */
bool csv_vocab_add(CsvVocab *vocab, const CsvValue *value, uint64_t first, int64_t count);
/* Its id, or `unknown`. */
uint64_t csv_vocab_find(const CsvVocab *vocab, const CsvValue *value, uint64_t unknown);
bool csv_vocab_join(CsvVocab *vocab, const CsvVocab *other);
/* Numbers the words that come often enough from id on, in order; those are word[0 .. count). */
void csv_vocab_done(CsvVocab *vocab, bool sorted, int64_t least, uint64_t id);
/* Bytes of the longest word, at least 1. */
int64_t csv_vocab_width(const CsvVocab *vocab);
/* Its words, once it is done, as /vocab/NAME; the group is there. Under hdf5_lock. */
herr_t csv_vocab_put(const CsvVocab *vocab, hid_t file, const char *name);
/* Of its words in their order, once it is done, and of the hash of those before. */
uint64_t csv_vocab_hash(const CsvVocab *vocab, uint64_t before);
void csv_vocab_fini(CsvVocab *vocab);

/* ---- values ---- */

bool csv_missing(const CsvSchema *schema, const CsvValue *value);
/* A decimal number and nothing else; infinite: it is out of range. */
bool csv_number(const CsvValue *value, double *number);
/* The value at place `at` of a record, whose column is c. Before mean and deviation. ERR_DATA, all
 * three. */
Status csv_value_number(const CsvReader *r, int at, const CsvColumn *c, double *x);
Status csv_value_label(const CsvReader *r, int at, const CsvColumn *c, int32_t *label);
/* Is a column's category numbered by the words of a vocabulary? */
static inline bool csv_has_words(const CsvColumn *c)
{
    return c->type == CSV_CATEGORY && c->ids <= CSV_SORTED;
}
/* first: of the field's own ids: for what is missing; the one behind it, where there is a
 * vocabulary, for what is not in it. */
Status csv_value_id(const CsvReader *r, int at, const CsvColumn *c, const CsvVocab *vocab,
                    uint64_t first, uint64_t *id);

/* What values mean beside the schema, as the training set had them. Owned: by category, and where
 * each one's ids begin, one more; by number, 0 and 1 where nothing is standardised. */
typedef struct CsvMeaning {
    CsvVocab *vocab;
    uint64_t *first;
    double *mean, *deviation;
} CsvMeaning;
/* Without any words yet, in so many vocabularies; deviations are 0. */
void csv_meaning_init(CsvMeaning *is, const CsvSchema *schema, int vocabs);
void csv_meaning_fini(CsvMeaning *is, int vocabs);
/* The record at hand: its numbers, or 1 where there are none; its ids, one a category; its label,
 * where the schema has one. ERR_DATA. */
Status csv_record(const CsvReader *reader, const CsvMeaning *is, float *dense, uint64_t *ids,
                  int32_t *label);

/* ---- what a data set keeps of its import ---- */

/* Its schema. ERR_DATA: it has none. Release with csv_schema_fini, after a failure, too. */
Status csv_stored_schema(CsvSchema *schema, const char *path);
/* What values mean in the set; is: without words. ERR_DATA: it was imported by another schema. */
Status csv_stored_meaning(CsvMeaning *is, const CsvSchema *schema, const DataSet *set);

#endif
