/* Runs a schedule's tasks in order. On a GPU, work that is the same at every step and does not
 * communicate with other ranks is captured and replayed (tensor.h), in sections that are as long as
 * possible. */
#include "tasks.h"

/* A task with its chunk, its slot and its actions. */
typedef struct BoundTask {
    const Task *task;
    ChunkRun *chunk;
    Slot *slot;
    /* pass whose actions the task runs */
    Pass pass;
    /* number of actions; a message counts as one */
    int actions;
} BoundTask;

static bool is_message(const Task *t)
{
    return t->kind >= TASK_SEND_FORWARD;
}

static Slot *slot_of(const Executor *e, const TaskRun *p, int chunk, int micro)
{
    int local = schedule_index_on_stage(p->schedule, chunk);
    int at = local * p->schedule->shape.micro_batches + micro;
    return &e->memory.chunk[local].slot[p->values.training ? e->context.plan->slot[at] : 0];
}

static BoundTask task_at(const Executor *e, const TaskRun *p, int number)
{
    const Plan *plan = e->context.plan;
    const Task *t = &p->schedule->task[plan->stage][number];
    ChunkRun *chunk = &e->memory.chunk[schedule_index_on_stage(p->schedule, t->chunk)];
    Pass pass = t->kind == TASK_FORWARD           ? PASS_FORWARD
                : t->kind == TASK_BACKWARD_WEIGHT ? PASS_WEIGHT
                                                  : PASS_BACKWARD;
    return (BoundTask){.task = t,
                       .chunk = chunk,
                       .slot = slot_of(e, p, t->chunk, t->micro),
                       .pass = pass,
                       .actions = is_message(t) ? 1 : chunk->plan->pass[pass].count};
}

/* Sets the addresses that the task's runs use: the data of its micro-batch, its slot in the
 * previous chunk, and the arena for its gradients. */
static void task_bind(Executor *e, const TaskRun *p, int number)
{
    BoundTask at = task_at(e, p, number);
    /* the pass that writes gradients of parameters */
    Pass filling = e->context.plan->schedule->split ? PASS_WEIGHT : PASS_BACKWARD;
    if (is_message(at.task)) return;
    if (at.pass == PASS_FORWARD && schedule_shares_stage(p->schedule, at.task->chunk - 1))
        slot_bind_before(&e->memory, at.chunk, at.slot,
                         slot_of(e, p, at.task->chunk - 1, at.task->micro));
    if (at.pass == PASS_FORWARD)
        input_bind(&e->input, at.chunk, at.slot, at.task->micro, &p->values,
                   &e->report.block->numbers);
    if (at.pass == filling) actions_bind(e, at.chunk, at.slot, at.task->micro);
}

static void finish_forward(Executor *e, const TaskRun *p, const BoundTask *at)
{
    const MicroBatch *batch = input_of(&e->input, at->task->micro)->batch;
    if (p->values.training)
        step_report_loss(&e->report, &e->memory, at->chunk, at->slot, batch->rows);
    if (p->values.training || !context_has_loss(&e->context, at->chunk->plan)) return;
    outputs_evaluated(&e->outputs, at->slot);
    if (p->visit)
        p->visit(p->user, batch,
                 outputs_columns(&e->outputs, &e->memory, at->chunk, at->slot, batch->rows));
}

/* Copies between this chunk and the previous one if this stage has both: before the forward pass,
 * the activations that are not read in the previous chunk's slot; after the backward pass, the
 * gradients. */
static void copy_previous_chunk(Executor *e, const TaskRun *p, const BoundTask *at)
{
    int before = at->task->chunk - 1;
    if (!schedule_shares_stage(p->schedule, before)) return;
    MessageEnd here = {at->chunk, at->slot};
    MessageEnd other = {&e->memory.chunk[schedule_index_on_stage(p->schedule, before)],
                        slot_of(e, p, before, at->task->micro)};
    if (at->pass == PASS_FORWARD)
        links_copy_activations(&e->memory, other, here);
    else
        links_copy_gradients(&e->memory, here, other);
}

/* Runs actions `from` to `to` - 1 of a task, or its message. If `from` is 0, the task begins here;
 * if `to` is the number of its actions, it ends here. */
static void run_task(Executor *e, const TaskRun *p, int number, int from, int to)
{
    BoundTask at = task_at(e, p, number);
    if (is_message(at.task)) {
        links_message(&e->links, &e->memory, at.chunk, at.slot, at.task->kind);
        return;
    }
    bool begins = from == 0, ends = to == at.actions;
    Phase phase = at.pass == PASS_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD,
          outer = phase_enter(phase);
    double before_s = phase_ended_s(phase);
    beat_mark(task_names[at.task->kind],
              (BeatMark){.peer = BEAT_NONE, .chunk = at.task->chunk, .micro = at.task->micro});
    if (at.pass == PASS_FORWARD && begins) copy_previous_chunk(e, p, &at);
    actions_run(e, at.chunk, at.slot, at.pass, at.task->micro, from, to);
    if (at.pass == PASS_BACKWARD && ends) copy_previous_chunk(e, p, &at);
    phase_enter(outer);
    if (p->values.training) {
        ChunkTime *time = &e->chunk_time[schedule_index_on_stage(p->schedule, at.task->chunk)];
        time->seconds[at.task->kind] += phase_ended_s(phase) - before_s;
        time->count[at.task->kind] += ends;
    }
    if (at.pass == PASS_FORWARD && ends) finish_forward(e, p, &at);
}

/* ---- captures ---- */

/* A position in the list: before action number `action` of task number `task`. */
typedef struct Position {
    int task, action;
} Position;

/* The part of a list between two positions, which is run or captured as a unit. */
typedef struct Section {
    Executor *e;
    const TaskRun *p;
    Position from, to;
} Section;

/* Returns the first position at or after `place`, and before task `end`, whose action communicates
 * with other ranks. If there is none, returns the position of task `end`. */
static Position next_boundary(const Executor *e, const TaskRun *p, Position place, int end)
{
    for (; place.task < end; place = (Position){place.task + 1, 0}) {
        BoundTask at = task_at(e, p, place.task);
        for (; place.action < at.actions; ++place.action)
            if (is_message(at.task) ||
                action_communicates(&e->context, at.chunk, at.pass, at.task->micro, place.action))
                return place;
    }
    return place;
}

static void run_section(void *user)
{
    const Section *s = user;
    for (Position at = s->from; at.task < s->to.task; at = (Position){at.task + 1, 0})
        run_task(s->e, s->p, at.task, at.action, task_at(s->e, s->p, at.task).actions);
    int begin = s->from.task == s->to.task ? s->from.action : 0;
    if (begin < s->to.action) run_task(s->e, s->p, s->to.task, begin, s->to.action);
}

/* Runs tasks `from` to `end` - 1 of one full micro-batch, whose work is the same at every step.
 * Sections that do not communicate are captured or replayed. */
static void run_sections(Executor *e, const TaskRun *p, int from, int end)
{
    const Task *first = &p->schedule->task[e->context.plan->stage][from];
    int place = input_place(&e->input, first->micro), number = 0;
    Section section = {e, p, .from = {from, 0}};
    while (section.from.task < end) {
        section.to = next_boundary(e, p, section.from, end);
        bool any = section.from.task < section.to.task || section.from.action < section.to.action;
        Capture *capture = any ? capture_at(&e->captures, from, place, number) : NULL;
        if (capture) {
            capture_run(capture, e->context.backend, run_section, &section);
            ++number;
        } else {
            run_section(&section);
        }
        if (section.to.task == end) return;
        /* the action that communicates runs outside of captures */
        section.from = section.to;
        bool more = section.from.action + 1 < task_at(e, p, section.from.task).actions;
        section.to = more ? (Position){section.from.task, section.from.action + 1}
                          : (Position){section.from.task + 1, 0};
        run_section(&section);
        section.from = section.to;
    }
}

/* With several stages each task runs separately, because messages move between tasks. With one
 * stage, consecutive tasks of a micro-batch run together. */
Status tasks_run(Executor *e, const TaskRun *p)
{
    const Plan *plan = e->context.plan;
    const Schedule *s = p->schedule;
    const Task *list = s->task[plan->stage];
    int count = s->count[plan->stage], moved = 0;
    bool alone = plan->shape.pp == 1;
    input_restart(&e->input);
    if (plan->gathers) gather_rewind(&e->params, s);
    for (int i = 0, end; i < count; i = end) {
        TRY(input_take(&e->input, p->source, list[i].micro, p->wait_s));
        links_move(&e->links, p->moves, &moved, i);
        for (end = i + 1; alone && end < count && list[end].micro == list[i].micro;) ++end;
        for (int k = i; k < end; ++k) task_bind(e, p, k);
        bool full =
            input_of(&e->input, list[i].micro)->batch->rows == plan->graph->input.shape.dim[0];
        if (e->captures.list && p->values.training && !e->fault && full)
            run_sections(e, p, i, end);
        else
            run_section(&(Section){e, p, {i, 0}, {end, 0}});
        input_return(&e->input, p->source, p->last_task, end);
    }
    links_move(&e->links, p->moves, &moved, count);
    return OK;
}
