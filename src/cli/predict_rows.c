/* weft predict on tables: rows of a data set, or of text read by the training set's schema and
 * vocabularies; one line a row, in their order. */
#include "predict.h"

#include <string.h>

typedef struct Rows {
    Predict *of;
    const char *path;
    /* rows of this file so far */
    int64_t row;
} Rows;

static Status open_rows(DataSet *set, const Config *config, const char *path, const DataSet *like)
{
    TRY(data_set_open(set, config, path));
    return train_take_set(set, like);
}

/* Raises id_most to the largest number of ids in any file, because buffers are made for it. */
Status predict_rows_check(Predict *p, const Config *config, int count, char *const *paths)
{
    DataSet *set = mem_new(sizeof *set);
    Status st = OK;
    for (int i = 0; i < count && st == OK; ++i) {
        if (!data_is_hdf5(paths[i])) continue;
        st = open_rows(set, config, paths[i], &p->set);
        if (st == OK && set->id_most > p->set.id_most) p->set.id_most = set->id_most;
    }
    mem_free(&set);
    return st;
}

static void print_row(const Rows *r, const double *share)
{
    const Predict *p = r->of;
    bool logit = loss_info(trainer_config(p->trainer))->columns == LOSS_COLUMNS_LOGIT;
    if (!p->options->json) {
        if (logit)
            printf("%.9g\n", share[1]);
        else
            predict_text(p, share);
        return;
    }
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "file", r->path);
    json_int(&json, "row", r->row);
    if (logit)
        json_real(&json, "probability", share[1]);
    else
        predict_json(p, &json, share);
    json_end(&json);
}

/* Compares the values of a file's first rows with those of the training. */
static void warn_of_range(const Rows *r, const Batch *batch)
{
    const DataSet *set = &r->of->set;
    DataRanges now = data_rows_ranges(set, batch->x, batch->rows);
    data_warn(data_ranges_difference(r->path, set, &now, r->of->training, &r->of->ranges));
    data_ranges_fini(&now);
}

static Status take(void *user, const Batch *batch)
{
    Rows *r = user;
    int64_t shares = train_shares(r->of->trainer);
    if (r->row == 0) warn_of_range(r, batch);
    TRY(train_predict(r->of->trainer, batch, r->of->share));
    for (int i = 0; i < batch->rows; ++i, ++r->row) print_row(r, r->of->share + i * shares);
    return OK;
}

static Status read_set(Rows *r, const DataSet *set)
{
    const Config *config = trainer_config(r->of->trainer);
    Loader *loader = NULL;
    const Batch *batch;
    LoaderPlan plan = {.batch = r->of->together,
                       .micro_batch = r->of->together,
                       .micro_count = 1,
                       .no_y = true,
                       .slots = (int)config->data.prefetch + 2,
                       .backend = trainer_backend(r->of->trainer),
                       .workers = train_workers(r->of->trainer, set)};
    Status st = loader_new(&loader, set, config, plan);
    while (st == OK && (st = loader_next(loader, &batch, NULL)) == OK && batch) {
        st = take(r, batch);
        loader_release(loader);
    }
    loader_free(&loader);
    return st;
}

/* Refuses a data set other than that of the training: its vocabularies may number the same words
 * differently. */
static Status check_learnt(const Predict *p)
{
    char now[DATA_FINGERPRINT];
    if (!data_fingerprint_known(p->data_train)) return OK;
    TRY(data_set_fingerprint(&p->set, now));
    if (strcmp(now, p->data_train) == 0) return OK;
    return fail(
        ERR_DATA,
        "%s: is not the data set that the checkpoint was trained on, so its vocabularies and "
        "means may be others: set data.train to that one, or import the rows with it",
        p->set.path);
}

static Status read_text(Rows *r, TableText **text)
{
    const Predict *p = r->of;
    if (!*text) {
        TRY(table_text_new(text, &p->set, p->options->schema));
        if (table_text_learnt(*text)) TRY(check_learnt(p));
    }
    return table_text_read(*text, r->path, p->together, take, r);
}

Status predict_rows(Predict *p, int count, char *const *paths)
{
    TableText *text = NULL;
    DataSet *set = mem_new(sizeof *set);
    Status st = OK;
    for (int i = 0; i < count && st == OK; ++i) {
        Rows rows = {.of = p, .path = paths[i]};
        if (!data_is_hdf5(paths[i])) {
            st = read_text(&rows, &text);
            continue;
        }
        st = open_rows(set, trainer_config(p->trainer), paths[i], &p->set);
        if (st == OK) st = read_set(&rows, set);
    }
    table_text_free(&text);
    mem_free(&set);
    return st;
}
