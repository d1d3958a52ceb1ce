/* A schedule's tasks, one behind the other. What of them queues the same work at every step and deals with no other rank is done
 * in captures (tensor.h), as long as may be. */
#include "executor.h"

typedef struct Playing { /* a schedule being played on this stage */
    const Schedule *schedule;
    const Moves *moves;
    const int *last_task;
    const BatchSource *source;
    double *wait_s;
    RunOf of;
    void (*take)(void *user, const Batch *batch, const float *columns);
    void *user;
} Playing;

/* A task where it is done. */
typedef struct At {
    const Task *task;
    ChunkRun *chunk;
    Slot *slot;
    Pass pass;   /* of whose actions it is; */
    int actions; /* so many. A message is one action */
} At;

static bool is_message(const Task *t)
{
    return t->kind >= TASK_SEND_FORWARD;
}

static Slot *slot_of(const Executor *e, const Playing *p, int chunk, int micro)
{
    int local = schedule_local(p->schedule, chunk);
    int at = local * p->schedule->shape.micros + micro;
    return &e->chunk[local].slot[p->of.training ? e->plan->slot[at] : 0];
}

static At task_at(const Executor *e, const Playing *p, int number)
{
    const Plan *plan = e->plan;
    const Task *t = &p->schedule->task[plan->stage][number];
    ChunkRun *chunk = &e->chunk[schedule_local(p->schedule, t->chunk)];
    Pass pass = t->kind == TASK_FORWARD           ? PASS_FORWARD
                : t->kind == TASK_BACKWARD_WEIGHT ? PASS_WEIGHT
                                                  : PASS_BACKWARD;
    return (At){.task = t,
                .chunk = chunk,
                .slot = slot_of(e, p, t->chunk, t->micro),
                .pass = pass,
                .actions = is_message(t) ? 1 : chunk->plan->pass[pass].count};
}

/* Points to what belongs to the micro-batch. */
static void task_bind(Executor *e, const Playing *p, int number)
{
    At at = task_at(e, p, number);
    Pass filling = e->plan->schedule->split ? PASS_WEIGHT : PASS_BACKWARD;
    if (is_message(at.task)) return;
    if (at.pass == PASS_FORWARD && schedule_meets(p->schedule, at.task->chunk - 1))
        at.slot->before = slot_of(e, p, at.task->chunk - 1, at.task->micro)->memory;
    if (at.pass == PASS_FORWARD) held_bind(e, at.chunk, at.slot, at.task->micro, &p->of);
    if (at.pass == filling) actions_bind(e, at.chunk, at.slot, at.task->micro);
}

static void pass_message(Executor *e, const At *at)
{
    const ChunkPlan *plan = at->chunk->plan;
    switch (at->task->kind) {
    case TASK_RECEIVE_FORWARD:
        message_receive(e, at->chunk, at->slot, &plan->values_in, at->chunk->values_in);
        break;
    case TASK_SEND_FORWARD:
        message_send(e, at->chunk, at->slot, &plan->values_out, at->chunk->values_out);
        break;
    case TASK_RECEIVE_BACKWARD:
        message_receive(e, at->chunk, at->slot, &plan->gradients_in, at->chunk->gradients_in);
        break;
    case TASK_SEND_BACKWARD:
        message_send(e, at->chunk, at->slot, &plan->gradients_out, at->chunk->gradients_out);
        break;
    default:
        break;
    }
}

static bool has_loss(const Executor *e, const ChunkRun *chunk)
{
    return e->plan->graph->loss >= chunk->plan->first && e->plan->graph->loss < chunk->plan->last;
}

static void finish_forward(Executor *e, const Playing *p, const At *at)
{
    const Batch *batch = held_of(e, at->task->micro)->batch;
    if (p->of.training)
        metrics_take(e, at->chunk, at->slot, batch->rows);
    else if (has_loss(e, at->chunk) && p->take)
        p->take(p->user, batch, columns_read(e, at->chunk, at->slot, batch->rows));
}

/* Where this stage has the chunk before, too: the forward pass takes what of its outputs is not read there, and after the
 * backward pass their gradients are brought there. */
static void meet_chunk_before(Executor *e, const Playing *p, const At *at)
{
    int before = at->task->chunk - 1;
    if (!schedule_meets(p->schedule, before)) return;
    const ChunkRun *other = &e->chunk[schedule_local(p->schedule, before)];
    const Slot *slot = slot_of(e, p, before, at->task->micro);
    const ChunkPlan *mine = at->chunk->plan;
    if (at->pass == PASS_FORWARD)
        message_copy(e, (MessageEnd){other, slot, &other->plan->values_out},
                     (MessageEnd){at->chunk, at->slot, &mine->values_in});
    else
        message_copy(e, (MessageEnd){at->chunk, at->slot, &mine->gradients_out},
                     (MessageEnd){other, slot, &other->plan->gradients_in});
}

/* Actions from .. to-1 of a task, which is over with its last one. */
static void play_task(Executor *e, const Playing *p, int number, int from, int to)
{
    At at = task_at(e, p, number);
    if (is_message(at.task)) {
        pass_message(e, &at);
        return;
    }
    bool begins = from == 0, ends = to == at.actions;
    Phase outer = phase_enter(at.pass == PASS_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD);
    if (at.pass == PASS_FORWARD && begins) meet_chunk_before(e, p, &at);
    actions_run(e, at.chunk, at.slot, at.pass, at.task->micro, from, to);
    if (at.pass == PASS_BACKWARD && ends) meet_chunk_before(e, p, &at);
    phase_enter(outer);
    if (at.pass == PASS_FORWARD && ends) finish_forward(e, p, &at);
}

/* ---- captures ---- */

typedef struct Place { /* in the list: before this action of this task */
    int task, action;
} Place;

typedef struct Section {
    Executor *e;
    const Playing *p;
    Place from, to;
} Section;

static bool asks_others(const Executor *e, const At *at, int action)
{
    return is_message(at->task) ||
           action_asks_others(e, at->chunk, at->pass, at->task->micro, action);
}

/* The first place from this one on, and before task `end`, where something deals with other ranks; else that task. */
static Place next_boundary(const Executor *e, const Playing *p, Place place, int end)
{
    for (; place.task < end; place = (Place){place.task + 1, 0}) {
        At at = task_at(e, p, place.task);
        for (; place.action < at.actions; ++place.action)
            if (asks_others(e, &at, place.action)) return place;
    }
    return place;
}

static Place behind(const Executor *e, const Playing *p, Place place)
{
    At at = task_at(e, p, place.task);
    return place.action + 1 < at.actions ? (Place){place.task, place.action + 1}
                                         : (Place){place.task + 1, 0};
}

static void play_section(void *user)
{
    const Section *s = user;
    for (Place at = s->from; at.task < s->to.task; at = (Place){at.task + 1, 0})
        play_task(s->e, s->p, at.task, at.action, task_at(s->e, s->p, at.task).actions);
    int begin = s->from.task == s->to.task ? s->from.action : 0;
    if (begin < s->to.action) play_task(s->e, s->p, s->to.task, begin, s->to.action);
}

/* The one that begins the micro-batch's work in this place of the ring with task `task`, or follows `number` others there. NULL:
 * there are enough, each with memory of the device's. */
static Capture *capture_at(Executor *e, int task, int micro, int number)
{
    enum { MOST = 1024 };
    Captures *s = &e->captures[task * e->held_room + held_place(e, micro)];
    if (number == s->count) {
        if (e->capture_count == MOST) return NULL;
        ++e->capture_count;
        s->capture = mem_resize(s->capture, (size_t)(s->count + 1) * sizeof *s->capture);
        s->capture[s->count++] = (Capture){0};
    }
    return &s->capture[number];
}

/* A micro-batch that is full has the same work at every step. */
static void play_captures(Executor *e, const Playing *p, int from, int end)
{
    int micro = p->schedule->task[e->plan->stage][from].micro, number = 0;
    Section section = {e, p, .from = {from, 0}};
    while (section.from.task < end) {
        section.to = next_boundary(e, p, section.from, end);
        bool any = section.from.task < section.to.task || section.from.action < section.to.action;
        Capture *capture = any ? capture_at(e, from, micro, number) : NULL;
        if (capture) {
            capture_run(capture, e->backend, play_section, &section);
            ++number;
        } else {
            play_section(&section);
        }
        if (section.to.task == end) return;
        section.from = section.to;
        section.to = behind(e, p, section.from);
        play_section(&section);
        section.from = section.to;
    }
}

/* Tasks from .. end-1 are of one micro-batch. */
static void play_tasks(Executor *e, const Playing *p, int from, int end)
{
    const Batch *batch = held_of(e, p->schedule->task[e->plan->stage][from].micro)->batch;
    bool full = batch->rows == e->plan->graph->input.shape.dim[0];
    Section all = {e, p, {from, 0}, {end, 0}};
    for (int i = from; i < end; ++i) task_bind(e, p, i);
    if (e->captures && p->of.training && full)
        play_captures(e, p, from, end);
    else
        play_section(&all);
}

/* Messages move between tasks; without, all that is done with a micro-batch at once is one piece. */
static Status play(Executor *e, const Playing *p)
{
    const Schedule *s = p->schedule;
    const Task *list = s->task[e->plan->stage];
    int count = s->count[e->plan->stage], moved = 0;
    bool alone = e->plan->shape.pp == 1;
    held_restart(e);
    values_start(e, s);
    for (int i = 0, end; i < count; i = end) {
        TRY(held_take(e, p->source, list[i].micro, p->wait_s));
        messages_move(e, p->moves, &moved, i);
        for (end = i + 1; alone && end < count && list[end].micro == list[i].micro;) ++end;
        play_tasks(e, p, i, end);
        while (e->held_first < e->held_next && p->last_task[e->held_first] < end)
            held_return(e, p->source);
    }
    messages_move(e, p->moves, &moved, count);
    return OK;
}

Status executor_step(Executor *e, const BatchSource *source, const StepOf *of, double *wait_s)
{
    Playing p = {
        .schedule = e->plan->schedule,
        .moves = &e->moves,
        .last_task = e->plan->last_task,
        .source = source,
        .wait_s = wait_s,
        .of = {.training = true, .step = of->step, .scale = of->scale, .micros = of->micros}};
    step_begin(e, &p.of);
    TRY(play(e, &p));
    step_finish(e, &p.of);
    return OK;
}

Status executor_evaluate(Executor *e, const BatchSource *source,
                         void (*take)(void *user, const Batch *batch, const float *columns),
                         void *user)
{
    Playing p = {.schedule = e->evaluation,
                 .moves = &e->evaluation_moves,
                 .last_task = e->evaluation_last,
                 .source = source,
                 .take = take,
                 .user = user};
    executor_settle(e);
    Status st = play(e, &p);
    executor_settle(e);
    return st;
}
