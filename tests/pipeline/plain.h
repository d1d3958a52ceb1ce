/* The plain interpreter, with which plan and executor are compared. It runs all nodes of the model
 * one after the other, gives every tensor its own memory, and sums the micro-batches at the end.
 * Plan and executor must give the same bits, because reused memory, aliases, in-place operations,
 * cuts and schedules must not change results. */
#ifndef WEFT_TESTS_PLAIN_H
#define WEFT_TESTS_PLAIN_H

#include "pipeline/fixture.h"

#include <math.h>

enum { STEPS = 2, FIRST_STEP = 5 };
static const float SCALE = 0.25f;

/* The state of the interpreter. Everything except f is owned. */
typedef struct Plain {
    const Fixture *f;
    /* arguments of each node's operation */
    OpRun *run;
    /* gradient of each node's output: sum over the node's readers so far */
    float **dy;
    /* for each node: true: its dy is set */
    bool *has_dy;
    /* value of each parameter; tied parameters share one value */
    float **value;
    /* gradient of each parameter for each micro-batch; at the end of a step, grad[0] has the
     * sums */
    float **grad[MICROS_MOST];
    /* metrics of each micro-batch; at the end of a step, metrics[0] has the sums */
    float metrics[MICROS_MOST][METRIC_COUNT];
} Plain;

static inline void *bytes_new(size_t n)
{
    return mem_pages_new(n + 64);
}

static inline void bytes_free(void *p, size_t n)
{
    if (p) mem_pages_free(p, n + 64);
}

static inline size_t param_bytes(const Param *p)
{
    return (size_t)p->elements * sizeof(float);
}

/* Allocates gradients, and sets the initial values of parameters. */
static inline void plain_values(Plain *p)
{
    const Graph *g = p->f->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *param = &g->param[i];
        float *plain = mem_new((size_t)shape_count(param->shape) * sizeof *plain);
        for (int m = 0; m < p->f->how.shape.micro_batches; ++m)
            p->grad[m][i] = bytes_new(param_bytes(param));
        if (param->tied_param >= 0) {
            p->value[i] = p->value[param->tied_param];
        } else {
            const Node *node = &g->node[param->node];
            p->value[i] = bytes_new(param_bytes(param));
            layer_param_init(&param->info, &node->spec, param->slot, param->name, 3, plain);
            op_pack(node->op, param->slot, plain, p->value[i]);
        }
        mem_free(&plain);
    }
}

static inline void plain_init(Plain *p, const Fixture *f)
{
    const Graph *g = f->graph;
    size_t n = (size_t)g->node_count, params = (size_t)g->param_count + 1;
    *p = (Plain){.f = f,
                 .run = mem_new(n * sizeof *p->run),
                 .dy = mem_new(n * sizeof *p->dy),
                 .has_dy = mem_new(n),
                 .value = mem_new(params * sizeof *p->value)};
    for (int m = 0; m < f->how.shape.micro_batches; ++m)
        p->grad[m] = mem_new(params * sizeof *p->grad[m]);
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        OpRun *r = &p->run[i];
        if (!op->y_is_x) r->y = bytes_new(desc_bytes(op->spec.y));
        r->saved = bytes_new(op->saved_bytes);
        r->cache = bytes_new(op->cache_bytes);
        r->workspace = bytes_new(op->workspace_bytes);
        p->dy[i] = bytes_new(desc_bytes(op->spec.y));
        for (int k = 0; k < op->spec.x_count; ++k)
            if (g->node[i].in[k] >= 0 && op->spec.need_dx[k] && !op->dx_is_dy[k])
                r->dx[k] = bytes_new(desc_bytes(op->spec.x[k]));
    }
    plain_values(p);
}

static inline void plain_fini(Plain *p)
{
    const Graph *g = p->f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        OpRun *r = &p->run[i];
        if (!op->y_is_x) bytes_free(r->y, desc_bytes(op->spec.y));
        bytes_free(r->saved, op->saved_bytes);
        bytes_free(r->cache, op->cache_bytes);
        bytes_free(r->workspace, op->workspace_bytes);
        bytes_free(p->dy[i], desc_bytes(op->spec.y));
        for (int k = 0; k < op->spec.x_count; ++k) bytes_free(r->dx[k], desc_bytes(op->spec.x[k]));
    }
    for (int i = 0; i < g->param_count; ++i) {
        if (g->param[i].tied_param < 0) bytes_free(p->value[i], param_bytes(&g->param[i]));
        for (int m = 0; m < p->f->how.shape.micro_batches; ++m)
            bytes_free(p->grad[m][i], param_bytes(&g->param[i]));
    }
    for (int m = 0; m < p->f->how.shape.micro_batches; ++m) mem_free(&p->grad[m]);
    mem_free(&p->value);
    mem_free(&p->run);
    mem_free(&p->dy);
    mem_free(&p->has_dy);
}

/* ---- one micro-batch ---- */

static inline void plain_forward(Plain *p, int micro, uint64_t step, bool training)
{
    const Graph *g = p->f->graph;
    const MicroBatch *batch = &p->f->batch[micro];
    for (int i = 0; i < g->node_count; ++i) {
        const Node *node = &g->node[i];
        OpRun *r = &p->run[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            r->x[k] = node->in[k] < 0 ? batch_data(batch) : p->run[node->in[k]].y;
        if (node->op->y_is_x) r->y = (void *)(uintptr_t)r->x[0];
        for (int k = 0; k < node->spec.w_count; ++k) {
            r->w[k] = p->value[node->param[k]];
            r->dw[k] = p->grad[micro][node->param[k]];
        }
        r->labels = batch->labels;
        r->boxes = (BoxTargets){batch->box_start, batch->box_row, batch->matches};
        r->sample = batch->sample;
        r->seed = SEED;
        r->step = step;
        r->sample_count = batch->rows;
        r->loss_factor = SCALE;
        r->training = training;
        op_refresh(node->op, r);
        op_forward(node->op, r);
    }
}

static inline void plain_backward(Plain *p)
{
    const Graph *g = p->f->graph;
    memset(p->has_dy, 0, (size_t)g->node_count);
    for (int i = g->node_count - 1; i >= 0; --i) {
        const Node *node = &g->node[i];
        OpRun *r = &p->run[i];
        if (i != g->loss_node && !p->has_dy[i]) continue;
        r->dy = i == g->loss_node ? NULL : p->dy[i];
        op_backward_begin(node->op, r);
        op_backward_weight(node->op, r);
        op_backward_data(node->op, r);
        for (int k = 0; k < node->spec.x_count; ++k) {
            int v = node->in[k];
            if (v < 0 || !node->op->spec.need_dx[k]) continue;
            const float *from = node->op->dx_is_dy[k] ? p->dy[i] : r->dx[k];
            int64_t n = desc_elements(node->op->spec.x[k]);
            for (int64_t e = 0; e < n; ++e)
                p->dy[v][e] = p->has_dy[v] ? p->dy[v][e] + from[e] : from[e];
            p->has_dy[v] = true;
        }
    }
}

/* Returns the output of the loss: LOSS_COLUMNS numbers for each row. */
static inline const float *plain_columns(const Plain *p)
{
    return p->run[p->f->graph->loss_node].y;
}

static inline void plain_metrics(Plain *p, int micro)
{
    float *m = p->metrics[micro];
    int64_t lines = p->f->batch[micro].rows * p->f->lines;
    const float *column = plain_columns(p);
    double loss = 0, column1 = 0, column2 = 0;
    memset(m, 0, sizeof p->metrics[micro]);
    for (int64_t i = 0; i < lines; ++i, column += LOSS_COLUMNS) {
        loss += (double)column[0];
        column1 += (double)column[1];
        column2 += (double)column[2];
        m[METRIC_TOP1] += column[1] < 1;
        m[METRIC_TOP5] += column[1] < 5;
    }
    m[METRIC_LOSS] = (float)loss;
    m[METRIC_COLUMN1] = (float)column1;
    m[METRIC_COLUMN2] = (float)column2;
    m[METRIC_ROWS] = (float)lines;
    m[METRIC_MICROS] = lines > 0;
}

/* ---- a step ---- */

/* Sums `parts` arrays of `count` elements in the order of the summation tree: neighbours are added,
 * and a last array without a neighbour is taken over to the next level. The sum is then in
 * part[0]. */
static inline void tree_sum(float **part, int parts, int64_t count)
{
    for (; parts > 1; parts = (parts + 1) / 2)
        for (int i = 0; i < (parts + 1) / 2; ++i)
            for (int64_t e = 0; e < count; ++e)
                part[i][e] =
                    2 * i + 1 < parts ? part[2 * i][e] + part[2 * i + 1][e] : part[2 * i][e];
}

/* Sums gradients and metrics over the micro-batches, and adds the gradients of tied parameters. */
static inline void plain_sum(Plain *p)
{
    const Graph *g = p->f->graph;
    int micro_batches = p->f->how.shape.micro_batches;
    float *part[MICROS_MOST];
    for (int i = 0; i < g->param_count; ++i) {
        for (int m = 0; m < micro_batches; ++m) part[m] = p->grad[m][i];
        tree_sum(part, micro_batches, g->param[i].elements);
    }
    for (int m = 0; m < micro_batches; ++m) part[m] = p->metrics[m];
    tree_sum(part, micro_batches, METRIC_COUNT);
    for (int i = 0; i < g->param_count; ++i)
        for (int64_t e = 0; g->param[i].tied_param >= 0 && e < g->param[i].elements; ++e)
            p->grad[0][g->param[i].tied_param][e] += p->grad[0][i][e];
}

/* Updates the running statistics. */
static inline void plain_statistics(Plain *p)
{
    const Graph *g = p->f->graph;
    Backend *b = p->f->backend;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *param = &g->param[i];
        if (!param->info.is_statistic) continue;
        float momentum = g->node[param->node].spec.momentum;
        b->table->flat->scale_add(b->table->stream(b), p->value[i],
                                  momentum / p->metrics[0][METRIC_MICROS], p->grad[0][i],
                                  1 - momentum, param->elements);
    }
}

static inline void plain_step(Plain *p, uint64_t step)
{
    const Graph *g = p->f->graph;
    for (int m = 0; m < p->f->how.shape.micro_batches; ++m) {
        for (int i = 0; i < g->param_count; ++i)
            for (int64_t e = 0; e < g->param[i].elements; ++e) p->grad[m][i][e] = -0.0f;
        memset(p->metrics[m], 0, sizeof p->metrics[m]);
        if (p->f->batch[m].rows == 0) continue;
        plain_forward(p, m, step, true);
        plain_metrics(p, m);
        plain_backward(p);
    }
    plain_sum(p);
    plain_statistics(p);
}

/* ---- comparison ---- */

/* Returns whether two values of a parameter have the same bits, and all numbers are finite. Padding
 * is not compared. */
static inline bool same_tensor(const Graph *g, int param, const float *a, const float *b)
{
    const Param *p = &g->param[param];
    size_t count = (size_t)shape_count(p->shape);
    float *x = mem_new(count * sizeof *x), *y = mem_new(count * sizeof *y);
    op_unpack(g->node[p->node].op, p->slot, a, x);
    op_unpack(g->node[p->node].op, p->slot, b, y);
    bool same = memcmp(x, y, count * sizeof *x) == 0;
    for (size_t i = 0; i < count; ++i) same &= isfinite(x[i]) != 0;
    mem_free(&x);
    mem_free(&y);
    return same;
}

/* Returns whether the gradients and values of this stage's parameters are the same in the executor
 * and in the interpreter. */
static inline bool same_params(const Plain *p)
{
    const Graph *g = p->f->graph;
    const Plan *plan = p->f->plan;
    bool good = true;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *param = &g->param[i];
        if (plan->param_offset[i] < 0) continue;
        const float *grad = executor_grads(p->f->executor) + plan->param_offset[i];
        const float *value = executor_params(p->f->executor) + plan->param_offset[i];
        int own = param->tied_param >= 0 ? param->tied_param : i;
        bool same = same_tensor(g, i, grad, p->grad[0][own]);
        if (!same) printf("  %s: the gradient is wrong\n", param->name);
        good &= same;
        same = same_tensor(g, i, value, p->value[own]);
        if (!same) printf("  %s: the value is wrong\n", param->name);
        good &= same;
    }
    return good;
}

/* Returns whether any gradient is not 0. */
static inline bool anything_moved(const Plain *p)
{
    const Graph *g = p->f->graph;
    for (int i = 0; i < g->param_count; ++i)
        for (int64_t e = 0; !g->param[i].info.is_statistic && e < g->param[i].elements; ++e)
            if (p->grad[0][i][e] != 0) return true;
    return false;
}

static inline int micro_batches_with_samples(const Fixture *f)
{
    int count = 0;
    for (int m = 0; m < f->how.shape.micro_batches; ++m) count += f->batch[m].rows > 0;
    return count;
}

/* Makes a training step in the executor and in the interpreter. Returns whether gradients, values
 * and metrics are the same. */
static inline bool check_step(Fixture *f, Plain *p, uint64_t step)
{
    double wait_s = 0;
    int stages = f->how.shape.stages;
    BatchSource source = source_of(f, f->plan->batches_in_use);
    executor_request(f->executor, METRIC_STOP, f->plan->stage == 0);
    executor_request(f->executor, METRIC_SAVE, step % 2 == 0);
    executor_request(f->executor, METRIC_TIMED, 1);
    executor_request(f->executor, METRIC_PHASES + PHASE_EVAL, 0.25f * (float)f->plan->stage);
    StepBatch of = {.step = step, .scale = SCALE, .micro_batches = micro_batches_with_samples(f)};
    Phase outer = phase_enter(PHASE_UPDATE);
    Status st = executor_forward_backward(f->executor, &source, &of, &wait_s);
    CU_ASSERT_EQUAL(phase_enter(PHASE_UPDATE), PHASE_UPDATE);
    CHECK_OK(st);
    if (st == OK) executor_reduce(f->executor);
    if (st == OK) executor_move_statistics(f->executor, &of);
    CU_ASSERT_EQUAL(phase_enter(outer), PHASE_UPDATE);
    if (st != OK) return false;
    const float *metrics = executor_metrics(f->executor, 0);
    executor_params_changed(f->executor);
    plain_step(p, step);
    p->metrics[0][METRIC_STOP] = 1;
    p->metrics[0][METRIC_SAVE] = step % 2 == 0 ? (float)stages : 0;
    p->metrics[0][METRIC_TIMED] = (float)stages;
    p->metrics[0][METRIC_PHASES + PHASE_EVAL] = 0.125f * (float)(stages * (stages - 1));
    bool same = memcmp(metrics, p->metrics[0], sizeof p->metrics[0]) == 0;
    if (!same)
        for (int m = 0; m < METRIC_COUNT; ++m)
            printf("  metric %d: %.9g, should be %.9g\n", m, (double)metrics[m],
                   (double)p->metrics[0][m]);
    bool good = same && metrics[METRIC_LOSS] > 0 && isfinite(metrics[METRIC_LOSS]);
    return same_params(p) && good && anything_moved(p) && source_done(f);
}

/* ---- evaluation ---- */

/* The comparison of an evaluation. */
typedef struct Take {
    Plain *p;
    /* number of the next micro-batch */
    int next;
    /* true: all results so far are right */
    bool good;
} Take;

/* Called by the executor with the output of the loss for each micro-batch. */
static inline void take_columns(void *user, const MicroBatch *batch, const float *results)
{
    Take *t = user;
    const Fixture *f = t->p->f;
    int micro = t->next++;
    t->good &= micro < f->how.shape.micro_batches && batch == &f->lent[micro];
    if (!t->good || batch->rows == 0) return;
    plain_forward(t->p, micro, 0, false);
    size_t bytes = (size_t)(batch->rows * f->lines * LOSS_COLUMNS) * sizeof *results;
    t->good &= memcmp(results, plain_columns(t->p), bytes) == 0;
}

static inline bool check_evaluation(Fixture *f, Plain *p)
{
    Take take = {.p = p, .good = true};
    BatchSource source = source_of(f, f->how.shape.stages);
    Status st = executor_evaluate(f->executor, &source, take_columns, &take);
    CHECK_OK(st);
    if (!take.good) printf("  evaluation is wrong\n");
    return st == OK && take.good && source_done(f) &&
           take.next == (f->plan->reads_labels ? f->how.shape.micro_batches : 0);
}

/* ---- a case ---- */

/* Gives the executor the interpreter's values of this stage's parameters. */
static inline void load_values(const Plain *p)
{
    const Graph *g = p->f->graph;
    for (int i = 0; i < g->param_count; ++i)
        if (p->f->plan->param_offset[i] >= 0)
            memcpy(executor_params(p->f->executor) + p->f->plan->param_offset[i], p->value[i],
                   param_bytes(&g->param[i]));
    executor_params_changed(p->f->executor);
}

/* Makes training steps, with an evaluation after each, in the executor and in the interpreter.
 * Returns whether all results are the same. *cut: false if the model has too few places for cuts,
 * so that nothing was run. Collective on the case's world. */
static inline bool check_case(const Case *how, bool *cut)
{
    Fixture f;
    Plain p;
    bool good = fixture_open(&f, how);
    *cut = f.first != NULL;
    if (good) {
        plain_init(&p, &f);
        load_values(&p);
        for (uint64_t step = FIRST_STEP; step < FIRST_STEP + STEPS; ++step) {
            good &= check_step(&f, &p, step);
            /* also after a difference, because other stages wait for this one */
            good &= check_evaluation(&f, &p);
        }
        plain_fini(&p);
    }
    fixture_close(&f);
    CU_ASSERT(good || !*cut);
    if (*cut && !good)
        printf("  ^ schedule %d, %d stages of %d chunks, %d micro-batches, %s%s, draw %llu\n",
               how->schedule, how->shape.stages, how->shape.chunks_per_stage,
               how->shape.micro_batches, how->table->name, how->recompute ? ", recomputed" : "",
               (unsigned long long)how->draw);
    return good;
}

/* Checks a model on one stage, without and with recomputation. */
static inline bool check_model(const char *model, const BackendTable *table, int side, int schedule,
                               int micro_batches)
{
    bool cut, good = true;
    for (int recompute = 0; recompute < 2; ++recompute) {
        Case how = {.model = model,
                    .table = table,
                    .side = side,
                    .shape = {.stages = 1, .chunks_per_stage = 1, .micro_batches = micro_batches},
                    .schedule = schedule,
                    .recompute = recompute};
        good &= check_case(&how, &cut);
    }
    return good;
}

#endif
