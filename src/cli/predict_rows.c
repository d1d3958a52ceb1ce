/* weft predict on tables: classifies the rows of data sets and of text files, or predicts numbers.
 * Text files are read with the vocabularies of the training set, and with its schema or that of
 * --schema. Prints one line per row, in the order of the rows. */
#include "predict.h"

#include <string.h>

/* The file whose rows are being classified. */
typedef struct Rows {
    Predict *predict;
    /* path of the file */
    const char *path;
    /* number of the next row, counted from 0 */
    int64_t next_row;
    /* true: the ranges of the first batch have been compared with those of the training rows */
    bool compared;
} Rows;

/* Prints numbers as a line of a CSV file. */
static void print_numbers(const double *value, int64_t count)
{
    for (int64_t k = 0; k < count; ++k) printf("%s%.9g", k ? "," : "", value[k]);
    putchar('\n');
}

static void print_row(const Rows *r, const double *result)
{
    const Predict *p = r->predict;
    bool is_logit = loss_info(trainer_config(p->trainer))->results == LOSS_RESULTS_LOGIT;
    if (!p->options->json) {
        if (is_logit)
            printf("%.9g\n", result[1]);
        else if (p->numbers)
            print_numbers(result, train_result_count(p->trainer));
        else
            predict_print_result(p, result);
        return;
    }
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "file", r->path);
    json_int(&json, "row", r->next_row);
    if (is_logit)
        json_real(&json, "probability", result[1]);
    else
        predict_put_result(p, &json, result);
    json_end(&json);
}

/* Warns if the values in a batch have other ranges than those of the training rows. */
static void warn_of_range(const Rows *r, const MicroBatch *batch)
{
    const Predict *p = r->predict;
    DataRanges now = data_rows_ranges(&p->set, batch->x, batch->rows);
    data_warn(data_ranges_difference(r->path, &p->set, &now, p->training_name, &p->ranges));
    data_ranges_fini(&now);
}

static Status predict_batch(void *user, const MicroBatch *batch)
{
    Rows *r = user;
    Predict *p = r->predict;
    int64_t count = train_result_count(p->trainer);
    if (!r->compared) warn_of_range(r, batch);
    r->compared = true;
    TRY(train_predict(p->trainer, batch, p->result));
    for (int i = 0; i < batch->rows; ++i, ++r->next_row)
        if (r->next_row >= p->first_sample && r->next_row <= p->last_sample)
            print_row(r, p->result + i * count);
    return OK;
}

/* Refuses a data.train that is not the data set of the training, because its vocabularies may
 * number the same words differently. Does nothing if the data set of the training is not known. */
static Status check_training_set(const Predict *p)
{
    char now[DATA_FINGERPRINT];
    if (!data_fingerprint_known(p->training_fingerprint)) return OK;
    TRY(data_set_fingerprint(&p->set, now));
    if (strcmp(now, p->training_fingerprint) == 0) return OK;
    return fail(
        ERR_DATA,
        "%s: is not the data set that the checkpoint was trained on, so its vocabularies and "
        "means may differ: set data.train to that data set, or import the rows with it",
        p->set.path);
}

/* Classifies the rows of a text file. *reader: the reader of all text files; the first call makes
 * it, and the caller frees it. */
static Status predict_text_file(Rows *r, TableTextReader **reader)
{
    const Predict *p = r->predict;
    if (!*reader) {
        TRY(table_text_new(reader, &p->set, p->options->schema));
        if (table_text_needs_training_set(*reader)) TRY(check_training_set(p));
    }
    return table_text_read(*reader, r->path, p->batch, predict_batch, r);
}

Status predict_rows(Predict *p, int count, char *const *paths)
{
    TableTextReader *reader = NULL;
    Status st = OK;
    for (int i = 0; i < count && st == OK; ++i) {
        Rows rows = {.predict = p, .path = paths[i]};
        if (p->set_of[i]) rows.next_row = p->first_sample / p->batch * p->batch;
        st = p->set_of[i] ? predict_each_batch(p, p->set_of[i], predict_batch, &rows)
                          : predict_text_file(&rows, &reader);
    }
    table_text_free(&reader);
    return st;
}
