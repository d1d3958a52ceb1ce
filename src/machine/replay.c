/* Simulates a schedule on the ranks of several nodes. The ranks of a node share the node's
 * connection, over which their messages and sums go in the order in which they were begun. A rank
 * that sends goes on at once; it waits only for messages that it receives. The limit on the slots
 * of channels is left out: with and without this limit, simulations gave the same steps
 * (bench/results/forecast.md). */
#include "replay.h"

#include <math.h>

/* largest number of tasks of all simulated ranks, whose simulation takes about a second */
static const double TASKS_MAX = 1e6;
/* largest number of events of all sums, whose simulation takes about a second */
static const double SUM_EVENTS_MAX = 4e6;
/* Work is done when less than this fraction of it is left, which may be an error of rounding. */
static const double DONE = 1e-9;

/* A rank whose tasks are simulated. A task is simulated in pieces. */
typedef struct Runner {
    int stage;
    /* number of the rank in its stage */
    int stage_rank;
    /* index of its current task */
    int next;
    /* number of the piece of this task that comes next */
    int piece;
    /* number of sums whose parts the rank has completed */
    int sums;
    /* beginning of its current task */
    double begin;
    /* seconds of the current piece if no message is on its way; 0: the rank does not compute */
    double work_s;
    /* beginning of the current piece */
    double since;
    /* network_busy_s of the rank's node at `since` */
    double busy_s;
    /* true: the rank waits for the message of its current task */
    bool waits;
} Runner;

typedef struct Replay {
    const Machine *machine;
    const ForecastInput *input;
    const TaskCost *cost;
    /* number of ranks of each stage that are simulated */
    int stage_ranks;
    /* number of ranks of a node that one simulated rank represents, and that share the node's
     * connection. It is 1 unless only one rank of each stage is simulated. */
    double share;
    /* the simulated ranks of all stages, [stages * stage_ranks]; owned */
    Runner *runner;
    /* true: the message has arrived, [activations, gradients][chunk][micro-batch][stage_rank];
     * owned */
    bool *arrived;
    Events events;
    Network network;
    /* sums of each stage, [stages]; owned */
    StageSums *sums;
    ScheduleReport *report;
} Replay;

/* ---- ranks ---- */

/* Returns the number of ranks of a stage that are simulated: the ranks of one node if the stage
 * fills several whole nodes, otherwise all ranks of the stage. */
static int ranks_played(const Machine *m, GridShape shape)
{
    int replica_ranks = shape.dp * shape.tp;
    return replica_ranks > m->ranks && replica_ranks % m->ranks == 0 ? m->ranks : replica_ranks;
}

static const Task *task_of(const Replay *r, const Runner *runner)
{
    const Schedule *s = r->input->schedule;
    return runner->next < s->count[runner->stage] ? &s->task[runner->stage][runner->next] : NULL;
}

static double work_s(const TaskCost *cost, TaskKind kind)
{
    switch (kind) {
    case TASK_FORWARD:
        return cost->forward;
    case TASK_BACKWARD:
        return cost->backward_data + cost->backward_weight;
    case TASK_BACKWARD_DATA:
        return cost->backward_data;
    default:
        return cost->backward_weight;
    }
}

/* ---- messages ---- */

/* The message that a task sends or receives across the boundary between two chunks. */
typedef struct Crossing {
    /* true: gradients for the chunk before the boundary; false: activations from it */
    bool gradients;
    /* true: the task sends the message; false: the task receives it */
    bool sends;
    /* the chunk before the boundary */
    int chunk;
} Crossing;

static Crossing crossing_of(const Task *task)
{
    bool forward = task->kind == TASK_SEND_FORWARD || task->kind == TASK_RECEIVE_FORWARD;
    bool own = task->kind == TASK_SEND_FORWARD || task->kind == TASK_RECEIVE_BACKWARD;
    bool sends = task->kind == TASK_SEND_FORWARD || task->kind == TASK_SEND_BACKWARD;
    return (Crossing){!forward, sends, own ? task->chunk : task->chunk - 1};
}

static int64_t message_index(const Replay *r, Crossing c, int micro, int stage_rank)
{
    const Schedule *s = r->input->schedule;
    int64_t row = (int64_t)c.gradients * schedule_chunks(s) + c.chunk;
    return (row * s->shape.micro_batches + micro) * r->stage_ranks + stage_rank;
}

static MessageCost message_cost(const Replay *r, Crossing c)
{
    return c.gradients ? r->cost[c.chunk].gradients : r->cost[c.chunk].activations;
}

/* Returns the bytes of a message across the boundary after a chunk. */
static double message_bytes(const Replay *r, Crossing c)
{
    const Schedule *s = r->input->schedule;
    const ChunkPlan *chunk =
        &r->input->plan[schedule_stage(s, c.chunk)]->chunk[schedule_index_on_stage(s, c.chunk)];
    return (double)(c.gradients ? chunk->gradients_in : chunk->activations_out).bytes;
}

static void send(Replay *r, const Runner *runner, Crossing c, int micro, double now)
{
    int other = schedule_stage(r->input->schedule, c.gradients ? c.chunk : c.chunk + 1);
    const GridShape shape = r->input->plan[0]->shape;
    Parcel parcel = {.from = node_of(r->machine, shape, runner->stage, runner->stage_rank),
                     .to = node_of(r->machine, shape, other, runner->stage_rank),
                     .message = message_index(r, c, micro, runner->stage_rank),
                     .receiver = other * r->stage_ranks + runner->stage_rank};
    if (parcel.from == parcel.to) {
        parcel.latency_s = message_cost(r, c).wire;
        network_send_inside(&r->network, &r->events, now, parcel);
    } else {
        parcel.latency_s = r->machine->network_link.latency_s;
        parcel.bytes = message_bytes(r, c);
        network_send(&r->network, &r->events, now, parcel);
    }
}

/* ---- simulation ---- */

/* Simulates the next piece of a task that sends or receives. The first piece is the copy of the
 * message; after it the task ends. *seconds: duration of the piece. Returns false at the end of the
 * task, and if the message has not arrived. */
static bool play_message(Replay *r, Runner *runner, const Task *task, double now, double *seconds)
{
    Crossing c = crossing_of(task);
    if (runner->piece == 0) {
        runner->waits =
            !c.sends && !r->arrived[message_index(r, c, task->micro, runner->stage_rank)];
        if (runner->waits) return false;
        if (!c.sends) runner->begin = now;
        *seconds = message_cost(r, c).copy;
        ++runner->piece;
        return true;
    }
    if (c.sends) send(r, runner, c, task->micro, now);
    return false;
}

static int node_of_runner(const Replay *r, const Runner *runner)
{
    return node_of(r->machine, r->input->plan[0]->shape, runner->stage, runner->stage_rank);
}

/* Returns the time that the rank still needs for the work of its piece if no message is on its way
 * from now on. While a message is on its way, a second of work takes overlap_compute seconds. */
static double work_left_s(const Replay *r, const Runner *runner, double now)
{
    double busy_s = network_busy_s(&r->network, now, node_of_runner(r, runner)) - runner->busy_s;
    double lost_s = busy_s * (1 - 1 / r->machine->overlap_compute);
    double left_s = runner->work_s - (now - runner->since - lost_s);
    /* A time that is too short to change `now` counts as 0. Otherwise the rank would get the same
     * event again and again. */
    return left_s > DONE * runner->work_s && now + left_s > now ? left_s : 0;
}

/* Simulates the next piece of a task that computes. A piece ends at each bucket that the task
 * completes; the last piece ends with the task. *seconds: duration of the piece. Returns false at
 * the end of the task. */
static bool play_work(Replay *r, Runner *runner, const Task *task, double now, double *seconds)
{
    StageSums *sums = &r->sums[runner->stage];
    int buckets = stage_sums_buckets(sums, r->input, runner->stage, task), piece = runner->piece++;
    const double *part =
        buckets > 0 ? sums->part[schedule_index_on_stage(r->input->schedule, task->chunk)] : NULL;
    if (piece > 0 && piece <= buckets)
        stage_sums_complete(sums, &r->network, &r->events, now, runner->stage, runner->sums++);
    if (piece > buckets) return false;
    double begin = piece > 0 ? part[piece - 1] : 0, end = piece < buckets ? part[piece] : 1;
    *seconds = fmax(end - begin, 0) * work_s(&r->cost[task->chunk], task->kind);
    runner->work_s = *seconds;
    runner->since = now;
    runner->busy_s = network_busy_s(&r->network, now, node_of_runner(r, runner));
    return true;
}

static void end_task(Replay *r, Runner *runner, double now)
{
    ScheduleSpan *span = &r->report->span[runner->stage][runner->next++];
    if (now >= span->end) *span = (ScheduleSpan){runner->begin, now};
    if (now > r->report->makespan) r->report->makespan = now;
    runner->piece = 0;
    runner->begin = now;
}

/* Simulates the tasks of a rank until a piece takes time, or a message has not arrived. */
static void play(Replay *r, int index, double now)
{
    Runner *runner = &r->runner[index];
    double left_s = work_left_s(r, runner, now);
    if (left_s > 0) {
        events_add(&r->events, now + left_s, EVENT_RANK, index);
        return;
    }
    runner->work_s = 0;
    for (const Task *task; (task = task_of(r, runner));) {
        double seconds = 0;
        bool more = task->kind < TASK_WORK_KINDS ? play_work(r, runner, task, now, &seconds)
                                                 : play_message(r, runner, task, now, &seconds);
        if (runner->waits) return;
        if (!more) end_task(r, runner, now);
        if (seconds > 0) {
            events_add(&r->events, now + seconds, EVENT_RANK, index);
            return;
        }
    }
}

static void arrive(Replay *r, const Parcel *parcel, double now)
{
    if (parcel->message < 0) {
        stage_sums_arrived(&r->sums[parcel->stage], &r->network, &r->events, now, parcel->stage);
        return;
    }
    r->arrived[parcel->message] = true;
    Runner *runner = &r->runner[parcel->receiver];
    if (!runner->waits) return;
    runner->waits = false;
    play(r, parcel->receiver, now);
}

static void play_all(Replay *r)
{
    Event event;
    while (events_take(&r->events, &event)) {
        if (event.kind == EVENT_RANK) {
            play(r, event.index, event.at);
        } else if (event.kind == EVENT_LEFT) {
            network_left(&r->network, &r->events, event.at, event.index);
        } else {
            const Parcel parcel = network_arrived(&r->network, event.at, event.index);
            arrive(r, &parcel, event.at);
        }
    }
}

/* ---- begin and end ---- */

static Status begin(Replay *r, Level level)
{
    const Schedule *s = r->input->schedule;
    const GridShape shape = r->input->plan[0]->shape;
    int ranks = shape.dp * shape.pp * shape.tp, stages = s->shape.stages;
    size_t messages =
        2 * (size_t)schedule_chunks(s) * (size_t)s->shape.micro_batches * (size_t)r->stage_ranks;
    r->runner = mem_new((size_t)stages * (size_t)r->stage_ranks * sizeof *r->runner);
    r->arrived = mem_new(messages * sizeof *r->arrived);
    r->sums = mem_new((size_t)stages * sizeof *r->sums);
    network_init(&r->network, ranks / r->machine->ranks + 1,
                 r->machine->network_link.s_per_byte * r->share);
    r->report->makespan = 0;
    for (int stage = 0; stage < stages; ++stage) {
        TRY(stage_sums_init(&r->sums[stage], r->machine, r->input, level, stage, r->stage_ranks));
        for (int i = 0; i < s->count[stage]; ++i) r->report->span[stage][i] = (ScheduleSpan){0, 0};
        for (int stage_rank = 0; stage_rank < r->stage_ranks; ++stage_rank) {
            int index = stage * r->stage_ranks + stage_rank;
            r->runner[index] = (Runner){.stage = stage, .stage_rank = stage_rank};
            events_add(&r->events, 0, EVENT_RANK, index);
        }
    }
    return OK;
}

static void end(Replay *r)
{
    for (int stage = 0; stage < r->input->schedule->shape.stages; ++stage)
        stage_sums_fini(&r->sums[stage]);
    network_fini(&r->network);
    mem_free(&r->events.event);
    r->events = (Events){0};
    mem_free(&r->sums);
    mem_free(&r->arrived);
    mem_free(&r->runner);
}

static double sum_events(const Replay *r)
{
    double events = 0;
    for (int stage = 0; stage < r->input->schedule->shape.stages; ++stage)
        events += stage_sums_events(&r->sums[stage]);
    return events;
}

/* Restricts the replay to one rank of each stage. The messages of this rank get an equal share of
 * the node's connection. */
static void play_one_rank(Replay *r)
{
    r->share = r->stage_ranks < r->machine->ranks ? r->stage_ranks : r->machine->ranks;
    r->stage_ranks = 1;
}

Status replay_nodes(const Machine *m, const ForecastInput *input, Level level, const TaskCost *cost,
                    ScheduleReport *report, double *last_sum_end)
{
    const GridShape shape = input->plan[0]->shape;
    int stages = input->schedule->shape.stages;
    Replay r = {.machine = m, .input = input, .cost = cost, .report = report, .share = 1};
    for (int stage = 0; stage < stages; ++stage) last_sum_end[stage] = 0;
    if ((int64_t)shape.dp * shape.pp * shape.tp <= m->ranks) return OK;
    TRY(network_known(m, input));
    r.stage_ranks = ranks_played(m, shape);
    double tasks = 0;
    for (int stage = 0; stage < stages; ++stage) tasks += input->schedule->count[stage];
    if (tasks * r.stage_ranks > TASKS_MAX) play_one_rank(&r);
    Status st = begin(&r, level);
    if (st == OK && r.stage_ranks > 1 && sum_events(&r) > SUM_EVENTS_MAX) {
        end(&r);
        play_one_rank(&r);
        st = begin(&r, level);
    }
    if (st == OK) play_all(&r);
    for (int stage = 0; st == OK && stage < stages; ++stage)
        last_sum_end[stage] = r.sums[stage].end_s;
    end(&r);
    return st;
}
