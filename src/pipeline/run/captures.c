/* Stores captures and finds them by task and by place in the input ring. tasks.c makes and replays
 * them. */
#include "captures.h"

/* With gathered parameters nothing is captured: weights are repacked after their bucket has been
 * gathered, so the work of a task differs from step to step. */
void captures_init(Captures *c, const Context *context, int places)
{
    const Plan *plan = context->plan;
    *c = (Captures){
        .context = context, .tasks = plan->schedule->count[plan->stage], .places = places};
    if (context->backend->options.replay && !plan->gathers)
        c->list = mem_new((size_t)c->tasks * (size_t)places * sizeof *c->list);
}

void captures_fini(Captures *c)
{
    if (!c->context) return;
    for (int i = 0; c->list && i < c->tasks * c->places; ++i) {
        CaptureList *list = &c->list[i];
        for (int k = 0; k < list->count; ++k) capture_drop(&list->capture[k], c->context->backend);
        mem_free(&list->capture);
    }
    mem_free(&c->list);
    capture_drop(&c->statistics, c->context->backend);
}

Capture *capture_at(Captures *c, int task, int place, int number)
{
    enum { CAPTURES_MOST = 1024 };
    CaptureList *list = &c->list[task * c->places + place];
    if (number == list->count) {
        if (c->count == CAPTURES_MOST) return NULL;
        ++c->count;
        list->capture =
            mem_resize(list->capture, (size_t)(list->count + 1) * sizeof *list->capture);
        list->capture[list->count++] = (Capture){0};
    }
    return &list->capture[number];
}
