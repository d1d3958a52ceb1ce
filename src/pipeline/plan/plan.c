/* Plans one stage of a grid: offsets of its parameters, its chunks' passes, slots and buckets, and
 * the bytes of all memory. The plan depends only on the graph, the cut, the schedule and the
 * options. Planning measures nothing and allocates no memory of the run. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

const ConfigWords pipeline_words[PIPELINE_WORDS] = {
    {"grid.zero", .text = LIST_TEXT(ZERO_WORDS)},
    {"grid.recompute", .text = LIST_TEXT(RECOMPUTE_WORDS)},
};

/* Returns the chunk of this stage that has the node, or NULL. */
static const ChunkPlan *chunk_of(const Plan *plan, int node)
{
    for (int c = 0; c < plan->chunk_count; ++c)
        if (node >= plan->chunk[c].first && node < plan->chunk[c].end) return &plan->chunk[c];
    return NULL;
}

bool param_shares_memory(const Plan *plan, int param)
{
    const Param *p = &plan->graph->param[param];
    return p->tied_param >= 0 && chunk_of(plan, plan->graph->param[p->tied_param].node);
}

/* Places the values that this stage stores, either the frozen or the trained ones, from offset
 * `end` on. A value that tied parameters share is stored once. Returns the new end. */
static int64_t place_values(Plan *plan, bool frozen, int64_t end)
{
    const Graph *g = plan->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->frozen != frozen || !chunk_of(plan, p->node) || param_shares_memory(plan, i))
            continue;
        plan->param_offset[i] = end;
        if (!frozen) plan->gradient_offset[i] = end;
        end += arena_align(p->elements);
    }
    return end;
}

static void place_params(Plan *plan)
{
    const Graph *g = plan->graph;
    plan->param_offset = mem_new((size_t)(g->param_count + 1) * sizeof(int64_t));
    plan->gradient_offset = mem_new((size_t)(g->param_count + 1) * sizeof(int64_t));
    for (int i = 0; i < g->param_count; ++i) plan->param_offset[i] = plan->gradient_offset[i] = -1;
    plan->trained_elements = plan->metrics_offset = place_values(plan, false, 0);
    plan->param_elements = place_values(plan, true, plan->trained_elements);
    int64_t end = plan->metrics_offset + METRIC_PAD;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!chunk_of(plan, p->node) || !param_shares_memory(plan, i)) continue;
        plan->param_offset[i] = plan->param_offset[p->tied_param];
        if (p->frozen) continue;
        plan->gradient_offset[i] = end;
        end += arena_align(p->elements);
    }
    plan->gradient_elements = end;
}

/* Sets plan->tied_across for each parameter that is tied to no other: true if the parameter, or one
 * that is tied to it, is on another stage. */
static void find_tied_across(Plan *plan)
{
    const Graph *g = plan->graph;
    plan->tied_across = mem_new((size_t)(g->param_count + 1) * sizeof *plan->tied_across);
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!chunk_of(plan, p->node))
            plan->tied_across[p->tied_param >= 0 ? p->tied_param : i] = true;
    }
}

/* ---- buckets ---- */

static void bucket_insert(Buckets *b, int at, int64_t offset, int64_t elements, int tensor)
{
    size_t room = (size_t)b->count + 1;
    b->offset = mem_resize(b->offset, room * sizeof *b->offset);
    b->elements = mem_resize(b->elements, room * sizeof *b->elements);
    b->first_tensor = mem_resize(b->first_tensor, room * sizeof *b->first_tensor);
    for (int i = b->count++; i > at; --i) {
        b->offset[i] = b->offset[i - 1];
        b->elements[i] = b->elements[i - 1];
        b->first_tensor[i] = b->first_tensor[i - 1];
    }
    b->offset[at] = offset;
    b->elements[at] = elements;
    b->first_tensor[at] = tensor;
}

/* Inserts a bucket for the gradient of each parameter that uses the value of another parameter of
 * this stage. The bucket's position follows from the parameter's node in backward's order of
 * nodes. */
static void insert_tied(const Plan *plan, ChunkPlan *c)
{
    const Graph *g = plan->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->node < c->first || p->node >= c->end || p->frozen ||
            plan->gradient_offset[i] == plan->param_offset[i])
            continue;
        int at = 0;
        while (at < c->buckets.count && (c->buckets.first_tensor[at] < 0 ||
                                         g->param[c->buckets.first_tensor[at]].node > p->node))
            ++at;
        bucket_insert(&c->buckets, at, plan->gradient_offset[i], arena_align(p->elements), i);
    }
}

/* Splits the bucket that contains offset `at`, where parameter `tensor` begins, into two; does
 * nothing if a bucket begins there. */
static void bucket_cut(Buckets *b, int64_t at, int tensor)
{
    int i = 0;
    while (i < b->count && (at <= b->offset[i] || at >= b->offset[i] + b->elements[i])) ++i;
    if (i == b->count) return;
    int64_t upper = b->offset[i] + b->elements[i] - at;
    b->elements[i] -= upper;
    bucket_insert(b, i, at, upper, tensor);
}

/* Converts buckets to ranges of the gradient arena. Until this call the buckets' offsets and sizes
 * are weights (shard_weight) instead of elements. param: numbers of the chunk's parameters whose
 * values this stage stores, [count]. end: offset in the arena of the end of bucket 0. */
static void place_buckets(const Plan *plan, Buckets *b, const int *param, int count, int64_t end)
{
    for (int i = 0; i < b->count; ++i) {
        int first = count ? param[b->first_tensor[i]] : -1;
        b->first_tensor[i] = first;
        b->offset[i] = first < 0 ? plan->metrics_offset : plan->param_offset[first];
        b->elements[i] = end - b->offset[i];
        end = b->offset[i];
    }
}

static void plan_buckets(const Plan *plan, ChunkPlan *c, size_t bucket_bytes)
{
    const Graph *g = plan->graph;
    int64_t *offset = mem_new((size_t)(g->param_count + 1) * sizeof *offset), weight = 0;
    int64_t end = plan->metrics_offset;
    int *param = mem_new((size_t)(g->param_count + 1) * sizeof *param), count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->node < c->first || p->node >= c->end ||
            plan->gradient_offset[i] != plan->param_offset[i])
            continue;
        offset[count] = weight;
        param[count++] = i;
        weight += shard_weight(plan, i);
        end = plan->param_offset[i] + arena_align(p->elements);
    }
    if (c->metrics && !plan->zero) {
        weight += METRIC_PAD;
        end = plan->metrics_offset + METRIC_PAD;
    }
    buckets_init(&c->buckets, offset, count, weight, bucket_bytes);
    place_buckets(plan, &c->buckets, param, count, end);
    for (int i = 0; i < count; ++i) {
        if (!plan->zero || !plan_tied_across(plan, param[i])) continue;
        /* A parameter that is tied to a parameter of another stage gets a separate bucket, so that
         * both stages cut it into the same shards. */
        bucket_cut(&c->buckets, plan->param_offset[param[i]], param[i]);
        if (i + 1 < count) bucket_cut(&c->buckets, plan->param_offset[param[i + 1]], param[i + 1]);
    }
    if (c->metrics && plan->zero)
        bucket_insert(&c->buckets, 0, plan->metrics_offset, METRIC_PAD, -1);
    insert_tied(plan, c);
    mem_free(&offset);
    mem_free(&param);
}

typedef struct BucketPlace {
    int64_t offset;
    int bucket;
} BucketPlace;

static int by_offset(const void *a, const void *b)
{
    const BucketPlace *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sets c->bucket_order. */
static void order_buckets(ChunkPlan *c)
{
    const Buckets *b = &c->buckets;
    BucketPlace *place = mem_new((size_t)(b->count + 1) * sizeof *place);
    for (int i = 0; i < b->count; ++i) place[i] = (BucketPlace){b->offset[i], i};
    qsort(place, (size_t)b->count, sizeof *place, by_offset);
    c->bucket_order = mem_new((size_t)(b->count + 1) * sizeof *c->bucket_order);
    for (int i = 0; i < b->count; ++i) c->bucket_order[i] = place[i].bucket;
    mem_free(&place);
}

/* Returns the chunk's bucket that contains element `at` of the gradient arena, or -1. */
static int bucket_at(const ChunkPlan *c, int64_t at)
{
    const Buckets *b = &c->buckets;
    int low = 0;
    for (int high = b->count; low < high;) {
        int middle = low + (high - low) / 2;
        if (b->offset[c->bucket_order[middle]] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    int bucket = low > 0 ? c->bucket_order[low - 1] : -1;
    return bucket >= 0 && at < b->offset[bucket] + b->elements[bucket] ? bucket : -1;
}

const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket)
{
    for (int k = 0; k < plan->chunk_count; ++k) {
        *bucket = bucket_at(&plan->chunk[k], at);
        if (*bucket >= 0) return &plan->chunk[k];
    }
    return NULL;
}

/* Sets c->opening_node: for each bucket the last node that writes to it, which is the first in
 * backward's order. */
static void find_openings(const Plan *plan, ChunkPlan *c)
{
    const Graph *g = plan->graph;
    c->opening_node = mem_new((size_t)(c->buckets.count + 1) * sizeof *c->opening_node);
    for (int b = 0; b < c->buckets.count; ++b) c->opening_node[b] = -1;
    for (int i = 0; i < g->param_count; ++i) {
        int b = bucket_at(c, plan->gradient_offset[i]);
        if (b >= 0 && g->param[i].node > c->opening_node[b]) c->opening_node[b] = g->param[i].node;
    }
    for (int b = 0; b < c->buckets.count; ++b)
        if (c->opening_node[b] < 0) c->opening_node[b] = c->end - 1;
}

/* ---- memory ---- */

/* Returns the bytes of optimizer state of the replica with the most state. */
static size_t state_bytes(const Plan *plan, const PlanOptions *o)
{
    bool scratch = o->state_scratch && (plan->zero || plan->shape.tp > 1);
    size_t trained = (size_t)plan->trained_elements * sizeof(float);
    if (!plan->zero) return (size_t)(o->state_slots + scratch) * trained;
    size_t arenas = (size_t)(o->state_slots + (o->state_scratch ? 1 : 0)), most = 0;
    for (int r = 0; r < plan->shape.dp; ++r) {
        size_t elements = shard_elements(plan, r, false);
        if (elements > most) most = elements;
    }
    return arenas * most * sizeof(float);
}

/* Returns the bytes of the EMA (train.ema) of the replica with the largest part of it. */
static size_t average_bytes(const Plan *plan, const PlanOptions *o)
{
    size_t most = 0;
    if (!o->averages) return 0;
    if (!plan->zero && !plan->updates) return (size_t)plan->trained_elements * sizeof(float);
    for (int r = 0; r < plan->shape.dp; ++r) {
        size_t elements = shard_elements(plan, r, true);
        if (elements > most) most = elements;
    }
    return most * sizeof(float);
}

/* Sets the sizes of the gradient arenas. joined: PlanOptions.gpus_joined. */
static void set_gradient_sizes(Plan *plan, bool joined)
{
    int micro_batches = plan->schedule->shape.micro_batches, dp = plan->shape.dp;
    int64_t most = 0;
    for (int r = 0; plan_pushes(plan) && r < dp; ++r)
        if (plan_push_elements(plan, r) > most) most = plan_push_elements(plan, r);
    plan->gradient_bytes = (size_t)plan->gradient_elements * sizeof(float);
    /* the first run of micro-batches is the longest */
    plan->sum_levels = (size_t)tree_levels(plan_micro_run(plan, 0).count);
    if (plan_pushes(plan)) plan->push_levels = (size_t)deal_levels(plan->deal, micro_batches, dp);
    plan->gradient_part_bytes =
        plan->sum_levels * (size_t)plan->micro_grad_elements * sizeof(float);
    size_t partial = plan->push_levels * (size_t)most * sizeof(float);
    if (joined || plan_in_host_memory(plan))
        plan->gradient_part_bytes += partial;
    else
        plan->staged_bytes += partial;
}

/* Sets the offsets at which operations read weights, and places repacked weights. If parameters are
 * not gathered, weights are read where they are stored, and repacked weights follow each other. */
static Status plan_weights(Plan *plan)
{
    size_t params = (size_t)(plan->graph->param_count + 1);
    plan->weight_offset = mem_new(params * sizeof *plan->weight_offset);
    memcpy(plan->weight_offset, plan->param_offset, params * sizeof *plan->weight_offset);
    plan->cache_offset = mem_new((size_t)plan->graph->node_count * sizeof *plan->cache_offset);
    if (plan->gathers) return plan_gather(plan);
    for (int k = 0; k < plan->chunk_count; ++k)
        for (int i = plan->chunk[k].first; i < plan->chunk[k].end; ++i) {
            plan->cache_offset[i] = plan->cache_bytes;
            plan->cache_bytes += place_align(plan->graph->node[i].op->cache_bytes);
        }
    return OK;
}

/* Returns the bytes of a rank's parameters: the whole arena, or an equal part of a shared arena.
 * With gathering, they are the largest shard, the ring and the frozen parameters. */
static size_t param_bytes(const Plan *plan, const PlanOptions *o)
{
    size_t sharers = plan->zero && o->param_sharers > 1 ? (size_t)o->param_sharers : 1;
    int64_t most = 0;
    if (!plan->gathers) return (plan->param_bytes + sharers - 1) / sharers;
    for (int r = 0; r < plan->shape.dp; ++r)
        if (plan_local_elements(plan, r) > most) most = plan_local_elements(plan, r);
    return (size_t)(most + plan->gather.elements + plan->gather.frozen_elements) * sizeof(float);
}

static Status set_memory_sizes(Plan *plan, const PlanOptions *o)
{
    size_t scratch = 0;
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        plan->activation_bytes += (size_t)c->slots * c->kept_bytes;
        scratch = c->scratch_bytes > scratch ? c->scratch_bytes : scratch;
        for (int i = c->first; i < c->end; ++i) {
            const Op *op = plan->graph->node[i].op;
            if (op->workspace_bytes > plan->workspace_bytes)
                plan->workspace_bytes = op->workspace_bytes;
        }
    }
    plan->activation_bytes += scratch;
    tensor_group_memory(plan, o->gpus_joined);
    replica_sums_memory(plan);
    plan->param_bytes = (size_t)plan->param_elements * sizeof(float);
    set_gradient_sizes(plan, o->gpus_joined);
    plan->state_bytes = plan->updates ? whole_state_bytes(plan) : state_bytes(plan, o);
    plan->average_bytes = average_bytes(plan, o);
    plan->param_part_bytes = param_bytes(plan, o);
    return links_memory(plan, o->gpus_joined);
}

Status plan_new(Plan **out, const Graph *graph, const PlanOptions *o)
{
    const Schedule *schedule = o->schedule;
    int stages = schedule->shape.stages, chunks = schedule->shape.chunks_per_stage;
    Plan *plan = mem_new(sizeof *plan);
    *plan = (Plan){.graph = graph,
                   .updates = o->updates,
                   .shape = o->shape,
                   .stage = o->stage,
                   .schedule = schedule,
                   .chunk_count = chunks,
                   .channel_depth = o->channel_depth,
                   .zero = o->shape.dp > 1 ? o->zero : 0,
                   .chunk = mem_new((size_t)chunks * sizeof *plan->chunk)};
    plan->gathers = plan->zero == ZERO_PARAMS && o->param_sharers <= 1;
    plan->deal = plan_shards_gradients(plan) ? DEAL_TURNS : o->shape.dp > 1 ? o->deal : DEAL_BLOCKS;
    plan->chunk_begin = mem_new((size_t)(stages * chunks + 1) * sizeof *plan->chunk_begin);
    memcpy(plan->chunk_begin, o->chunk_begin,
           (size_t)(stages * chunks + 1) * sizeof *plan->chunk_begin);
    for (int k = 0; k < chunks; ++k) {
        int chunk = schedule_chunk(schedule, o->stage, k);
        plan->chunk[k].chunk = chunk;
        plan->chunk[k].first = o->chunk_begin[chunk];
        plan->chunk[k].end = o->chunk_begin[chunk + 1];
        plan->chunk[k].metrics = k == chunks - 1;
    }
    plan_slots(plan);
    place_params(plan);
    find_tied_across(plan);
    plan->reads_labels = chunk_of(plan, graph->loss_node) != NULL;
    for (int i = 0; i < graph->node_count; ++i)
        for (int k = 0; k < graph->node[i].spec.x_count; ++k)
            plan->reads_data |= graph->node[i].in[k] == NODE_INPUT && chunk_of(plan, i);
    bool messages_wait = messages_may_wait(schedule, o->stage);
    Status st = OK;
    for (int k = 0; k < chunks && st == OK; ++k) {
        plan_buckets(plan, &plan->chunk[k], o->bucket_bytes);
        order_buckets(&plan->chunk[k]);
        find_openings(plan, &plan->chunk[k]);
        bool same_stage = schedule_shares_stage(schedule, plan->chunk[k].chunk - 1);
        st = chunk_plan(&plan->chunk[k], same_stage ? &plan->chunk[k - 1] : NULL, graph, schedule,
                        messages_wait, o->block);
    }
    if (plan->zero) plan_shards(plan);
    plan_micro_grads(plan);
    if (st == OK) st = plan_weights(plan);
    if (st == OK) st = set_memory_sizes(plan, o);
    if (st != OK) plan_free(&plan);
    *out = plan;
    return st;
}

static void chunk_fini(ChunkPlan *c)
{
    Message *const messages[] = {&c->activations_in, &c->activations_out, &c->gradients_in,
                                 &c->gradients_out};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; ++i)
        mem_free(&messages[i]->tensor);
    for (int pass = 0; pass < PASSES; ++pass) mem_free(&c->pass[pass].action);
    mem_free(&c->run);
    mem_free(&c->opening_node);
    mem_free(&c->bucket_order);
    for (int b = 0; b < c->buckets.count; ++b) {
        if (c->shard) bounds_fini(&c->shard[b]);
        if (c->push_shard) bounds_fini(&c->push_shard[b]);
        if (c->shard_offset) mem_free(&c->shard_offset[b]);
    }
    mem_free(&c->shard);
    mem_free(&c->push_shard);
    mem_free(&c->ring_offset);
    mem_free(&c->shard_offset);
    mem_free(&c->use);
    buckets_fini(&c->buckets);
}

void plan_free(Plan **out)
{
    Plan *plan = *out;
    if (!plan) return;
    for (int k = 0; k < plan->chunk_count; ++k) chunk_fini(&plan->chunk[k]);
    mem_free(&plan->chunk);
    mem_free(&plan->chunk_begin);
    mem_free(&plan->slot);
    mem_free(&plan->last_task);
    mem_free(&plan->param_offset);
    mem_free(&plan->gradient_offset);
    mem_free(&plan->micro_grad_offset);
    mem_free(&plan->weight_offset);
    mem_free(&plan->param_shard);
    mem_free(&plan->tied_across);
    mem_free(&plan->gather.bucket);
    mem_free(&plan->gather.bucket_of);
    mem_free(&plan->cache_offset);
    mem_free(out);
}

size_t plan_bytes(const Plan *plan)
{
    return plan->param_part_bytes + plan->gradient_part_bytes + plan->state_bytes +
           plan->average_bytes + plan->activation_bytes + plan->cache_bytes +
           plan->workspace_bytes + plan->message_bytes;
}

static void print_bytes(FILE *out, const char *what, double bytes)
{
    char text[32];
    fprintf(out, "  %-22s %12s\n", what, text_bytes(bytes, text));
}

ActionParts action_parts(const ChunkPlan *chunk, const Action *action)
{
    bool whole = action->kind == ACTION_BACKWARD, data = action->kind == ACTION_BACKWARD_DATA;
    bool weight = whole || action->kind == ACTION_BACKWARD_WEIGHT ||
                  (data && chunk->run[action->index].dw_waits);
    return (ActionParts){{[PART_FORWARD] = action->kind == ACTION_FORWARD,
                          [PART_DATA] = whole || data,
                          [PART_WEIGHT] = weight}};
}

double action_moved_bytes(const Action *action)
{
    int tensors = action->kind == ACTION_ADD ? 3 : 2;
    return (double)tensors * (double)action->count * (double)dtype_bytes(action->type);
}

/* A tree over n leaves makes n - 1 additions, each of which reads two floats and writes one. */
double bucket_moved_bytes(double elements, double micro_batches)
{
    return 3 * elements * (double)sizeof(float) * (micro_batches - 1) / micro_batches;
}

void plan_print(const Plan *plan, FILE *out)
{
    fprintf(out, "stage %d of %d: memory of one rank\n", plan->stage, plan->shape.pp);
    print_bytes(out, "parameters", (double)plan->param_part_bytes);
    print_bytes(out, "gradients", (double)plan->gradient_part_bytes);
    print_bytes(out, "optimizer state", (double)plan->state_bytes);
    if (plan->average_bytes > 0) print_bytes(out, "EMA", (double)plan->average_bytes);
    print_bytes(out, "activations", (double)plan->activation_bytes);
    print_bytes(out, "weights, other layouts", (double)plan->cache_bytes);
    print_bytes(out, "workspace", (double)plan->workspace_bytes);
    print_bytes(out, "messages", (double)plan->message_bytes);
    print_bytes(out, "all", (double)plan_bytes(plan));
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        fprintf(out,
                "  chunk %d: layers %s to %s, %d actions a micro-batch, %d in flight, %d buckets\n",
                c->chunk, plan->graph->node[c->first].name, plan->graph->node[c->end - 1].name,
                c->pass[PASS_FORWARD].count + c->pass[PASS_BACKWARD].count +
                    c->pass[PASS_WEIGHT].count,
                c->slots, c->buckets.count);
    }
}
