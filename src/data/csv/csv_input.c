/* Reads text files as blocks of whole records: one thread at a time reads, all threads parse. A
 * block ends after its last complete record; the rest begins the next block. A record ends at a
 * line break outside quotes; a comment ends at its line break. Blocks are the same each time a file
 * is read, so that results of one pass are valid for the next. */
#include "csv.h"
#include "../set/name_index.h"

#include <string.h>

/* a pass over all files */
typedef struct Feed {
    const CsvInput *input;
    CsvWork *work;
    void *user;
    pthread_mutex_t lock;
    /* protected by lock: the open file, its number, and the state of reading it */
    PackedFile packed;
    int file;
    int64_t number, at, bytes;
    bool ended;
    /* owned: text that begins the next block */
    char *rest;
    size_t rest_bytes;
    /* failure of the first block that fails */
    FirstFailure failure;
} Feed;

/* Returns the length of the text up to the end of its last complete record; 0: it has none. */
static size_t records_end(const CsvSchema *s, const char *text, size_t bytes)
{
    const char *end = text + bytes, *at = text, *last = text;
    if (!s->quotes || !memchr(text, '"', bytes)) {
        const char *line = memrchr(text, '\n', bytes);
        return line ? (size_t)(line + 1 - text) : 0;
    }
    while (at < end) {
        bool open = false, remark = csv_is_comment(s, at, end);
        for (;;) {
            const char *line = memchr(at, '\n', (size_t)(end - at)), *quote = at;
            if (!line) return (size_t)(last - text);
            while (!remark && (quote = memchr(quote, '"', (size_t)(line - quote)))) {
                open = !open;
                ++quote;
            }
            at = line + 1;
            if (!open) break;
        }
        last = at;
    }
    return (size_t)(last - text);
}

/* Fills a block with the rest and new text; if it is not full, the file has ended. */
static Status block_fill(Feed *f, CsvBlock *b)
{
    memcpy(b->text, f->rest, f->rest_bytes);
    b->bytes = f->rest_bytes;
    size_t n;
    TRY(packed_read(&f->packed, b->text + b->bytes, CSV_BLOCK - b->bytes, &n));
    b->bytes += n;
    f->ended = b->bytes < CSV_BLOCK;
    f->bytes += (int64_t)n;
    return packed_bound(&f->packed, f->at + (int64_t)b->bytes);
}

static Status file_next(Feed *f)
{
    TRY(packed_open(&f->packed, f->input->file[f->file].path));
    f->at = 0;
    f->rest_bytes = 0;
    f->ended = false;
    return OK;
}

/* Reads the next block; called under the lock. *got false: there is none. */
static Status block_next(Feed *f, CsvBlock *b, bool *got)
{
    static const char mark[] = "\xef\xbb\xbf";
    *got = false;
    while (f->file < f->input->count) {
        if (!f->packed.open) TRY(file_next(f));
        b->file = f->file;
        b->at = f->at;
        b->first = f->at == 0;
        TRY(block_fill(f, b));
        size_t whole = f->ended ? b->bytes : records_end(f->input->schema, b->text, b->bytes);
        b->torn = whole == 0 && !f->ended;
        if (b->torn) whole = b->bytes;
        f->rest_bytes = b->bytes - whole;
        memcpy(f->rest, b->text + whole, f->rest_bytes);
        f->at += (int64_t)whole;
        b->bytes = whole;
        if (f->ended) {
            packed_close(&f->packed);
            ++f->file;
        }
        if (whole == 0) continue;
        if (b->first && whole >= 3 && memcmp(b->text, mark, 3) == 0) memset(b->text, '\n', 3);
        b->text[whole] = '\n';
        b->number = f->number++;
        *got = true;
        return OK;
    }
    return OK;
}

static Status feed_run(void *user, int worker, int64_t thread)
{
    Feed *f = user;
    CsvBlock block = {.text = mem_new(CSV_ROOM)};
    bool got = true;
    (void)thread;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        got = false;
        int64_t number = f->number;
        Status st = f->failure.status == OK ? block_next(f, &block, &got) : OK;
        if (st != OK) failure_note(&f->failure, number, st);
        pthread_mutex_unlock(&f->lock);
        if (!got) break;
        st = f->work(f->user, worker, &block);
        pthread_mutex_lock(&f->lock);
        if (st != OK) failure_note(&f->failure, block.number, st);
        pthread_mutex_unlock(&f->lock);
    }
    mem_free(&block.text);
    return OK;
}

Status csv_pass(const CsvInput *input, int threads, CsvWork *work, void *user, int64_t *bytes)
{
    Feed f = {.input = input, .work = work, .user = user, .rest = mem_new(CSV_BLOCK)};
    pthread_mutex_init(&f.lock, NULL);
    (void)worker_pool_run(threads, threads, feed_run, &f);
    pthread_mutex_destroy(&f.lock);
    packed_close(&f.packed);
    mem_free(&f.rest);
    if (bytes) *bytes += f.bytes;
    return failure_end(&f.failure);
}

/* ---- which value of a record is which column ---- */

/* Finds the columns named in the header; found: for each column of the schema, is it there? */
static Status header_find(CsvFile *file, const CsvReader *r, bool *found)
{
    const CsvSchema *s = r->input->schema;
    NameIndex names = {0};
    Status st = OK;
    for (int c = 0; c < s->count; ++c)
        if (s->column[c].of < 0)
            name_index_add(&names, s->column[c].name, strlen(s->column[c].name), c);
    for (int i = 0; st == OK && i < file->width; ++i) {
        int64_t c = name_index_find(&names, r->value[i].text, r->value[i].length);
        file->column[i] = c >= 0 && found[c] ? -1 : (int)c;
        if (c < 0) continue;
        if (found[c])
            st = csv_fail(r, r->value[i].text, i, "the header has column %s twice",
                          s->column[c].name);
        found[c] = true;
    }
    name_index_fini(&names);
    return st;
}

static Status header_take(CsvFile *file, const CsvReader *r)
{
    const CsvSchema *s = r->input->schema;
    bool *found = mem_new((size_t)s->count * sizeof *found);
    Status st = header_find(file, r, found);
    for (int c = 0; st == OK && c < s->count; ++c)
        if (!found[c] && s->column[c].of < 0 && !s->column[c].optional)
            st = csv_fail(r, r->value[0].text, -1,
                          "the header has no column %s, which the schema names; correct one of "
                          "them",
                          s->column[c].name);
    mem_free(&found);
    TRY(st);
    for (int i = 0; i < file->width && !s->others_ignored; ++i)
        if (file->column[i] < 0)
            return csv_fail(r, r->value[i].text, i,
                            "the schema has no column %.*s; add it, or `others: ignore`",
                            (int)(r->value[i].length < 100 ? r->value[i].length : 100),
                            r->value[i].text);
    return OK;
}

/* Returns the optional column that is missing from records of `width` values; -1: none is. */
static int column_missing(const CsvSchema *s, int width)
{
    for (int c = 0; c < s->count; ++c) {
        bool found = s->placed ? s->column[c].place < width : width != s->real - 1;
        if (s->column[c].optional && !found) return c;
    }
    return -1;
}

/* Assigns columns by their places. Unless columns have explicit places, those after a missing one
 * move up. */
static Status places_take(CsvFile *file, const CsvReader *r)
{
    const CsvSchema *s = r->input->schema;
    int missing = column_missing(s, file->width);
    for (int i = 0; i < file->width; ++i) file->column[i] = -1;
    for (int c = 0; c < s->count; ++c) {
        if (s->column[c].of >= 0 || c == missing) continue;
        int place = s->column[c].place;
        if (missing >= 0 && place > s->column[missing].place) --place;
        if (place >= file->width && s->expects)
            return csv_fail(r, r->value[0].text, -1, "its first record has %d values, but %s",
                            file->width, s->expects);
        if (place >= file->width)
            return csv_fail(r, r->value[0].text, -1,
                            "its first record has %d values, but the schema's column %s is the "
                            "%dth; is the separator right?",
                            file->width, s->column[c].name, place + 1);
        file->column[place] = c;
    }
    if (s->placed || file->width == s->real || missing >= 0) return OK;
    return csv_fail(r, r->value[0].text, -1,
                    "its first record has %d values, the schema %d columns; name all columns "
                    "(`ignore` those not wanted)",
                    file->width, s->real);
}

/* Finds the columns in the first block of a file. */
static Status find_columns(void *user, int worker, CsvBlock *block)
{
    CsvInput *input = user;
    CsvFile *file = &input->file[block->file];
    CsvReader r;
    bool got = true;
    (void)worker;
    if (file->column) return OK;
    csv_reader_init(&r, input, block, true);
    Status st = csv_next(&r, &got);
    if (st == OK && got) {
        file->width = r.width;
        file->begin = block->at;
        file->column = mem_new((size_t)r.width * sizeof *file->column);
        st = input->schema->header ? header_take(file, &r) : places_take(file, &r);
    }
    csv_reader_fini(&r);
    return st;
}

/* Reads blocks of file i until its columns are known. */
static Status file_begin(CsvInput *input, int i)
{
    Feed f = {.input = input, .file = i, .rest = mem_new(CSV_BLOCK)};
    CsvBlock block = {.text = mem_new(CSV_ROOM)};
    bool got = true;
    Status st = OK;
    while (st == OK && got && f.file == i && !input->file[i].column) {
        st = block_next(&f, &block, &got);
        if (st == OK && got && block.file == i) st = find_columns(input, 0, &block);
    }
    packed_close(&f.packed);
    mem_free(&f.rest);
    mem_free(&block.text);
    if (st == OK && !input->file[i].column)
        st = fail(ERR_DATA, "%s: holds no records; name another file", input->file[i].path);
    return st;
}

Status csv_input_init(CsvInput *input, const CsvSchema *schema, const char *const *path, int count)
{
    *input = (CsvInput){.schema = schema, .count = count};
    input->file = mem_new((size_t)count * sizeof *input->file);
    for (int i = 0; i < count; ++i) input->file[i].path = path[i];
    for (int i = 0; i < count; ++i) TRY(file_begin(input, i));
    return OK;
}

void csv_input_fini(CsvInput *input)
{
    for (int i = 0; i < input->count && input->file; ++i) mem_free(&input->file[i].column);
    mem_free(&input->file);
    input->count = 0;
}
