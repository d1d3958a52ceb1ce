/* Simulates all lists together. A stage runs until it waits for a message or for a free slot of a
 * channel. Every channel has one sender and one receiver, and these two execute their lists in
 * order. Therefore the order in which stages are simulated changes neither times nor deadlocks, and
 * more slots never cause a deadlock. */
#include "private.h"

#include <string.h>

typedef struct Channel {
    /* numbers of messages so far that have been sent, and received */
    int sent, received;
} Channel;
/* One of a channel's `depth` slots, which are used in turn. */
typedef struct Slot {
    /* micro-batch of the slot's newest message */
    int micro;
    /* time at which that message has arrived and the receiver can begin to copy it */
    double arrival;
    /* time at which the receiver has copied it, so that the slot is free again */
    double free;
} Slot;

typedef struct Player {
    const Schedule *schedule;
    /* costs of each chunk of the model; borrowed */
    const TaskCost *cost;
    /* slots of each channel */
    int depth;
    /* the channels, two for each boundary between chunks, as message_channel numbers them; owned */
    Channel *channel;
    /* the channels' slots, [channels][depth]; owned */
    Slot *slot;
    /* index of each stage's next task, [stages]; owned */
    int *next;
    /* time that each stage has reached, [stages]; owned */
    double *clock;
    /* true for each stage that is in the queue, [stages]; owned */
    bool *ready;
    /* stages that may be able to continue, [stages]; owned */
    int *queue;
    /* number of stages in the queue */
    int queued;
    /* receives the times of each task (ScheduleReport.span); borrowed; NULL: times are not kept */
    ScheduleSpan **span;
} Player;

/* Puts the stage into the queue, unless it is there. */
static void player_wake(Player *p, int stage)
{
    if (p->ready[stage]) return;
    p->ready[stage] = true;
    p->queue[p->queued++] = stage;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static Status fail_mixed(const Player *p, int stage, Task want, int got)
{
    char *what = mem_format("receives the oldest message of its channel, which is of micro %d; "
                            "stage %d must send in the order in which this stage receives",
                            got, message_peer(p->schedule, want));
    Status st = task_fail(p->schedule, stage, p->next[stage], what);
    mem_free(&what);
    return st;
}

/* Plays a send or a receive. *played: false if the stage must wait. */
static Status play_message(Player *p, int stage, Task t, bool *played)
{
    int number = message_channel(t);
    Channel *c = &p->channel[number];
    Slot *slots = p->slot + (size_t)number * (size_t)p->depth;
    const TaskCost *chunk = &p->cost[number / 2];
    const MessageCost cost = number % 2 ? chunk->gradients : chunk->activations;
    double *clock = &p->clock[stage];
    if (task_is_send(t.kind)) {
        *played = c->sent - c->received < p->depth;
        if (!*played) return OK;
        Slot *to = &slots[c->sent++ % p->depth];
        *clock = later(*clock, to->free) + cost.copy;
        to->micro = t.micro;
        to->arrival = *clock + cost.wire;
    } else {
        *played = c->received < c->sent;
        if (!*played) return OK;
        Slot *from = &slots[c->received % p->depth];
        if (from->micro != t.micro) return fail_mixed(p, stage, t, from->micro);
        ++c->received;
        from->free = *clock = later(*clock, from->arrival) + cost.copy;
    }
    player_wake(p, message_peer(p->schedule, t));
    return OK;
}

static double work_cost(const TaskCost *cost, TaskKind kind)
{
    if (kind == TASK_FORWARD) return cost->forward;
    return (kind != TASK_BACKWARD_WEIGHT ? cost->backward_data : 0) +
           (kind != TASK_BACKWARD_DATA ? cost->backward_weight : 0);
}

/* Plays the stage's tasks until the stage must wait or its list ends. */
static Status play_stage(Player *p, int stage)
{
    const Task *task = p->schedule->task[stage];
    for (int *next = &p->next[stage]; *next < p->schedule->count[stage]; ++*next) {
        Task t = task[*next];
        double start = p->clock[stage];
        bool played = true;
        if (task_is_message(t.kind))
            TRY(play_message(p, stage, t, &played));
        else
            p->clock[stage] += work_cost(&p->cost[t.chunk], t.kind);
        if (!played) return OK;
        if (p->span) p->span[stage][*next] = (ScheduleSpan){start, p->clock[stage]};
    }
    return OK;
}

/* Plays all stages from the beginning, with `depth` slots per channel. *done: false if they
 * deadlock. */
static Status play(Player *p, int depth, bool *done)
{
    const ScheduleShape shape = p->schedule->shape;
    size_t channels = 2 * (size_t)(schedule_chunks(p->schedule) - 1), stages = (size_t)shape.stages;
    p->depth = depth;
    p->slot = mem_resize(p->slot, (channels * (size_t)depth + 1) * sizeof *p->slot);
    memset(p->slot, 0, channels * (size_t)depth * sizeof *p->slot);
    memset(p->channel, 0, channels * sizeof *p->channel);
    memset(p->next, 0, stages * sizeof *p->next);
    for (size_t i = 0; i < stages; ++i) p->clock[i] = 0;
    for (int i = shape.stages - 1; i >= 0; --i) player_wake(p, i);
    while (p->queued) {
        int stage = p->queue[--p->queued];
        p->ready[stage] = false;
        TRY(play_stage(p, stage));
    }
    *done = true;
    for (int i = 0; i < shape.stages; ++i) *done = *done && p->next[i] == p->schedule->count[i];
    return OK;
}

/* Fails with a message about stages that wait for each other. The search begins at a stage that
 * waits, and goes from each stage to the stage for which it waits. The first stage that is reached
 * for the second time is in a cycle. */
static Status fail_deadlock(const Player *p)
{
    const Schedule *s = p->schedule;
    bool *seen = mem_new((size_t)s->shape.stages * sizeof *seen);
    int stage = 0;
    while (p->next[stage] == s->count[stage]) ++stage;
    while (!seen[stage]) {
        seen[stage] = true;
        stage = message_peer(s, s->task[stage][p->next[stage]]);
    }
    mem_free(&seen);
    int peer = message_peer(s, s->task[stage][p->next[stage]]);
    char a[TASK_TEXT], b[TASK_TEXT];
    return fail(
        ERR_CONFIG,
        "schedule %s: stage %d, %s waits for stage %d, which is at %s and waits, directly or "
        "through other stages, for stage %d: a deadlock",
        s->name, stage, task_text(s, stage, p->next[stage], a), peer,
        task_text(s, peer, p->next[peer], b), stage);
}

/* Sets *depth to the smallest depth, at least 2, without deadlock. Leaves the player in the state
 * after a simulation with this depth. */
static Status find_depth(Player *p, int *depth)
{
    int low = 2, high = p->schedule->shape.micro_batches > 2 ? p->schedule->shape.micro_batches : 2;
    bool done;
    TRY(play(p, low, &done));
    if (!done && high > low) TRY(play(p, high, &done));
    if (!done) return fail_deadlock(p);
    for (++low; p->depth > 2 && low < high;) {
        int middle = low + (high - low) / 2;
        TRY(play(p, middle, &done));
        if (done)
            high = middle;
        else
            low = middle + 1;
    }
    if (p->depth > 2 && p->depth != high) TRY(play(p, high, &done));
    *depth = p->depth;
    return OK;
}

static void report_fill(ScheduleReport *report, const Player *p)
{
    const ScheduleShape shape = p->schedule->shape;
    double work = 0;
    for (int i = 0; i < shape.stages; ++i) {
        report->makespan = later(report->makespan, p->clock[i]);
        for (int k = 0; k < p->schedule->count[i]; ++k) {
            Task t = p->schedule->task[i][k];
            if (!task_is_message(t.kind)) work += work_cost(&p->cost[t.chunk], t.kind);
        }
    }
    double all = report->makespan * shape.stages;
    report->bubble = all > 0 ? 1 - work / all : 0;
}

static void player_init(Player *p, const Schedule *s, const TaskCost *cost)
{
    size_t stages = (size_t)s->shape.stages, boundaries = (size_t)schedule_chunks(s) - 1;
    *p = (Player){.schedule = s,
                  .cost = cost,
                  .channel = mem_new((2 * boundaries + 1) * sizeof *p->channel),
                  .next = mem_new(stages * sizeof *p->next),
                  .clock = mem_new(stages * sizeof *p->clock),
                  .ready = mem_new(stages * sizeof *p->ready),
                  .queue = mem_new(stages * sizeof *p->queue)};
}

static void player_fini(Player *p)
{
    mem_free(&p->channel);
    mem_free(&p->slot);
    mem_free(&p->next);
    mem_free(&p->clock);
    mem_free(&p->ready);
    mem_free(&p->queue);
}

/* Allocates ScheduleReport.span. The array ends with NULL, so that it can be freed without the
 * schedule. */
static ScheduleSpan **spans_new(const Schedule *s)
{
    ScheduleSpan **span = mem_new(((size_t)s->shape.stages + 1) * sizeof *span);
    for (int i = 0; i < s->shape.stages; ++i)
        span[i] = mem_new((size_t)(s->count[i] + 1) * sizeof *span[i]);
    return span;
}

Status schedule_simulate(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report)
{
    int *live = mem_new((size_t)schedule_chunks(schedule) * sizeof *live);
    ScheduleReport r = {.live = live};
    if (report) *report = (ScheduleReport){0};
    Status st = schedule_check(schedule, live);
    if (st == OK) {
        TaskCost *unit = mem_new((size_t)schedule_chunks(schedule) * sizeof *unit);
        for (int i = 0; i < schedule_chunks(schedule); ++i)
            unit[i] = (TaskCost){.forward = 1, .backward_data = 1, .backward_weight = 1};
        Player p;
        player_init(&p, schedule, cost ? cost : unit);
        if (report) p.span = r.span = spans_new(schedule);
        st = find_depth(&p, &r.channel_depth);
        if (st == OK) report_fill(&r, &p);
        player_fini(&p);
        mem_free(&unit);
    }
    if (st == OK && report)
        *report = r;
    else
        schedule_report_fini(&r);
    return st;
}

void schedule_report_fini(ScheduleReport *report)
{
    for (ScheduleSpan **span = report->span; span && *span; ++span) mem_free(span);
    mem_free(&report->span);
    mem_free(&report->live);
    *report = (ScheduleReport){0};
}
