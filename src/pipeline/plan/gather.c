/* Plans the gathering of parameters (zero 3 if replicas share no memory; Rajbhandari et al. 2020,
 * section 5.3): which buckets are gathered, when, and to which places. A use is a sequence of
 * actions that read the same buckets; an ACTION_GATHER in the pass's list marks its beginning. At
 * each use, the buckets that it reads and the next few are in memory together, so their places do
 * not overlap. A bucket stays until another bucket needs its place, so the last buckets of a
 * forward pass are often still in memory when backward begins. Backward reads weights only for the
 * gradients of inputs, so it gathers no bucket for a layer whose inputs need no gradient, such as
 * an embedding. */
#include "plan.h"

#include <string.h>

/* ---- the buckets that actions read ---- */

/* Numbers the buckets that contain parameters and sets the bucket of each parameter. */
static void find_buckets(Plan *plan)
{
    const Graph *g = plan->graph;
    GatherPlan *f = &plan->gather;
    size_t most = 1;
    for (int k = 0; k < plan->chunk_count; ++k) most += (size_t)plan->chunk[k].buckets.count;
    f->bucket = mem_new(most * sizeof *f->bucket);
    f->bucket_of = mem_new((size_t)(g->param_count + 1) * sizeof *f->bucket_of);
    for (int i = 0; i < g->param_count; ++i) f->bucket_of[i] = -1;
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        int *number = mem_new((size_t)(c->buckets.count + 1) * sizeof *number), bucket;
        for (int b = 0; b < c->buckets.count; ++b) {
            number[b] = -1;
            if (!bucket_has_params(plan, c, b)) continue;
            number[b] = f->count;
            f->bucket[f->count++] = (ParamBucket){.offset = c->buckets.offset[b],
                                                  .elements = c->buckets.elements[b],
                                                  .shard = &c->shard[b]};
        }
        for (int i = 0; i < g->param_count; ++i)
            if (!g->param[i].frozen && plan->param_offset[i] >= 0 &&
                plan_bucket_at(plan, plan->param_offset[i], &bucket) == c)
                f->bucket_of[i] = number[bucket];
        mem_free(&number);
    }
}

bool action_reads_params(const Plan *plan, const ChunkPlan *c, const Action *a)
{
    bool forward = a->kind == ACTION_FORWARD, reads = forward;
    if (!forward && a->kind != ACTION_BACKWARD && a->kind != ACTION_BACKWARD_DATA) return false;
    const OpSpec *spec = &plan->graph->node[c->run[a->index].node].op->spec;
    for (int k = 0; k < spec->x_count; ++k) reads = reads || spec->need_dx[k];
    return reads && spec->w_count > 0;
}

static int add_bucket(int *bucket, int count, int b)
{
    for (int i = 0; i < count; ++i)
        if (bucket[i] == b) return count;
    bucket[count] = b;
    return count + 1;
}

static ParamUse use_of(const Plan *plan, const ChunkPlan *c, const Action *a)
{
    ParamUse use = {0};
    if (!action_reads_params(plan, c, a)) return use;
    const Node *node = &plan->graph->node[c->run[a->index].node];
    for (int k = 0; k < node->spec.w_count; ++k) {
        int bucket = plan->gather.bucket_of[node->param[k]];
        if (bucket >= 0) use.count = add_bucket(use.bucket, use.count, bucket);
    }
    return use;
}

/* Inserts an ACTION_GATHER before each action that reads other buckets than the previous reading
 * action. */
static void mark_pass(const Plan *plan, ChunkPlan *c, ActionList *list, int *uses)
{
    Action *marked = mem_new((size_t)(2 * list->count + 1) * sizeof *marked);
    ParamUse last = {0};
    int count = 0;
    for (int i = 0; i < list->count; ++i) {
        ParamUse use = use_of(plan, c, &list->action[i]);
        if (use.count > 0 && memcmp(&use, &last, sizeof use) != 0) {
            marked[count++] = (Action){.kind = ACTION_GATHER, .index = *uses};
            c->use[(*uses)++] = last = use;
        }
        marked[count++] = list->action[i];
    }
    mem_free(&list->action);
    *list = (ActionList){count, marked};
}

static void mark_chunk(const Plan *plan, ChunkPlan *c)
{
    int actions = 0, uses = 0;
    for (int pass = 0; pass < PASSES; ++pass) actions += c->pass[pass].count;
    c->use = mem_new((size_t)(actions + 1) * sizeof *c->use);
    for (int pass = 0; pass < PASSES; ++pass) {
        mark_pass(plan, c, &c->pass[pass], &uses);
        c->use_first[pass + 1] = uses;
    }
}

/* ---- visiting the uses ---- */

void window_init(Window *w, const Plan *plan)
{
    *w =
        (Window){.plan = plan, .here = mem_new((size_t)(plan->gather.count + 1) * sizeof *w->here)};
}

void window_fini(Window *w)
{
    mem_free(&w->here);
}

void window_start(Window *w, const Schedule *schedule)
{
    w->schedule = schedule;
    w->task = w->use = 0;
}

static int pass_of(TaskKind kind)
{
    static const int pass[TASK_KINDS] = {
        [TASK_FORWARD] = PASS_FORWARD,        [TASK_BACKWARD] = PASS_BACKWARD,
        [TASK_BACKWARD_DATA] = PASS_BACKWARD, [TASK_BACKWARD_WEIGHT] = PASS_WEIGHT,
        [TASK_SEND_FORWARD] = PASSES,         [TASK_RECEIVE_FORWARD] = PASSES,
        [TASK_SEND_BACKWARD] = PASSES,        [TASK_RECEIVE_BACKWARD] = PASSES,
    };
    return pass[kind];
}

/* Returns the first use at or after position (*task, *use) and sets these to its position; NULL:
 * there is none. */
static const ParamUse *seek(const Window *w, int *task, int *use)
{
    const Schedule *s = w->schedule;
    int stage = w->plan->stage;
    for (; *task < s->count[stage]; ++*task, *use = 0) {
        const Task *t = &s->task[stage][*task];
        const ChunkPlan *c = &w->plan->chunk[schedule_index_on_stage(s, t->chunk)];
        int pass = pass_of(t->kind);
        if (pass < PASSES && c->use_first[pass] + *use < c->use_first[pass + 1])
            return &c->use[c->use_first[pass] + *use];
    }
    return NULL;
}

/* Lists the buckets of the next use and of the uses after it. Stops when the buckets of the next
 * use and at least GATHER_AHEAD more buckets are listed, when all buckets are listed, or when the
 * schedule ends. Returns the number of listed buckets. */
static int look_ahead(const Window *w, int bucket[WINDOW_MOST])
{
    int task = w->task, use = w->use, count = 0, enough = 1;
    for (const ParamUse *u; count < enough && (u = seek(w, &task, &use)); ++use) {
        for (int k = 0; k < u->count; ++k) count = add_bucket(bucket, count, u->bucket[k]);
        if (enough == 1) enough = count + GATHER_AHEAD;
        if (enough > w->plan->gather.count) enough = w->plan->gather.count;
    }
    return count;
}

static bool overlap(int64_t a, int64_t a_length, int64_t b, int64_t b_length)
{
    return a < b + b_length && b < a + a_length;
}

/* Drops the buckets whose memory bucket b needs. */
static void drop_overlapping(Window *w, int b)
{
    const ParamBucket *all = w->plan->gather.bucket, *mine = &all[b];
    int kept = 0;
    for (int i = 0; i < w->here_count; ++i) {
        const ParamBucket *other = &all[w->here[i]];
        if (!overlap(mine->ring_offset, mine->elements, other->ring_offset, other->elements) &&
            !overlap(mine->cache_offset, mine->cache_bytes, other->cache_offset,
                     other->cache_bytes))
            w->here[kept++] = w->here[i];
    }
    w->here_count = kept;
}

const ParamUse *window_next(Window *w, int gather[WINDOW_MOST], int *count)
{
    int soon[WINDOW_MOST], soon_count = look_ahead(w, soon);
    const ParamUse *use = seek(w, &w->task, &w->use);
    *count = 0;
    for (int i = 0; i < soon_count; ++i) {
        int here = w->here_count;
        if (add_bucket(w->here, here, soon[i]) == here) continue;
        drop_overlapping(w, soon[i]);
        w->here_count = add_bucket(w->here, w->here_count, soon[i]);
        gather[(*count)++] = soon[i];
    }
    if (use) ++w->use;
    return use;
}

/* ---- places ---- */

/* The buckets that are in memory together with one bucket. */
typedef struct Near {
    int count, capacity;
    /* bucket indices, [capacity]; owned */
    int *bucket;
} Near;

static void near_add(Near *near, int b)
{
    if (near->count == near->capacity) {
        near->capacity = near->capacity ? 2 * near->capacity : 8;
        near->bucket = mem_resize(near->bucket, (size_t)near->capacity * sizeof *near->bucket);
    }
    near->count = add_bucket(near->bucket, near->count, b);
}

/* Adds to each bucket's list the buckets that are in memory together with it when the schedule
 * runs. */
static void find_near(const Plan *plan, const Schedule *schedule, Near *near)
{
    Window w;
    int soon[WINDOW_MOST];
    window_init(&w, plan);
    window_start(&w, schedule);
    for (; seek(&w, &w.task, &w.use); ++w.use) {
        int count = look_ahead(&w, soon);
        for (int i = 0; i < count; ++i)
            for (int j = 0; j < count; ++j)
                if (i != j) near_add(&near[soon[i]], soon[j]);
    }
    window_fini(&w);
}

/* Places bucket b. Buckets with lower numbers are already placed. */
static void place_bucket(GatherPlan *f, const Near *near, int b)
{
    ParamBucket *mine = &f->bucket[b];
    Span *value = mem_new((size_t)(near->count + 1) * sizeof *value);
    Span *cache = mem_new((size_t)(near->count + 1) * sizeof *cache);
    int count = 0;
    for (int i = 0; i < near->count; ++i) {
        const ParamBucket *other = &f->bucket[near->bucket[i]];
        if (near->bucket[i] >= b) continue;
        value[count] = (Span){other->ring_offset, other->ring_offset + other->elements};
        cache[count++] = (Span){other->cache_offset, other->cache_offset + other->cache_bytes};
    }
    mine->ring_offset = place_lowest(value, count, mine->elements);
    mine->cache_offset = place_lowest(cache, count, mine->cache_bytes);
    mem_free(&value);
    mem_free(&cache);
}

/* Places the buckets in both rings, for training and for evaluation, which runs forwards only. */
static Status place_buckets(Plan *plan)
{
    GatherPlan *f = &plan->gather;
    Schedule *evaluation = NULL;
    TRY(schedule_forward(&evaluation, plan->schedule->shape, plan->schedule->stage_of));
    Near *near = mem_new((size_t)(f->count + 1) * sizeof *near);
    find_near(plan, plan->schedule, near);
    find_near(plan, evaluation, near);
    for (int b = 0; b < f->count; ++b) {
        const ParamBucket *mine = &f->bucket[b];
        place_bucket(f, &near[b], b);
        int64_t end = mine->ring_offset + mine->elements,
                cache_end = mine->cache_offset + mine->cache_bytes;
        f->elements = end > f->elements ? end : f->elements;
        if ((size_t)cache_end > plan->cache_bytes) plan->cache_bytes = (size_t)cache_end;
    }
    for (int b = 0; b < f->count; ++b) mem_free(&near[b].bucket);
    mem_free(&near);
    schedule_free(&evaluation);
    return OK;
}

int gather_bucket_of(const Plan *plan, const Node *node)
{
    for (int k = 0; k < node->spec.w_count; ++k)
        if (plan->gather.bucket_of[node->param[k]] >= 0)
            return plan->gather.bucket_of[node->param[k]];
    return -1;
}

/* Places each node's repacked weights in the bucket of the node's first gathered parameter. Called
 * twice: first to sum the bytes of each bucket, then, with placed = true, to set the offsets. */
static void place_caches(Plan *plan, bool placed)
{
    GatherPlan *f = &plan->gather;
    int64_t *end = mem_new((size_t)(f->count + 1) * sizeof *end);
    for (int k = 0; k < plan->chunk_count; ++k)
        for (int i = plan->chunk[k].first; i < plan->chunk[k].end; ++i) {
            const Node *node = &plan->graph->node[i];
            int b = gather_bucket_of(plan, node);
            if (node->op->cache_bytes == 0 || b < 0) continue;
            plan->cache_offset[i] = (size_t)(f->bucket[b].cache_offset + end[b]);
            end[b] += (int64_t)place_align(node->op->cache_bytes);
        }
    for (int b = 0; b < f->count && !placed; ++b) f->bucket[b].cache_bytes = end[b];
    mem_free(&end);
}

/* Places the repacked weights of nodes without gathered parameters behind the ring, where nothing
 * overwrites them. */
static void place_constants(Plan *plan)
{
    for (int k = 0; k < plan->chunk_count; ++k)
        for (int i = plan->chunk[k].first; i < plan->chunk[k].end; ++i) {
            const Node *node = &plan->graph->node[i];
            if (node->op->cache_bytes == 0 || gather_bucket_of(plan, node) >= 0) continue;
            plan->cache_offset[i] = plan->cache_bytes;
            plan->cache_bytes += place_align(node->op->cache_bytes);
        }
}

static void place_weights(Plan *plan)
{
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int b = plan->gather.bucket_of[i];
        if (plan->graph->param[i].frozen && plan->param_offset[i] >= 0)
            plan->weight_offset[i] =
                plan->gather.elements + plan->param_offset[i] - plan->trained_elements;
        if (b < 0) continue;
        const ParamBucket *bucket = &plan->gather.bucket[b];
        plan->weight_offset[i] = bucket->ring_offset + plan->param_offset[i] - bucket->offset;
    }
}

/* Counts the gatherings of a step that begins with no bucket in memory. */
static void count_step(Plan *plan)
{
    Window w;
    int gather[WINDOW_MOST], count;
    window_init(&w, plan);
    window_start(&w, plan->schedule);
    while (window_next(&w, gather, &count)) {
        plan->gather.step_gathers += count;
        for (int i = 0; i < count; ++i)
            plan->gather.step_elements += (double)plan->gather.bucket[gather[i]].elements;
    }
    window_fini(&w);
}

Status plan_gather(Plan *plan)
{
    find_buckets(plan);
    for (int k = 0; k < plan->chunk_count; ++k) mark_chunk(plan, &plan->chunk[k]);
    place_caches(plan, false);
    TRY(place_buckets(plan));
    place_caches(plan, true);
    place_constants(plan);
    plan->gather.frozen_elements = plan->param_elements - plan->trained_elements;
    place_weights(plan);
    count_step(plan);
    return OK;
}
