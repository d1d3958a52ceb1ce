/* Reads text files as blocks of records, and finds the columns of each file. One thread at a time
 * reads a block, while other threads parse their blocks. A block ends after its last complete
 * record, and the text after this record begins the next block. A record ends at a line break
 * outside quotes; a comment ends at its line break. If CSV_BLOCK_BYTES bytes have no complete
 * record, the block is cut there, and csv_read_record refuses it. Each pass over the files gets the
 * same blocks, so the row numbers that the first pass has found are valid in the second pass. */
#include "csv.h"
#include "../set/name_index.h"

#include <string.h>

/* state of a pass over all files, or of find_file_columns, which reads one file in one thread */
typedef struct Pass {
    const CsvInput *input;
    CsvBlockWork *work;
    void *user;
    /* protects all members below it; not used by find_file_columns */
    pthread_mutex_t lock;
    /* index of the current file */
    int file;
    /* the current file, if it is open */
    PackedFile packed;
    /* true: the current file has been read to its end */
    bool ended;
    /* number of the next block */
    int64_t number;
    /* offset of the next block in the unpacked file */
    int64_t offset;
    /* bytes of unpacked text read from all files */
    int64_t bytes;
    /* owned: text after the last complete record, with which the next block begins */
    char *rest;
    /* length of rest */
    size_t rest_bytes;
    /* failure of the block with the lowest number */
    FirstFailure failure;
} Pass;

/* Returns the length of the text up to the end of its last complete record or comment; 0: it has
 * none. */
static size_t complete_bytes(const CsvSchema *s, const char *text, size_t bytes)
{
    const char *end = text + bytes, *at = text, *last = text;
    if (!s->quotes || !memchr(text, '"', bytes)) {
        const char *line_break = memrchr(text, '\n', bytes);
        return line_break ? (size_t)(line_break + 1 - text) : 0;
    }
    while (at < end) {
        bool in_quotes = false, comment = csv_is_comment(s, at, end);
        for (;;) {
            const char *line_break = memchr(at, '\n', (size_t)(end - at)), *quote = at;
            if (!line_break) return (size_t)(last - text);
            while (!comment && (quote = memchr(quote, '"', (size_t)(line_break - quote)))) {
                in_quotes = !in_quotes;
                ++quote;
            }
            at = line_break + 1;
            if (!in_quotes) break;
        }
        last = at;
    }
    return (size_t)(last - text);
}

/* Fills a block with the rest of the previous block and new text. The file has ended if this does
 * not fill the block. */
static Status fill_block(Pass *p, CsvBlock *b)
{
    memcpy(b->text, p->rest, p->rest_bytes);
    b->bytes = p->rest_bytes;
    size_t n;
    TRY(packed_read(&p->packed, b->text + b->bytes, CSV_BLOCK_BYTES - b->bytes, &n));
    b->bytes += n;
    p->ended = b->bytes < CSV_BLOCK_BYTES;
    p->bytes += (int64_t)n;
    return packed_check_expansion(&p->packed, p->offset + (int64_t)b->bytes);
}

/* Reads the next block. process_blocks calls it under the lock. *got false: there is none. A byte
 * order mark at the beginning of a file is replaced by empty lines. */
static Status read_block(Pass *p, CsvBlock *b, bool *got)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    *got = false;
    while (p->file < p->input->count) {
        if (!p->packed.open) {
            TRY(packed_open(&p->packed, p->input->file[p->file].path));
            p->offset = 0;
            p->rest_bytes = 0;
            p->ended = false;
        }
        b->file = p->file;
        b->offset = p->offset;
        b->first_of_file = p->offset == 0;
        TRY(fill_block(p, b));
        size_t bytes = p->ended ? b->bytes : complete_bytes(p->input->schema, b->text, b->bytes);
        b->cut = bytes == 0 && !p->ended;
        if (b->cut) bytes = b->bytes;
        p->rest_bytes = b->bytes - bytes;
        memcpy(p->rest, b->text + bytes, p->rest_bytes);
        p->offset += (int64_t)bytes;
        b->bytes = bytes;
        if (p->ended) {
            packed_close(&p->packed);
            ++p->file;
        }
        if (bytes == 0) continue;
        if (b->first_of_file && bytes >= 3 && memcmp(b->text, byte_order_mark, 3) == 0)
            memset(b->text, '\n', 3);
        b->text[bytes] = '\n';
        b->number = p->number++;
        *got = true;
        return OK;
    }
    return OK;
}

/* Does the work of one thread of a pass: reads and processes blocks until none is left or one has
 * failed. */
static Status process_blocks(void *user, int worker, int64_t thread)
{
    Pass *p = user;
    CsvBlock block = {.text = mem_new(CSV_BUFFER_BYTES)};
    bool got = true;
    (void)thread;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        got = false;
        int64_t number = p->number;
        Status st = p->failure.status == OK ? read_block(p, &block, &got) : OK;
        if (st != OK) failure_record(&p->failure, number, st);
        pthread_mutex_unlock(&p->lock);
        if (!got) break;
        st = p->work(p->user, worker, &block);
        pthread_mutex_lock(&p->lock);
        if (st != OK) failure_record(&p->failure, block.number, st);
        pthread_mutex_unlock(&p->lock);
    }
    mem_free(&block.text);
    return OK;
}

Status csv_for_each_block(const CsvInput *input, int threads, CsvBlockWork *work, void *user,
                          int64_t *bytes)
{
    Pass p = {.input = input, .work = work, .user = user, .rest = mem_new(CSV_BLOCK_BYTES)};
    pthread_mutex_init(&p.lock, NULL);
    (void)worker_pool_run(threads, threads, process_blocks, &p);
    pthread_mutex_destroy(&p.lock);
    packed_close(&p.packed);
    mem_free(&p.rest);
    if (bytes) *bytes += p.bytes;
    return failure_end(&p.failure);
}

/* ---- the columns of a file ---- */

/* Sets file->column[i] to the schema's column that has the name of value i of the header, or to -1.
 * Sets found[c] to true if the header has the name of the schema's column c. */
static Status find_names(CsvFile *file, const CsvReader *r, bool *found)
{
    const CsvSchema *s = r->input->schema;
    NameIndex names = {0};
    Status st = OK;
    for (int c = 0; c < s->count; ++c)
        if (s->column[c].view_of < 0)
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

/* Sets file->column by the header, which must have all columns of the schema that are neither
 * optional nor views. */
static Status assign_by_header(CsvFile *file, const CsvReader *r)
{
    const CsvSchema *s = r->input->schema;
    bool *found = mem_new((size_t)s->count * sizeof *found);
    Status st = find_names(file, r, found);
    for (int c = 0; st == OK && c < s->count; ++c)
        if (!found[c] && s->column[c].view_of < 0 && !s->column[c].optional)
            st = csv_fail(r, r->value[0].text, -1,
                          "the header has no column %s, which the schema names; correct the header "
                          "or the schema",
                          s->column[c].name);
    mem_free(&found);
    TRY(st);
    for (int i = 0; i < file->width && !s->ignore_others; ++i)
        if (file->column[i] < 0)
            return csv_fail(r, r->value[i].text, i,
                            "the schema has no column %.*s; add it, or `others: ignore`",
                            (int)(r->value[i].length < 100 ? r->value[i].length : 100),
                            r->value[i].text);
    return OK;
}

/* Returns the optional column that is missing from records of `width` values; -1: none is missing.
 * If columns have explicit positions (key `at`), it is missing if its position is not below
 * `width`. Otherwise it is missing if `width` is one less than the number of columns that are not
 * views (columns with key `of`). */
static int missing_column(const CsvSchema *s, int width)
{
    for (int c = 0; c < s->count; ++c) {
        bool found =
            s->has_positions ? s->column[c].position < width : width != s->file_columns - 1;
        if (s->column[c].optional && !found) return c;
    }
    return -1;
}

/* Sets file->column by the columns' positions. A column after a missing column has the value before
 * its own position. */
static Status assign_by_position(CsvFile *file, const CsvReader *r)
{
    const CsvSchema *s = r->input->schema;
    int missing = missing_column(s, file->width);
    for (int i = 0; i < file->width; ++i) file->column[i] = -1;
    for (int c = 0; c < s->count; ++c) {
        if (s->column[c].view_of >= 0 || c == missing) continue;
        int position = s->column[c].position;
        if (missing >= 0 && position > s->column[missing].position) --position;
        if (position >= file->width && s->expected_record)
            return csv_fail(r, r->value[0].text, -1, "its first record has %d values, but %s",
                            file->width, s->expected_record);
        if (position >= file->width)
            return csv_fail(r, r->value[0].text, -1,
                            "its first record has %d values, but the schema's column %s is the "
                            "%dth; is the separator right?",
                            file->width, s->column[c].name, s->column[c].position + 1);
        file->column[position] = c;
    }
    if (s->has_positions || file->width == s->file_columns || missing >= 0) return OK;
    return csv_fail(r, r->value[0].text, -1,
                    "its first record has %d values, the schema %d columns; name all columns in "
                    "the schema (with `ignore` for columns that are not used)",
                    file->width, s->file_columns);
}

/* Finds the columns of a file by the first record of the block, if the block has a record. */
static Status find_columns(CsvInput *input, const CsvBlock *block)
{
    CsvFile *file = &input->file[block->file];
    CsvReader r;
    bool got = true;
    csv_reader_init(&r, input, block, true);
    Status st = csv_read_record(&r, &got);
    if (st == OK && got) {
        file->width = r.width;
        file->first_block_offset = block->offset;
        file->column = mem_new((size_t)r.width * sizeof *file->column);
        st = input->schema->header ? assign_by_header(file, &r) : assign_by_position(file, &r);
    }
    csv_reader_fini(&r);
    return st;
}

/* Reads blocks of file i until its columns are known. */
static Status find_file_columns(CsvInput *input, int i)
{
    Pass p = {.input = input, .file = i, .rest = mem_new(CSV_BLOCK_BYTES)};
    CsvBlock block = {.text = mem_new(CSV_BUFFER_BYTES)};
    bool got = true;
    Status st = OK;
    while (st == OK && got && p.file == i && !input->file[i].column) {
        st = read_block(&p, &block, &got);
        if (st == OK && got && block.file == i) st = find_columns(input, &block);
    }
    packed_close(&p.packed);
    mem_free(&p.rest);
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
    for (int i = 0; i < count; ++i) TRY(find_file_columns(input, i));
    return OK;
}

void csv_input_fini(CsvInput *input)
{
    for (int i = 0; i < input->count && input->file; ++i) mem_free(&input->file[i].column);
    mem_free(&input->file);
    input->count = 0;
}
