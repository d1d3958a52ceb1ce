/* Converts rows of text to batches for a trained model, with the encoding of its training set. */
#include "csv.h"

struct TableTextReader {
    CsvSchema schema;
    CsvEncoding encoding;
};

Status table_text_new(TableTextReader **out, const DataSet *set, const char *schema)
{
    TableTextReader *t = mem_new(sizeof *t);
    Status st =
        schema ? csv_schema_read(&t->schema, schema) : csv_stored_schema(&t->schema, set->path);
    if (st == OK) {
        csv_schema_ignore_label(&t->schema);
        csv_encoding_init(&t->encoding, &t->schema, t->schema.categories);
        st = csv_stored_encoding(&t->encoding, &t->schema, set);
    }
    if (st != OK) table_text_free(&t);
    *out = t;
    return st;
}

void table_text_free(TableTextReader **reader)
{
    TableTextReader *t = *reader;
    if (!t) return;
    csv_encoding_fini(&t->encoding, t->schema.categories);
    csv_schema_fini(&t->schema);
    mem_free(reader);
}

bool table_text_needs_training_set(const TableTextReader *t)
{
    return csv_schema_needs_statistics(&t->schema);
}

/* state of table_text_read */
typedef struct Rows {
    const TableTextReader *text_reader;
    const CsvInput *input;
    /* number of values of a row */
    int64_t columns;
    /* number of ids of a row */
    int64_t fields;
    /* capacity of the batch, in rows */
    int rows_max;
    /* rows that have not been passed to `take` yet; owns its arrays */
    MicroBatch batch;
    TableTextTake *take;
    void *user;
} Rows;

/* Allocates a batch without labels. */
static void rows_init(Rows *r)
{
    size_t rows = (size_t)r->rows_max;
    r->batch.x = mem_new(rows * (size_t)r->columns * sizeof *r->batch.x);
    if (r->fields == 0) return;
    r->batch.ids = mem_new(rows * (size_t)r->fields * sizeof *r->batch.ids);
    r->batch.id_first = mem_new((rows * (size_t)r->fields + 1) * sizeof *r->batch.id_first);
}

static void rows_fini(Rows *r)
{
    mem_free(&r->batch.x);
    mem_free(&r->batch.ids);
    mem_free(&r->batch.id_first);
}

/* Passes the batch to r->take and empties it; does nothing if it is empty. Its padding rows have no
 * ids. */
static Status rows_flush(Rows *r)
{
    int32_t *first = r->batch.id_first;
    int64_t ids = r->batch.rows * r->fields, bags = r->rows_max * r->fields;
    if (r->batch.rows == 0) return OK;
    for (int64_t i = 0; first && i <= bags; ++i) first[i] = (int32_t)(i < ids ? i : ids);
    Status st = r->take(r->user, &r->batch);
    r->batch.rows = 0;
    return st;
}

/* Appends the rows of a block to the batch, which is passed on whenever it is full. */
static Status convert_block(void *user, int worker, CsvBlock *block)
{
    Rows *r = user;
    MicroBatch *b = &r->batch;
    CsvReader reader;
    bool got = true;
    (void)worker;
    Status st = csv_reader_begin(&reader, r->input, block);
    while (st == OK && (st = csv_read_record(&reader, &got)) == OK && got) {
        uint64_t *ids = b->ids ? b->ids + b->rows * r->fields : NULL;
        st = csv_convert_record(&reader, &r->text_reader->encoding, b->x + b->rows * r->columns,
                                ids, NULL);
        if (st == OK && ++b->rows == r->rows_max) st = rows_flush(r);
    }
    csv_reader_fini(&reader);
    return st;
}

Status table_text_read(const TableTextReader *t, const char *path, int rows_max,
                       TableTextTake *visit, void *user)
{
    CsvInput input;
    Status st = csv_input_init(&input, &t->schema, &path, 1);
    Rows r = {.text_reader = t,
              .input = &input,
              .columns = t->schema.numbers ? t->schema.numbers : 1,
              .fields = t->schema.categories,
              .rows_max = rows_max,
              .take = visit,
              .user = user};
    rows_init(&r);
    if (st == OK) st = csv_for_each_block(&input, 1, convert_block, &r, NULL);
    /* if a row is bad, the rows before it are passed on, too */
    if (st == OK || st == ERR_DATA) {
        char *why = mem_text(fail_message());
        Status last = rows_flush(&r);
        st = last != OK ? last : st == OK ? OK : fail(st, "%s", why);
        mem_free(&why);
    }
    rows_fini(&r);
    csv_input_fini(&input);
    return st;
}
