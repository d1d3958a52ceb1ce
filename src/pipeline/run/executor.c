/* Creates and frees the executor's parts, and implements the functions of the public header that
 * only set or read a part. A part is set up after the parts that it needs. The parts with channels
 * are freed first, then the others in the opposite order of set-up. */
#include "executor.h"

static Status check(const Context *c)
{
    const ScheduleShape *shape = &c->plan->schedule->shape;
    if (c->comm->arena_elements < c->plan->micro_grad_elements)
        return fail(ERR_BUG, "the communicator's arena is smaller than the gradients");
    if (c->plan->zero && c->comm->size != c->grid->shape.dp)
        return fail(ERR_BUG, "the communicator does not join the replicas that shard parameters");
    if (shape->stages != c->grid->shape.pp || c->plan->stage != c->grid->pp_rank)
        return fail(ERR_BUG, "the plan is for another stage than this rank's");
    return OK;
}

/* Returns the size of the input ring: the largest number of micro-batches of data that are in use
 * at the same time, plus DATA_AHEAD on a device. evaluation_out: that largest number for an
 * evaluation. */
static int input_places(const Executor *e, int evaluation_out)
{
    const Plan *plan = e->context.plan;
    int out = plan->batches_in_use > evaluation_out ? plan->batches_in_use : evaluation_out;
    return e->context.backend->table->host_memory ? out : out + DATA_AHEAD;
}

static Status set_up(Executor *e)
{
    Context *c = &e->context;
    ScheduleShape shape = c->plan->schedule->shape;
    TRY(status_agree(c->grid->world, check(c)));
    TRY(param_gather_init(&e->params, c));
    grad_sync_init(&e->gradients, c);
    TRY(status_agree(c->grid->world, tensor_group_new(&e->group, c)));
    TRY(status_agree(c->grid->world, replica_sum_new(&e->replicas, c)));
    slot_memory_init(&e->memory, c,
                     &(SlotLinks){.weights = e->params.weights,
                                  .exchange = tensor_group_exchange(e->group),
                                  .replicas = replica_sum_interface(e->replicas)});
    step_report_init(&e->report, c, &e->memory);
    TRY(status_agree(c->grid->world,
                     schedule_forward(&e->evaluation, shape, c->plan->schedule->stage_of)));
    e->evaluation_last = mem_new((size_t)shape.micro_batches * sizeof *e->evaluation_last);
    int places =
        input_places(e, tasks_batches_out(e->evaluation, c->plan->stage, e->evaluation_last));
    input_ring_init(&e->input, c, places);
    outputs_init(&e->outputs, c);
    captures_init(&e->captures, c, places);
    return boundary_links_init(&e->links, c, &e->gradients, e->evaluation);
}

Status executor_new(Executor **out, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options)
{
    Executor *e = mem_new(sizeof *e);
    e->context = (Context){.plan = plan,
                           .grid = grid,
                           .backend = backend,
                           .stream = backend->table->stream(backend),
                           .comm = comm,
                           .options = options,
                           .progress = {.comm = comm}};
    e->chunk_time = mem_new((size_t)plan->chunk_count * sizeof *e->chunk_time);
    Status st = set_up(e);
    if (st != OK) executor_free(&e);
    *out = e;
    return st;
}

void executor_free(Executor **executor)
{
    Executor *e = *executor;
    if (!e) return;
    boundary_links_fini(&e->links);
    replica_sum_free(&e->replicas);
    tensor_group_free(&e->group);
    captures_fini(&e->captures);
    outputs_fini(&e->outputs);
    input_ring_fini(&e->input);
    step_report_fini(&e->report);
    slot_memory_fini(&e->memory);
    grad_sync_fini(&e->gradients);
    param_gather_fini(&e->params);
    if (e->evaluation) schedule_free(&e->evaluation);
    mem_free(&e->evaluation_last);
    mem_free(&e->chunk_time);
    mem_free(executor);
}

float *executor_params(Executor *e)
{
    return e->params.params;
}

float *executor_param(Executor *e, int param)
{
    int64_t first, count;
    return param_local(&e->params, param, &first, &count);
}

void executor_set_param(Executor *e, int param, const float *stored)
{
    int64_t first, count;
    float *mine = param_local(&e->params, param, &first, &count);
    context_copy(&e->context, mine, stored + first, (size_t)count * sizeof *mine);
    e->context.backend->table->sync(e->context.stream);
}

void executor_params_changed(Executor *e)
{
    params_changed(&e->params, &e->memory, /* updated */ false);
}

DType executor_use_copies(Executor *e, void **copy)
{
    return params_use_copies(&e->params, &e->memory, copy);
}

void executor_params_updated(Executor *e)
{
    params_changed(&e->params, &e->memory, /* updated */ true);
}

float *executor_grads(Executor *e)
{
    return e->gradients.sum;
}

void executor_request(Executor *e, int metric, float value)
{
    e->report.requests[metric - METRIC_STOP] = value;
}

const float *executor_metrics(Executor *e, int behind)
{
    Phase outer = phase_enter(PHASE_SUM);
    const float *metrics = step_report_read(&e->report, behind);
    phase_enter(outer);
    return metrics;
}

void executor_probe(Executor *e, StepFault *fault)
{
    if (fault) *fault = (StepFault){.node = -1, .largest_sample = -1};
    e->fault = fault;
}

void executor_time_operations(Executor *e, OperationTimes *times)
{
    e->times = times;
}

void executor_pretend(Executor *e, const PartSeconds *seconds)
{
    e->pretend_s = seconds;
}

const ChunkTime *executor_chunk_times(const Executor *e)
{
    return e->chunk_time;
}

void executor_hash_steps(Executor *e, bool enabled)
{
    e->gradients.hashes = enabled && e->context.backend->table->host_memory;
}

uint64_t executor_step_hash(const Executor *e)
{
    return e->gradients.hash;
}

void executor_measure_micro_batches(Executor *e)
{
    if (!e->gradients.squares.sum) micro_squares_init(&e->gradients.squares, &e->context);
}

const double *executor_micro_squares(const Executor *e)
{
    return e->gradients.squares.sum;
}

void executor_find_overflow(Executor *e, bool enabled)
{
    e->report.finds_overflow = enabled;
}

bool executor_overflowed(const Executor *e)
{
    return e->report.overflow;
}

const float *executor_logits(Executor *e, int output)
{
    return outputs_logits(&e->outputs, &e->memory, output);
}

void executor_release_batches(Executor *e)
{
    input_settle(&e->input);
}
