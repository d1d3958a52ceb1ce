/* Forecasts a step. The measured times of the operations in the plan's lists of actions are added
 * up to costs of chunks. The schedule is simulated with these costs (schedule_waits). If the ranks
 * are on several nodes, it is simulated again with connections that the ranks share (replay_nodes).
 * Then the times of sums, updates and the rest are added. */
#include "private.h"

#include <string.h>

const char *const forecast_names[FORECAST_LINE_COUNT] = {FORECAST_LINES(LIST_NAME)};

/* ---- chunks ---- */

/* Finds the time of a part of an operation: the measured time, or else one from the machine's
 * rates. If no operation was measured and the machine has rates, operation_key is not called, which
 * saves time. */
static Status part_range(const Machine *m, const ForecastInput *input, const Op *op,
                         OperationPart part, TimeRange *range)
{
    char *key = m->operation_count > 0 || !m->has_rates ? operation_key(&op->spec) : NULL;
    const OperationTime *time = key ? machine_find(m, key) : NULL;
    double seconds = 0;
    Status st = OK;
    if (time && time->has[part])
        *range = time->part[part];
    else if (m->has_rates)
        st = rates_operation_s(m, input, op, part, &seconds);
    else
        st = fail(ERR_CONFIG,
                  "%s: has no %s time of %s: measure this configuration with weft bench machine "
                  "--save %s",
                  input->path, operation_part_names[part], key, input->path);
    if (st == OK && !(time && time->has[part])) *range = rates_range(seconds);
    mem_free(&key);
    return st;
}

Status machine_part_s(const Machine *m, const ForecastInput *input, const Op *op,
                      OperationPart part, double *seconds)
{
    TimeRange range;
    TRY(part_range(m, input, op, part, &range));
    *seconds = range.median;
    return OK;
}

/* Adds the time of a part of an operation to *cost. run: index in the chunk's list of runs. */
static Status add_part(const ChunkInput *c, int run, OperationPart part, double *cost)
{
    TimeRange range;
    const Op *op = c->plan->graph->node[c->chunk->run[run].node].op;
    TRY(part_range(c->machine, c->input, op, part, &range));
    *cost += time_at(&range, c->level);
    if (c->exchanges_s && op_info(op->spec.kind)->communication == COMMUNICATES_ALWAYS)
        *c->exchanges_s += time_at(&range, c->level);
    return OK;
}

Status add_action(const ChunkInput *c, const Action *a, double *weight_cost, double *pass_cost)
{
    const ActionParts parts = action_parts(c->chunk, a);
    *pass_cost += c->machine->action_s;
    if (a->kind == ACTION_ADD || a->kind == ACTION_COPY)
        *pass_cost += action_moved_bytes(a) * c->machine->move_s_per_byte;
    for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
        bool to_weight = p == PART_WEIGHT && a->kind == ACTION_BACKWARD;
        if (parts.part[p])
            TRY(add_part(c, a->index, (OperationPart)p, to_weight ? weight_cost : pass_cost));
    }
    return OK;
}

/* Returns the time in which the gradients of a micro-batch are added to the partial sums. */
static double adding_s(const ChunkInput *c)
{
    double micro_batches = c->input->schedule->shape.micro_batches, elements = 0;
    for (int b = 0; b < c->chunk->buckets.count; ++b)
        elements += (double)c->chunk->buckets.elements[b];
    return bucket_moved_bytes(elements, micro_batches) * c->machine->move_s_per_byte;
}

/* Computes the cost of a message between chunk number `chunk` of the model and the next chunk. */
static Status message_cost(const ChunkInput *c, int chunk, const Message *message,
                           MessageCost *cost)
{
    const Schedule *s = c->input->schedule;
    *cost = (MessageCost){0};
    if (!schedule_crosses(s, chunk)) return OK;
    return message_between_stages(c->machine, c->input, schedule_stage(s, chunk),
                                  schedule_stage(s, chunk + 1), (double)message->bytes, cost);
}

static Status chunk_cost(const ChunkInput *c, TaskCost *cost)
{
    double *part_cost[OPERATION_PART_COUNT] = {&cost->forward, &cost->backward_data,
                                               &cost->backward_weight};
    *cost = (TaskCost){0};
    for (int p = 0; p < PASSES; ++p) {
        const ActionList *list = &c->chunk->pass[p];
        for (int i = 0; i < list->count; ++i)
            TRY(add_action(c, &list->action[i], &cost->backward_weight, part_cost[p]));
    }
    cost->backward_weight += adding_s(c);
    TRY(message_cost(c, c->chunk->chunk, &c->chunk->activations_out, &cost->activations));
    return message_cost(c, c->chunk->chunk, &c->chunk->gradients_in, &cost->gradients);
}

/* Computes the costs of all chunks of the model. *exchanges_s: time that the exchanges of all
 * chunks in tensor-parallel groups take for one micro-batch. */
static Status chunk_costs(const Machine *m, const ForecastInput *input, Level level, TaskCost *cost,
                          double *exchanges_s)
{
    const Schedule *s = input->schedule;
    *exchanges_s = 0;
    for (int k = 0; k < schedule_chunks(s); ++k) {
        const Plan *plan = input->plan[schedule_stage(s, k)];
        ChunkInput c = {m,     input,      plan, &plan->chunk[schedule_index_on_stage(s, k)],
                        level, exchanges_s};
        TRY(chunk_cost(&c, &cost[k]));
    }
    return OK;
}

/* ---- gathered parameters ---- */

/* Returns the time in a step in which a stage gathers parameters from other nodes; 0 if the
 * replicas do not gather parameters, or are on one node. */
static double gathers_s(const Machine *m, const ForecastInput *input, const Plan *plan)
{
    double gathers = (double)plan->gather.step_gathers;
    if (!plan->gathers || gathers == 0) return 0;
    const SumPlaces places = sum_places(m, plan->shape, plan->stage);
    if (places.sharers == 0) return 0;
    double elements = plan->gather.step_elements / gathers;
    return gathers * sum_between_nodes(m, input, plan, places, elements, false, true).seconds;
}

/* Lengthens the costs of stages whose gathers of parameters take longer than their tasks.
 * Parameters are gathered before the passes that read them, two buckets ahead, so the tasks of a
 * stage take at least as long as its gathers. */
static void wait_for_gathers(const Machine *m, const ForecastInput *input, TaskCost *cost)
{
    const Schedule *s = input->schedule;
    for (int stage = 0; stage < s->shape.stages; ++stage) {
        double gathers = gathers_s(m, input, input->plan[stage]);
        double work = schedule_stage_work(s, cost, stage);
        if (gathers <= work || work == 0) continue;
        for (int k = 0; k < schedule_chunks(s); ++k) {
            if (schedule_stage(s, k) != stage) continue;
            cost[k].forward *= gathers / work;
            cost[k].backward_data *= gathers / work;
            cost[k].backward_weight *= gathers / work;
        }
    }
}

/* ---- simulations ---- */

static Status forecast_at(const Machine *m, const ForecastInput *input, Level level, TaskCost *cost,
                          double line[FORECAST_LINE_COUNT])
{
    StepEnd end;
    ScheduleReport report;
    ScheduleWaits waits;
    double exchanges_s;
    TRY(chunk_costs(m, input, level, cost, &exchanges_s));
    TRY(schedule_waits(input->schedule, cost, &report, &waits));
    wait_for_gathers(m, input, cost);
    double *last_sum_end = mem_new((size_t)input->schedule->shape.stages * sizeof *last_sum_end);
    Status st = replay_nodes(m, input, level, cost, &report, last_sum_end);
    double makespan = report.makespan;
    if (st == OK) st = step_end(m, input, level, &report, last_sum_end, &end);
    mem_free(&last_sum_end);
    schedule_report_fini(&report);
    if (st != OK) return st;
    line[FORECAST_EXCHANGES] =
        exchanges_s * input->schedule->shape.micro_batches / input->schedule->shape.stages;
    line[FORECAST_COMPUTE] = waits.work - line[FORECAST_EXCHANGES];
    line[FORECAST_BUBBLE] = waits.bubble;
    line[FORECAST_IMBALANCE] = waits.imbalance;
    line[FORECAST_MESSAGES] = makespan - waits.work - waits.bubble - waits.imbalance;
    line[FORECAST_SUMS] = end.sums_s;
    line[FORECAST_UPDATE] = end.update_s;
    line[FORECAST_REST] = time_at(&m->rest_s, level);
    return OK;
}

static double sum_of(const double line[FORECAST_LINE_COUNT])
{
    double sum = 0;
    for (int i = 0; i < FORECAST_LINE_COUNT; ++i) sum += line[i];
    return sum;
}

/* Checks that the machine's file can be used for this forecast. ERR_CONFIG: it was measured with
 * other settings or another number of threads, or the machine has too few ranks. */
static Status check(const Machine *m, const ForecastInput *input)
{
    const GridShape shape = input->plan[0]->shape;
    int64_t ranks = (int64_t)shape.dp * shape.pp * shape.tp;
    if (m->setup && strcmp(m->setup, input->setup) != 0)
        return fail(ERR_CONFIG, "%s: was measured with %s, and this plan has %s", input->path,
                    m->setup, input->setup);
    if (ranks > (int64_t)m->ranks * m->nodes && m->nodes > 1)
        return fail(ERR_CONFIG, "%s: has %d nodes of %d ranks, and this plan has %lld ranks",
                    input->path, m->nodes, m->ranks, (long long)ranks);
    if (ranks > (int64_t)m->ranks * m->nodes)
        return fail(ERR_CONFIG,
                    "%s: was measured with %d rank%s at a time, and this plan has %lld: measure it "
                    "with weft bench machine -n %lld --save %s",
                    input->path, m->ranks, m->ranks == 1 ? "" : "s", (long long)ranks,
                    (long long)ranks, input->path);
    if (m->threads > 0 && m->threads != input->threads)
        return fail(ERR_CONFIG, "%s: was measured with train.threads %d, and this plan has %d",
                    input->path, m->threads, input->threads);
    return OK;
}

Status machine_forecast(const Machine *m, const ForecastInput *input, Forecast *forecast)
{
    double line[LEVELS][FORECAST_LINE_COUNT];
    Status st = OK;
    TRY(check(m, input));
    TaskCost *cost = mem_new((size_t)schedule_chunks(input->schedule) * sizeof *cost);
    for (Level level = LOW; st == OK && level < LEVELS; ++level)
        if (level == MEDIAN || !input->median_only)
            st = forecast_at(m, input, level, cost, line[level]);
    mem_free(&cost);
    if (st != OK) return st;
    if (input->median_only) {
        memcpy(line[LOW], line[MEDIAN], sizeof line[LOW]);
        memcpy(line[HIGH], line[MEDIAN], sizeof line[HIGH]);
    }
    memcpy(forecast->line, line[MEDIAN], sizeof forecast->line);
    forecast->step = (TimeRange){sum_of(line[LOW]), sum_of(line[MEDIAN]), sum_of(line[HIGH])};
    forecast->has_rates = m->has_rates;
    return OK;
}
