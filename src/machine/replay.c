/* Plays a schedule on all ranks of a node at the same time. The ranks share the node's connection,
 * which carries one message after the other. Ranks that begin together soon alternate: one computes
 * while another sends. They wait less than in schedule_simulate, where each message gets an equal
 * share of the connection. */
#include "private.h"

#include <math.h>

/* largest number of steps of the search for the next task; they take about a second */
static const double STEPS_MAX = 3e8;

/* One rank of a stage. lane: number of the rank in its stage; next: index of its next task; now:
 * the time that it has reached. */
typedef struct Runner {
    int stage, lane, next;
    double now;
} Runner;

typedef struct Replay {
    const Machine *machine;
    const ForecastOf *of;
    const TaskCost *cost;
    /* number of ranks of each stage that are played */
    int lanes;
    /* the played ranks of all stages, [stages * lanes]; owned */
    Runner *runner;
    /* time at which each message arrives, [activations, gradients][chunk][micro-batch][lane]; NAN:
     * not sent yet; owned */
    double *arrival;
    /* time from which each node's connection is free for sending, and for receiving; [nodes];
     * owned */
    double *out_free, *in_free;
    ScheduleReport *report;
} Replay;

/* Returns the number of ranks of a stage that are played: if the stage fills several nodes, those
 * of one node, otherwise all. */
static int lanes_of(const Machine *m, GridShape shape)
{
    int replica_ranks = shape.dp * shape.tp;
    return replica_ranks > m->ranks && replica_ranks % m->ranks == 0 ? m->ranks : replica_ranks;
}

/* The message that a task sends or receives across the boundary after a chunk: activations, or
 * gradients in the other direction. sends: true if the task sends it */
typedef struct Crossing {
    bool gradients, sends;
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

static double *arrival_at(const Replay *r, Crossing c, int micro, int lane)
{
    const Schedule *s = r->of->schedule;
    int64_t row = (int64_t)c.gradients * schedule_chunks(s) + c.chunk;
    return &r->arrival[(row * s->shape.micros + micro) * r->lanes + lane];
}

static const Task *next_task(const Replay *r, const Runner *runner)
{
    const Schedule *s = r->of->schedule;
    return runner->next < s->count[runner->stage] ? &s->task[runner->stage][runner->next] : NULL;
}

/* Returns the time at which a rank can begin its next task; INFINITY: the time is not known yet, or
 * there is no task. */
static double ready_at(const Replay *r, const Runner *runner)
{
    const Task *task = next_task(r, runner);
    if (!task) return INFINITY;
    if (task->kind != TASK_RECEIVE_FORWARD && task->kind != TASK_RECEIVE_BACKWARD)
        return runner->now;
    double arrival = *arrival_at(r, crossing_of(task), task->micro, runner->lane);
    return isnan(arrival) ? INFINITY : fmax(arrival, runner->now);
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

/* Returns the bytes of a message across the boundary after a chunk. */
static double message_bytes(const Replay *r, Crossing c)
{
    const Schedule *s = r->of->schedule;
    const ChunkPlan *chunk =
        &r->of->plan[schedule_stage(s, c.chunk)]->chunk[schedule_local(s, c.chunk)];
    return (double)(c.gradients ? chunk->gradients_in : chunk->activations_out).bytes;
}

/* Sends a message at the time that the rank has reached. The message waits until the connections of
 * both nodes are free. */
static void send(Replay *r, const Runner *runner, Crossing c, int micro)
{
    const Schedule *s = r->of->schedule;
    const TaskCost *cost = &r->cost[c.chunk];
    int other = schedule_stage(s, c.gradients ? c.chunk : c.chunk + 1);
    const GridShape shape = r->of->plan[0]->shape;
    int from = node_of(r->machine, shape, runner->stage, runner->lane),
        to = node_of(r->machine, shape, other, runner->lane);
    double *arrival = arrival_at(r, c, micro, runner->lane);
    if (from == to) {
        *arrival = runner->now + (c.gradients ? cost->gradients : cost->activations).wire;
        return;
    }
    const Link *link = &r->machine->network;
    double wire_s = message_bytes(r, c) * link->s_per_byte;
    double begin = fmax(runner->now, fmax(r->out_free[from], r->in_free[to]));
    r->out_free[from] = r->in_free[to] = begin + wire_s;
    *arrival = begin + wire_s + link->latency_s;
}

static void play(Replay *r, Runner *runner, double ready)
{
    const Task *task = next_task(r, runner);
    ScheduleSpan *span = &r->report->span[runner->stage][runner->next++];
    if (task->kind < TASK_WORK_KINDS) {
        runner->now = ready + work_s(&r->cost[task->chunk], task->kind);
    } else {
        Crossing c = crossing_of(task);
        const TaskCost *cost = &r->cost[c.chunk];
        runner->now = ready + (c.gradients ? cost->gradients : cost->activations).copy;
        if (c.sends) send(r, runner, c, task->micro);
    }
    if (runner->now < span->end) return;
    *span = (ScheduleSpan){ready, runner->now};
}

/* Plays all tasks in the order in which they begin. */
static void play_all(Replay *r)
{
    int runners = r->of->schedule->shape.stages * r->lanes;
    for (;;) {
        Runner *first = NULL;
        double least = INFINITY;
        for (int i = 0; i < runners; ++i) {
            double ready = ready_at(r, &r->runner[i]);
            if (ready >= least) continue;
            least = ready;
            first = &r->runner[i];
        }
        if (!first) return;
        play(r, first, least);
    }
}

static void begin(Replay *r)
{
    const Schedule *s = r->of->schedule;
    const GridShape shape = r->of->plan[0]->shape;
    size_t messages = 2 * (size_t)schedule_chunks(s) * (size_t)s->shape.micros * (size_t)r->lanes;
    size_t nodes =
        (size_t)shape.dp * (size_t)shape.pp * (size_t)shape.tp / (size_t)r->machine->ranks + 1;
    r->runner = mem_new((size_t)s->shape.stages * (size_t)r->lanes * sizeof *r->runner);
    r->arrival = mem_new(messages * sizeof *r->arrival);
    r->out_free = mem_new(nodes * sizeof *r->out_free);
    r->in_free = mem_new(nodes * sizeof *r->in_free);
    for (size_t i = 0; i < messages; ++i) r->arrival[i] = NAN;
    for (int stage = 0; stage < s->shape.stages; ++stage) {
        for (int lane = 0; lane < r->lanes; ++lane)
            r->runner[stage * r->lanes + lane] = (Runner){.stage = stage, .lane = lane};
        for (int i = 0; i < s->count[stage]; ++i) r->report->span[stage][i] = (ScheduleSpan){0, 0};
    }
}

static double steps_of(const Schedule *s, int lanes)
{
    double tasks = 0, runners = (double)s->shape.stages * lanes;
    for (int stage = 0; stage < s->shape.stages; ++stage) tasks += s->count[stage];
    return tasks * lanes * runners;
}

static bool crosses_nodes(const Machine *m, GridShape shape)
{
    return shape.pp > 1 && (int64_t)shape.dp * shape.pp * shape.tp > m->ranks;
}

void replay_shared(const Machine *m, const ForecastOf *of, const TaskCost *cost,
                   ScheduleReport *report)
{
    const Schedule *s = of->schedule;
    const GridShape shape = of->plan[0]->shape;
    Replay r = {.machine = m, .of = of, .cost = cost, .report = report};
    r.lanes = lanes_of(m, shape);
    if (r.lanes == 1 || !crosses_nodes(m, shape) || steps_of(s, r.lanes) > STEPS_MAX) return;
    begin(&r);
    play_all(&r);
    report->makespan = 0;
    for (int i = 0; i < s->shape.stages * r.lanes; ++i)
        report->makespan = fmax(report->makespan, r.runner[i].now);
    mem_free(&r.in_free);
    mem_free(&r.out_free);
    mem_free(&r.arrival);
    mem_free(&r.runner);
}
