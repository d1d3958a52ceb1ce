/* Runs a model on one or several stages by plan and executor, under hard conditions: data is
 * overwritten as soon as the executor has returned it, the model is cut at random places, and the
 * lists of schedules may be reordered at random. A Case determines all of this, and is the same on
 * every rank. */
#ifndef WEFT_TESTS_PIPELINE_FIXTURE_H
#define WEFT_TESTS_PIPELINE_FIXTURE_H

#include "harness.h"
#include "schedules.def"
#include "pipeline.h"
#include "schedule/fixture.h"

enum { MICRO = 4, CLASSES = 9, TOKENS = 5, MICROS_MOST = 8, SEED = 11 };

/* A model and the way it is run. */
typedef struct Case {
    /* text of a configuration */
    const char *model;
    /* backend */
    const BackendTable *table;
    /* ranks of the stages; NULL: this process only */
    const World *world;
    /* height and width of the images, which have 3 channels; 0: the samples are tokens */
    int side;
    ScheduleShape shape;
    /* a ScheduleKind; with SCHEDULE_FILE, `list` and `split` describe the file */
    int schedule;
    /* kind of schedule whose lists are reordered at random; SCHEDULE_FILE: schedule_in_a_row, in
     * which neighbouring chunks are on the same stage */
    int list;
    /* which backwards are split into halves: 0: none; 1: all; 2: those of every other
     * micro-batch */
    int split;
    /* determines the random cuts and the random order of lists */
    uint64_t draw;
    /* true: blocks are recomputed in backward */
    bool recompute;
    int transport;
} Case;

/* A case that has been opened. */
typedef struct Fixture {
    Case how;
    /* world of this process, for a case without a world */
    World alone;
    Grid grid;
    bool grid_ready;
    Config *config;
    Backend *backend;
    Graph *graph;
    Schedule *schedule;
    /* first node of each chunk, and then the number of nodes */
    int *first;
    Plan *plan;
    Comm *comm;
    Executor *executor;
    /* shape and type of a micro-batch's data */
    Desc input;
    /* number of rows of the loss per sample */
    int64_t lines;
    /* batch: the micro-batches; lent: the copies that are lent to the executor */
    MicroBatch batch[MICROS_MOST], lent[MICROS_MOST];
    /* taken: number of copies lent so far; given: number of copies returned so far; most: largest
     * number that may be lent at a time */
    int taken, given, most;
    /* data_changed: the executor has changed a copy; too_many: it has borrowed more than `most` */
    bool data_changed, too_many;
} Fixture;

/* ---- data ---- */

static inline MicroBatch batch_new(const Fixture *f, bool data, bool labels)
{
    MicroBatch b = {.sample = mem_new(MICRO * sizeof *b.sample)};
    if (data && f->how.side > 0) b.x = mem_new(desc_bytes(f->input));
    if (data && f->how.side == 0) b.tokens = mem_new(desc_bytes(f->input));
    if (labels) b.labels = mem_new((size_t)(MICRO * f->lines) * sizeof *b.labels);
    return b;
}

static inline void batch_free(MicroBatch *b)
{
    mem_free(&b->x);
    mem_free(&b->tokens);
    mem_free(&b->labels);
    mem_free(&b->sample);
}

static inline void *batch_data(const MicroBatch *b)
{
    return b->tokens ? (void *)b->tokens : b->x;
}

/* Sets the true boxes of a micro-batch: two for each sample, none for padding. */
static inline void set_boxes(MicroBatch *b)
{
    static float row[2 * MICRO][BOX_NUMBERS] = {
        {1, 0.3f, 0.5f, 0.4f, 0.3f}, {8, 0.7f, 0.2f, 0.9f, 1}, {0, 0.5f, 0.5f, 0.2f, 0.6f},
        {3, 1, 0, 0.7f, 0.7f},       {3, 1, 0, 0.7f, 0.7f},    {2, 0.1f, 0.9f, 0.5f, 0.8f},
        {5, 0.6f, 0.6f, 1, 1},       {7, 0.4f, 0.1f, 0.6f, 1}};
    static int32_t start[MICRO + 1][MICRO + 1] = {
        {0}, {0, 2, 2, 2, 2}, {0, 2, 4, 4, 4}, {0, 2, 4, 6, 6}, {0, 2, 4, 6, 8}};
    static int64_t matches[] = {40, 30, 20, 14};
    b->box_start = start[b->rows];
    b->box_row = row[0];
    b->matches = matches;
}

/* Fills micro-batch `micro`, which may be full, short or empty. */
static inline void batch_fill(const Fixture *f, MicroBatch *b, int micro)
{
    static const int rows[MICROS_MOST] = {3, 4, 0, 1, 4, 2, 4, 4};
    RngKey key = rng_key(1, RNG_TEST, (uint64_t)micro, 0);
    int64_t count = shape_count(f->input.shape) / MICRO;
    b->rows = rows[micro];
    set_boxes(b);
    for (int64_t i = 0; i < count * b->rows; ++i) {
        if (b->tokens) b->tokens[i] = (int32_t)(rng_u32(key, (uint64_t)i) % CLASSES);
        if (b->x) b->x[i] = rng_normal(key, (uint64_t)i);
    }
    for (int i = 0; i < MICRO; ++i) b->sample[i] = 100 + 7 * i + 1000 * micro;
    for (int64_t i = 0; i < b->rows * f->lines; ++i)
        b->labels[i] = (int32_t)((i * 2 + micro) % CLASSES);
}

/* Lends the executor a copy of the next micro-batch. */
static inline Status source_next(void *user, const MicroBatch **batch, double *wait_s)
{
    Fixture *f = user;
    int micro = f->taken++ % f->how.shape.micro_batches;
    const MicroBatch *from = &f->batch[micro];
    MicroBatch *to = &f->lent[micro];
    (void)wait_s;
    f->too_many |= f->taken - f->given > f->most;
    if (batch_data(to)) memcpy(batch_data(to), batch_data(from), desc_bytes(f->input));
    if (to->labels)
        memcpy(to->labels, from->labels, (size_t)(MICRO * f->lines) * sizeof *to->labels);
    memcpy(to->sample, from->sample, MICRO * sizeof *to->sample);
    to->rows = from->rows;
    set_boxes(to);
    *batch = to;
    return OK;
}

/* Takes back the oldest copy that was lent. Checks that the executor has not changed it, and
 * overwrites it, because the executor must not read it any more. */
static inline void source_release(void *user)
{
    Fixture *f = user;
    int micro = f->given++ % f->how.shape.micro_batches;
    MicroBatch *lent = &f->lent[micro];
    size_t bytes = desc_bytes(f->input);
    if (batch_data(lent)) {
        f->data_changed |= memcmp(batch_data(lent), batch_data(&f->batch[micro]), bytes) != 0;
        memset(batch_data(lent), lent->tokens ? 0 : 0xff, bytes);
    }
    if (lent->labels) memset(lent->labels, 0, (size_t)(MICRO * f->lines) * sizeof *lent->labels);
    memset(lent->sample, 0xff, MICRO * sizeof *lent->sample);
}

/* Returns a source for one pass over the micro-batches. most: largest number of copies that the
 * executor may have at a time. */
static inline BatchSource source_of(Fixture *f, int most)
{
    f->taken = f->given = 0;
    f->most = most;
    return (BatchSource){.user = f, .next = source_next, .release = source_release};
}

/* Returns whether all micro-batches were lent and returned unchanged, and never more than the limit
 * at a time. */
static inline bool source_done(const Fixture *f)
{
    int micro_batches = f->how.shape.micro_batches;
    return f->taken == micro_batches && f->given == micro_batches && !f->data_changed &&
           !f->too_many;
}

/* ---- cuts ---- */

/* Returns whether a node's output is the data's memory. */
static inline bool is_the_data(const Graph *g, int node)
{
    while (node != NODE_INPUT && g->node[node].op->y_is_x) node = g->node[node].in[0];
    return node == NODE_INPUT;
}

/* Returns whether the model may be cut before node `boundary`. No stage may have to send the data
 * or the logits to another. */
static inline bool boundary_allowed(const Graph *g, int boundary)
{
    for (int i = boundary; i < g->node_count; ++i)
        for (int k = 0; k < g->node[i].spec.x_count; ++k) {
            int v = g->node[i].in[k];
            if (v >= 0 && v < boundary && (is_the_data(g, v) || v >= g->logits_node)) return false;
        }
    return true;
}

/* Cuts the model into `parts` parts at random places. Returns the first node of each part, and then
 * the number of nodes; NULL if there are too few places. The caller owns the result. */
static inline int *random_cut(const Graph *g, int parts, uint64_t draw)
{
    int *first = mem_new((size_t)(parts + 1) * sizeof *first), open = 0, part = 1;
    RngKey key = rng_key(6, RNG_TEST, draw, 0);
    for (int i = 1; i < g->node_count; ++i) open += boundary_allowed(g, i);
    if (open < parts - 1) mem_free(&first);
    for (int i = 1; first && i < g->node_count; ++i) {
        if (!boundary_allowed(g, i)) continue;
        if ((int)(rng_u32(key, (uint64_t)i) % (uint32_t)open) < parts - part) first[part++] = i;
        --open;
    }
    if (first) first[parts] = g->node_count;
    return first;
}

/* ---- schedules ---- */

/* Appends `more` to *text. */
static inline void text_add(char **text, const char *more)
{
    char *all = mem_format("%s%s", *text, more);
    mem_free(text);
    *text = all;
}

/* Returns the header lines of a schedule file. stage_of: stage of each chunk, [chunks]. The caller
 * owns the text. */
static inline char *head_text(const int *stage_of, int chunks)
{
    char *text = mem_text("stages"), number[16];
    for (int c = 0; c < chunks; ++c) {
        snprintf(number, sizeof number, ",%d", stage_of[c]);
        text_add(&text, number);
    }
    text_add(&text, "\nstage,task,chunk,micro\n");
    return text;
}

/* Returns the text of a schedule file. split: as Case.split. The caller owns the text. */
static inline char *schedule_text(const Schedule *s, int split)
{
    char *text = head_text(s->stage_of, schedule_chunks(s));
    for (int stage = 0; stage < s->shape.stages; ++stage)
        for (int i = 0; i < s->count[stage]; ++i) {
            const Task *t = &s->task[stage][i];
            bool halves = split && t->kind == TASK_BACKWARD && t->micro % split == 0;
            char *line =
                mem_format("%d,%s,%d,%d\n", stage,
                           task_names[halves ? TASK_BACKWARD_DATA : t->kind], t->chunk, t->micro);
            char *half = halves ? mem_format("%d,%s,%d,%d\n", stage,
                                             task_names[TASK_BACKWARD_WEIGHT], t->chunk, t->micro)
                                : mem_text("");
            text_add(&text, line);
            text_add(&text, half);
            mem_free(&line);
            mem_free(&half);
        }
    return text;
}

/* Makes a schedule in which neighbouring chunks are on one stage: with two chunks per stage, chunks
 * 0 and 1 are on stage 0, chunks 2 and 3 on stage 1, and so on. It has all forwards, one
 * micro-batch after the other, and then all backwards. */
static inline Status schedule_in_a_row(Schedule **schedule, ScheduleShape shape)
{
    int chunks = shape.stages * shape.chunks_per_stage,
        *stage_of = mem_new((size_t)chunks * sizeof *stage_of);
    char line[64];
    for (int c = 0; c < chunks; ++c) stage_of[c] = c / shape.chunks_per_stage;
    char *text = head_text(stage_of, chunks);
    for (int pass = 0; pass < 2; ++pass)
        for (int micro = 0; micro < shape.micro_batches; ++micro)
            for (int i = 0; i < chunks; ++i) {
                int c = pass == 0 ? i : chunks - 1 - i;
                snprintf(line, sizeof line, "%d,%s,%d,%d\n", stage_of[c],
                         task_names[pass == 0 ? TASK_FORWARD : TASK_BACKWARD], c, micro);
                text_add(&text, line);
            }
    Status st = from_text(schedule, shape, text);
    mem_free(&text);
    mem_free(&stage_of);
    return st;
}

/* Swaps neighbouring tasks of the lists at random. Undoes a swap after which the schedule cannot
 * run. */
static inline void disorder(Schedule *s, uint64_t draw)
{
    enum { TRIES = 300 };
    RngKey key = rng_key(7, RNG_TEST, draw, 0);
    for (uint64_t i = 0; i < TRIES; ++i) {
        int stage = (int)(rng_u32(key, 2 * i) % (uint32_t)s->shape.stages);
        Task *t = s->task[stage] + rng_u32(key, 2 * i + 1) % (uint32_t)(s->count[stage] - 1);
        Task swap = t[0];
        t[0] = t[1];
        t[1] = swap;
        if (schedule_simulate(s, NULL, NULL) == OK) continue;
        t[1] = t[0];
        t[0] = swap;
    }
}

/* Writes the schedule to a file and reads it again. */
static inline Status reread(Schedule **schedule, int split)
{
    ScheduleShape shape = (*schedule)->shape;
    char *text = schedule_text(*schedule, split);
    schedule_free(schedule);
    Status st = from_text(schedule, shape, text);
    mem_free(&text);
    return st;
}

static inline Status make_schedule(Fixture *f)
{
    const Case *how = &f->how;
    if (how->schedule != SCHEDULE_FILE)
        return schedule_new(&f->schedule, how->schedule, NULL, how->shape);
    if (how->list == SCHEDULE_FILE)
        TRY(schedule_in_a_row(&f->schedule, how->shape));
    else
        TRY(schedule_new(&f->schedule, how->list, NULL, how->shape));
    TRY(reread(&f->schedule, how->split));
    disorder(f->schedule, how->draw);
    return reread(&f->schedule, 0);
}

/* ---- the fixture ---- */

static inline Status open_graph(Fixture *f)
{
    int side = f->how.side;
    f->input = side > 0 ? desc_plain(shape_of(4, MICRO, 3, side, side), DTYPE_F32)
                        : desc_plain(shape_of(2, MICRO, TOKENS, 1, 1), DTYPE_I32);
    config_use_words(model_words, MODEL_WORDS);
    config_use_words(layers_words, LAYERS_WORDS);
    TRY(config_parse(&f->config, "test", f->how.model, 0, NULL));
    TRY(backend_open(&f->backend, f->how.table, (BackendOptions){.threads = 1}));
    TRY(graph_build(&f->graph, f->config, f->input, CLASSES));
    TRY(graph_fuse(f->graph, &backend_cpu));
    TRY(graph_plan(f->graph, f->backend));
    f->lines = shape_count(f->graph->node[f->graph->loss_node].spec.y.shape) / LOSS_COLUMNS / MICRO;
    return OK;
}

/* Returns the blocks that are recomputed, which the caller owns; NULL: nothing is recomputed. */
static inline int *blocks_of(const Fixture *f)
{
    const ScheduleShape *s = &f->how.shape;
    return f->how.recompute ? graph_blocks(f->graph, f->first, s->stages * s->chunks_per_stage)
                            : NULL;
}

static inline Status open_executor(Fixture *f)
{
    ScheduleReport report;
    const World *world = f->how.world ? f->how.world : &f->alone;
    GridShape shape = {1, f->how.shape.stages, 1};
    TRY(make_schedule(f));
    TRY(schedule_simulate(f->schedule, NULL, &report));
    int *block = blocks_of(f);
    PlanOptions options = {.shape = shape,
                           .stage = world->rank,
                           .schedule = f->schedule,
                           .channel_depth = report.channel_depth,
                           .chunk_begin = f->first,
                           .bucket_bytes = 4096,
                           .block = block};
    schedule_report_fini(&report);
    TRY(grid_init(&f->grid, world, shape));
    f->grid_ready = true;
    Status st = plan_new(&f->plan, f->graph, &options);
    mem_free(&block);
    TRY(st);
    TRY(comm_new(&f->comm, &f->grid.dp_world, f->backend, TRANSPORT_AUTO,
                 f->plan->micro_grad_elements));
    return executor_new(&f->executor, f->plan, &f->grid, f->backend, f->comm,
                        (ExecutorOptions){.seed = SEED, .transport = f->how.transport});
}

/* Opens a case. Returns whether it can be run. If the model has too few places for cuts, f->first
 * is NULL, and no assertion fails. Release with fixture_close in every case. */
static inline bool fixture_open(Fixture *f, const Case *how)
{
    memset(f, 0, sizeof *f);
    f->how = *how;
    f->alone = (World){
        .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    Status st = open_graph(f);
    if (st == OK)
        f->first = random_cut(f->graph, how->shape.stages * how->shape.chunks_per_stage, how->draw);
    if (st == OK && f->first) st = open_executor(f);
    CHECK_OK(st);
    if (st != OK || !f->first) return false;
    for (int m = 0; m < how->shape.micro_batches; ++m) {
        f->batch[m] = batch_new(f, true, true);
        f->lent[m] = batch_new(f, f->plan->reads_data, f->plan->reads_labels);
        batch_fill(f, &f->batch[m], m);
    }
    return true;
}

static inline void fixture_close(Fixture *f)
{
    executor_free(&f->executor);
    comm_free(&f->comm);
    plan_free(&f->plan);
    if (f->schedule) schedule_free(&f->schedule);
    graph_free(&f->graph);
    if (f->grid_ready) grid_fini(&f->grid);
    if (f->backend) backend_close(&f->backend);
    config_free(&f->config);
    mem_free(&f->first);
    for (int m = 0; m < MICROS_MOST; ++m) {
        batch_free(&f->batch[m]);
        batch_free(&f->lent[m]);
    }
}

#endif
