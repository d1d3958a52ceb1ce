/* Divides the time of a run, from the beginning of its first start to the end of its last start,
 * into steps that were kept, steps that were lost, start-up, evaluations, saves, pauses between
 * starts, and the rest. */
#include "observe/history.h"

const char *const goodput_names[GOODPUT_PART_COUNT] = {GOODPUT_PARTS(LIST_NAME)};

/* Adds the parts of a start. If the beginning of the start is not known (began 0), only its steps,
 * evaluations and saves are counted. */
static void add_start(Goodput *g, const LedgerStart *start)
{
    int64_t steps = start->last_step - start->step_before;
    double lost_s =
        steps > 0 ? start->steps_s * (double)start->repeated / (double)steps : start->steps_s;
    if (start->complete && steps == 0) lost_s = 0;
    double known_s = start->startup_s + start->steps_s + start->eval_s + start->checkpoint_s;
    double whole_s = start->began > 0 ? start->ended - start->began : known_s;
    g->part_s[GOODPUT_KEPT] += start->steps_s - lost_s;
    g->part_s[GOODPUT_REPEATED] += lost_s;
    g->part_s[GOODPUT_STARTUP] += start->startup_s;
    g->part_s[GOODPUT_EVAL] += start->eval_s;
    g->part_s[GOODPUT_CHECKPOINT] += start->checkpoint_s;
    if (whole_s > known_s) g->part_s[GOODPUT_OTHER] += whole_s - known_s;
    g->killed += !start->complete;
    g->repeated += start->repeated;
}

Goodput goodput_of(const LedgerHistory *history)
{
    Goodput g = {.starts = history->starts};
    for (int i = 0; i < history->starts; ++i) {
        const LedgerStart *start = &history->start[i], *before = i > 0 ? start - 1 : NULL;
        add_start(&g, start);
        if (before && before->ended > 0 && start->began > before->ended)
            g.part_s[GOODPUT_BETWEEN] += start->began - before->ended;
    }
    for (int i = 0; i < GOODPUT_PART_COUNT; ++i) g.wall_s += g.part_s[i];
    return g;
}
