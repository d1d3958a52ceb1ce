/* One optimizer step, and evaluation. */
#include "eval_data.h"
#include "loss_scale.h"

#include <math.h>
#include <string.h>

/* The loader begins at the step this run has come to. */
static Status open_loader(Trainer *t)
{
    bool turns = plan_takes_turns(t->plan);
    LoaderPlan plan = {.batch = t->batch,
                       .micro_batch = t->micro_batch,
                       .micro_first = t->grid.dp_rank * (turns ? 1 : t->micros_local),
                       .micro_count = t->micros_local,
                       .micro_gap = turns ? t->shape.dp - 1 : 0,
                       .no_x = !t->plan->reads_data,
                       .no_y = !t->plan->reads_labels,
                       .epoch = t->step / t->steps_per_epoch,
                       .step = t->step % t->steps_per_epoch,
                       .training = true,
                       .slots = train_data_slots(t, t->plan),
                       .backend = t->backend};
    t->known = t->step;
    return loader_new(&t->loader, &t->train_set, t->config, plan);
}

/* Samples in this step's global batch: the last one of an epoch may be short. */
static int64_t batch_rows(const Trainer *t)
{
    int64_t left = t->train_set.samples - t->step % t->steps_per_epoch * t->batch;
    return left < t->batch ? left : t->batch;
}

/* Puts the ranks' slices together: sums of squares in their order. Collective on the tensor group. */
static void join_slices(const Trainer *t, double *mine)
{
    const World *world = &t->grid.tp_world;
    int params = t->graph->param_count;
    if (world->size == 1) return;
    double *all = mem_new((size_t)params * (size_t)world->size * sizeof *all);
    world_gather(world, mine, (size_t)params * sizeof *mine, all);
    for (int i = 0; i < params; ++i) {
        if (t->graph->param[i].cut.parts == 0) continue;
        mine[i] = 0;
        for (int r = 0; r < world->size; ++r) mine[i] += all[r * params + i];
    }
    mem_free(&all);
}

/* Each tensor's part is the same on every grid, and so is their order. */
double train_grad_norm(Trainer *t)
{
    int params = t->graph->param_count, stages = t->shape.pp;
    double *part = mem_new((size_t)(params + 1) * sizeof *part), sum = 0;
    double *mine = mem_new((size_t)(params + 1) * sizeof *mine);
    double *all = mem_new((size_t)(params * stages + 1) * sizeof *all);
    optim_grad_squares(t->optim, executor_grads(t->executor), part);
    for (int i = 0; i < t->optim->range_count; ++i)
        if (t->graph->param[t->range_param[i]].tied < 0) mine[t->range_param[i]] = part[i];
    join_slices(t, mine);
    world_gather(&t->grid.pp_world, mine, (size_t)params * sizeof *mine, all);
    for (int i = 0; i < params; ++i)
        for (int s = 0; s < stages; ++s) sum += all[s * params + i];
    mem_free(&part);
    mem_free(&mine);
    mem_free(&all);
    return sqrt(sum) / t->scale.used;
}

/* Are all gradients here, and their norm where the update reads it? Those of a scaled loss are the host's to clip. */
static bool clips_here(const Trainer *t)
{
    return t->config->optim.clip > 0 && t->shape.pp == 1 && t->shape.tp == 1 && !t->scale.moves &&
           optim_can_clip(t->optim);
}

static void update_work(void *user)
{
    Trainer *t = user;
    const float *grads = executor_grads(t->executor);
    if (clips_here(t)) optim_clip(t->optim, grads, t->config->optim.clip);
    optim_update(t->optim, executor_params(t->executor), grads);
    executor_refresh(t->executor);
}

static void update(Trainer *t, StepResult *result)
{
    const Config *c = t->config;
    bool clips = c->optim.clip > 0 && !clips_here(t);
    double scale = 1;
    result->grad_norm = NAN;
    result->lr = lr_at(c, t->step, t->steps, t->steps_per_epoch);
    if (result->skipped) return;
    if (clips || result->logged) result->grad_norm = train_grad_norm(t);
    if (clips && result->grad_norm > c->optim.clip) scale = c->optim.clip / result->grad_norm;
    optim_begin(t->optim, result->lr, scale / t->scale.used);
    if (optim_repeats(t->optim) && !t->plan->zero) /* which ends with what others have updated */
        capture_run(&t->update, t->backend, update_work, t);
    else
        update_work(t);
}

/* Of all steps before number `step`. The statistics of a step are read once. */
static void read_step_stats(Trainer *t, StepResult *result, int64_t step)
{
    for (; t->known < step; ++t->known) {
        const float *metrics = executor_metrics(t->executor, (int)(t->step - 1 - t->known));
        t->step_stats = (StepStats){
            .loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]),
            .top1 = (double)(metrics[METRIC_TOP1] / metrics[METRIC_ROWS]),
        };
        result->stop_asked |= metrics[METRIC_STOP] > 0;
        result->save_asked |= metrics[METRIC_SAVE] > 0;
        result->rows += (int64_t)metrics[METRIC_ROWS];
    }
    result->loss = t->step_stats.loss;
    result->top1 = t->step_stats.top1;
}

void train_step_stats(Trainer *t, StepResult *result)
{
    read_step_stats(t, result, t->step);
}

Status train_step(Trainer *t, StepResult *result)
{
    int64_t number = t->step + 1;
    result->logged = !t->loader || number == t->steps || number % t->config->train.log_every == 0;
    if (!t->loader) TRY(status_agree(t->world, open_loader(t)));
    int64_t rows = batch_rows(t);
    StepOf of = {.step = (uint64_t)t->step,
                 .scale = (float)t->scale.now / (float)(rows * t->rows_per_sample),
                 .micros = (int)((rows + t->micro_batch - 1) / t->micro_batch)};
    BatchSource source = loader_source(t->loader);
    Status st = executor_step(t->executor, &source, &of, &t->data_wait_s);
    if (st != OK) die_as(st, "%s", fail_message());
    result->skipped = executor_overflowed(t->executor);
    TRY(loss_scale_move(&t->scale, t->config, number, result->skipped));
    phase_enter(PHASE_UPDATE);
    update(t, result);
    phase_enter(PHASE_OTHER);
    bool newest = result->logged || t->backend->table->host_memory || t->scale.moves;
    result->stop_asked = result->save_asked = false;
    result->rows = 0;
    t->step++;
    read_step_stats(t, result, newest ? t->step : t->step - 1);
    return OK;
}

/* ---- evaluation ---- */

/* Sums over the samples of this rank's micro-batches. Integers are exact in double; losses are added per micro-batch, and
 * micro-batches by their number, on every rank, so that the bits do not depend on the ranks. */
typedef struct EvalPart {
    double loss;
    int64_t rows, top1, top5;
} EvalPart;

typedef struct Evaluation {
    const Trainer *trainer;
    EvalPart *part; /* of this rank's micro-batches, in their order */
    int64_t next;
    int64_t *confusion; /* NULL: not wanted */
} Evaluation;

static void eval_micro(void *user, const Batch *batch, const float *columns)
{
    Evaluation *e = user;
    int64_t classes = e->trainer->graph->classes;
    EvalPart *part = &e->part[e->next++];
    part->rows = batch->rows * e->trainer->rows_per_sample;
    for (int64_t i = 0; i < part->rows; ++i) {
        const float *line = columns + i * LOSS_COLUMNS;
        part->loss += (double)line[0];
        part->top1 += line[1] < 1;
        part->top5 += line[1] < 5;
        if (e->confusion && batch->labels)
            e->confusion[batch->labels[i] * classes + (int64_t)line[2]]++;
    }
}

/* In the order of micro-batches over the whole set: step by step, replica by replica, from the ranks of the stage with the loss. */
static void eval_sum(const Trainer *t, const EvalPart *all, int64_t local, int64_t steps,
                     EvalLine *line)
{
    double loss = 0;
    int64_t rows = 0, top1 = 0, top5 = 0;
    int stage = schedule_stage(t->schedule, schedule_chunks(t->schedule) - 1);
    int64_t first = (int64_t)stage * t->shape.dp * t->shape.tp;
    for (int64_t s = 0; s < steps; ++s)
        for (int64_t r = 0; r < t->shape.dp; ++r)
            for (int64_t m = 0; m < t->micros_local; ++m) {
                const EvalPart *p =
                    &all[(first + r * t->shape.tp) * local + s * t->micros_local + m];
                loss += p->loss;
                rows += p->rows;
                top1 += p->top1;
                top5 += p->top5;
            }
    line->samples = rows;
    line->tokens = t->train_set.kind == DATA_TOKENS;
    line->loss = loss / (double)rows;
    bool shares = t->config->train.loss == LOSS_SOFTMAX;
    line->top1 = shares ? (double)top1 / (double)rows : NAN;
    line->top5 = shares ? (double)top5 / (double)rows : NAN;
}

static void sum_confusion(const World *world, int64_t *confusion, int64_t cells)
{
    int64_t *all = mem_new((size_t)(cells * world->size) * sizeof *all);
    world_gather(world, confusion, (size_t)cells * sizeof *all, all);
    memset(confusion, 0, (size_t)cells * sizeof *confusion);
    for (int64_t i = 0; i < cells * world->size; ++i) confusion[i % cells] += all[i];
    mem_free(&all);
}

Status train_evaluate(Trainer *t, const DataSet *set, EvalLine *line, int64_t *confusion)
{
    Phase outer = phase_enter(PHASE_EVAL);
    double start = clock_s();
    int64_t steps = data_steps_per_epoch(set->samples, t->batch), local = steps * t->micros_local;
    EvalPart *part = mem_new((size_t)local * sizeof *part),
             *all = mem_new((size_t)(local * t->world->size) * sizeof *all);
    EvalData data;
    Status st = eval_data_init(&data, t, set);
    BatchSource source = eval_data_source(&data);
    Evaluation evaluation = {.trainer = t, .part = part, .confusion = confusion};
    for (int64_t s = 0; s < steps && st == OK; ++s) {
        st = executor_evaluate(t->executor, &source, eval_micro, &evaluation);
        if (st != OK && data.status == OK) die_as(st, "%s", fail_message());
    }
    Status read = eval_data_fini(&data);
    st = status_agree(t->world, st == OK ? read : st);
    if (st == OK) {
        world_gather(t->world, part, (size_t)local * sizeof *part, all);
        eval_sum(t, all, local, steps, line);
        if (confusion) sum_confusion(t->world, confusion, t->graph->classes * t->graph->classes);
    }
    mem_free(&part);
    mem_free(&all);
    line->step = t->step;
    line->epoch = t->step / t->steps_per_epoch;
    line->seconds = clock_s() - start;
    phase_enter(outer);
    return st;
}
