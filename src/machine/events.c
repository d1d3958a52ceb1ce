/* Stores the events of a replay in a binary heap, in the order of their times. */
#include "replay.h"

static bool earlier(const Event *a, const Event *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

void events_add(Events *events, double at, EventKind kind, int index)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity ? 2 * events->capacity : 256;
        events->event = mem_resize(events->event, (size_t)events->capacity * sizeof *events->event);
    }
    const Event added = {at, events->added++, kind, index};
    int place = events->count++;
    for (int above; place > 0; place = above) {
        above = (place - 1) / 2;
        if (!earlier(&added, &events->event[above])) break;
        events->event[place] = events->event[above];
    }
    events->event[place] = added;
}

bool events_take(Events *events, Event *first)
{
    if (events->count == 0) return false;
    *first = events->event[0];
    const Event last = events->event[--events->count];
    int place = 0;
    for (int below; (below = 2 * place + 1) < events->count; place = below) {
        if (below + 1 < events->count && earlier(&events->event[below + 1], &events->event[below]))
            ++below;
        if (!earlier(&events->event[below], &last)) break;
        events->event[place] = events->event[below];
    }
    events->event[place] = last;
    return true;
}
