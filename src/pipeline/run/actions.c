/* Runs a pass's actions on a micro-batch, one by one. The sum of a bucket begins while backward
 * still runs. After each action except ACTION_WAIT_FOR_BUCKET, calls the progress functions of
 * messages and sums. */
#include "executor.h"

static Op *op_of(const Context *c, const ChunkRun *chunk, int run)
{
    return c->plan->graph->node[chunk->plan->run[run].node].op;
}

/* Returns true if ACTION_BACKWARD_DATA also computes the run's weight gradients and writes them to
 * the slot, from which PASS_WEIGHT copies them. */
static bool weight_gradients_in_slot(const ChunkRun *chunk, int run)
{
    return chunk->plan->run[run].dw_waits;
}

/* Returns the address in an arena of the gradient of a run's parameter k; NULL: the parameter is
 * frozen. */
static float *gradient_of(const Context *c, const ChunkRun *chunk, int run, int k, float *arena)
{
    const Node *node = &c->plan->graph->node[chunk->plan->run[run].node];
    int64_t at = c->plan->micro_grad_offset[node->param[k]];
    return at < 0 ? NULL : arena + at;
}

static void run_backward_weight(const Context *c, const ChunkRun *chunk, int run, const OpRun *r,
                                float *arena)
{
    Op *op = op_of(c, chunk, run);
    if (!weight_gradients_in_slot(chunk, run)) {
        op_backward_weight(op, r);
        return;
    }
    for (int k = 0; k < op->spec.w_count; ++k) {
        float *to = gradient_of(c, chunk, run, k, arena);
        if (to) context_copy(c, to, r->dw[k], (size_t)op->w_elements[k] * sizeof(float));
    }
}

/* Sleeps for the pretended time of a part of the run's operation (executor_pretend) and returns
 * true. Returns false if the part must be computed. */
static bool pretended(Executor *e, const ChunkRun *chunk, int run, OperationPart part)
{
    if (!e->pretend_s || op_waits_for_ranks(&op_of(&e->context, chunk, run)->spec)) return false;
    double wanted_s = e->pretend_s[chunk->plan->run[run].node].s[part], begin_s = clock_s();
    if (wanted_s > e->overslept_s) clock_sleep(wanted_s - e->overslept_s);
    e->overslept_s += clock_s() - begin_s - wanted_s;
    return true;
}

/* Returns the time at which a part of an operation begins; 0 if times are not measured. */
static double part_begin(const Executor *e)
{
    return e->times ? clock_s() : 0;
}

/* Adds the time of a part of the run's operation since `begin_s`. Returns the time of its end; 0 if
 * times are not measured. */
static double part_end(const Executor *e, const ChunkRun *chunk, const Action *a,
                       OperationPart part, double begin_s)
{
    if (!e->times) return 0;
    double end_s = clock_s();
    operation_times_add(e->times, chunk->plan->run[a->index].node, part, end_s - begin_s);
    return end_s;
}

/* Adds the time since `begin_s` of a copy or an addition that has moved `bytes` bytes. */
static void move_end(const Executor *e, double bytes, double begin_s)
{
    if (e->times) operation_times_add_move(e->times, clock_s() - begin_s, bytes);
}

static void add_gradient(const Context *c, const Action *a, void *dst, const void *src)
{
    const FlatTable *flat = c->backend->table->flat;
    if (a->type == DTYPE_BF16)
        flat->add_bf16(c->stream, dst, dst, src, a->count);
    else if (a->type == DTYPE_F16)
        flat->add_f16(c->stream, dst, dst, src, a->count);
    else
        flat->add(c->stream, dst, dst, src, a->count);
}

/* Runs the action's parts of backward: always the gradients of inputs, and backward_weight if it is
 * not delayed to PASS_WEIGHT. */
static void run_backward(Executor *e, const ChunkRun *chunk, const Action *a, const OpRun *run,
                         double begin_s)
{
    Op *op = op_of(&e->context, chunk, a->index);
    bool with_weight = a->kind == ACTION_BACKWARD || weight_gradients_in_slot(chunk, a->index);
    bool data_pretended = pretended(e, chunk, a->index, PART_DATA);
    if (!data_pretended) op_backward_begin(op, run);
    if (with_weight) {
        double middle_s = part_begin(e);
        if (!pretended(e, chunk, a->index, PART_WEIGHT)) op_backward_weight(op, run);
        /* the time of backward_begin is added to the time of backward_data */
        if (e->times) begin_s += part_end(e, chunk, a, PART_WEIGHT, middle_s) - middle_s;
    }
    if (!data_pretended) op_backward_data(op, run);
    part_end(e, chunk, a, PART_DATA, begin_s);
}

static void run_action(Executor *e, const ChunkRun *chunk, const Slot *slot, const Action *a,
                       int micro)
{
    const Context *c = &e->context;
    const OpRun *run = &slot->run[a->index];
    void *dst = slot_address(&e->memory, chunk, slot, a->dst);
    const void *src = slot_address(&e->memory, chunk, slot, a->src);
    if (c->plan->gathers && action_reads_params(c->plan, chunk->plan, a))
        gather_repack(&e->params, run, chunk->plan->run[a->index].node);
    double begin_s = part_begin(e);
    switch (a->kind) {
    case ACTION_FORWARD:
        if (!pretended(e, chunk, a->index, PART_FORWARD))
            op_forward(op_of(c, chunk, a->index), run);
        part_end(e, chunk, a, PART_FORWARD, begin_s);
        break;
    case ACTION_BACKWARD:
    case ACTION_BACKWARD_DATA:
        run_backward(e, chunk, a, run, begin_s);
        break;
    case ACTION_BACKWARD_WEIGHT:
        if (!pretended(e, chunk, a->index, PART_WEIGHT))
            run_backward_weight(c, chunk, a->index, run, grad_arena(&e->gradients, micro));
        part_end(e, chunk, a, PART_WEIGHT, begin_s);
        break;
    case ACTION_ADD:
        add_gradient(c, a, dst, src);
        move_end(e, action_moved_bytes(a), begin_s);
        break;
    case ACTION_COPY:
        context_copy(c, dst, src, (size_t)a->count * dtype_bytes(a->type));
        move_end(e, action_moved_bytes(a), begin_s);
        break;
    case ACTION_GATHER:
    case ACTION_WAIT_FOR_BUCKET:
    case ACTION_BUCKET:
        break;
    }
    if (e->fault) probe_action(e->fault, c, chunk, slot, a, input_of(&e->input, micro)->batch);
}

/* Runs an action of a micro-batch without samples. Only synced operations run: other replicas may
 * have samples in their micro-batch of the same number, and wait for this rank's part of the
 * statistics, which is zero. */
static void run_empty(const Context *c, const ChunkRun *chunk, const Slot *slot, const Action *a)
{
    bool backward = a->kind == ACTION_BACKWARD || a->kind == ACTION_BACKWARD_DATA;
    if (a->kind != ACTION_FORWARD && !backward) return;
    const OpRun *run = &slot->run[a->index];
    Op *op = op_of(c, chunk, a->index);
    if (!op->spec.synced || !run->training) return;
    if (backward)
        op_backward_begin(op, run);
    else
        op_forward(op, run);
}

void actions_bind(Executor *e, const ChunkRun *chunk, const Slot *slot, int micro)
{
    const Context *c = &e->context;
    float *arena = grad_arena(&e->gradients, micro);
    for (int i = 0; i < chunk->plan->run_count; ++i) {
        if (weight_gradients_in_slot(chunk, i)) continue;
        int w_count = op_of(c, chunk, i)->spec.w_count;
        for (int k = 0; k < w_count; ++k) {
            float *at = gradient_of(c, chunk, i, k, arena);
            if (at) slot->run[i].dw[k] = at;
        }
    }
}

bool action_communicates(const Context *context, const ChunkRun *chunk, Pass pass, int micro,
                         int action)
{
    const Action *a = &chunk->plan->pass[pass].action[action];
    switch (a->kind) {
    case ACTION_GATHER:
        return true;
    case ACTION_WAIT_FOR_BUCKET:
        return bucket_waits(context->plan, micro);
    case ACTION_BUCKET:
        return bucket_begins_sum(context->plan, micro) && context->comm->size > 1;
    case ACTION_ADD:
    case ACTION_COPY:
        return false;
    default:
        return op_waits_for_ranks(&op_of(context, chunk, a->index)->spec);
    }
}

/* Runs ACTION_BUCKET and measures its time. With several replicas the time includes work on the sum
 * over the replicas; it is then counted as a poll, otherwise as an addition. */
static void run_bucket(Executor *e, const ChunkRun *chunk, int bucket, int micro)
{
    double begin_s = part_begin(e);
    bucket_done(&e->gradients, chunk, bucket, micro);
    if (!e->times) return;
    if (e->context.comm->size == 1)
        move_end(e,
                 bucket_moved_bytes((double)chunk->plan->buckets.elements[bucket],
                                    e->context.plan->schedule->shape.micro_batches),
                 begin_s);
    else
        operation_times_add_poll(e->times, clock_s() - begin_s);
}

static void poll(const Executor *e)
{
    double begin_s = part_begin(e);
    progress_poll(&e->context.progress);
    if (e->times) operation_times_add_poll(e->times, clock_s() - begin_s);
}

void actions_run(Executor *e, const ChunkRun *chunk, const Slot *slot, Pass pass, int micro,
                 int from, int to)
{
    for (int i = from; i < to; ++i) {
        const Action *a = &chunk->plan->pass[pass].action[i];
        if (a->kind == ACTION_WAIT_FOR_BUCKET) {
            float *metrics;
            bucket_open(&e->gradients, chunk, slot, a->index, micro, &metrics);
            if (metrics) step_report_copy(&e->report, slot, micro, metrics);
            continue;
        }
        if (a->kind == ACTION_GATHER)
            gather_next(&e->params);
        else if (a->kind == ACTION_BUCKET)
            run_bucket(e, chunk, a->index, micro);
        else if (slot->empty)
            run_empty(&e->context, chunk, slot, a);
        else
            run_action(e, chunk, slot, a, micro);
        poll(e);
    }
}
