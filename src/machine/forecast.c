/* Forecasts a step: measured times of the operations in the plan's own lists of actions become
 * costs of chunks, with which the schedule is simulated (schedule_waits); sums, update and the rest
 * are added. */
#include "machine.h"

#include <string.h>

const char *const forecast_names[FORECAST_LINE_COUNT] = {FORECAST_LINES(LIST_NAME)};

/* Which of the three times of a range a forecast takes. */
typedef enum Level { LOW, MEDIAN, HIGH, LEVELS } Level;

static double time_at(const TimeRange *range, Level level)
{
    return level == LOW ? range->low : level == HIGH ? range->high : range->median;
}

/* ---- chunks ---- */

/* A chunk whose cost is computed. */
typedef struct ChunkOf {
    const Machine *machine;
    const ForecastOf *of;
    const Plan *plan;
    const ChunkPlan *chunk;
    Level level;
} ChunkOf;

/* Adds the time of a part of a run's operation to *cost. */
static Status add_part(const ChunkOf *c, int run, OperationPart part, double *cost)
{
    const Op *op = c->plan->graph->node[c->chunk->run[run].node].op;
    char *key = operation_key(&op->spec);
    const OperationTime *time = machine_find(c->machine, key);
    Status st = OK;
    if (time && time->has[part])
        *cost += time_at(&time->part[part], c->level);
    else
        st = fail(ERR_CONFIG,
                  "%s: has no %s time of %s: measure this configuration with weft bench machine "
                  "--save %s",
                  c->of->from, operation_part_names[part], key, c->of->from);
    mem_free(&key);
    return st;
}

/* Adds the time of an action to *pass_cost, the cost of its pass; the gradients of weights in a
 * backward pass that is not split go to part_cost[PART_WEIGHT]. */
static Status add_action(const ChunkOf *c, const Action *a, double *part_cost[OPERATION_PART_COUNT],
                         double *pass_cost)
{
    bool whole = a->kind == ACTION_BACKWARD;
    *pass_cost += c->machine->action_s;
    switch (a->kind) {
    case ACTION_FORWARD:
        return add_part(c, a->index, PART_FORWARD, pass_cost);
    case ACTION_BACKWARD:
    case ACTION_BACKWARD_DATA:
        if (whole || c->chunk->run[a->index].dw_waits)
            TRY(add_part(c, a->index, PART_WEIGHT, whole ? part_cost[PART_WEIGHT] : pass_cost));
        return add_part(c, a->index, PART_DATA, pass_cost);
    case ACTION_BACKWARD_WEIGHT:
        return add_part(c, a->index, PART_WEIGHT, pass_cost);
    case ACTION_ADD:
    case ACTION_COPY:
        *pass_cost += action_moved_bytes(a) * c->machine->move_byte_s;
        return OK;
    default:
        return OK;
    }
}

/* Time in which the gradients of a micro-batch are added to the partial sums. */
static double adding_s(const ChunkOf *c)
{
    double micros = c->of->schedule->shape.micros, elements = 0;
    for (int b = 0; b < c->chunk->buckets.count; ++b)
        elements += (double)c->chunk->buckets.elements[b];
    return bucket_moved_bytes(elements, micros) * c->machine->move_byte_s;
}

static MessageCost message_cost(const ChunkOf *c, const Message *message)
{
    const Link *link = &c->machine->message;
    return (MessageCost){.copy = (double)message->bytes * link->byte_s / 2,
                         .wire = link->latency_s};
}

static Status chunk_cost(const ChunkOf *c, TaskCost *cost)
{
    double *part_cost[OPERATION_PART_COUNT] = {&cost->forward, &cost->backward_data,
                                               &cost->backward_weight};
    *cost = (TaskCost){0};
    for (int p = 0; p < PASSES; ++p) {
        const ActionList *list = &c->chunk->pass[p];
        for (int i = 0; i < list->count; ++i)
            TRY(add_action(c, &list->action[i], part_cost, part_cost[p]));
    }
    cost->backward_weight += adding_s(c);
    cost->activations = message_cost(c, &c->chunk->activations_out);
    cost->gradients = message_cost(c, &c->chunk->gradients_in);
    return OK;
}

/* Computes the costs of all chunks of the model. */
static Status chunk_costs(const Machine *m, const ForecastOf *of, Level level, TaskCost *cost)
{
    const Schedule *s = of->schedule;
    for (int k = 0; k < schedule_chunks(s); ++k) {
        const Plan *plan = of->plan[schedule_stage(s, k)];
        ChunkOf c = {m, of, plan, &plan->chunk[schedule_local(s, k)], level};
        TRY(chunk_cost(&c, &cost[k]));
    }
    return OK;
}

/* ---- the end of a step ---- */

static const SumTime *find_sum(const Machine *m, int ranks)
{
    for (int i = 0; i < m->sum_count; ++i)
        if (m->sum[i].ranks == ranks) return &m->sum[i];
    return NULL;
}

/* Time of a stage's sums over replicas. In shared memory the ranks' own cores make the sums, so
 * their time is not hidden. */
static Status sums_s(const Machine *m, const ForecastOf *of, const Plan *plan, double *seconds)
{
    const SumTime *time = find_sum(m, plan->shape.dp);
    *seconds = 0;
    if (plan->shape.dp == 1) return OK;
    if (!time)
        return fail(ERR_CONFIG,
                    "%s: has no time of sums over %d ranks: measure it with weft bench machine -n "
                    "%d --save %s",
                    of->from, plan->shape.dp, plan->shape.dp, of->from);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int b = 0; b < plan->chunk[c].buckets.count; ++b)
            *seconds += time->link.latency_s + time->link.byte_s * sizeof(float) *
                                                   (double)plan->chunk[c].buckets.elements[b];
    return OK;
}

/* Trained parameters that a rank of the stage updates. */
static double updated_elements(const Plan *plan)
{
    double elements = (double)plan->trained_elements;
    return plan->zero ? elements / plan->shape.dp : elements;
}

/* Times that the ranks of a stage need after their last task. */
typedef struct StageEnd {
    double sums_s, update_s;
} StageEnd;

/* Returns the end of the stage that takes longest. */
static Status longest_end(const Machine *m, const ForecastOf *of, Level level, StageEnd *longest)
{
    *longest = (StageEnd){0};
    for (int s = 0; s < of->schedule->shape.stages; ++s) {
        const Plan *plan = of->plan[s];
        StageEnd end = {.update_s = updated_elements(plan) * time_at(&m->update_s, level)};
        TRY(sums_s(m, of, plan, &end.sums_s));
        if (end.sums_s + end.update_s >= longest->sums_s + longest->update_s) *longest = end;
    }
    return OK;
}

/* ---- simulations ---- */

/* Fills the lines that come from the schedule. cost: of all chunks. */
static Status schedule_lines(const Schedule *schedule, const TaskCost *cost,
                             double line[FORECAST_LINE_COUNT])
{
    ScheduleWaits waits;
    TRY(schedule_waits(schedule, cost, &waits));
    line[FORECAST_COMPUTE] = waits.work;
    line[FORECAST_BUBBLE] = waits.bubble;
    line[FORECAST_IMBALANCE] = waits.imbalance;
    line[FORECAST_MESSAGES] = waits.messages;
    return OK;
}

static Status forecast_at(const Machine *m, const ForecastOf *of, Level level, TaskCost *cost,
                          double line[FORECAST_LINE_COUNT])
{
    StageEnd end;
    TRY(chunk_costs(m, of, level, cost));
    TRY(schedule_lines(of->schedule, cost, line));
    TRY(longest_end(m, of, level, &end));
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

Status machine_forecast(const Machine *m, const ForecastOf *of, Forecast *forecast)
{
    double line[LEVELS][FORECAST_LINE_COUNT];
    Status st = OK;
    const GridShape shape = of->plan[0]->shape;
    int ranks = shape.dp * shape.pp * shape.tp;
    if (strcmp(m->setup, of->setup) != 0)
        return fail(ERR_CONFIG, "%s: was measured with %s, and this plan has %s", of->from,
                    m->setup, of->setup);
    if (ranks > m->ranks)
        return fail(ERR_CONFIG,
                    "%s: was measured with %d rank%s at a time, and this plan has %d: measure it "
                    "with weft bench machine -n %d --save %s",
                    of->from, m->ranks, m->ranks == 1 ? "" : "s", ranks, ranks, of->from);
    if (m->threads != of->threads)
        return fail(ERR_CONFIG, "%s: was measured with train.threads %d, and this plan has %d",
                    of->from, m->threads, of->threads);
    if (of->schedule->shape.stages > 1 && !m->has_message)
        return fail(ERR_CONFIG,
                    "%s: has no time of messages: measure it with weft bench machine -n 2 --save "
                    "%s",
                    of->from, of->from);
    TaskCost *cost = mem_new((size_t)schedule_chunks(of->schedule) * sizeof *cost);
    for (Level level = LOW; st == OK && level < LEVELS; ++level)
        st = forecast_at(m, of, level, cost, line[level]);
    mem_free(&cost);
    if (st != OK) return st;
    memcpy(forecast->line, line[MEDIAN], sizeof forecast->line);
    forecast->step = (TimeRange){sum_of(line[LOW]), sum_of(line[MEDIAN]), sum_of(line[HIGH])};
    return OK;
}
