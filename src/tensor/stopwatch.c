/* A stopwatch: for each lap, a pair of the backend's timer events. stopwatch_clear keeps the events
 * for later laps. */
#include "tensor.h"

typedef struct Lap {
    /* owned */
    Event *start, *stop;
} Lap;
struct Stopwatch {
    /* borrowed */
    Backend *backend;
    /* laps since the last stopwatch_clear, [count]; owned */
    Lap *lap;
    int count;
    /* number of laps for which `lap` has memory and events */
    int room;
};

Stopwatch *stopwatch_new(Backend *backend)
{
    Stopwatch *w = mem_new(sizeof *w);
    w->backend = backend;
    return w;
}

void stopwatch_free(Stopwatch **watch)
{
    Stopwatch *w = *watch;
    if (!w) return;
    for (int i = 0; i < w->room; ++i) {
        w->backend->table->event_free(&w->lap[i].start);
        w->backend->table->event_free(&w->lap[i].stop);
    }
    mem_free(&w->lap);
    mem_free(watch);
}

static void grow(Stopwatch *w)
{
    int room = w->room ? 2 * w->room : 16;
    w->lap = mem_resize(w->lap, (size_t)room * sizeof *w->lap);
    for (; w->room < room; ++w->room) {
        w->lap[w->room].start = w->backend->table->timer_new(w->backend);
        w->lap[w->room].stop = w->backend->table->timer_new(w->backend);
    }
}

static void record(const Stopwatch *w, Event *event)
{
    w->backend->table->event_record(event, w->backend->table->stream(w->backend));
}

void stopwatch_start(Stopwatch *w)
{
    if (w->count == w->room) grow(w);
    record(w, w->lap[w->count].start);
}

void stopwatch_stop(Stopwatch *w)
{
    record(w, w->lap[w->count++].stop);
}

int stopwatch_laps(const Stopwatch *w)
{
    return w->count;
}

double stopwatch_lap_s(Stopwatch *w, int lap)
{
    return w->backend->table->event_s(w->lap[lap].start, w->lap[lap].stop);
}

double stopwatch_sum_s(Stopwatch *w)
{
    double sum = 0;
    for (int i = 0; i < w->count; ++i) sum += stopwatch_lap_s(w, i);
    return sum;
}

double stopwatch_period_s(Stopwatch *w, int lap)
{
    Event *end = lap + 1 < w->count ? w->lap[lap + 1].start : w->lap[lap].stop;
    return w->backend->table->event_s(w->lap[lap].start, end);
}

void stopwatch_clear(Stopwatch *w)
{
    w->count = 0;
}
