/* Finds the longest chain of tasks in a simulated schedule, backwards from the task that ends last.
 * In the chain, a receive that had to wait follows the send of its message; a send that had to wait
 * for a free slot follows the receive that freed the slot; every other task follows the previous
 * task of its stage. In this example the chain is F0 F0' F1' B0' B1' B1; its stages do not wait:
 *
 *     stage 0   F0 F1            B0 B1
 *     stage 1      F0' F1' B0' B1' */
#include "private.h"

/* The place of a task in a schedule. */
typedef struct Place {
    int stage;
    /* index in the stage's list; -1: before the first task */
    int task;
} Place;

static Task task_at(const Schedule *s, Place at)
{
    return s->task[at.stage][at.task];
}

/* Returns the number of earlier tasks of the stage with the kind and the channel of this task. at:
 * place of a send or a receive. */
static int messages_before(const Schedule *s, Place at)
{
    const Task mine = task_at(s, at);
    int count = 0;
    for (int k = 0; k < at.task; ++k) {
        Task t = s->task[at.stage][k];
        count += t.kind == mine.kind && message_channel(t) == message_channel(mine);
    }
    return count;
}

/* Takes the message with index `number`, from 0, of the channel that the task at `at` uses. Returns
 * the place of the task at the other end of the channel that receives this message, if the task at
 * `at` is a send, or that sends it, if the task at `at` is a receive. */
static Place peer_message(const Schedule *s, Place at, int number)
{
    const Task mine = task_at(s, at);
    Place peer = {message_peer(s, mine), 0};
    for (; peer.task < s->count[peer.stage]; ++peer.task) {
        Task t = task_at(s, peer);
        if (!task_is_message(t.kind) || message_channel(t) != message_channel(mine) ||
            task_is_send(t.kind) == task_is_send(mine.kind))
            continue;
        if (number-- == 0) break;
    }
    return peer;
}

/* Returns the place of the task that comes before the send or receive at `at` in the chain. Adds
 * the time between the ends of the two tasks to *messages. */
static Place before_message(const Schedule *s, const ScheduleReport *report, const TaskCost *cost,
                            Place at, double *messages)
{
    const Task t = task_at(s, at);
    const ScheduleSpan span = report->span[at.stage][at.task];
    int channel = message_channel(t), before = messages_before(s, at);
    const MessageCost *message =
        channel % 2 ? &cost[channel / 2].gradients : &cost[channel / 2].activations;
    bool sends = task_is_send(t.kind);
    Place next = {at.stage, at.task - 1};
    double from = span.start;
    if (!sends || before >= report->channel_depth) {
        Place peer = peer_message(s, at, sends ? before - report->channel_depth : before);
        double peer_end = report->span[peer.stage][peer.task].end;
        if (peer_end + (sends ? 0 : message->wire) > span.start) {
            next = peer;
            from = peer_end;
        }
    }
    *messages += span.end - from;
    return next;
}

Status schedule_critical_path(const Schedule *schedule, const TaskCost *cost, CriticalPath *path)
{
    ScheduleReport report;
    *path = (CriticalPath){0};
    TRY(schedule_simulate(schedule, cost, &report));
    int stages = schedule->shape.stages;
    Place at = {0, schedule->count[0] - 1};
    path->makespan = report.makespan;
    path->work = mem_new((size_t)stages * sizeof *path->work);
    for (int i = 0; i < stages; ++i) {
        int last = schedule->count[i] - 1;
        if (report.span[i][last].end >= report.makespan) at = (Place){i, last};
    }
    while (at.task >= 0) {
        const ScheduleSpan span = report.span[at.stage][at.task];
        if (task_is_message(task_at(schedule, at).kind)) {
            at = before_message(schedule, &report, cost, at, &path->messages);
            continue;
        }
        path->work[at.stage] += span.end - span.start;
        --at.task;
    }
    schedule_report_fini(&report);
    return OK;
}

void schedule_path_fini(CriticalPath *path)
{
    mem_free(&path->work);
    *path = (CriticalPath){0};
}
