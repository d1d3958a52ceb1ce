/* weft topo find: prints the ring, the path and the tree over all ranks whose slowest link is
 * fastest. The tree is exact; ring and path may come from a heuristic search. Also prints places of
 * the ranks in grids (grid.rank_map). */
#include "../private.h"
#include "topo_cli.h"

#include <math.h>
#include <string.h>

typedef struct FindOptions {
    int64_t ranks;
    const char *from, *grid, *save;
} FindOptions;

static const Flag flags[] = {
    FLAG_RANKS(FindOptions),
    {"--from", FLAG_FIELD(FindOptions, from), .value = "FILE", .excludes = "-n",
     .help = "a file of weft topo show --save, perhaps from another machine, instead of measuring"},
    {"--grid", FLAG_FIELD(FindOptions, grid), .value = "DxPxT",
     .help = "also print the slowest links of this grid, in the launcher's order and in the one "
             "found"},
    {"--save", FLAG_FIELD(FindOptions, save), .value = "FILE", .writes = true,
     .help = "write the places of the ranks, for grid.rank_map"},
};

static const char *search_text(OrderSearch search)
{
    return search == ORDER_EXACT    ? "exact"
           : search == ORDER_LEVELS ? "exact inside nodes and between them"
                                    : "heuristic: nearest neighbours, improved by 2-opt";
}

/* Prints a ring or a path. */
static void print_order(const Topology *t, const char *name, const Order *order)
{
    printf("%s (%s):", name, search_text(order->search));
    for (int i = 0; i < t->ranks; ++i) printf(" %d", order->rank[i]);
    if (order->slowest_at >= 0)
        printf("\n  slowest link: %d to %d, %.3g GB/s", order->rank[order->slowest_at],
               order->rank[(order->slowest_at + 1) % t->ranks], 1e-9 * order->slowest);
    printf("\n");
}

static void print_tree(const Topology *t)
{
    RankTree tree;
    topo_tree(t, &tree);
    printf("tree (exact): root %d, depth %d; parents:", tree.root, tree.depth);
    for (int r = 0; r < t->ranks; ++r) {
        if (tree.parent[r] < 0)
            printf(" -");
        else
            printf(" %d", tree.parent[r]);
    }
    if (isfinite(tree.slowest)) printf("\n  slowest link: %.3g GB/s", 1e-9 * tree.slowest);
    printf("\n");
    tree_fini(&tree);
}

static void print_link(const char *name, double rate)
{
    if (isfinite(rate)) printf(", %s %.3g GB/s", name, 1e-9 * rate);
}

static void print_links(const char *name, GridLinks links)
{
    printf("  %s: slowest link", name);
    print_link("of tensor groups", links.tp);
    print_link("between replicas", links.dp);
    print_link("between stages", links.pp);
    printf("\n");
}

/* Reads --grid. text: NULL if the flag is not given; *shape is then left as it is. ERR_USAGE: the
 * text is no grid of all ranks. */
static Status read_grid(const Topology *t, const char *text, GridShape *shape)
{
    int read = 0;
    if (!text || (sscanf(text, "%dx%dx%d%n", &shape->dp, &shape->pp, &shape->tp, &read) == 3 &&
                  !text[read] && shape->dp > 0 && shape->pp > 0 && shape->tp > 0 &&
                  (int64_t)shape->dp * shape->pp * shape->tp == t->ranks))
        return OK;
    return fail(ERR_USAGE,
                "--grid %s: expected a grid of %d rank%s, replicas x stages x tensor "
                "ranks, as %dx1x1",
                text, t->ranks, t->ranks == 1 ? "" : "s", t->ranks);
}

/* Prints the slowest links of a grid in the launcher's order and with the places `map`. */
static void print_grid(const Topology *t, const char *text, GridShape shape, const int *map)
{
    printf("grid %s\n", text);
    print_links("launcher's order", topo_grid_links(t, shape, NULL));
    print_links("found", topo_grid_links(t, shape, map));
}

static Status find(const Topology *t, const void *options)
{
    const FindOptions *o = options;
    Order ring, path;
    OrderSearch search;
    GridShape shape = {0};
    if (!t->bytes_per_s || t->ranks == 0)
        return fail(ERR_CONFIG,
                    "%s: has no measured links between ranks; weft topo show -n RANKS "
                    "--save FILE writes such a file",
                    o->from);
    TRY(read_grid(t, o->grid, &shape));
    topo_ring(t, &ring);
    topo_path(t, &path);
    int *map = topo_places(t, &search);
    print_order(t, "ring", &ring);
    print_order(t, "path", &path);
    print_tree(t);
    printf("places (%s):", search_text(search));
    for (int r = 0; r < t->ranks; ++r) printf(" %d", map[r]);
    printf("\n");
    if (o->grid) print_grid(t, o->grid, shape, map);
    Status status = o->save ? places_write(map, t->ranks, o->save) : OK;
    mem_free(&map);
    order_fini(&path);
    order_fini(&ring);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    const FindOptions *o = options;
    return topo_run("topo find", argc, argv, o->from, find, options);
}

const Verb verb_topo_find = {
    .name = "topo find",
    .help = "finds the ring, path, tree and grid places of ranks with the fastest slowest link",
    VERB_FLAGS(FindOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
