/* Measures the links between all ranks, pair by pair (pairs.h), and gathers the results. */
#include "topo.h"
#include "topo/pairs.h"

#include <math.h>

/* Results of one rank: its rows of the matrices in Topology. Each array is [ranks], with 0 for the
 * rank itself; borrowed. */
typedef struct LinkRow {
    double *latency_s, *bytes_per_s, *together_bytes_per_s;
} LinkRow;

/* Measures the pairs of a round: first each pair alone, then all at once. pair_s: approximate
 * seconds for the measurements of a pair alone, and also for those of all pairs at once. */
static void measure_round(const World *world, PairLink *link, int rounds, int round, double pair_s,
                          LinkRow row)
{
    int bytes;
    link->peer = pairs_peer(world->size, rounds, round, world->rank);
    for (int first = 0; first < world->size; ++first) {
        int second = pairs_peer(world->size, rounds, round, first);
        if (second < first) continue;
        world_barrier(world);
        if (world->rank != first && world->rank != second) continue;
        row.latency_s[link->peer] = pairs_latency(link, pair_s / 4);
        row.bytes_per_s[link->peer] = pairs_rate(link, pair_s / 2, &bytes);
    }
    world_barrier(world);
    if (link->peer >= 0)
        row.together_bytes_per_s[link->peer] = pairs_rate(link, pair_s / 2, &bytes);
}

/* Returns the value of pair_s (measure_round) with which the measurements of all rounds take about
 * budget_s seconds. */
static double pair_seconds(const World *world, double budget_s)
{
    return budget_s / (pairs_rounds(world->size, world->size) * (world->size / 2 + 1) + 1);
}

/* Measures the slow pairs, at most the REPEATED_MAX slowest, once more, one after the other. Keeps
 * the higher rate of each pair, so that these pairs are reported only if they were slow twice. All
 * ranks have the same matrices, so they find the same pairs. */
static void repeat_slow(Topology *t, const World *world, PairLink *link, double pair_s)
{
    enum { REPEATED_MAX = 64 };
    SlowPair *pair;
    int bytes, slow = topo_slow_pairs(t, &pair), count = slow < REPEATED_MAX ? slow : REPEATED_MAX;
    double *rate = mem_new(((size_t)count + 1) * sizeof *rate);
    for (int i = 0; i < count; ++i) {
        bool is_first = world->rank == pair[i].a;
        world_barrier(world);
        if (!is_first && world->rank != pair[i].b) continue;
        link->peer = is_first ? pair[i].b : pair[i].a;
        double measured = pairs_rate(link, pair_s, &bytes);
        if (is_first) rate[i] = measured;
    }
    world_allreduce_disjoint(world, rate, count);
    for (int i = 0; i < count; ++i)
        if (rate[i] > pair[i].bytes_per_s)
            t->bytes_per_s[(int64_t)pair[i].a * t->ranks + pair[i].b] =
                t->bytes_per_s[(int64_t)pair[i].b * t->ranks + pair[i].a] = rate[i];
    mem_free(&rate);
    mem_free(&pair);
}

/* Gathers the rows of all ranks into a matrix on every rank. Owner of the matrix: the caller.
 * Collective. */
static double *gather_rows(const World *world, const double *row)
{
    size_t ranks = (size_t)world->size;
    double *matrix = mem_new(ranks * ranks * sizeof *matrix);
    world_allgather(world, row, ranks * sizeof *row, matrix);
    return matrix;
}

Status topo_measure(Topology *t, const World *world, double budget_s)
{
    size_t ranks = (size_t)world->size;
    double pair_s = pair_seconds(world, budget_s), *row = mem_new(3 * ranks * sizeof *row);
    LinkRow rows = {row, row + ranks, row + 2 * ranks};
    PairLink link = {.comm = world->comm, .buffer = mem_pages_new(2 * PAIR_BYTES_MAX)};
    topo_describe(t, world);
    int rounds = pairs_rounds(world->size, world->size);
    for (int round = 0; round < rounds; ++round)
        measure_round(world, &link, rounds, round, pair_s, rows);
    t->latency_s = gather_rows(world, rows.latency_s);
    t->bytes_per_s = gather_rows(world, rows.bytes_per_s);
    t->together_bytes_per_s = gather_rows(world, rows.together_bytes_per_s);
    if (world->size > 1) repeat_slow(t, world, &link, pair_s);
    mem_pages_free(link.buffer, 2 * PAIR_BYTES_MAX);
    mem_free(&row);
    return OK;
}
