/* Provides the micro-batches of an evaluation, even if one of them cannot be read. During a pass
 * over the set other ranks may wait for this rank: later stages, its tensor-parallel group,
 * replicas that gather parameters or rows of tables. Then this rank must reach the end of the pass.
 * After an error it therefore provides substitutes, micro-batches of zeros with the right number of
 * rows; the error is reported when all ranks have reached the end. If no other rank waits, an error
 * ends the pass at once. */
#include "eval_data.h"

#include "../chunk_share.h"
#include "../mode/sparse.h"
#include "field_scores.h"

#include <string.h>

Status eval_data_init(EvalData *data, const Trainer *t, const DataSet *set)
{
    *data = (EvalData){.trainer = t, .set = set};
    data->plan =
        (LoaderPlan){.batch = t->batch,
                     .micro_batch = t->micro_batch,
                     .micro_first = t->grid.dp_rank * t->micro_batches_local,
                     .micro_count = t->micro_batches_local,
                     .skips_inputs = !t->plan->reads_data && !field_scores_needs_inputs(t, set),
                     .skips_labels = !t->plan->reads_labels,
                     .workers = train_workers(t, set),
                     .slots = (int)t->config->data.prefetch + t->shape.pp + DATA_AHEAD +
                              sparse_batches_out(t, t->plan),
                     .backend = t->backend};
    data->plan.levels = train_box_grids(t, data->plan.grid);
    chunk_share_new(&data->chunk_memory, t, set, &data->plan.chunks);
    return status_agree(t->world, loader_new(&data->loader, set, t->config, data->plan));
}

/* Allocates the zeros that all arrays of substitutes share; the memory is as large as the largest
 * array. */
static void substitutes_init(EvalData *data)
{
    const DataSet *set = data->set;
    int64_t context = set->context, width = set->target_width;
    int64_t values = set->channels * set->height * set->width;
    if (values < context) values = context;
    if (values < width) values = width;
    if (values < data_labels_per_sample(set)) values = data_labels_per_sample(set);
    /* the array of sample numbers has 64 bits, two floats, for each sample */
    if (values < 2) values = 2;
    /* the array of bounds of ids has an entry for each field and one more; the fields are empty */
    if (values <= set->fields) values = set->fields + 1;
    data->zeros_bytes = (size_t)(data->plan.micro_batch * values) * sizeof(float);
    data->zeros = backend_host_new(data->plan.backend, data->zeros_bytes);
    memset(data->zeros, 0, data->zeros_bytes);
    int64_t steps = data_steps_per_epoch(set->samples, data->plan.batch);
    int64_t left = steps * data->plan.micro_count - data->read;
    data->substitute = mem_new((size_t)left * sizeof *data->substitute);
}

/* Returns the number of samples that the loader gives this rank's micro-batch number `at`. */
static int rows_of(const EvalData *data, int64_t at)
{
    const LoaderPlan *p = &data->plan;
    int64_t micro = p->micro_first + at % p->micro_count;
    int64_t first = at / p->micro_count * p->batch + micro * p->micro_batch;
    int64_t left = data->set->samples - first;
    if (left < 0 || micro >= p->batch / p->micro_batch) return 0;
    return (int)(left < p->micro_batch ? left : p->micro_batch);
}

static MicroBatch make_substitute(const EvalData *data)
{
    const LoaderPlan *p = &data->plan;
    const DataSet *set = data->set;
    bool tokens = data_has_tokens(set), targets = set->target_width > 0;
    int64_t at = data->read + data->substitutes;
    return (MicroBatch){.x = tokens || p->skips_inputs ? NULL : data->zeros,
                        .tokens = tokens && !p->skips_inputs ? data->zeros : NULL,
                        .labels = targets || p->skips_labels ? NULL : data->zeros,
                        .targets = targets && !p->skips_labels ? data->zeros : NULL,
                        .box_start = p->levels > 0 && !p->skips_labels ? data->zeros : NULL,
                        .matches = p->levels > 0 && !p->skips_labels ? data->zeros : NULL,
                        .ids = set->fields > 0 && !p->skips_inputs ? data->zeros : NULL,
                        .id_first = set->fields > 0 && !p->skips_inputs ? data->zeros : NULL,
                        .sample = data->zeros,
                        .rows = rows_of(data, at),
                        .step = at / p->micro_count,
                        .micro = p->micro_first + (int)(at % p->micro_count)};
}

static Status next(void *user, const MicroBatch **batch, double *wait_s)
{
    EvalData *data = user;
    if (data->status == OK) {
        data->status = loader_next(data->loader, batch, wait_s);
        if (data->status == OK) {
            ++data->read;
            return OK;
        }
        const Trainer *t = data->trainer;
        bool others_wait =
            t->shape.pp > 1 || t->shape.tp > 1 || t->plan->gathers || t->graph->table_count > 0;
        if (!others_wait) return data->status;
        data->message = mem_text(fail_message());
        substitutes_init(data);
    }
    data->substitute[data->substitutes] = make_substitute(data);
    *batch = &data->substitute[data->substitutes++];
    return OK;
}

/* Micro-batches are released in the order in which they were provided: first those of the loader,
 * then the substitutes, for which nothing must be released. */
static void release(void *user)
{
    EvalData *data = user;
    if (data->returned == data->read) return;
    loader_release(data->loader);
    ++data->returned;
}

BatchSource eval_data_source(EvalData *data)
{
    BatchSource source = {.user = data, .next = next, .release = release};
    return data->trainer->tables ? tables_evaluation(data->trainer->tables, &source) : source;
}

Status eval_data_fini(EvalData *data)
{
    loader_free(&data->loader);
    node_memory_free(&data->chunk_memory);
    if (data->zeros) backend_host_free(data->plan.backend, data->zeros, data->zeros_bytes);
    mem_free(&data->substitute);
    Status st = data->message ? fail(data->status, "%s", data->message) : data->status;
    mem_free(&data->message);
    return st;
}
