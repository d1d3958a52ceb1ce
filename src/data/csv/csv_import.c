/* Imports tables of text as data sets, in two passes over the same blocks: the first counts records
 * and finds vocabularies and means; the second writes each record to its row. Text is not kept, so
 * files may be larger than memory; vocabularies must fit. Everything that depends on an order
 * (numbers of words, sums) follows the order of the blocks, so the number of threads changes no
 * byte. */
#include "csv.h"
#include "moments.h"

#include <string.h>

/* one output file and its input files */
typedef struct Part {
    CsvInput input;
    /* owned: per block the number of rows, after rows_sum the first row; per block and number the
     * moments */
    int64_t blocks, rows, *row, room;
    Moments *moments;
    TableWriter writer;
    TableLayout layout;
} Part;

typedef struct Import {
    const CsvImport *options;
    const CsvSchema *schema;
    /* training and test set; if the test set is a share of the same files, its rows begin at
     * split */
    Part part[2];
    int64_t split, bytes;
    pthread_mutex_t lock;
    /* vocabularies of each thread; later the first ones hold those of all threads */
    CsvMeaning is;
    const char **column_name, **field_name;
} Import;

/* one run of the first pass */
typedef struct Survey {
    Import *import;
    Part *part;
    /* rows from this one on are only counted */
    int64_t until;
    bool count_only;
} Survey;

/* ---- the first pass ---- */

/* Adds one value to the vocabulary or the moments of one column. */
static Status survey_value(const Survey *s, const CsvReader *r, int at, const CsvColumn *c,
                           CsvVocab *vocab, uint64_t where, Moments *moments)
{
    const CsvValue *v = &r->value[at];
    double x;
    if (csv_has_words(c) && !csv_missing(s->import->schema, v) &&
        !csv_vocab_add(&vocab[c->slot], v, where, 1))
        return csv_fail(r, v->text, at, "more than %d different values; use `hash`", INT32_MAX);
    if (c->type != CSV_NUMBER || !c->standard) return OK;
    TRY(csv_value_number(r, at, c, &x));
    moments_add(&moments[c->slot], x);
    return OK;
}

static Status survey_record(const Survey *s, const CsvReader *r, CsvVocab *vocab, uint64_t where,
                            Moments *moments)
{
    const CsvColumn *column = s->import->schema->column;
    const CsvFile *file = &r->input->file[r->block->file];
    for (int i = 0; i < file->width; ++i)
        for (int k = file->column[i]; k >= 0; k = column[k].also)
            TRY(survey_value(s, r, i, &column[k], vocab, where, moments));
    return OK;
}

/* Stores the results of a block; called under the lock. With a split the rows are already known. */
static void survey_note(const Survey *s, const CsvBlock *b, int64_t rows, const Moments *moments)
{
    Part *p = s->part;
    int numbers = s->import->schema->numbers;
    if (b->number >= p->room) {
        p->room = 2 * b->number + 64;
        p->row = mem_resize(p->row, (size_t)p->room * sizeof *p->row);
        p->moments = mem_resize(p->moments, (size_t)(p->room * numbers + 1) * sizeof *p->moments);
    }
    if (s->until == INT64_MAX) p->row[b->number] = rows;
    if (numbers)
        memcpy(p->moments + b->number * numbers, moments, (size_t)numbers * sizeof *moments);
    if (b->number >= p->blocks) p->blocks = b->number + 1;
}

/* ERR_IO: the block did not exist in the pass before. */
static Status block_known(const Part *p, const CsvBlock *b)
{
    if (b->number < p->blocks) return OK;
    return fail(ERR_IO, "%s: became longer meanwhile", p->input.file[b->file].path);
}

static Status survey_block(void *user, int worker, CsvBlock *b)
{
    Survey *s = user;
    if (s->until < INT64_MAX) TRY(block_known(s->part, b));
    Import *im = s->import;
    int numbers = im->schema->numbers;
    int64_t rows = 0, first = s->until < INT64_MAX ? s->part->row[b->number] : 0;
    CsvVocab *vocab = im->is.vocab + (int64_t)worker * im->schema->categories;
    Moments *moments = mem_new((size_t)(numbers + 1) * sizeof *moments);
    CsvReader r;
    bool got = true;
    Status st = csv_reader_begin(&r, &s->part->input, b);
    if (st == OK && s->count_only && csv_count(&r, &rows)) got = false;
    while (st == OK && got && (st = csv_next(&r, &got)) == OK && got) {
        if (!s->count_only && first + rows < s->until)
            st = survey_record(s, &r, vocab, (uint64_t)b->number << 32 | (uint64_t)rows, moments);
        ++rows;
    }
    csv_reader_fini(&r);
    pthread_mutex_lock(&im->lock);
    if (st == OK) survey_note(s, b, rows, moments);
    pthread_mutex_unlock(&im->lock);
    mem_free(&moments);
    return st;
}

/* Replaces each block's number of rows by the number of its first row. */
static Status rows_sum(Part *p)
{
    for (int64_t i = 0; i < p->blocks; ++i) {
        int64_t rows = p->row[i];
        p->row[i] = p->rows;
        p->rows += rows;
    }
    if (p->rows > 0) return OK;
    return fail(ERR_DATA, "%s: holds no records", p->input.file[0].path);
}

static Status survey(Import *im, Part *p, int64_t until, bool count_only)
{
    Survey s = {.import = im, .part = p, .until = until, .count_only = count_only};
    TRY(csv_pass(&p->input, im->options->threads, survey_block, &s, NULL));
    return until == INT64_MAX ? rows_sum(p) : OK;
}

/* ---- between the passes ---- */

static Status vocab_settle(Import *im)
{
    const CsvSchema *s = im->schema;
    uint64_t next = 0;
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type != CSV_CATEGORY) continue;
        CsvVocab *vocab = &im->is.vocab[c->slot];
        for (int t = 1; t < im->options->threads; ++t) {
            CsvVocab *other = &im->is.vocab[t * s->categories + c->slot];
            if (!csv_vocab_join(vocab, other))
                return fail(ERR_DATA, "column %s has more than %d values; use `hash`", c->name,
                            INT32_MAX);
            csv_vocab_fini(other);
        }
        im->is.first[c->slot] = next;
        csv_vocab_done(vocab, c->ids == CSV_SORTED, c->least, next + 2);
        next += c->ids == CSV_HASH ? c->rows : 2 + (uint64_t)vocab->count;
    }
    im->is.first[s->categories] = next;
    return OK;
}

static void means_settle(Import *im)
{
    const CsvSchema *s = im->schema;
    const Part *p = &im->part[0];
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type != CSV_NUMBER) continue;
        Moments all = {0};
        for (int64_t b = 0; c->standard && b < p->blocks; ++b)
            moments_join(&all, &p->moments[b * s->numbers + c->slot]);
        im->is.mean[c->slot] = moments_mean(&all);
        im->is.deviation[c->slot] = moments_deviation(&all);
    }
}

/* Writes the schema, and the words of all fields as /vocab/NAME. */
static herr_t put_meaning(void *user, hid_t file)
{
    const Import *im = user;
    hid_t group = -1;
    herr_t rc = csv_schema_put(im->schema, file);
    for (int i = 0; rc >= 0 && i < im->schema->count; ++i) {
        const CsvColumn *c = &im->schema->column[i];
        if (!csv_has_words(c) || im->is.vocab[c->slot].count == 0) continue;
        if (group < 0) group = H5Gcreate2(file, "/vocab", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        rc = group < 0 ? -1 : csv_vocab_put(&im->is.vocab[c->slot], file, c->name);
    }
    if (group >= 0) H5Gclose(group);
    return rc;
}

/* Computes the bytes of all vocabularies in the file. ERR_DATA: one long value would make the
 * field's fixed-width strings too large. */
static Status vocab_bytes(const Import *im, int64_t *bytes)
{
    enum { GIB = 1 << 30 };
    *bytes = (1 << 16) + (int64_t)strlen(im->schema->text);
    for (int i = 0; i < im->schema->count; ++i) {
        const CsvColumn *c = &im->schema->column[i];
        if (c->type != CSV_CATEGORY) continue;
        const CsvVocab *v = &im->is.vocab[c->slot];
        int64_t width = csv_vocab_width(v);
        if (v->count > GIB / width)
            return fail(ERR_DATA,
                        "column %s: %lld different values of up to %lld bytes are more than a "
                        "vocabulary can hold (1 GiB); use `hash` or `least`, or ignore it",
                        c->name, (long long)v->count, (long long)width);
        *bytes += v->count * width + 8192;
    }
    return OK;
}

static void names_find(Import *im)
{
    const CsvSchema *s = im->schema;
    im->column_name = mem_new((size_t)(s->numbers + 1) * sizeof *im->column_name);
    im->field_name = mem_new((size_t)(s->categories + 1) * sizeof *im->field_name);
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        if (c->type == CSV_NUMBER) im->column_name[c->slot] = c->name;
        if (c->type == CSV_CATEGORY) im->field_name[c->slot] = c->name;
    }
    if (s->numbers == 0) im->column_name[0] = "one";
}

static Status layout_make(Import *im, Part *p, int64_t samples)
{
    const CsvSchema *s = im->schema;
    bool hex = false, standard = false, shared = s->hash_rows > 0;
    TableLayout *l = &p->layout;
    *l = (TableLayout){.samples = samples, .more = put_meaning, .user = im};
    for (int i = 0; i < s->count; ++i) {
        const CsvColumn *c = &s->column[i];
        hex |= c->type == CSV_CATEGORY && c->ids == CSV_HEX;
        standard |= c->type == CSV_NUMBER && c->standard;
        if (csv_has_words(c)) l->words = csv_vocab_hash(&im->is.vocab[c->slot], l->words);
        for (int k = 0; k < 2 && c->type == CSV_LABEL; ++k)
            l->class_name[k] = c->value[k].count ? c->value[k].text[0] : "";
    }
    l->columns = s->numbers ? s->numbers : 1;
    l->fields = s->categories;
    l->column_name = im->column_name;
    l->field_name = im->field_name;
    l->id_rows = hex ? 0 : shared ? s->hash_rows : im->is.first[s->categories];
    if (!hex && !shared && s->categories) l->field_first = im->is.first;
    if (standard) l->mean = im->is.mean, l->deviation = im->is.deviation;
    return vocab_bytes(im, &l->more_bytes);
}

/* ---- the second pass ---- */

/* converted rows of one block */
typedef struct Rows {
    float *dense;
    uint64_t *ids;
    int32_t *y;
} Rows;

typedef struct Writing {
    Import *import;
    Part *part;
} Writing;

/* Writes rows of a block: up to the split to the training set, from there on to the test set. */
static Status rows_put(const Writing *w, int64_t first, int64_t count, const Rows *rows)
{
    const Import *im = w->import;
    int64_t columns = w->part->layout.columns, fields = w->part->layout.fields;
    int64_t left = im->split - first;
    if (w->part != &im->part[0] || left >= count)
        return table_put(&w->part->writer, first, count, rows->dense, fields ? rows->ids : NULL,
                         rows->y);
    if (left < 0) left = 0;
    if (left > 0)
        TRY(table_put(&im->part[0].writer, first, left, rows->dense, fields ? rows->ids : NULL,
                      rows->y));
    return table_put(&im->part[1].writer, first + left - im->split, count - left,
                     rows->dense + left * columns, fields ? rows->ids + left * fields : NULL,
                     rows->y + left);
}

static Status write_block(void *user, int worker, CsvBlock *b)
{
    const Writing *w = user;
    const Part *p = w->part;
    int64_t columns = p->layout.columns, fields = p->layout.fields, at = 0;
    (void)worker;
    TRY(block_known(p, b));
    int64_t first = p->row[b->number],
            end = b->number + 1 < p->blocks ? p->row[b->number + 1] : p->rows, count = end - first;
    size_t n = (size_t)count + 1;
    Rows rows = {.dense = mem_resize(NULL, n * (size_t)columns * sizeof(float)),
                 .ids = mem_resize(NULL, n * (size_t)(fields + 1) * sizeof(uint64_t)),
                 .y = mem_resize(NULL, n * sizeof(int32_t))};
    CsvReader r;
    bool got = true;
    Status st = csv_reader_begin(&r, &p->input, b);
    for (; st == OK && (st = csv_next(&r, &got)) == OK && got; ++at) {
        if (at == count) break;
        st = csv_record(&r, &w->import->is, rows.dense + at * columns, rows.ids + at * fields,
                        rows.y + at);
    }
    csv_reader_fini(&r);
    if (st == OK && (at != count || got))
        st = fail(ERR_IO, "%s: has changed while it was read", p->input.file[b->file].path);
    if (st == OK) st = rows_put(w, first, count, &rows);
    mem_free(&rows.dense);
    mem_free(&rows.ids);
    mem_free(&rows.y);
    return st;
}

static Status write_part(Import *im, Part *p)
{
    Writing w = {.import = im, .part = p};
    return csv_pass(&p->input, im->options->threads, write_block, &w, &im->bytes);
}

/* ---- all of it ---- */

/* Finds the row at which the test set begins, if it is a share of the training files. */
static Status split_find(Import *im)
{
    const CsvImport *options = im->options;
    im->split = INT64_MAX;
    if (!options->test || options->test_count > 0) return OK;
    TRY(survey(im, &im->part[0], INT64_MAX, true));
    int64_t rows = im->part[0].rows;
    im->split = rows - (int64_t)((double)rows * options->test_share + 0.5);
    if (im->split >= 1 && im->split < rows) return OK;
    return fail(ERR_DATA, "%s: --test-share %g of %lld records leaves one of the two without any",
                options->file[0], options->test_share, (long long)rows);
}

static Status import_read(Import *im)
{
    const CsvImport *options = im->options;
    Part *train = &im->part[0], *test = &im->part[1];
    TRY(csv_input_init(&train->input, im->schema, options->file, options->count));
    if (options->test_count > 0)
        TRY(csv_input_init(&test->input, im->schema, options->test_file, options->test_count));
    TRY(split_find(im));
    TRY(survey(im, train, im->split, !csv_schema_looks(im->schema)));
    if (options->test_count > 0) TRY(survey(im, test, INT64_MAX, true));
    TRY(vocab_settle(im));
    means_settle(im);
    names_find(im);
    bool shared = im->split < INT64_MAX;
    TRY(layout_make(im, train, shared ? im->split : train->rows));
    if (options->test) TRY(layout_make(im, test, shared ? train->rows - im->split : test->rows));
    return OK;
}

static Status import_write(Import *im)
{
    const CsvImport *options = im->options;
    Part *train = &im->part[0], *test = &im->part[1];
    TRY(table_new(&train->writer, options->out, options->force, &train->layout));
    if (options->test) TRY(table_new(&test->writer, options->test, options->force, &test->layout));
    TRY(write_part(im, train));
    if (options->test_count > 0) TRY(write_part(im, test));
    if (options->test) TRY(table_finish(&test->writer));
    return table_finish(&train->writer);
}

static void import_fini(Import *im)
{
    for (int i = 0; i < 2; ++i) {
        table_drop(&im->part[i].writer);
        csv_input_fini(&im->part[i].input);
        mem_free(&im->part[i].row);
        mem_free(&im->part[i].moments);
    }
    csv_meaning_fini(&im->is, im->options->threads * im->schema->categories);
    mem_free(&im->column_name);
    mem_free(&im->field_name);
    pthread_mutex_destroy(&im->lock);
}

Status csv_import(const CsvImport *options, CsvDone *done)
{
    const CsvSchema *s = options->schema;
    Import im = {.options = options, .schema = s};
    double began = clock_s();
    TRY(part_free_places(options->out, options->test, options->force));
    pthread_mutex_init(&im.lock, NULL);
    csv_meaning_init(&im.is, s, options->threads * s->categories);
    Status st = import_read(&im);
    if (st == OK) st = import_write(&im);
    *done = (CsvDone){im.part[0].rows + im.part[1].rows, im.bytes, clock_s() - began};
    import_fini(&im);
    return st;
}
