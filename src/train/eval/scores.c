/* Counts the logits and labels of an evaluation on the ranks that collect outputs. At the end of
 * the pass the counters of all ranks are added. For the exact AUC these ranks also keep logits and
 * labels until the end, and rank 0 gathers and sorts them. Counters are integers, so the result
 * does not depend on the number or order of ranks. */
#include "scores.h"

#include <math.h>
#include <string.h>

const char *train_auc_kind(const Config *config)
{
    return loss_info(config)->results == LOSS_RESULTS_LOGIT ? auc_word(config->train.auc) : NULL;
}

bool train_collects_outputs(const Trainer *t)
{
    const int stage = schedule_stage(t->schedule, schedule_chunks(t->schedule) - 1);
    return t->grid.pp_rank == stage && t->grid.tp_rank == 0;
}

void scores_init(Scores *scores, const Trainer *t, int64_t steps)
{
    int64_t micro = t->micro_batch * t->rows_per_sample;
    *scores = (Scores){.exact = t->config->train.auc == AUC_EXACT};
    if (loss_info(t->config)->results != LOSS_RESULTS_LOGIT || !train_collects_outputs(t)) return;
    size_t rows = (size_t)(scores->exact ? steps * t->micro_batches_local * micro : micro);
    scores->logit = mem_new(rows * sizeof *scores->logit);
    scores->label = mem_new(rows * sizeof *scores->label);
    scores->sums = mem_new(sizeof *scores->sums);
}

void scores_fini(Scores *scores)
{
    mem_free(&scores->logit);
    mem_free(&scores->label);
    mem_free(&scores->sums);
}

void scores_add(Scores *scores, const float *results, const int32_t *label, int64_t rows)
{
    if (!scores->sums) return;
    if (!scores->exact) scores->count = 0;
    float *logit = scores->logit + scores->count;
    for (int64_t i = 0; i < rows; ++i) logit[i] = results[i * LOSS_COLUMNS + 2];
    memcpy(scores->label + scores->count, label, (size_t)rows * sizeof *label);
    binary_add(scores->sums, logit, label, rows);
    scores->count += rows;
}

void *gather_arrays(const World *world, const void *mine, size_t *bytes)
{
    size_t *part = mem_new((size_t)world->size * sizeof *part), all = 0;
    world_allgather(world, bytes, sizeof *bytes, part);
    for (int r = 0; r < world->size; ++r) all += part[r];
    void *out = mem_new(world->rank == 0 ? all : 0);
    world_collect(world, mine, part, 0, out);
    mem_free(&part);
    *bytes = all;
    return out;
}

static double auc_of_all(const World *world, const Scores *scores)
{
    /* a label has as many bytes as a logit */
    size_t bytes = (size_t)scores->count * sizeof *scores->logit, label_bytes = bytes;
    float *logit = gather_arrays(world, scores->logit, &bytes);
    int32_t *label = gather_arrays(world, scores->label, &label_bytes);
    double auc =
        world->rank == 0 ? auc_exact(logit, label, (int64_t)(bytes / sizeof *logit)) : (double)NAN;
    mem_free(&logit);
    mem_free(&label);
    return auc;
}

void scores_line(const Scores *scores, const Trainer *t, EvalLine *line)
{
    const World *world = t->world;
    line->auc_kind = train_auc_kind(t->config);
    if (!line->auc_kind) return;
    BinarySums sums = {.right = 0};
    if (scores->sums) sums = *scores->sums;
    world_allreduce(world, (int64_t *)&sums, BINARY_COUNTERS);
    BinaryFigures figures = binary_figures(&sums);
    if (scores->exact) figures.auc = auc_of_all(world, scores);
    world_bcast(world, &figures, sizeof figures, 0);
    line->auc = figures.auc;
    line->normalized_entropy = figures.normalized_entropy;
    line->calibration = figures.calibration;
}
