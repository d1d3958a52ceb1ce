/* Makes the lists of moves (Moves) for GPUs. All stages are simulated as one sequence of tasks and
 * moves. The next task of the sequence is the one that can begin first. Every forward, every
 * backward and every half of a backward takes one unit of time; messages take none. A message moves
 * as soon as it has been sent and the receiver has a free slot. */
#include "private.h"

typedef struct Channel {
    /* numbers of messages so far that have been sent, moved, and received */
    int sent, moved, received;
    /* for each slot, the time at which its newest message was received or, if it has not been
     * received yet, moved; [depth]; owned */
    double *arrival;
} Channel;

typedef struct Sequence {
    const Schedule *schedule;
    /* slots per channel */
    int depth;
    /* stage whose moves are recorded */
    int stage;
    /* the channels, two for each boundary between chunks, as message_channel numbers them; owned */
    Channel *channel;
    /* index of each stage's next task, [stages]; owned */
    int *next;
    /* time that each stage has reached, [stages]; owned */
    double *clock;
    /* for each boundary, the number of earlier boundaries that messages cross; owned */
    int *crossed_before;
    /* moves of `stage` so far; borrowed */
    Moves *moves;
    /* number of moves for which moves->move has memory */
    int capacity;
} Sequence;

/* Returns the earliest start of the stage's next task; -1: the task cannot begin yet, or the stage
 * has no task left. */
static double task_start(const Sequence *q, int stage)
{
    if (q->next[stage] == q->schedule->count[stage]) return -1;
    Task t = q->schedule->task[stage][q->next[stage]];
    double now = q->clock[stage];
    if (!task_is_message(t.kind)) return now;
    const Channel *c = &q->channel[message_channel(t)];
    bool sends = task_is_send(t.kind);
    bool can = sends ? c->sent - c->received < q->depth : c->received < c->moved;
    double arrival = c->arrival[(sends ? c->sent : c->received) % q->depth];
    return !can ? -1 : arrival > now ? arrival : now;
}

/* Returns the stage whose next task can begin first, and sets *start to the task's start; -1: no
 * task can begin. */
static int first_stage(const Sequence *q, double *start)
{
    int best = -1;
    for (int i = 0; i < q->schedule->shape.stages; ++i) {
        double s = task_start(q, i);
        if (s < 0 || (best >= 0 && s >= *start)) continue;
        best = i;
        *start = s;
    }
    return best;
}

/* Appends a move on this channel, before the next task of q->stage. */
static void record_move(Sequence *q, int channel)
{
    Moves *m = q->moves;
    if (m->count == q->capacity) {
        q->capacity = 2 * q->capacity + 64;
        m->move = mem_resize(m->move, (size_t)q->capacity * sizeof *m->move);
    }
    m->move[m->count++] = (Move){.task = q->next[q->stage],
                                 .channel = 2 * q->crossed_before[channel / 2] + channel % 2};
}

/* Moves messages that have been sent on the channel, until none is left or the receiver has no free
 * slot. Records the moves if the channel begins or ends at q->stage. now: time of the moves. */
static void move_all(Sequence *q, int channel, double now)
{
    Channel *c = &q->channel[channel];
    int boundary = channel / 2;
    bool mine = q->stage == schedule_stage(q->schedule, boundary) ||
                q->stage == schedule_stage(q->schedule, boundary + 1);
    for (; c->moved < c->sent && c->moved - c->received < q->depth; ++c->moved) {
        c->arrival[c->moved % q->depth] = now;
        if (mine) record_move(q, channel);
    }
}

static void play_next(Sequence *q, int stage, double start)
{
    Task t = q->schedule->task[stage][q->next[stage]++];
    q->clock[stage] = start + !task_is_message(t.kind);
    if (!task_is_message(t.kind)) return;
    int channel = message_channel(t);
    Channel *c = &q->channel[channel];
    if (task_is_send(t.kind))
        ++c->sent;
    else
        c->arrival[c->received++ % q->depth] = start;
    move_all(q, channel, start);
}

Status schedule_moves(Moves *moves, const Schedule *schedule, int depth, int stage)
{
    size_t stages = (size_t)schedule->shape.stages;
    size_t channels = 2 * (size_t)(schedule_chunks(schedule) - 1);
    *moves = (Moves){0};
    Sequence q = {.schedule = schedule, .depth = depth, .stage = stage, .moves = moves};
    q.channel = mem_new((channels + 1) * sizeof *q.channel);
    q.next = mem_new(stages * sizeof *q.next);
    q.clock = mem_new(stages * sizeof *q.clock);
    q.crossed_before = mem_new((channels + 1) * sizeof *q.crossed_before);
    for (int b = 0; b < (int)channels / 2; ++b)
        q.crossed_before[b + 1] = q.crossed_before[b] + schedule_crosses(schedule, b);
    for (size_t c = 0; c < channels; ++c)
        q.channel[c].arrival = mem_new((size_t)depth * sizeof(double));
    double start = 0;
    for (int i = first_stage(&q, &start); i >= 0; i = first_stage(&q, &start))
        play_next(&q, i, start);
    bool done = true;
    for (size_t i = 0; i < stages; ++i) done = done && q.next[i] == schedule->count[i];
    for (size_t c = 0; c < channels; ++c) mem_free(&q.channel[c].arrival);
    mem_free(&q.channel);
    mem_free(&q.next);
    mem_free(&q.clock);
    mem_free(&q.crossed_before);
    if (done) return OK;
    mem_free(&moves->move);
    return fail(ERR_BUG, "schedule %s does not run with %d slots per channel", schedule->name,
                depth);
}
