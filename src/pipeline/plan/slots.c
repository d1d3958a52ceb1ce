/* Derives from a stage's list of tasks: the slot of each micro-batch in each chunk, the number of
 * slots, and the largest number of micro-batches of data that are in use at the same time. */
#include "plan.h"

static bool is_message(TaskKind kind)
{
    return kind >= TASK_SEND_FORWARD;
}

/* Returns true if `work` is the pass that produces the tensors of message m, or the pass that reads
 * them. */
static bool is_work_of(const Task *m, const Task *work)
{
    if (m->chunk != work->chunk || m->micro != work->micro) return false;
    if (m->kind == TASK_SEND_FORWARD || m->kind == TASK_RECEIVE_FORWARD)
        return work->kind == TASK_FORWARD;
    return work->kind == TASK_BACKWARD || work->kind == TASK_BACKWARD_DATA;
}

bool messages_may_wait(const Schedule *schedule, int stage)
{
    const Task *list = schedule->task[stage];
    int count = schedule->count[stage];
    for (int i = 0; i < count; ++i) {
        if (!is_message(list[i].kind)) continue;
        bool sends = list[i].kind == TASK_SEND_FORWARD || list[i].kind == TASK_SEND_BACKWARD;
        int step = sends ? -1 : 1, j = i + step;
        while (j >= 0 && j < count && is_message(list[j].kind)) j += step;
        if (j < 0 || j >= count || !is_work_of(&list[i], &list[j])) return true;
    }
    return false;
}

/* Finds the time for which each micro-batch needs a slot in each chunk: the indices of its first
 * and its last task in the stage's list, `first` and `last`, [chunk_count][micro-batches]. The last
 * one may be a task of the next chunk, which reads from this slot. */
static void find_lives(const Plan *plan, int *first, int *last)
{
    const Schedule *s = plan->schedule;
    int micro_batches = s->shape.micro_batches;
    for (int i = 0; i < plan->chunk_count * micro_batches; ++i) first[i] = last[i] = -1;
    for (int i = 0; i < s->count[plan->stage]; ++i) {
        const Task *t = &s->task[plan->stage][i];
        int at = schedule_index_on_stage(s, t->chunk) * micro_batches + t->micro;
        if (first[at] < 0) first[at] = i;
        last[at] = i;
    }
    for (int k = 1; k < plan->chunk_count; ++k)
        for (int m = 0; m < micro_batches && schedule_shares_stage(s, plan->chunk[k].chunk - 1);
             ++m)
            if (last[k * micro_batches + m] > last[(k - 1) * micro_batches + m])
                last[(k - 1) * micro_batches + m] = last[k * micro_batches + m];
}

/* Gives each micro-batch, in each chunk, the lowest slot that is free when the micro-batch's first
 * task in the chunk begins. The slot is free again after the micro-batch's last task
 * (find_lives). */
static void assign_slots(Plan *plan, const int *first, const int *last)
{
    const Schedule *s = plan->schedule;
    int micro_batches = s->shape.micro_batches;
    int *owner = mem_new((size_t)(plan->chunk_count * micro_batches + 1) * sizeof *owner);
    for (int i = 0; i < plan->chunk_count * micro_batches; ++i) owner[i] = -1;
    for (int i = 0; i < s->count[plan->stage]; ++i) {
        const Task *t = &s->task[plan->stage][i];
        int local = schedule_index_on_stage(s, t->chunk), at = local * micro_batches + t->micro,
            slot = 0;
        if (first[at] != i) continue;
        int *taken = owner + local * micro_batches;
        while (taken[slot] >= 0 && last[taken[slot]] > i) ++slot;
        taken[slot] = at;
        plan->slot[at] = slot;
        if (slot >= plan->chunk[local].slots) plan->chunk[local].slots = slot + 1;
    }
    mem_free(&owner);
}

int tasks_batches_out(const Schedule *s, int stage, int *last_task)
{
    int most = 0, taken = 0, given = 0;
    for (int i = 0; i < s->count[stage]; ++i) last_task[s->task[stage][i].micro] = i;
    for (int i = 0; i < s->count[stage]; ++i) {
        while (taken <= s->task[stage][i].micro) ++taken;
        most = taken - given > most ? taken - given : most;
        while (given < taken && last_task[given] <= i) ++given;
    }
    return most;
}

void plan_slots(Plan *plan)
{
    const Schedule *s = plan->schedule;
    size_t pairs = (size_t)plan->chunk_count * (size_t)s->shape.micro_batches;
    int *first = mem_new((pairs + 1) * sizeof *first), *last = mem_new((pairs + 1) * sizeof *last);
    plan->slot = mem_new((pairs + 1) * sizeof *plan->slot);
    plan->last_task = mem_new((size_t)(s->shape.micro_batches + 1) * sizeof *plan->last_task);
    find_lives(plan, first, last);
    assign_slots(plan, first, last);
    plan->batches_in_use = tasks_batches_out(s, plan->stage, plan->last_task);
    mem_free(&first);
    mem_free(&last);
}
