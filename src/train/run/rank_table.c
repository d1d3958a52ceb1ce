/* run.map: logs a table of the ranks of a run, with a line for each rank or, if they are many, for
 * each host:
 *
 *     rank  dp  pp  tp  host   CPUs  GPU
 *     0     0   0   0   node1  0-7   NVIDIA H200 0000:17:00.0
 *
 * In a line for several ranks, a cell has ranges of numbers. The CPUs are those to which a rank is
 * bound after its set-up. */
#include "../trainer.h"

#include "topo.h"

#include <stdlib.h>
#include <string.h>

/* LINES_MAX: with more ranks the table has a line for each host. RANGES_MAX: largest number of
 * ranges that a cell lists. CPUS_MAX: CPUs from this number on are not listed. */
enum { LINES_MAX = 64, RANGES_MAX = 8, CPUS_MAX = 8192 };

typedef enum Column { RANK, DP, PP, TP, HOST, CPUS, GPU, COLUMN_COUNT } Column;
static const char *const titles[COLUMN_COUNT] = {"rank", "dp", "pp", "tp", "host", "CPUs", "GPU"};

/* The GPU of a rank. Both texts are "" if the rank computes on CPUs. */
typedef struct RankGpu {
    char model[64], bus[32];
} RankGpu;

/* A line of the table; its cells are owned. */
typedef struct Line {
    char *cell[COLUMN_COUNT];
} Line;

/* The ranks of the table. */
typedef struct Ranks {
    /* hosts and CPUs of the ranks; borrowed */
    const Topology *topo;
    /* shape of the grid */
    GridShape shape;
    /* GPUs of the ranks, [ranks]; borrowed */
    const RankGpu *gpu;
} Ranks;

/* Gathers the GPUs of all ranks; the caller owns the result. Collective. */
static RankGpu *gather_gpus(const Trainer *t)
{
    const World *world = t->world;
    RankGpu mine = {{0}, {0}}, *all = mem_new((size_t)world->size * sizeof *all);
    GpuFacts facts;
    if (!t->backend->table->host_memory && cuda_device_facts(world->node_rank, &facts)) {
        snprintf(mine.model, sizeof mine.model, "%s", facts.model);
        snprintf(mine.bus, sizeof mine.bus, "%s", facts.bus);
    }
    world_allgather(world, &mine, sizeof mine, all);
    return all;
}

/* Returns as ranges, for example "0-3, 8", the numbers i below `count` for which set[i] is true.
 * The caller owns the text. */
static char *ranges_text(const bool *set, int count)
{
    TextList list;
    text_list_begin(&list, RANGES_MAX);
    for (int first = 0; first < count; ++first) {
        char range[32];
        int last = first;
        if (!set[first]) continue;
        while (last + 1 < count && set[last + 1]) ++last;
        snprintf(range, sizeof range, last > first ? "%d-%d" : "%d", first, last);
        text_list_add(&list, range);
        first = last;
    }
    return text_list_end(&list);
}

/* Returns a rank's coordinate along the axis of a column, or its number for RANK. */
static int coordinate(GridShape shape, Column column, int rank)
{
    switch (column) {
    case DP:
        return rank / shape.tp % shape.dp;
    case PP:
        return rank / shape.tp / shape.dp;
    case TP:
        return rank % shape.tp;
    default:
        return rank;
    }
}

/* Returns the coordinates of `count` ranks along the axis of a column, as ranges. The caller owns
 * the text. */
static char *numbers_text(const Ranks *all, Column column, const int *rank, int count)
{
    bool *set = mem_new((size_t)all->topo->ranks * sizeof *set);
    for (int i = 0; i < count; ++i) set[coordinate(all->shape, column, rank[i])] = true;
    char *text = ranges_text(set, all->topo->ranks);
    mem_free(&set);
    return text;
}

/* Sets set[i] to true for each CPU i in a list such as "0-3,8". Returns false if the list ends with
 * "...", which means that it is incomplete. */
static bool add_cpus(bool *set, const char *list)
{
    int first, last, used;
    for (; sscanf(list, "%d%n", &first, &used) == 1; list += *list == ',') {
        list += used;
        last = first;
        if (sscanf(list, "-%d%n", &last, &used) == 1) list += used;
        for (int cpu = first; cpu <= last && cpu < CPUS_MAX; ++cpu) set[cpu] = true;
    }
    return *list == 0;
}

/* Returns as text the CPUs that at least one of `count` ranks may use. The caller owns the text. */
static char *cpus_text(const Ranks *all, const int *rank, int count)
{
    bool *set = mem_new(CPUS_MAX * sizeof *set), complete = true;
    for (int i = 0; i < count; ++i) complete &= add_cpus(set, all->topo->cpus[rank[i]]);
    char *ranges = ranges_text(set, CPUS_MAX);
    char *text = mem_format("%s%s", ranges, complete ? "" : ", ...");
    mem_free(&ranges);
    mem_free(&set);
    return text;
}

/* Returns the GPU of the ranks as text; if they have several GPUs, the number of GPUs and the
 * model; "" on CPUs. The caller owns the text. */
static char *gpus_text(const Ranks *all, const int *rank, int count)
{
    const RankGpu *gpu = all->gpu, *first = &gpu[rank[0]];
    int different = 0;
    if (!*first->model) return mem_text("");
    for (int i = 0; i < count; ++i) {
        int k = 0;
        while (strcmp(gpu[rank[k]].bus, gpu[rank[i]].bus) != 0) ++k;
        different += k == i;
    }
    return different > 1 ? mem_format("%d x %s", different, first->model)
                         : mem_format("%s %s", first->model, first->bus);
}

/* Makes the line of `count` ranks of one host. */
static Line line_of(const Ranks *all, const int *rank, int count)
{
    Line line = {{0}};
    for (Column c = RANK; c <= TP; ++c) line.cell[c] = numbers_text(all, c, rank, count);
    line.cell[HOST] = mem_text(all->topo->host[all->topo->node[rank[0]]]);
    line.cell[CPUS] = cpus_text(all, rank, count);
    line.cell[GPU] = gpus_text(all, rank, count);
    return line;
}

/* Makes a line for each rank or for each host; the caller owns the lines. */
static Line *make_lines(const Ranks *all, int *lines)
{
    const Topology *topo = all->topo;
    const bool by_host = topo->ranks > LINES_MAX;
    *lines = by_host ? topo->nodes : topo->ranks;
    Line *line = mem_new((size_t)*lines * sizeof *line);
    int *rank = mem_new((size_t)topo->ranks * sizeof *rank);
    for (int i = 0; i < *lines; ++i) {
        int count = 0;
        for (int r = 0; r < topo->ranks; ++r)
            if (by_host ? topo->node[r] == i : r == i) rank[count++] = r;
        line[i] = line_of(all, rank, count);
    }
    mem_free(&rank);
    return line;
}

/* Logs the lines in columns; a column without any text is left out. */
static void log_lines(const Line *line, int lines)
{
    int width[COLUMN_COUNT] = {0};
    for (int c = 0; c < COLUMN_COUNT; ++c)
        for (int i = 0; i < lines; ++i) {
            int columns = (int)strlen(line[i].cell[c]);
            if (columns > 0 && width[c] == 0) width[c] = (int)strlen(titles[c]);
            if (columns > width[c]) width[c] = columns;
        }
    for (int i = -1; i < lines; ++i) {
        char *text = mem_text(" ");
        for (int c = 0; c < COLUMN_COUNT; ++c) {
            if (width[c] == 0) continue;
            char *longer =
                mem_format("%s %-*s ", text, width[c], i < 0 ? titles[c] : line[i].cell[c]);
            mem_free(&text);
            text = longer;
        }
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; --end) text[end - 1] = 0;
        log_info("%s", text);
        mem_free(&text);
    }
}

void train_log_ranks(const Trainer *t)
{
    Topology topo;
    topo_describe(&topo, t->world);
    RankGpu *gpu = gather_gpus(t);
    if (t->world->rank == 0) {
        const Ranks all = {&topo, t->shape, gpu};
        int lines;
        Line *line = make_lines(&all, &lines);
        log_lines(line, lines);
        for (int i = 0; i < lines; ++i)
            for (int c = 0; c < COLUMN_COUNT; ++c) mem_free(&line[i].cell[c]);
        mem_free(&line);
        if (t->servers > 0) log_info("  %d more: servers (grid.servers)", t->servers);
    }
    mem_free(&gpu);
    topo_fini(&topo);
}
