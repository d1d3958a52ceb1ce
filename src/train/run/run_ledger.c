/* Writes the ledger of a run: its first line before the first step. At the end of the run gathers
 * the ranks' times by phase and by chunk, computes the run's times by activity, and writes them to
 * ledger.jsonl, with the forecast if there is one. */
#include "run_waits.h"

#include <stdlib.h>

void run_ledger_begin(Run *r)
{
    for (int p = 0; p < PHASE_COUNT; ++p)
        r->ledger_from.phase_s[p] = r->live_from_s[p] = phase_s((Phase)p);
    r->ledger_from.step = r->trainer->step;
    if (r->world->rank != 0) return;
    char *versions = NULL;
    size_t bytes;
    FILE *out = open_memstream(&versions, &bytes);
    if (!out) die("out of memory for the versions");
    train_print_versions(out, r->config->train.device == DEVICE_CUDA);
    fclose(out);
    const LedgerBegin begin = {.step = r->trainer->step,
                               .startup_s = clock_s() - clock_begin_s(),
                               .earlier = r->earlier,
                               .versions = versions};
    if (ledger_write_start(r->dir.path, &begin) != OK) log_warn("%s", fail_message());
    free(versions);
}

/* Computes the run's ledger as the mean of the ranks' ledgers, and finds the busiest rank. */
static void add_ranks(Ledger *ledger, const RankTimes *all)
{
    int ranks = ledger->ranks;
    for (int r = 0; r < ranks; ++r) {
        for (int i = 0; i < LEDGER_LINE_COUNT; ++i)
            ledger->line_s[i] += ledger->rank[r].line_s[i] / ranks;
        ledger->busy_s += rank_busy_s(&all[r]) / ranks;
        if (rank_busy_s(&all[r]) <= ledger->busiest_s) continue;
        ledger->busiest_s = rank_busy_s(&all[r]);
        ledger->busiest = r;
    }
}

/* Fills the ledger from the times of all ranks. On a device the host's times are not those of the
 * work, so waiting is not divided by cause. */
static void fill_ledger(Run *r, const RankTimes *all, const ChunkTime *time)
{
    int ranks = r->world->size;
    Ledger *ledger = &r->summary.ledger;
    ledger->ranks = ranks;
    ledger->steps = all[0].steps;
    ledger->rank = mem_new((size_t)ranks * sizeof *ledger->rank);
    for (int i = 0; i < ranks; ++i) {
        ledger->rank[i].stage = all[i].stage;
        run_lines_of(r, all[i].phase_s, ledger->rank[i].line_s);
    }
    if (r->trainer->backend->table->host_memory) run_divide_waits(r, all, time, ledger);
    add_ranks(ledger, all);
}

Status run_forecast(Run *r)
{
    static const LedgerLine line_of[FORECAST_LINE_COUNT] = {
        [FORECAST_COMPUTE] = LEDGER_COMPUTE,     [FORECAST_BUBBLE] = LEDGER_BUBBLE,
        [FORECAST_IMBALANCE] = LEDGER_IMBALANCE, [FORECAST_MESSAGES] = LEDGER_MESSAGES,
        [FORECAST_EXCHANGES] = LEDGER_EXCHANGES, [FORECAST_SUMS] = LEDGER_SUMS,
        [FORECAST_UPDATE] = LEDGER_UPDATE,       [FORECAST_REST] = LEDGER_OTHER};
    Forecast forecast;
    Ledger *ledger = &r->summary.ledger;
    if (!*r->config->run.machine) return OK;
    Machine machine;
    Plan **plan = NULL;
    TRY(machine_read(&machine, r->config->run.machine));
    const ForecastMachine by = {&machine, r->config->run.machine, .median_only = true};
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
    size_t chunks = (size_t)trainer_schedule(r->trainer)->shape.chunks_per_stage,
           ranks = (size_t)world->size;
    RankTimes mine = {.steps = r->trainer->step - r->ledger_from.step,
                      .stage = r->trainer->plan->stage};
    for (int p = 0; p < PHASE_COUNT; ++p)
        mine.phase_s[p] = phase_s((Phase)p) - r->ledger_from.phase_s[p];
    RankTimes *all = mem_new(ranks * sizeof *all);
    ChunkTime *time = mem_new(ranks * chunks * sizeof *time);
    world_allgather(world, &mine, sizeof mine, all);
    world_allgather(world, executor_chunk_times(executor), chunks * sizeof *time, time);
    if (world->rank == 0) fill_ledger(r, all, time);
    mem_free(&time);
    mem_free(&all);
}

/* Sets the run's goodput if the run has had more than one start. */
static Status find_goodput(Run *r)
{
    LedgerHistory history;
    TRY(ledger_read(r->dir.path, &history));
    if (history.starts > 1) r->summary.goodput = goodput_of(&history);
    ledger_history_fini(&history);
    return OK;
}

void run_ledger_write(Run *r)
{
    if (r->summary.ledger.steps == 0) return;
    const RunSummary *s = &r->summary;
    const LedgerMemory memory = {s->memory_rank, s->planned_bytes, s->measured_bytes,
                                 s->peak_bytes};
    Status st = ledger_write_end(r->dir.path, r->trainer->step, &s->ledger, &memory);
    if (st == OK) st = find_goodput(r);
    if (st != OK) log_warn("%s", fail_message());
}
