/* Collects the times of operations in one list for each part of each node. */
#include "pipeline/operation_times.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>

const char *const operation_part_names[OPERATION_PART_COUNT] = {OPERATION_PARTS(LIST_NAME)};

typedef struct PartTimes {
    int count;
    /* seconds, [capacity]; NULL before the first time is added; owned */
    float *s;
} PartTimes;

struct OperationTimes {
    int nodes, capacity;
    /* times of each part, [nodes][OPERATION_PART_COUNT]; owned */
    PartTimes *part;
    OperationTotals totals;
};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the quantile `fraction` of sorted values, interpolated between the two values around
 * position fraction * (count - 1). */
static double at_fraction(const double *s, int count, double fraction)
{
    double place = fraction * (count - 1);
    int below = (int)place, above = below + 1 < count ? below + 1 : below;
    return s[below] + (place - below) * (s[above] - s[below]);
}

TimeRange time_range(double *s, int count)
{
    qsort(s, (size_t)count, sizeof *s, compare);
    return (TimeRange){at_fraction(s, count, 0.1), at_fraction(s, count, 0.5),
                       at_fraction(s, count, 0.9)};
}

OperationTimes *operation_times_new(int nodes, int capacity)
{
    OperationTimes *t = mem_new(sizeof *t);
    size_t parts = (size_t)nodes * OPERATION_PART_COUNT;
    *t = (OperationTimes){
        .nodes = nodes, .capacity = capacity, .part = mem_new((parts + 1) * sizeof *t->part)};
    return t;
}

void operation_times_free(OperationTimes **times)
{
    OperationTimes *t = *times;
    if (!t) return;
    for (int i = 0; i < t->nodes * OPERATION_PART_COUNT; ++i) mem_free(&t->part[i].s);
    mem_free(&t->part);
    mem_free(times);
}

void operation_times_add(OperationTimes *t, int node, OperationPart part, double seconds)
{
    PartTimes *p = &t->part[node * OPERATION_PART_COUNT + (int)part];
    if (!p->s) p->s = mem_new((size_t)t->capacity * sizeof *p->s);
    if (p->count < t->capacity) p->s[p->count++] = (float)seconds;
    t->totals.operations_s += seconds;
    t->totals.actions += 1;
}

void operation_times_add_move(OperationTimes *t, double seconds, double bytes)
{
    t->totals.moves_s += seconds;
    t->totals.moved_bytes += bytes;
    t->totals.actions += 1;
}

void operation_times_add_poll(OperationTimes *t, double seconds)
{
    t->totals.polls_s += seconds;
}

bool operation_times_range(const OperationTimes *t, int node, OperationPart part, TimeRange *range)
{
    const PartTimes *p = &t->part[node * OPERATION_PART_COUNT + (int)part];
    if (p->count == 0) return false;
    double *s = mem_new((size_t)p->count * sizeof *s);
    for (int i = 0; i < p->count; ++i) s[i] = (double)p->s[i];
    *range = time_range(s, p->count);
    mem_free(&s);
    return true;
}

OperationTotals operation_times_totals(const OperationTimes *t)
{
    return t->totals;
}
