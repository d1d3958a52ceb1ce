/* Divides the waiting of ranks by its causes. A simulation of the schedule with the measured times
 * of the chunks shows how long each stage is idle; the ranks' times show which replica began a sum
 * last. */
#include "run_waits.h"

#include <math.h>

double rank_busy_s(const RankTimes *t)
{
    return t->phase_s[PHASE_FORWARD] + t->phase_s[PHASE_BACKWARD] + t->phase_s[PHASE_UPDATE] +
           t->phase_s[PHASE_DATA] + t->phase_s[PHASE_OTHER];
}

/* Returns the seconds of a rank outside of sums, without evaluations and saves. */
static double before_sums_s(const RankTimes *t)
{
    return rank_busy_s(t) + t->phase_s[PHASE_MESSAGES] + t->phase_s[PHASE_EXCHANGE];
}

/* Moves at most `seconds` from one part of the ledger to another. Returns the seconds that could
 * not be moved. */
static double move(double *line_s, LedgerLine from, LedgerLine to, double seconds)
{
    double moved = fmax(fmin(seconds, line_s[from]), 0);
    line_s[from] -= moved;
    line_s[to] += moved;
    return seconds - moved;
}

/* Moves the waits for sums to another part of the ledger if there is one replica. It has no sums,
 * so these waits are for the statistics at the end of a step: they count as messages or, on one
 * rank, as other work. */
static void name_sums(const Run *r, double *line_s)
{
    if (r->trainer->shape.dp > 1) return;
    move(line_s, LEDGER_SUMS, r->world->size > 1 ? LEDGER_MESSAGES : LEDGER_OTHER,
         line_s[LEDGER_SUMS]);
}

/* Returns the line of the ledger that has the time of a phase. */
static LedgerLine line_of(Phase phase)
{
    switch (phase) {
    case PHASE_OTHER:
        return LEDGER_OTHER;
    case PHASE_DATA:
        return LEDGER_DATA;
    case PHASE_FORWARD:
    case PHASE_BACKWARD:
        return LEDGER_COMPUTE;
    case PHASE_SUM:
        return LEDGER_SUMS;
    case PHASE_MESSAGES:
        return LEDGER_MESSAGES;
    case PHASE_EXCHANGE:
        return LEDGER_EXCHANGES;
    case PHASE_UPDATE:
        return LEDGER_UPDATE;
    case PHASE_EVAL:
        return LEDGER_EVAL;
    case PHASE_CHECKPOINT:
        return LEDGER_CHECKPOINT;
    case PHASE_COUNT:
        break;
    }
    die("phase %d has no line of the ledger", (int)phase);
}

void run_lines_of(const Run *r, const double phase_s[PHASE_COUNT], double line_s[LEDGER_LINE_COUNT])
{
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) line_s[i] = 0;
    for (int p = 0; p < PHASE_COUNT; ++p) line_s[line_of((Phase)p)] += phase_s[p];
    name_sums(r, line_s);
}

/* Computes the mean cost of each chunk over its replicas. time: times of all ranks, [ranks][chunks
 * of a stage]. Returns false if a chunk has not run. */
static bool chunk_costs(const Run *r, const RankTimes *all, const ChunkTime *time, TaskCost *cost)
{
    const Schedule *s = trainer_schedule(r->trainer);
    int local_chunks = s->shape.chunks_per_stage, ranks = r->world->size;
    bool complete = true;
    for (int k = 0; k < schedule_chunks(s); ++k) {
        double sum[TASK_WORK_KINDS] = {0}, count[TASK_WORK_KINDS] = {0};
        for (int rank = 0; rank < ranks; ++rank) {
            if (all[rank].stage != schedule_stage(s, k)) continue;
            const ChunkTime *c = &time[rank * local_chunks + schedule_index_on_stage(s, k)];
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

/* Moves the waiting that the schedule explains from messages and sums to bubble and imbalance.
 * Waiting in sums is included, because a step ends with a sum over all ranks. A stage gets bubble
 * and imbalance in proportion to the time in which it is idle. stage_s: seconds in which the stage
 * works in a step. */
static void divide_waiting(double *line_s, const ScheduleWaits *waits, double stage_s,
                           int64_t step_count)
{
    double steps = (double)step_count, idle_s = waits->bubble + waits->imbalance;
    double part = idle_s > 0 ? fmax(waits->work + idle_s - stage_s, 0) / idle_s : 0;
    double left_s = move(line_s, LEDGER_MESSAGES, LEDGER_BUBBLE, waits->bubble * part * steps);
    move(line_s, LEDGER_SUMS, LEDGER_BUBBLE, left_s);
    left_s = move(line_s, LEDGER_MESSAGES, LEDGER_IMBALANCE, waits->imbalance * part * steps);
    move(line_s, LEDGER_SUMS, LEDGER_IMBALANCE, left_s);
}

/* Moves to imbalance the time that a rank waits in sums because another replica of its stage begins
 * them later. The time is computed from the totals over all steps. Returns the mean of the moved
 * time over the ranks. */
static double move_late_replicas(const RankTimes *all, int ranks, int stages, RankLedger *rank)
{
    double *last_s = mem_new((size_t)stages * sizeof *last_s), late_s = 0;
    for (int r = 0; r < ranks; ++r)
        last_s[all[r].stage] = fmax(last_s[all[r].stage], before_sums_s(&all[r]));
    for (int r = 0; r < ranks; ++r) {
        double later_s = last_s[all[r].stage] - before_sums_s(&all[r]);
        double left_s = move(rank[r].line_s, LEDGER_SUMS, LEDGER_IMBALANCE, later_s);
        late_s += (later_s - left_s) / ranks;
    }
    mem_free(&last_s);
    return late_s;
}

/* Sets ledger->path_s, the work of each stage on the critical path. The times are scaled so that
 * their sum is the mean over the ranks of computing, bubble and imbalance, without the waits for
 * late replicas. */
static void fill_path(const Schedule *s, const TaskCost *cost, Ledger *ledger)
{
    CriticalPath path;
    double chain_s = -ledger->late_s;
    if (schedule_critical_path(s, cost, &path) != OK) return;
    for (int r = 0; r < ledger->ranks; ++r) {
        const double *line_s = ledger->rank[r].line_s;
        chain_s += (line_s[LEDGER_COMPUTE] + line_s[LEDGER_BUBBLE] + line_s[LEDGER_IMBALANCE]) /
                   ledger->ranks;
    }
    ledger->path_s = path.work;
    for (int i = 0; i < s->shape.stages; ++i) path.work[i] *= chain_s / path.makespan;
}

void run_divide_waits(const Run *r, const RankTimes *all, const ChunkTime *time, Ledger *ledger)
{
    const Schedule *s = trainer_schedule(r->trainer);
    int ranks = r->world->size;
    TaskCost *cost = mem_new((size_t)schedule_chunks(s) * sizeof *cost);
    ScheduleWaits waits;
    bool known = chunk_costs(r, all, time, cost) && schedule_waits(s, cost, NULL, &waits) == OK;
    for (int i = 0; i < ranks && known; ++i)
        divide_waiting(ledger->rank[i].line_s, &waits, schedule_stage_work(s, cost, all[i].stage),
                       all[i].steps);
    ledger->late_s = move_late_replicas(all, ranks, s->shape.stages, ledger->rank);
    for (int i = 0; i < ranks; ++i) name_sums(r, ledger->rank[i].line_s);
    if (known) fill_path(s, cost, ledger);
    ledger->cost = cost;
    if (ledger->path_s) ledger->schedule = s;
}
