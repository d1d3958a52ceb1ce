/* Tests the gathering of parameters (grid.zero 3) on plans, without running them. In every pass
 * over a stage's list of tasks, the parameters that an operation reads are in memory, and
 * parameters that are in memory at the same time do not overlap. The replicas together store every
 * value exactly once. */
#include "draft.h"

#include "pipeline/plan/plan.h"

enum { REPLICAS = 3, DRAFTS = 24, STAGES_MOST = 3 };

static bool has(const Window *w, int bucket)
{
    for (int i = 0; i < w->here_count; ++i)
        if (w->here[i] == bucket) return true;
    return false;
}

static bool disjoint(int64_t a, int64_t a_length, int64_t b, int64_t b_length)
{
    return a + a_length <= b || b + b_length <= a;
}

/* Returns whether no bucket in memory overlaps another bucket or exceeds the ring buffers. */
static bool good_places(const Window *w)
{
    const GatherPlan *f = &w->plan->gather;
    bool good = true;
    for (int i = 0; i < w->here_count; ++i) {
        const ParamBucket *a = &f->bucket[w->here[i]];
        good &= a->ring_offset + a->elements <= f->elements;
        good &= a->cache_offset + a->cache_bytes <= (int64_t)w->plan->cache_bytes;
        for (int j = 0; j < i; ++j) {
            const ParamBucket *b = &f->bucket[w->here[j]];
            good &= disjoint(a->ring_offset, a->elements, b->ring_offset, b->elements);
            good &= a->cache_bytes == 0 || b->cache_bytes == 0 ||
                    disjoint(a->cache_offset, a->cache_bytes, b->cache_offset, b->cache_bytes);
        }
    }
    return good;
}

/* Returns whether a node's weights in other layouts are in the cache of the bucket that has the
 * node's first gathered weight. */
static bool good_cache(const Plan *plan, int node)
{
    const Node *n = &plan->graph->node[node];
    int64_t bytes = (int64_t)n->op->cache_bytes, at = (int64_t)plan->cache_offset[node];
    int bucket = gather_bucket_of(plan, n);
    if (bytes == 0 || bucket < 0) return true;
    const ParamBucket *b = &plan->gather.bucket[bucket];
    return at >= b->cache_offset && at + bytes <= b->cache_offset + b->cache_bytes;
}

/* Frozen parameters are not gathered. Returns whether they, and their nodes' weights in other
 * layouts, are stored one after the other behind the memory of the buckets. */
static bool frozen_after_buckets(const Plan *plan)
{
    const Graph *g = plan->graph;
    const GatherPlan *f = &plan->gather;
    int64_t end = f->elements, cache_end = 0;
    bool good = true;
    for (int i = 0; i < g->param_count; ++i) {
        if (!g->param[i].frozen || plan->param_offset[i] < 0 || param_shares_memory(plan, i))
            continue;
        good &= f->bucket_of[i] == -1 && plan->weight_offset[i] >= end;
        end = plan->weight_offset[i] + g->param[i].elements;
    }
    for (int b = 0; b < f->count; ++b)
        if (f->bucket[b].cache_offset + f->bucket[b].cache_bytes > cache_end)
            cache_end = f->bucket[b].cache_offset + f->bucket[b].cache_bytes;
    for (int i = plan->chunk[0].first; i < plan->chunk[0].end; ++i) {
        const Node *n = &g->node[i];
        if (n->op->cache_bytes == 0 || gather_bucket_of(plan, n) >= 0) continue;
        good &= (int64_t)plan->cache_offset[i] >= cache_end;
        cache_end = (int64_t)(plan->cache_offset[i] + n->op->cache_bytes);
    }
    return good && end <= f->elements + f->frozen_elements &&
           cache_end <= (int64_t)plan->cache_bytes;
}

/* Returns whether each bucket of gradients is inside the ring buffer of gradients and does not
 * overlap the bucket before it, and whether the memory of gradients has room for the ring buffer
 * and for the sums of any replica. */
static bool good_gradient_ring(const Plan *plan)
{
    bool good = true;
    for (int r = 0; r < REPLICAS; ++r)
        good &= plan->gradient_part_bytes >=
                (size_t)(plan->micro_grad_elements + plan_sum_elements(plan, r)) * sizeof(float);
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        const int64_t *elements = c->buckets.elements;
        for (int b = 0; b < c->buckets.count; ++b) {
            good &= c->ring_offset[b] >= 0 &&
                    c->ring_offset[b] + elements[b] <= plan->micro_grad_elements;
            good &= b == 0 || disjoint(c->ring_offset[b - 1], elements[b - 1], c->ring_offset[b],
                                       elements[b]);
        }
    }
    return good;
}

/* Returns whether the tensors of a message are stored one after the other. */
static bool good_message(const Message *m)
{
    size_t end = 0;
    bool good = true;
    for (int i = 0; i < m->count; ++i) {
        good &= m->tensor[i].at >= end;
        end = m->tensor[i].at + m->tensor[i].bytes;
    }
    return good && end <= m->bytes;
}

/* Returns whether the stage's chunks are those of its tasks, and the tensors of their messages do
 * not overlap. */
static bool good_chunks(const Plan *plan, const Schedule *s)
{
    bool good = true;
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        good &= schedule_index_on_stage(s, c->chunk) == k && s->stage_of[c->chunk] == plan->stage;
        good &= good_message(&c->activations_in) && good_message(&c->activations_out) &&
                good_message(&c->gradients_in) && good_message(&c->gradients_out);
    }
    return good;
}

/* Returns whether the parameters that an action reads are in memory. Forward reads all parameters;
 * backward reads the parameters from which gradients of inputs are computed. */
static bool finds_values(const Window *w, const ChunkPlan *c, const Action *a)
{
    bool reads = a->kind == ACTION_FORWARD, good = true;
    if (a->kind != ACTION_FORWARD && a->kind != ACTION_BACKWARD && a->kind != ACTION_BACKWARD_DATA)
        return true;
    int number = c->run[a->index].node;
    const Node *node = &w->plan->graph->node[number];
    for (int k = 0; k < node->spec.x_count; ++k) reads |= node->spec.need_dx[k];
    for (int k = 0; reads && k < node->spec.w_count; ++k) {
        int64_t at = w->plan->param_offset[node->param[k]],
                place = w->plan->weight_offset[node->param[k]];
        int b = w->plan->gather.bucket_of[node->param[k]];
        if (w->plan->graph->param[node->param[k]].frozen) continue;
        const ParamBucket *bucket = &w->plan->gather.bucket[b];
        good &= has(w, b) && at - bucket->offset == place - bucket->ring_offset;
    }
    return good && good_cache(w->plan, number);
}

static bool walk_pass(Window *w, const ChunkPlan *c, Pass pass, int64_t *gathers)
{
    int gather[WINDOW_MOST], count;
    bool good = true;
    for (int i = 0; i < c->pass[pass].count; ++i) {
        const Action *a = &c->pass[pass].action[i];
        if (a->kind == ACTION_GATHER) {
            good &= window_next(w, gather, &count) == &c->use[a->index] && good_places(w);
            *gathers += count;
        }
        good &= finds_values(w, c, a);
    }
    return good;
}

static bool walk(const Plan *plan, const Schedule *s, int64_t *gathers)
{
    static const int pass[TASK_KINDS] = {[TASK_FORWARD] = PASS_FORWARD + 1,
                                         [TASK_BACKWARD] = PASS_BACKWARD + 1,
                                         [TASK_BACKWARD_DATA] = PASS_BACKWARD + 1,
                                         [TASK_BACKWARD_WEIGHT] = PASS_WEIGHT + 1};
    Window w;
    bool good = true;
    int gather[WINDOW_MOST], count;
    window_init(&w, plan);
    window_start(&w, s);
    for (int i = 0; i < s->count[plan->stage]; ++i) {
        const Task *t = &s->task[plan->stage][i];
        const ChunkPlan *c = &plan->chunk[schedule_index_on_stage(s, t->chunk)];
        if (pass[t->kind]) good &= walk_pass(&w, c, (Pass)(pass[t->kind] - 1), gathers);
    }
    good &= window_next(&w, gather, &count) == NULL && count == 0;
    window_fini(&w);
    return good;
}

/* Returns whether each value belongs to exactly one replica, and no two values have the same
 * position. */
static bool stored_once(const Plan *plan)
{
    int64_t all = 0, values = 0;
    bool good = true;
    for (int r = 0; r < REPLICAS; ++r) {
        int64_t end = plan_local_elements(plan, r);
        char *taken = mem_new((size_t)end + 1);
        for (int i = 0; i < plan->graph->param_count; ++i) {
            int64_t first, count;
            if (plan->param_offset[i] < 0 || plan->gradient_offset[i] != plan->param_offset[i])
                continue;
            plan_shard(plan, i, r, &first, &count);
            values += r == 0 ? plan->graph->param[i].elements : 0;
            all += count;
            if (count == 0) continue;
            int64_t at = plan_local_offset(plan, plan->param_offset[i] + first, r);
            good &= at >= 0 && at + count <= end;
            for (int64_t e = at; good && e < at + count; ++e) good &= !taken[e]++;
        }
        mem_free(&taken);
    }
    return good && all == values;
}

static bool check_stage(const Fixture *f, int stage, const Schedule *evaluation, double mb,
                        int64_t *gathers)
{
    Plan *plan = NULL;
    int *block = blocks_of(f);
    PlanOptions options = {.shape = {REPLICAS, f->how.shape.stages, 1},
                           .stage = stage,
                           .schedule = f->schedule,
                           .channel_depth = 2,
                           .chunk_begin = f->first,
                           .bucket_bytes = (size_t)(mb * 1e6),
                           .zero = ZERO_PARAMS,
                           .param_sharers = 1,
                           .block = block};
    int64_t training = 0, evaluating = 0;
    CHECK_OK(plan_new(&plan, f->graph, &options));
    mem_free(&block);
    bool good = plan->gathers && stored_once(plan) && frozen_after_buckets(plan) &&
                good_gradient_ring(plan) && good_chunks(plan, f->schedule) &&
                walk(plan, f->schedule, &training) && walk(plan, evaluation, &evaluating);
    good &= training == plan->gather.step_gathers;
    *gathers += training;
    plan_free(&plan);
    return good;
}

/* Checks the plans of a case. Returns false if the model has too few places for cuts. *good:
 * whether all plans are right. */
static bool check_grid(const Case *how, bool *good, int64_t *gathers)
{
    Fixture f = {.how = *how};
    Schedule *evaluation = NULL;
    CHECK_OK(open_graph(&f));
    int chunks = how->shape.stages * how->shape.chunks_per_stage;
    f.first = random_cut(f.graph, chunks, how->draw);
    bool cut = f.first != NULL;
    if (cut) {
        CHECK_OK(make_schedule(&f));
        CHECK_OK(schedule_forward(&evaluation, how->shape, f.schedule->stage_of));
        double mb = how->draw % 2 ? 0.001 : 0.01;
        for (int stage = 0; stage < how->shape.stages; ++stage)
            *good &= check_stage(&f, stage, evaluation, mb, gathers);
        schedule_free(&evaluation);
        schedule_free(&f.schedule);
    }
    mem_free(&f.first);
    graph_free(&f.graph);
    backend_close(&f.backend);
    config_free(&f.config);
    return cut;
}

/* Checks a model on one stage and on several, with every schedule, in fp32. */
static void check_model_grids(const char *model, int side, int number)
{
    static const int schedules[] = {SCHEDULE_GPIPE,       SCHEDULE_1F1B, SCHEDULE_ZERO_BUBBLE,
                                    SCHEDULE_INTERLEAVED, SCHEDULE_FILE, SCHEDULE_ZB_V,
                                    SCHEDULE_DUALPIPE_V};
    int64_t gathers = 0;
    for (int stages = 1; stages <= STAGES_MOST; ++stages)
        for (int s = 0; s < 7; ++s) {
            Case how = {.model = model,
                        .table = &backend_cpu,
                        .side = side,
                        .shape = {stages, s < 3 ? 1 : 2, 4},
                        .schedule = schedules[s],
                        .list = SCHEDULE_INTERLEAVED,
                        .split = number % 2,
                        .draw = (uint64_t)number,
                        .recompute = (stages + s) % 2};
            bool good = true;
            if (stages > 1 || s < 3) check_grid(&how, &good, &gathers);
            CU_ASSERT(good);
            if (!good) printf("  %d stages, schedule %d: %s\n", stages, s, model);
        }
    CU_ASSERT(gathers > 0);
}

static void test_models(void)
{
    static const char *const models[] = {
        "model: {name: resnet18, stem: small}\n", "model: {name: mobilenet_v2}\n",
        "model: {name: mlp, hidden: [200, 300, 20]}\n",
        "model: {name: resnet18, stem: small, width: 8, freeze: ['layer1.*', 'layer3.0.*']}\n"};
    for (int i = 0; i < 4; ++i) check_model_grids(models[i], 16, i);
}

/* The weights of the embedding and of the head are tied. */
static void test_tied(void)
{
    check_model_grids("model: {name: gpt2, layers: 4, width: 48, heads: 2, context: 8}\n", 0, 1);
    check_model_grids("model: {name: gpt2, layers: 2, width: 96, heads: 2, context: 8}\n", 0, 2);
}

static void test_drafts(void)
{
    int64_t gathers = 0;
    for (int number = 0; number < DRAFTS; ++number) {
        Draft d;
        draft(&d, number);
        Case how = {.model = d.text,
                    .table = &backend_cpu,
                    .side = SIDE,
                    .shape = {1 + number % STAGES_MOST, 1, 1 + number % 4},
                    .schedule = number % 2 ? SCHEDULE_1F1B : SCHEDULE_ZERO_BUBBLE,
                    .draw = (uint64_t)number};
        bool good = true;
        check_grid(&how, &good, &gathers);
        CU_ASSERT(good);
        if (!good) printf("  graph %d: %s\n", number, d.text);
    }
    CU_ASSERT(gathers > DRAFTS);
}

/* Replicas that share memory gather nothing, and each allocates an equal part of that memory. */
static void test_shm_segments_memory(void)
{
    Fixture f = {.how = {.model = "model: {name: mlp, hidden: [20, 30]}\n",
                         .table = &backend_cpu,
                         .side = SIDE,
                         .shape = {1, 1, 2},
                         .schedule = SCHEDULE_GPIPE}};
    Plan *plan = NULL;
    CHECK_OK(open_graph(&f));
    CHECK_OK(make_schedule(&f));
    f.first = random_cut(f.graph, 1, 0);
    PlanOptions options = {.shape = {2, 1, 1},
                           .schedule = f.schedule,
                           .chunk_begin = f.first,
                           .bucket_bytes = 1000,
                           .zero = ZERO_PARAMS,
                           .param_sharers = 2};
    CHECK_OK(plan_new(&plan, f.graph, &options));
    CU_ASSERT(!plan->gathers && plan_shards_gradients(plan));
    CU_ASSERT_EQUAL(plan->param_part_bytes, plan->param_bytes / 2);
    CU_ASSERT(plan->gather.count == 0 && plan_local_offset(plan, 7, 1) == 7);
    plan_free(&plan);
    schedule_free(&f.schedule);
    mem_free(&f.first);
    graph_free(&f.graph);
    backend_close(&f.backend);
    config_free(&f.config);
}

TEST_MAIN("gather", {"models", test_models}, {"tied", test_tied}, {"random graphs", test_drafts},
          {"shared memory", test_shm_segments_memory})
