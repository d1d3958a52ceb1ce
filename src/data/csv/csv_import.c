/* Imports text tables as data sets, in two passes over the same blocks: the first counts records
 * and finds vocabularies and means; the second writes each record to its row. If the test set is
 * the end of the training files, an additional pass counts the records first. Files may be larger
 * than memory; vocabularies must fit. Ids and sums follow the order of the blocks, so the number of
 * threads changes no byte. */
#include "csv.h"
#include "moments.h"

#include <stdatomic.h>
#include <string.h>

/* the training split or the test split: its input files and the data set that is made of them */
typedef struct Split {
    CsvInput input;
    /* number of rows in the input files */
    int64_t rows;
    /* number of blocks in the input files */
    int64_t blocks;
    /* capacity of block_row and moments, in blocks */
    int64_t room;
    /* owned, [blocks]: number of rows of each block; after sum_rows, number of its first row */
    int64_t *block_row;
    /* owned, [blocks][schema->numbers]: moments of the columns of numbers in each block */
    Moments *moments;
    TableWriter writer;
    TableLayout layout;
} Split;

typedef struct Import {
    const CsvImport *options;
    const CsvSchema *schema;
    /* training split and test split; split[1] has no input if there is no test set, or if it is
     * the end of the training files */
    Split split[2];
    /* row of the training files at which the test set begins; INT64_MAX: the test set has its own
     * files, or there is none */
    int64_t test_begin;
    /* bytes of unpacked text read in the second pass */
    int64_t bytes;
    /* protects the arrays of a Split in which a scan stores the results of blocks */
    pthread_mutex_t lock;
    /* The vocabularies in it are [threads][categories], because each thread collects its own words.
     * After assign_ids the first `categories` vocabularies have the words of all threads. */
    CsvEncoding encoding;
    /* owned; the names of the columns of numbers are borrowed from the schema */
    const char **column_name;
    /* owned; the names of the fields are borrowed from the schema */
    const char **field_name;
} Import;

/* a pass over the files of a split before rows are written; it counts records, collects values, or
 * does both */
typedef struct Scan {
    Import *import;
    Split *split;
    /* end of the rows whose values are added to vocabularies and moments; INT64_MAX: there is no
     * such limit, and the pass also stores the number of rows of each block */
    int64_t end_row;
    /* true: the pass adds no values */
    bool count_only;
} Scan;

/* ---- the first pass ---- */

/* Adds value i of the record that was read last to the vocabulary or to the moments of column c; a
 * column may have neither. vocab: vocabularies of this thread; moments: those of this block.
 * position: position of the record, as in CsvWord.first_or_id. */
static Status scan_value(const Scan *s, const CsvReader *r, int i, const CsvColumn *c,
                         CsvVocab *vocab, uint64_t position, Moments *moments)
{
    const CsvValue *v = &r->value[i];
    double x;
    if (csv_has_vocab(c) && !csv_is_missing(s->import->schema, v)) {
        /* words are stored with zero bytes after them, so a last zero byte would be lost */
        if (v->length && !v->text[v->length - 1])
            return csv_fail(r, v->text, i,
                            "a value ends with a zero byte, which a stored vocabulary would lose: "
                            "remove it, or use `hash`");
        if (!csv_vocab_add(&vocab[c->slot], v, position, 1))
            return csv_fail(r, v->text, i, "more than %d different values; use `hash`", INT32_MAX);
    }
    if (c->type != CSV_NUMBER || !c->standardised) return OK;
    TRY(csv_convert_number(r, i, c, &x));
    moments_add(&moments[c->slot], x);
    return OK;
}

static Status scan_record(const Scan *s, const CsvReader *r, CsvVocab *vocab, uint64_t position,
                          Moments *moments)
{
    const CsvColumn *column = s->import->schema->column;
    const CsvFile *file = &r->input->file[r->block->file];
    for (int i = 0; i < file->width; ++i)
        for (int k = file->column[i]; k >= 0; k = column[k].next_view)
            TRY(scan_value(s, r, i, &column[k], vocab, position, moments));
    return OK;
}

/* Stores the results of a block; called under the lock. */
static void store_results(const Scan *s, const CsvBlock *b, int64_t rows, const Moments *moments)
{
    Split *p = s->split;
    int numbers = s->import->schema->numbers;
    if (b->number >= p->room) {
        p->room = 2 * b->number + 64;
        p->block_row = mem_resize(p->block_row, (size_t)p->room * sizeof *p->block_row);
        p->moments = mem_resize(p->moments, (size_t)(p->room * numbers + 1) * sizeof *p->moments);
    }
    if (s->end_row == INT64_MAX) p->block_row[b->number] = rows;
    if (numbers)
        memcpy(p->moments + b->number * numbers, moments, (size_t)numbers * sizeof *moments);
    if (b->number >= p->blocks) p->blocks = b->number + 1;
}

/* Fails with ERR_IO if the previous pass had no block with this number, since the file has become
 * longer. */
static Status check_block_number(const Split *p, const CsvBlock *b)
{
    if (b->number < p->blocks) return OK;
    return fail(ERR_IO, "%s: became longer while it was read", p->input.file[b->file].path);
}

static Status scan_block(void *user, int worker, CsvBlock *b)
{
    Scan *s = user;
    if (s->end_row < INT64_MAX) TRY(check_block_number(s->split, b));
    Import *im = s->import;
    int numbers = im->schema->numbers;
    int64_t rows = 0, first = s->end_row < INT64_MAX ? s->split->block_row[b->number] : 0;
    CsvVocab *vocab = im->encoding.vocab + (int64_t)worker * im->schema->categories;
    Moments *moments = mem_new((size_t)(numbers + 1) * sizeof *moments);
    CsvReader r;
    bool got = true;
    Status st = csv_reader_begin(&r, &s->split->input, b);
    if (st == OK && s->count_only && csv_count_records(&r, &rows)) got = false;
    while (st == OK && got && (st = csv_read_record(&r, &got)) == OK && got) {
        if (!s->count_only && first + rows < s->end_row)
            st = scan_record(s, &r, vocab, (uint64_t)b->number << 32 | (uint64_t)rows, moments);
        ++rows;
    }
    csv_reader_fini(&r);
    pthread_mutex_lock(&im->lock);
    if (st == OK) store_results(s, b, rows, moments);
    pthread_mutex_unlock(&im->lock);
    mem_free(&moments);
    return st;
}

/* Replaces each block's number of rows by the number of its first row. */
static Status sum_rows(Split *p)
{
    for (int64_t i = 0; i < p->blocks; ++i) {
        int64_t rows = p->block_row[i];
        p->block_row[i] = p->rows;
        p->rows += rows;
    }
    if (p->rows > 0) return OK;
    return fail(ERR_DATA, "%s: holds no records", p->input.file[0].path);
}

/* Makes one pass over a split, as Scan describes. If end_row is INT64_MAX, sets p->rows and the
 * first row of each block, too. */
static Status scan(Import *im, Split *p, int64_t end_row, bool count_only)
{
    Scan s = {.import = im, .split = p, .end_row = end_row, .count_only = count_only};
    TRY(csv_for_each_block(&p->input, im->options->threads, scan_block, &s, NULL));
    return end_row == INT64_MAX ? sum_rows(p) : OK;
}

/* ---- between the passes ---- */

/* Joins the threads' vocabularies, drops rare words (min_count) and assigns ids. Each field has a
 * range of ids, and the ranges follow each other. A range begins with the id of missing values. If
 * the field has a vocabulary, the id of unknown values and those of the words follow. Fields with
 * shared or hexadecimal ids do not use these ranges. */
static Status assign_ids(Import *im)
{
    const CsvSchema *s = im->schema;
    uint64_t next = 0;
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type != CSV_CATEGORY) continue;
        CsvVocab *vocab = &im->encoding.vocab[c->slot];
        for (int t = 1; t < im->options->threads; ++t) {
            CsvVocab *other = &im->encoding.vocab[t * s->categories + c->slot];
            if (!csv_vocab_join(vocab, other))
                return fail(ERR_DATA, "column %s has more than %d values; use `hash`", c->name,
                            INT32_MAX);
            csv_vocab_fini(other);
        }
        im->encoding.first_id[c->slot] = next;
        csv_vocab_assign_ids(vocab, c->id_rule == CSV_IDS_SORTED, c->min_count, next + 2);
        next += c->id_rule == CSV_IDS_HASH ? c->id_count : 2 + (uint64_t)vocab->count;
    }
    im->encoding.first_id[s->categories] = next;
    return OK;
}

/* Computes mean and deviation of each number from the moments of all blocks of the training
 * split. */
static void compute_means(Import *im)
{
    const CsvSchema *s = im->schema;
    const Split *p = &im->split[0];
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type != CSV_NUMBER) continue;
        Moments all = {0};
        for (int64_t b = 0; c->standardised && b < p->blocks; ++b)
            moments_join(&all, &p->moments[b * s->numbers + c->slot]);
        im->encoding.mean[c->slot] = moments_mean(&all);
        im->encoding.deviation[c->slot] = moments_deviation(&all);
    }
}

/* Writes the schema, and the words of each field whose vocabulary is not empty as /vocab/NAME. */
static herr_t put_encoding(void *user, hid_t file)
{
    const Import *im = user;
    hid_t group = -1;
    herr_t rc = csv_schema_put(im->schema, file);
    for (int i = 0; rc >= 0 && i < im->schema->count; ++i) {
        const CsvColumn *c = &im->schema->column[i];
        if (!csv_has_vocab(c) || im->encoding.vocab[c->slot].count == 0) continue;
        if (group < 0) group = H5Gcreate2(file, "/vocab", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        rc = group < 0 ? -1 : csv_vocab_put(&im->encoding.vocab[c->slot], file, c->name);
    }
    if (group >= 0) H5Gclose(group);
    return rc;
}

/* Computes an upper bound of the bytes that put_encoding writes. ERR_DATA: a vocabulary is too
 * large to be stored. All words of a vocabulary are stored with the width of the longest word, so
 * one long word can make it too large. */
static Status compute_encoding_bytes(const Import *im, int64_t *bytes)
{
    /* METADATA_BYTES: HDF5's metadata of one vocabulary */
    enum { GIB = 1 << 30, SCHEMA_SLACK_BYTES = 1 << 16, METADATA_BYTES = 8192 };
    *bytes = SCHEMA_SLACK_BYTES + (int64_t)strlen(im->schema->text);
    for (int i = 0; i < im->schema->count; ++i) {
        const CsvColumn *c = &im->schema->column[i];
        if (c->type != CSV_CATEGORY) continue;
        const CsvVocab *v = &im->encoding.vocab[c->slot];
        int64_t width = csv_vocab_longest(v);
        if (v->count > GIB / width)
            return fail(ERR_DATA,
                        "column %s: %lld different values of up to %lld bytes are more than a "
                        "vocabulary can hold (1 GiB); use `hash` or `least`, or ignore the column",
                        c->name, (long long)v->count, (long long)width);
        *bytes += v->count * width + METADATA_BYTES;
    }
    return OK;
}

static void collect_names(Import *im)
{
    const CsvSchema *s = im->schema;
    im->column_name = mem_new((size_t)(s->numbers + 1) * sizeof *im->column_name);
    im->field_name = mem_new((size_t)(s->categories + 1) * sizeof *im->field_name);
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type == CSV_NUMBER) im->column_name[c->slot] = c->name;
        if (c->type == CSV_CATEGORY) im->field_name[c->slot] = c->name;
    }
    /* a table without numbers has a column of ones (csv_convert_record) */
    if (s->numbers == 0) im->column_name[0] = "one";
}

static Status make_layout(Import *im, Split *p, int64_t samples)
{
    const CsvSchema *s = im->schema;
    bool hex = false, standardised = false, shared = s->shared_ids > 0;
    TableLayout *l = &p->layout;
    *l = (TableLayout){.samples = samples, .put_more = put_encoding, .user = im};
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        hex |= c->type == CSV_CATEGORY && c->id_rule == CSV_IDS_HEX;
        standardised |= c->type == CSV_NUMBER && c->standardised;
        if (csv_has_vocab(c))
            l->vocab_hash = csv_vocab_hash(&im->encoding.vocab[c->slot], l->vocab_hash);
        for (int k = 0; k < 2 && c->type == CSV_LABEL; ++k)
            l->class_name[k] = c->label_text[k].count ? c->label_text[k].text[0] : "";
    }
    l->columns = s->numbers ? s->numbers : 1;
    l->fields = s->categories;
    l->column_name = im->column_name;
    l->field_name = im->field_name;
    l->id_limit = hex ? 0 : shared ? s->shared_ids : im->encoding.first_id[s->categories];
    if (!hex && !shared && s->categories) l->field_first = im->encoding.first_id;
    if (standardised) l->mean = im->encoding.mean, l->deviation = im->encoding.deviation;
    return compute_encoding_bytes(im, &l->more_bytes);
}

/* ---- the second pass ---- */

/* converted rows of one block; owns its arrays */
typedef struct Rows {
    /* numbers, (rows, columns) */
    float *dense;
    /* (rows, fields) */
    uint64_t *ids;
    /* labels, (rows) */
    int32_t *y;
} Rows;

/* the second pass over the files of a split */
typedef struct Writing {
    Import *import;
    Split *split;
    /* number of blocks whose rows are written */
    atomic_llong blocks;
} Writing;

/* Writes the `count` rows of a block to the split's data set. first: number of the block's first
 * row in the split's files. If the test set is the end of the training files, rows from test_begin
 * on go to the test set. */
static Status put_rows(const Writing *w, int64_t first, int64_t count, const Rows *rows)
{
    const Import *im = w->import;
    int64_t columns = w->split->layout.columns, fields = w->split->layout.fields;
    int64_t train = im->test_begin - first;
    if (w->split != &im->split[0] || train >= count)
        return table_put(&w->split->writer, first, count, rows->dense, fields ? rows->ids : NULL,
                         rows->y);
    if (train < 0) train = 0;
    if (train > 0)
        TRY(table_put(&im->split[0].writer, first, train, rows->dense, fields ? rows->ids : NULL,
                      rows->y));
    return table_put(&im->split[1].writer, first + train - im->test_begin, count - train,
                     rows->dense + train * columns, fields ? rows->ids + train * fields : NULL,
                     rows->y + train);
}

static Status write_block(void *user, int worker, CsvBlock *b)
{
    Writing *w = user;
    const Split *p = w->split;
    int64_t columns = p->layout.columns, fields = p->layout.fields, at = 0;
    (void)worker;
    TRY(check_block_number(p, b));
    int64_t first = p->block_row[b->number],
            end = b->number + 1 < p->blocks ? p->block_row[b->number + 1] : p->rows,
            count = end - first;
    size_t n = (size_t)count + 1;
    Rows rows = {.dense = mem_resize(NULL, n * (size_t)columns * sizeof(float)),
                 .ids = mem_resize(NULL, n * (size_t)(fields + 1) * sizeof(uint64_t)),
                 .y = mem_resize(NULL, n * sizeof(int32_t))};
    CsvReader r;
    bool got = true;
    Status st = csv_reader_begin(&r, &p->input, b);
    for (; st == OK && (st = csv_read_record(&r, &got)) == OK && got; ++at) {
        if (at == count) break;
        st = csv_convert_record(&r, &w->import->encoding, rows.dense + at * columns,
                                rows.ids + at * fields, rows.y + at);
    }
    csv_reader_fini(&r);
    if (st == OK && (at != count || got))
        st = fail(ERR_IO, "%s: has changed while it was read", p->input.file[b->file].path);
    if (st == OK) st = put_rows(w, first, count, &rows);
    if (st == OK) atomic_fetch_add(&w->blocks, 1);
    mem_free(&rows.dense);
    mem_free(&rows.ids);
    mem_free(&rows.y);
    return st;
}

static Status write_split(Import *im, Split *p)
{
    Writing w = {.import = im, .split = p};
    TRY(csv_for_each_block(&p->input, im->options->threads, write_block, &w, &im->bytes));
    if (w.blocks == p->blocks) return OK;
    return fail(ERR_IO, "%s: %s became shorter while it was read",
                p->input.file[p->input.count - 1].path,
                p->input.count == 1 ? "it" : "it, or a file before it,");
}

/* ---- the import ---- */

/* Sets test_begin: if the test set is the end of the training files, counts their rows and finds
 * the row at which it begins; otherwise test_begin is INT64_MAX. */
static Status find_test_begin(Import *im)
{
    const CsvImport *options = im->options;
    im->test_begin = INT64_MAX;
    if (!options->test || options->test_count > 0) return OK;
    TRY(scan(im, &im->split[0], INT64_MAX, true));
    int64_t rows = im->split[0].rows;
    im->test_begin = rows - (int64_t)((double)rows * options->test_share + 0.5);
    if (im->test_begin >= 1 && im->test_begin < rows) return OK;
    return fail(ERR_DATA, "%s: --test-share %g of %lld records leaves one data set without records",
                options->file[0], options->test_share, (long long)rows);
}

static Status import_read(Import *im)
{
    const CsvImport *options = im->options;
    Split *train = &im->split[0], *test = &im->split[1];
    TRY(csv_input_init(&train->input, im->schema, options->file, options->count));
    if (options->test_count > 0)
        TRY(csv_input_init(&test->input, im->schema, options->test_file, options->test_count));
    TRY(find_test_begin(im));
    /* find_test_begin has counted the rows if test_begin is set */
    const bool counts_only = !csv_schema_needs_statistics(im->schema);
    if (!counts_only || im->test_begin == INT64_MAX)
        TRY(scan(im, train, im->test_begin, counts_only));
    if (options->test_count > 0) TRY(scan(im, test, INT64_MAX, true));
    TRY(assign_ids(im));
    compute_means(im);
    collect_names(im);
    bool shared = im->test_begin < INT64_MAX;
    TRY(make_layout(im, train, shared ? im->test_begin : train->rows));
    if (options->test)
        TRY(make_layout(im, test, shared ? train->rows - im->test_begin : test->rows));
    return OK;
}

static Status import_write(Import *im)
{
    const CsvImport *options = im->options;
    Split *train = &im->split[0], *test = &im->split[1];
    TRY(table_new(&train->writer, options->out, options->force, &train->layout));
    if (options->test) TRY(table_new(&test->writer, options->test, options->force, &test->layout));
    TRY(write_split(im, train));
    if (options->test_count > 0) TRY(write_split(im, test));
    if (options->test) TRY(table_finish(&test->writer));
    return table_finish(&train->writer);
}

static void import_fini(Import *im)
{
    for (int i = 0; i < 2; ++i) {
        table_drop(&im->split[i].writer);
        csv_input_fini(&im->split[i].input);
        mem_free(&im->split[i].block_row);
        mem_free(&im->split[i].moments);
    }
    csv_encoding_fini(&im->encoding, im->options->threads * im->schema->categories);
    mem_free(&im->column_name);
    mem_free(&im->field_name);
    pthread_mutex_destroy(&im->lock);
}

Status csv_import(const CsvImport *options, CsvResult *result)
{
    const CsvSchema *s = options->schema;
    Import im = {.options = options, .schema = s};
    double start_s = clock_s();
    TRY(part_check_outputs(options->out, options->test, options->force));
    pthread_mutex_init(&im.lock, NULL);
    csv_encoding_init(&im.encoding, s, options->threads * s->categories);
    Status st = import_read(&im);
    if (st == OK) st = import_write(&im);
    *result = (CsvResult){im.split[0].rows + im.split[1].rows, im.bytes, clock_s() - start_s};
    import_fini(&im);
    return st;
}
