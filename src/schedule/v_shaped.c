/* V-shaped schedules: a micro-batch goes down the stages through their first chunks, passes from
 * the first to the second chunk of the last stage without a message, and comes back up through the
 * stages' second chunks. The first stage therefore has the beginning and the end of the model:
 *
 *     stage 0   chunk 0             chunk 2p-1   loss
 *     stage 1      chunk 1       chunk 2p-2
 *     ...             ...      ...
 *     stage p-1       chunk p-1, chunk p
 *
 * Each V-shaped kind of schedule is a table of phases. A phase repeats a pattern of steps
 * (SchedulePhase). */
#include "private.h"

#include <ctype.h>

int stage_v(ScheduleShape shape, int chunk)
{
    int turn = chunk / shape.stages, at = chunk % shape.stages;
    return turn % 2 ? shape.stages - 1 - at : at;
}

typedef struct Walk {
    const Schedule *schedule;
    TaskList *list;
    int stage;
    /* number of forwards added so far for each chunk of the stage */
    int forwards[2];
    /* number of data halves added so far for each chunk of the stage */
    int backwards[2];
    /* weight halves of the data halves added so far, in the order of the data halves; owned */
    TaskList weight_halves;
    /* number of weight halves added to the list so far */
    int weights;
} Walk;

/* Adds a task with its messages. Adds nothing if the schedule has no such micro-batch. */
static void add_work(const Walk *w, TaskKind kind, int chunk, int micro)
{
    if (micro < w->schedule->shape.micro_batches)
        list_add_work(w->list, w->schedule, kind, chunk, micro);
}

static void add_step(Walk *w, char step)
{
    int local = islower((unsigned char)step) != 0;
    int chunk = schedule_chunk(w->schedule, w->stage, local);
    switch (toupper((unsigned char)step)) {
    case 'F':
        add_work(w, TASK_FORWARD, chunk, w->forwards[local]++);
        break;
    case 'B':
        list_add(&w->weight_halves, TASK_BACKWARD_WEIGHT, chunk, w->backwards[local]);
        add_work(w, TASK_BACKWARD_DATA, chunk, w->backwards[local]++);
        break;
    default: {
        Task t = w->weight_halves.task[w->weights++];
        add_work(w, t.kind, t.chunk, t.micro);
    }
    }
}

void order_phases(TaskList *list, const Schedule *s, int stage, const SchedulePhase *phase,
                  int phases)
{
    Walk w = {.schedule = s, .list = list, .stage = stage};
    for (int i = 0; i < phases; ++i)
        for (int k = 0; k < phase[i].times; ++k)
            for (const char *step = phase[i].steps; *step; ++step) add_step(&w, *step);
    mem_free(&w.weight_halves.task);
}
