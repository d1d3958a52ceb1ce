/* Finds and adds the times of operations in a Machine, which are sorted by key. */
#include "machine/times.h"

#include <string.h>

/* Returns the index of the first operation whose key is not before `key`. */
static int place_of(const Machine *m, const char *key)
{
    int low = 0, high = m->operation_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(m->operation[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const OperationTime *machine_find(const Machine *m, const char *key)
{
    int at = place_of(m, key);
    bool found = at < m->operation_count && strcmp(m->operation[at].key, key) == 0;
    return found ? &m->operation[at] : NULL;
}

static TimeRange combine(TimeRange a, TimeRange b)
{
    return (TimeRange){a.low < b.low ? a.low : b.low, (a.median + b.median) / 2,
                       a.high > b.high ? a.high : b.high};
}

void machine_add(Machine *m, const OperationTime *time)
{
    int at = place_of(m, time->key);
    if (at == m->operation_count || strcmp(m->operation[at].key, time->key) != 0) {
        size_t count = (size_t)++m->operation_count;
        m->operation = mem_resize(m->operation, count * sizeof *m->operation);
        memmove(m->operation + at + 1, m->operation + at,
                (count - 1 - (size_t)at) * sizeof *m->operation);
        m->operation[at] = (OperationTime){.key = mem_text(time->key)};
    }
    OperationTime *to = &m->operation[at];
    for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
        if (!time->has[p]) continue;
        to->part[p] = to->has[p] ? combine(to->part[p], time->part[p]) : time->part[p];
        to->has[p] = true;
    }
}

TimeRange rates_range(double seconds)
{
    static const double LOW = 0.8, HIGH = 1.25;
    return (TimeRange){LOW * seconds, seconds, HIGH * seconds};
}

void machine_fini(Machine *m)
{
    for (int i = 0; i < m->operation_count; ++i) mem_free(&m->operation[i].key);
    mem_free(&m->operation);
    mem_free(&m->sum_time);
    mem_free(&m->host);
    mem_free(&m->cpu);
    mem_free(&m->measured);
    mem_free(&m->setup);
}
