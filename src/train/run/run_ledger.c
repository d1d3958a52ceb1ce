/* The ledger of a run: gathers the ranks' times by phase and by chunk at the end, and divides the
 * waiting by its cause. The causes are those of the simulated schedule with the measured times. */
#include "run.h"

#include <math.h>
#include <stdlib.h>

/* Times of a rank since the first step. */
typedef struct RankTimes {
    double phase_s[PHASE_COUNT];
    int64_t steps;
    int stage;
} RankTimes;

void run_ledger_begin(Run *r)
{
    for (int p = 0; p < PHASE_COUNT; ++p) r->ledger_from.phase_s[p] = phase_s((Phase)p);
    r->ledger_from.step = r->trainer->step;
}

static RankTimes times_of_rank(const Run *r)
{
    RankTimes mine = {.steps = r->trainer->step - r->ledger_from.step,
                      .stage = r->trainer->plan->stage};
    for (int p = 0; p < PHASE_COUNT; ++p)
        mine.phase_s[p] = phase_s((Phase)p) - r->ledger_from.phase_s[p];
    return mine;
}

/* Time that a rank does not spend waiting for other ranks. */
static double busy_s(const RankTimes *t)
{
    return t->phase_s[PHASE_FORWARD] + t->phase_s[PHASE_BACKWARD] + t->phase_s[PHASE_UPDATE] +
           t->phase_s[PHASE_DATA] + t->phase_s[PHASE_OTHER];
}

/* Time until a rank waits in sums. */
static double before_sums_s(const RankTimes *t)
{
    return busy_s(t) + t->phase_s[PHASE_MESSAGES];
}

/* Returns the mean time that a rank waits in sums because another replica of its stage begins them
 * later: by the means over all steps. */
static double late_replicas_s(const RankTimes *all, int ranks, int stages)
{
    double late_s = 0, *last_s = mem_new((size_t)stages * sizeof *last_s);
    for (int r = 0; r < ranks; ++r)
        last_s[all[r].stage] = fmax(last_s[all[r].stage], before_sums_s(&all[r]));
    for (int r = 0; r < ranks; ++r)
        late_s +=
            fmin(last_s[all[r].stage] - before_sums_s(&all[r]), all[r].phase_s[PHASE_SUM]) / ranks;
    mem_free(&last_s);
    return late_s;
}

/* Moves up to `seconds` from one part of the ledger to another. Returns what is left over. */
static double move(Ledger *ledger, LedgerLine from, LedgerLine to, double seconds)
{
    double moved = seconds < ledger->line_s[from] ? seconds : ledger->line_s[from];
    if (moved < 0) moved = 0;
    ledger->line_s[from] -= moved;
    ledger->line_s[to] += moved;
    return seconds - moved;
}

/* Moves the waiting that the schedule explains out of the waiting for messages and, as the end of a
 * step is a sum over all ranks, for sums. */
static void divide_waiting(Ledger *ledger, const ScheduleWaits *waits, double steps)
{
    double left_s = move(ledger, LEDGER_MESSAGES, LEDGER_BUBBLE, waits->bubble * steps);
    move(ledger, LEDGER_SUMS, LEDGER_BUBBLE, left_s);
    left_s = move(ledger, LEDGER_MESSAGES, LEDGER_IMBALANCE, waits->imbalance * steps);
    move(ledger, LEDGER_SUMS, LEDGER_IMBALANCE, left_s);
}

/* Computes the mean cost of each chunk over its replicas. time: of all ranks, [ranks][chunks of a
 * stage]. Returns false if a chunk has not run. */
static bool chunk_costs(const Run *r, const RankTimes *all, const ChunkTime *time, TaskCost *cost)
{
    const Schedule *s = trainer_schedule(r->trainer);
    int local_chunks = s->shape.chunks, ranks = r->world->size;
    bool complete = true;
    for (int k = 0; k < schedule_chunks(s); ++k) {
        double sum[TASK_WORK_KINDS] = {0}, count[TASK_WORK_KINDS] = {0};
        for (int rank = 0; rank < ranks; ++rank) {
            if (all[rank].stage != schedule_stage(s, k)) continue;
            const ChunkTime *c = &time[rank * local_chunks + schedule_local(s, k)];
            for (int i = 0; i < TASK_WORK_KINDS; ++i) {
                sum[i] += c->seconds[i];
                count[i] += (double)c->count[i];
            }
        }
        for (int i = 0; i < TASK_WORK_KINDS; ++i) sum[i] = count[i] > 0 ? sum[i] / count[i] : 0;
        complete = complete && count[TASK_FORWARD] > 0;
        cost[k] = (TaskCost){.forward = sum[TASK_FORWARD],
                             .backward_data = sum[TASK_BACKWARD] + sum[TASK_BACKWARD_DATA],
                             .backward_weight = sum[TASK_BACKWARD_WEIGHT]};
    }
    return complete;
}

/* Without replicas the end of a step, which waits for its statistics, is a message between stages,
 * or, on one rank, bookkeeping. */
static void name_sums(const Run *r, Ledger *ledger)
{
    if (r->trainer->shape.dp > 1) return;
    move(ledger, LEDGER_SUMS, r->world->size > 1 ? LEDGER_MESSAGES : LEDGER_OTHER,
         ledger->line_s[LEDGER_SUMS]);
}

static void explain_waiting(const Run *r, const RankTimes *all, const ChunkTime *time,
                            Ledger *ledger)
{
    const Schedule *s = trainer_schedule(r->trainer);
    TaskCost *cost = mem_new((size_t)schedule_chunks(s) * sizeof *cost);
    ScheduleWaits waits;
    if (chunk_costs(r, all, time, cost) && schedule_waits(s, cost, &waits) == OK)
        divide_waiting(ledger, &waits, (double)all[0].steps);
    mem_free(&cost);
    move(ledger, LEDGER_SUMS, LEDGER_IMBALANCE,
         late_replicas_s(all, r->world->size, s->shape.stages));
    name_sums(r, ledger);
}

static void sum_lines(const RankTimes *all, int ranks, Ledger *ledger)
{
    static const LedgerLine line_of[PHASE_COUNT] = {[PHASE_OTHER] = LEDGER_OTHER,
                                                    [PHASE_DATA] = LEDGER_DATA,
                                                    [PHASE_FORWARD] = LEDGER_COMPUTE,
                                                    [PHASE_BACKWARD] = LEDGER_COMPUTE,
                                                    [PHASE_SUM] = LEDGER_SUMS,
                                                    [PHASE_MESSAGES] = LEDGER_MESSAGES,
                                                    [PHASE_UPDATE] = LEDGER_UPDATE,
                                                    [PHASE_EVAL] = LEDGER_EVAL,
                                                    [PHASE_CHECKPOINT] = LEDGER_CHECKPOINT};
    ledger->ranks = ranks;
    ledger->steps = all[0].steps;
    for (int r = 0; r < ranks; ++r) {
        for (int p = 0; p < PHASE_COUNT; ++p)
            ledger->line_s[line_of[p]] += all[r].phase_s[p] / ranks;
        ledger->busy_s += busy_s(&all[r]) / ranks;
        if (busy_s(&all[r]) <= ledger->busiest_s) continue;
        ledger->busiest_s = busy_s(&all[r]);
        ledger->busiest = r;
    }
}

Status run_forecast(Run *r)
{
    static const LedgerLine line_of[FORECAST_LINE_COUNT] = {
        [FORECAST_COMPUTE] = LEDGER_COMPUTE,     [FORECAST_BUBBLE] = LEDGER_BUBBLE,
        [FORECAST_IMBALANCE] = LEDGER_IMBALANCE, [FORECAST_MESSAGES] = LEDGER_MESSAGES,
        [FORECAST_SUMS] = LEDGER_SUMS,           [FORECAST_UPDATE] = LEDGER_UPDATE,
        [FORECAST_REST] = LEDGER_OTHER};
    Forecast forecast;
    Ledger *ledger = &r->summary.ledger;
    if (!*r->config->run.machine) return OK;
    Machine machine;
    Plan **plan = NULL;
    TRY(machine_read(&machine, r->config->run.machine));
    const ForecastBy by = {&machine, r->config->run.machine, .median_only = true};
    Status st = train_plans(r->trainer, &plan);
    if (st == OK) st = train_forecast(r->trainer, (const Plan *const *)plan, &by, &forecast);
    train_plans_free(r->trainer, &plan);
    machine_fini(&machine);
    if (st != OK) return st;
    ledger->has_forecast = true;
    for (int i = 0; i < FORECAST_LINE_COUNT; ++i) ledger->forecast_s[line_of[i]] = forecast.line[i];
    log_info("forecast by %s: %.4g ms a step", r->config->run.machine, 1e3 * forecast.step.median);
    return OK;
}

void run_ledger_end(Run *r)
{
    const World *world = r->world;
    Executor *executor = r->trainer->executor;
    size_t chunks = (size_t)trainer_schedule(r->trainer)->shape.chunks, ranks = (size_t)world->size;
    RankTimes mine = times_of_rank(r), *all = mem_new(ranks * sizeof *all);
    ChunkTime *time = mem_new(ranks * chunks * sizeof *time);
    world_gather(world, &mine, sizeof mine, all);
    world_gather(world, executor_chunk_times(executor), chunks * sizeof *time, time);
    if (world->rank == 0) {
        sum_lines(all, world->size, &r->summary.ledger);
        /* on a device the host's times are not those of the work */
        if (r->trainer->backend->table->host_memory)
            explain_waiting(r, all, time, &r->summary.ledger);
    }
    mem_free(&time);
    mem_free(&all);
}

static void put_measured(Json *json, const Ledger *ledger)
{
    json_object(json, "measured");
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i)
        json_real(json, ledger_names[i], ledger->line_s[i] / (double)ledger->steps);
    json_end(json);
}

/* Evaluations and saves are not forecast. */
static void put_forecast(Json *json, const Ledger *ledger)
{
    json_object(json, "forecast");
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i)
        if (i != LEDGER_EVAL && i != LEDGER_CHECKPOINT)
            json_real(json, ledger_names[i], ledger->forecast_s[i]);
    json_end(json);
}

static void put_ledger(const Run *r, FILE *out)
{
    const Ledger *ledger = &r->summary.ledger;
    Json json = json_to(out, false);
    json_object(&json, NULL);
    json_int(&json, "step", r->trainer->step);
    json_int(&json, "steps", ledger->steps);
    json_int(&json, "ranks", ledger->ranks);
    put_measured(&json, ledger);
    if (ledger->has_forecast) put_forecast(&json, ledger);
    json_end(&json);
}

void run_ledger_write(const Run *r)
{
    char *line = NULL;
    size_t bytes;
    if (r->summary.ledger.steps == 0) return;
    FILE *out = open_memstream(&line, &bytes);
    if (!out) die("out of memory for a line of the ledger");
    put_ledger(r, out);
    fclose(out);
    if (ledger_file_append(r->dir.path, line) != OK) log_warn("%s", fail_message());
    free(line);
}
