/* grid.rank_map: gives the processes of a run other ranks than those of the launcher. */
#include "run.h"

#include "topo.h"

#include <string.h>

/* Computes the map on every rank: process map[r] gets rank r. The caller owns the map.
 * Collective. */
static Status make_map(const Config *config, const World *world, int **map)
{
    const char *path = config->grid.rank_map;
    size_t bytes = (size_t)world->size * sizeof **map;
    *map = NULL;
    if (strcmp(path, "auto") == 0) {
        Topology topo;
        topo_describe(&topo, world);
        *map = topo_places_by_node(&topo);
        topo_fini(&topo);
        return OK;
    }
    TRY(status_agree(world, world->rank == 0 ? places_read(map, world->size, path) : OK));
    if (world->rank != 0) *map = mem_new(bytes);
    world_bcast(world, *map, bytes, 0);
    return OK;
}

static void log_map(const int *map, int ranks, const char *from)
{
    enum { LISTED_MAX = 16 };
    int moved = 0;
    TextList list;
    text_list_begin(&list, LISTED_MAX);
    for (int r = 0; r < ranks; ++r) {
        char *text = mem_format("%d", map[r]);
        text_list_add(&list, text);
        mem_free(&text);
        moved += map[r] != r;
    }
    char *text = text_list_end(&list);
    log_info("grid.rank_map: %s: %d of %d processes play another rank; ranks 0, 1, ... are "
             "processes %s",
             from, moved, ranks, text);
    mem_free(&text);
}

/* Makes a world in which the processes have the ranks that the map gives them. Release it with
 * world_part_fini. Collective. */
static Status make_places(World *placed, const Config *config, const World *world)
{
    int *map, rank = 0;
    if (config->grid.servers > 0)
        return config_fail_key(config, "grid.rank_map",
                               "cannot be used with servers (grid.servers)");
    TRY(make_map(config, world, &map));
    while (map[rank] != world->rank) ++rank;
    if (world->rank == 0) log_map(map, world->size, config->grid.rank_map);
    mem_free(&map);
    return world_order(placed, world, rank);
}

Status train_with_rank_map(const Config *config, const World *world, TrainRanks *run, void *user)
{
    World placed;
    if (!*config->grid.rank_map) return run(config, world, user);
    TRY(make_places(&placed, config, world));
    Status st = run(config, &placed, user);
    world_part_fini(&placed);
    return st;
}
