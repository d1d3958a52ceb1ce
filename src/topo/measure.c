/* Measures the links between all ranks. */
#include "topo.h"
#include "topo/pairs.h"

#include <math.h>

/* Results of a rank: one entry for each other rank. */
typedef struct LinkRow {
    double *latency_s, *bytes_s, *together_bytes_s;
} LinkRow;

/* Measures the pairs of a round: each alone, then all at once. */
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
        row.bytes_s[link->peer] = pairs_rate(link, pair_s / 2, &bytes);
    }
    world_barrier(world);
    if (link->peer >= 0) row.together_bytes_s[link->peer] = pairs_rate(link, pair_s / 2, &bytes);
}

static void measure_links(const World *world, double budget_s, LinkRow row)
{
    int rounds = pairs_rounds(world->size, world->size);
    PairLink link = {.comm = world->comm, .buffer = mem_pages_new(2 * PAIR_BYTES_MAX)};
    double pair_s = budget_s / (rounds * (world->size / 2 + 1) + 1);
    for (int round = 0; round < rounds; ++round)
        measure_round(world, &link, rounds, round, pair_s, row);
    mem_pages_free(link.buffer, 2 * PAIR_BYTES_MAX);
}

/* Gathers a row of each rank into a matrix on every rank. */
static double *gather_rows(const World *world, const double *row)
{
    size_t ranks = (size_t)world->size;
    double *matrix = mem_new(ranks * ranks * sizeof *matrix);
    world_gather(world, row, ranks * sizeof *row, matrix);
    return matrix;
}

Status topo_measure(Topology *t, const World *world, double budget_s)
{
    size_t ranks = (size_t)world->size;
    double *row = mem_new(3 * ranks * sizeof *row);
    LinkRow rows = {row, row + ranks, row + 2 * ranks};
    topo_describe(t, world);
    if (world->size > 1) measure_links(world, budget_s, rows);
    t->latency_s = gather_rows(world, rows.latency_s);
    t->bytes_s = gather_rows(world, rows.bytes_s);
    t->together_bytes_s = gather_rows(world, rows.together_bytes_s);
    mem_free(&row);
    return OK;
}
