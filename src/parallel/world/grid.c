/* Computes the shape of the process grid and the coordinates of this rank in it. Ranks that differ
 * in only one coordinate form a World; transports work on Worlds and do not use the grid. Refuses
 * shapes that do not use every rank. */
#include "abort.h"

/* Returns the largest number d < below for which `ranks` is a multiple of d * others; 0 if there is
 * none. */
static int64_t next_fit(int64_t ranks, int64_t others, int64_t below)
{
    int64_t d = below - 1 < ranks ? below - 1 : ranks;
    while (d > 0 && ranks % (d * others) != 0) --d;
    return d;
}

/* Writes " with grid.servers N" to text, or "" without servers, and returns text. */
static const char *with_servers(const Config *config, char text[48])
{
    *text = 0;
    if (config->grid.servers > 0)
        snprintf(text, 48, " with grid.servers %lld", (long long)config->grid.servers);
    return text;
}

/* Fails because `ranks`, the number of ranks without servers, is not a multiple of pp x tp, the
 * number of ranks of a replica. */
static Status refuse_replica(const Config *config, int64_t pp, int64_t tp, int64_t ranks)
{
    bool by_tp = pp == 1 || ranks % tp != 0;
    const char *key = by_tp ? "grid.tp" : "grid.pp";
    int64_t replica = pp * tp, fewer = ranks / replica * replica, servers = config->grid.servers;
    int64_t fit = by_tp ? next_fit(ranks, pp, tp) : next_fit(ranks, tp, pp);
    char start[64], with[48], other[64] = "";
    if (fewer > 0)
        snprintf(start, sizeof start, "%lld or %lld", (long long)(fewer + servers),
                 (long long)(fewer + replica + servers));
    else
        snprintf(start, sizeof start, "%lld", (long long)(replica + servers));
    if (fit > 0) snprintf(other, sizeof other, ", or set %s to %lld", key, (long long)fit);
    return config_fail_key(config, key,
                           "grid.pp %lld x grid.tp %lld is %lld ranks a replica%s, but %lld were "
                           "started: start %s%s",
                           (long long)pp, (long long)tp, (long long)replica,
                           with_servers(config, with), (long long)(ranks + servers), start, other);
}

/* Fails because grid.dp x pp x tp is not `ranks`, the number of ranks without servers. */
static Status refuse_dp(const Config *config, int64_t pp, int64_t tp, int64_t ranks)
{
    int64_t dp = config->grid.dp, need = dp * pp * tp, servers = config->grid.servers;
    const char *other = ranks % (pp * tp) == 0 ? ", or leave grid.dp out" : "";
    char with[48];
    if (pp * tp == 1)
        return config_fail_key(config, "grid.dp",
                               "grid.dp is %lld%s, but %lld ranks were started: start %lld%s",
                               (long long)dp, with_servers(config, with),
                               (long long)(ranks + servers), (long long)(need + servers), other);
    return config_fail_key(config, "grid.dp",
                           "grid.dp %lld x grid.pp %lld x grid.tp %lld is %lld ranks%s, but %lld "
                           "were started: start %lld%s",
                           (long long)dp, (long long)pp, (long long)tp, (long long)need,
                           with_servers(config, with), (long long)(ranks + servers),
                           (long long)(need + servers), other);
}

Status grid_shape(GridShape *shape, const Config *config, int ranks)
{
    int64_t pp = config->grid.pp > 0 ? config->grid.pp : 1;
    int64_t tp = config->grid.tp > 0 ? config->grid.tp : 1;
    if (config->grid.dp > 0 && config->grid.dp * pp * tp != ranks)
        return refuse_dp(config, pp, tp, ranks);
    if (ranks % (pp * tp) != 0) return refuse_replica(config, pp, tp, ranks);
    *shape = (GridShape){.dp = (int)(ranks / (pp * tp)), .pp = (int)pp, .tp = (int)tp};
    return OK;
}

Status grid_init(Grid *grid, const World *world, GridShape shape)
{
    int tp = shape.tp, dp = shape.dp;
    *grid = (Grid){0};
    if (dp < 1 || shape.pp < 1 || tp < 1 || (int64_t)dp * shape.pp * tp != world->size)
        return fail(ERR_BUG, "a grid of dp %d x pp %d x tp %d over %d ranks", dp, shape.pp, tp,
                    world->size);
    *grid = (Grid){.shape = shape,
                   .dp_rank = world->rank / tp % dp,
                   .pp_rank = world->rank / tp / dp,
                   .tp_rank = world->rank % tp,
                   .world = world};
    TRY(world_split(&grid->dp_world, world, grid->pp_rank * tp + grid->tp_rank));
    TRY(world_split(&grid->pp_world, world, grid->dp_rank * tp + grid->tp_rank));
    TRY(world_split(&grid->tp_world, world, grid->pp_rank * dp + grid->dp_rank));
    char coordinates[64];
    snprintf(coordinates, sizeof coordinates, " (dp %d, pp %d, tp %d)", grid->dp_rank,
             grid->pp_rank, grid->tp_rank);
    if (shape.pp > 1 || tp > 1) world_context(world, coordinates);
    return OK;
}

void grid_fini(Grid *grid)
{
    /* true if grid_init was not called, or if it refused the shape */
    if (!grid->world) return;
    grid_release_gpus(grid);
    world_part_fini(&grid->tp_world);
    world_part_fini(&grid->pp_world);
    world_part_fini(&grid->dp_world);
    world_context(grid->world, "");
    grid->world = NULL;
}
