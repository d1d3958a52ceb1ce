/* Evaluates a data set in one pass: runs the forward pass on all its micro-batches and, with the
 * other files of this folder, computes an EvalLine from the results. */
#include "../average.h"
#include "../run/data_watch.h"
#include "eval_data.h"
#include "../step/position.h"
#include "detections.h"
#include "eval_pictures.h"
#include "field_scores.h"
#include "label_scores.h"
#include "scores.h"

#include <math.h>

/* Sums over the rows of one micro-batch. The losses of a micro-batch are added first, then these
 * sums in the order of micro-batches, so the bits do not depend on the number of ranks. */
typedef struct EvalSums {
    /* losses */
    double loss;
    /* columns 1 and 2 of the loss's results (LossResults) */
    double column[2];
    /* number of rows */
    int64_t rows;
    /* for losses of class labels, number of rows with a label */
    int64_t labelled;
    /* for losses of class labels, number of rows whose label is the likeliest class */
    int64_t top1;
    /* for losses of class labels, number of rows whose label is among the five likeliest classes */
    int64_t top5;
} EvalSums;

typedef struct Evaluation {
    const Trainer *trainer;
    /* sums of this rank's micro-batches, in order; borrowed */
    EvalSums *micro;
    /* number of this rank's micro-batches that have been evaluated */
    int64_t done;
    /* confusion matrix [label][prediction]; NULL: not requested; borrowed */
    int64_t *confusion;
    Scores scores;
    Detections detections;
    FieldScores fields;
    LabelScores labels;
    PictureMaking pictures;
} Evaluation;

/* Adds up the results of one micro-batch, and gives it to the scores of each kind. results: (rows,
 * LOSS_COLUMNS), the results of the loss (LossResults). */
static void eval_micro(void *user, const MicroBatch *batch, const float *results)
{
    Evaluation *e = user;
    int64_t classes = e->trainer->graph->classes;
    EvalSums *sums = &e->micro[e->done++];
    sums->rows = batch->rows * e->trainer->rows_per_sample;
    for (int64_t i = 0; i < sums->rows; ++i) {
        const float *row = results + i * LOSS_COLUMNS;
        sums->loss += (double)row[0];
        sums->column[0] += (double)row[1];
        sums->column[1] += (double)row[2];
        if (row[1] < 0) continue;
        ++sums->labelled;
        sums->top1 += row[1] < 1;
        sums->top5 += row[1] < 5;
        if (e->confusion && batch->labels && !e->labels.trainer)
            e->confusion[batch->labels[i] * classes + (int64_t)row[2]]++;
    }
    scores_add(&e->scores, results, batch->labels, sums->rows);
    detections_add(&e->detections, batch);
    field_scores_add(&e->fields, batch);
    label_scores_add(&e->labels, batch);
    eval_pictures_add(&e->pictures, batch);
}

/* Adds the sums of all replicas' micro-batches in the order of the data set: step by step, and
 * within a step replica by replica. all: [dp][local]; local: number of a replica's micro-batches in
 * the pass. */
static EvalSums eval_sum(const Trainer *t, const EvalSums *all, int64_t local, int64_t steps)
{
    EvalSums sum = {.rows = 0};
    for (int64_t s = 0; s < steps; ++s)
        for (int64_t r = 0; r < t->shape.dp; ++r)
            for (int64_t m = 0; m < t->micro_batches_local; ++m) {
                const EvalSums *p = &all[r * local + s * t->micro_batches_local + m];
                sum.loss += p->loss;
                sum.column[0] += p->column[0];
                sum.column[1] += p->column[1];
                sum.rows += p->rows;
                sum.labelled += p->labelled;
                sum.top1 += p->top1;
                sum.top5 += p->top5;
            }
    return sum;
}

/* Adds the sums of all replicas on the stage with the loss, and broadcasts the result.
 * Collective. */
static EvalSums eval_join(const Trainer *t, const EvalSums *mine, int64_t local, int64_t steps)
{
    int stage = schedule_stage(t->schedule, schedule_chunks(t->schedule) - 1);
    EvalSums sum = {.rows = 0};
    if (t->grid.pp_rank == stage) {
        EvalSums *all = mem_new((size_t)(local * t->shape.dp) * sizeof *all);
        world_allgather(&t->grid.dp_world, mine, (size_t)local * sizeof *mine, all);
        sum = eval_sum(t, all, local, steps);
        mem_free(&all);
    }
    world_bcast(t->world, &sum, sizeof sum, stage * t->shape.dp * t->shape.tp);
    return sum;
}

static void fill_line(const Trainer *t, const DataSet *set, EvalSums sum, EvalLine *line)
{
    const int top = loss_top_k(loss_info(t->config));
    line->samples = sum.rows / t->rows_per_sample * t->counted_per_sample / data_tiles(set);
    line->counts_tokens = data_has_tokens(&t->train_set);
    line->loss = sum.loss / (double)sum.rows;
    line->top1 = top >= 1 ? (double)sum.top1 / (double)sum.labelled : NAN;
    detections_loss_parts(
        line->loss, (double[]){sum.column[0] / (double)sum.rows, sum.column[1] / (double)sum.rows},
        line->part);
    line->top5 = top >= 5 ? (double)sum.top5 / (double)sum.labelled : NAN;
}

typedef struct StopCheck {
    /* time (clock_s) at which the pass began */
    double begin_s;
    /* number of finished steps at which the ranks make their next common check */
    int64_t next;
} StopCheck;

/* Returns true if the pass must end after `done` steps, because of a stop request (*stop) or an
 * error on a rank. The ranks make a common check about every INTERVAL_S seconds by rank 0's clock.
 * The first checks are after 1, 2, 4, ... steps: on a device a step only queues work, so the clock
 * shows real progress only after a check, which waits for the other ranks. Collective. */
static bool pass_ends(const Trainer *t, StopCheck *check, int64_t done, Status st, bool *stop)
{
    static const double INTERVAL_S = 0.2;
    if (done < check->next) return false;
    double spent_s = clock_s() - check->begin_s;
    int64_t ahead = spent_s > 0 ? (int64_t)((double)done * INTERVAL_S / spent_s) : 0;
    if (ahead > done) ahead = done;
    bool stops = stop_wanted() || tables_stop_wanted(t->tables);
    int64_t ranks[] = {stops, st != OK, t->world->rank == 0 && ahead > 0 ? ahead - 1 : 0};
    world_allreduce(t->world, ranks, 3);
    check->next = done + 1 + ranks[2];
    *stop = ranks[0] > 0;
    return *stop || ranks[1] > 0;
}

Status train_evaluate(Trainer *t, const DataSet *set, EvalLine *line, const EvalExtras *extras)
{
    const EvalExtras extra = extras ? *extras : (EvalExtras){0};
    Phase outer = phase_count_as_begin(PHASE_EVAL);
    double start = clock_s();
    int64_t steps = data_steps_per_epoch(set->samples, t->batch),
            local = steps * t->micro_batches_local;
    EvalSums *micro = mem_new((size_t)local * sizeof *micro);
    EvalData data;
    Status st = eval_data_init(&data, t, set);
    BatchSource source = eval_data_source(&data);
    Evaluation evaluation = {.trainer = t, .micro = micro, .confusion = extra.confusion};
    StopCheck stop_check = {.begin_s = start};
    bool stop = false;
    scores_init(&evaluation.scores, t, steps);
    Status labels = detections_init(&evaluation.detections, t, set, extra.results);
    if (st == OK) st = labels;
    st = status_agree(t->world, st);
    if (st == OK) st = field_scores_init(&evaluation.fields, t, set);
    label_scores_init(&evaluation.labels, t, set, extra.confusion);
    eval_pictures_init(&evaluation.pictures, t, set, extra.pictures);
    average_swap(t);
    for (int64_t s = 0; s < steps && !pass_ends(t, &stop_check, s, st, &stop); ++s) {
        if (st == OK) st = executor_evaluate(t->executor, &source, eval_micro, &evaluation);
        if (st != OK && data.status == OK) data_watch_die(t->data_watch, st);
    }
    Status read = eval_data_fini(&data);
    if (st == OK) st = error_report(&evaluation.fields.error);
    if (st == OK) st = error_report(&evaluation.pictures.error);
    if (st == OK && read == OK && stop)
        read = fail(ERR_STOPPED, "the evaluation was interrupted by a stop request");
    /* after this call no rank reads the parameters of the evaluation, so they can be exchanged
     * back */
    st = status_agree(t->world, st == OK ? read : st);
    average_swap(t);
    if (st == OK) {
        fill_line(t, set, eval_join(t, micro, local, steps), line);
        scores_line(&evaluation.scores, t, line);
        field_scores_line(&evaluation.fields, line);
        label_scores_line(&evaluation.labels, line);
        eval_pictures_line(&evaluation.pictures, t, line);
        st = detections_line(&evaluation.detections, t, line, &extra);
        if (extra.confusion)
            world_allreduce(t->world, extra.confusion, t->graph->classes * t->graph->classes);
    }
    scores_fini(&evaluation.scores);
    detections_fini(&evaluation.detections);
    field_scores_fini(&evaluation.fields);
    label_scores_fini(&evaluation.labels);
    eval_pictures_fini(&evaluation.pictures);
    mem_free(&micro);
    line->step = t->step;
    line->epoch = position_after(t, t->step).epoch;
    line->seconds = clock_s() - start;
    phase_count_as_end(outer);
    return st;
}
