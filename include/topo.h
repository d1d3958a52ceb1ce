/* topo: which ranks are on which nodes, how fast the links between them are, and the order in which
 * ranks are best joined: rings, paths, trees and the places of a grid. Nothing here changes what a
 * run computes. */
#ifndef WEFT_TOPO_H
#define WEFT_TOPO_H

#include "parallel.h"
#include "topo/hardware.h"

/* Most ranks of a file. */
enum { TOPO_RANKS_MAX = 4096 };
/* Ranks, the links between them, and the nodes that they are on. Matrices are [ranks][ranks],
 * symmetric, 0 on the diagonal. */
typedef struct Topology {
    /* ranks is 0 if nodes are described, but not what runs on them */
    int ranks, nodes;
    /* names of the nodes, [nodes]; owned */
    char **host;
    /* node of each rank, [ranks]; owned */
    int *node;
    /* CPUs that each rank may use, "0-3,8", [ranks]; owned */
    char **cpus;
    /* The next three are [ranks][ranks], owned, and NULL if nothing was measured. */
    /* time of a small message while no other pair sends */
    double *latency_s;
    /* rate of a large message while no other pair sends */
    double *bytes_per_s;
    /* rate of a large message while all ranks send */
    double *together_bytes_per_s;
    /* network switches from the top down to that of the node, as Slurm knows them, "s0.s4",
     * [nodes]; "": not known; owned */
    char **switches;
    /* kind of each node's hardware, an index in hardware, [nodes]; -1: not described; owned */
    int *kind;
    /* hardware of each kind of node, [kinds]; owned */
    Hardware *hardware;
    int kinds;
} Topology;
/* Measures all pairs in a tournament: in a round each rank is in one pair, and first the pairs of
 * the round send one after the other, then all together. Every rank gets the result and releases it
 * with topo_fini. budget_s: approximate time. Collective. */
Status topo_measure(Topology *topo, const World *world, double budget_s);
/* Fills ranks, nodes, switches and CPUs without measuring: there are no matrices. Collective. */
void topo_describe(Topology *topo, const World *world);
/* Adds the hardware of all nodes, with GPUs if `gpus`, to what topo_measure or topo_describe made.
 * ERR_CONFIG: hwloc refuses; nothing is added. Collective. */
Status topo_describe_hardware(Topology *topo, const World *world, bool gpus);
/* Reads a file that topo_write wrote, or hwloc's XML of a node (lstopo FILE.xml), which has no
 * ranks. ERR_NOINPUT: there is none; ERR_CONFIG: file, line and column of what is wrong. Release
 * with topo_fini. */
Status topo_read(Topology *topo, const char *path);
/* Writes the content of such a file; errors are found with ferror(out). */
void topo_print(const Topology *topo, FILE *out);
/* ERR_IO. */
Status topo_write(const Topology *topo, const char *path);
void topo_fini(Topology *topo);
/* Removes what topo_describe_hardware added. */
void topo_fini_hardware(Topology *topo);
/* Rate of the link between two ranks. */
static inline double topo_rate(const Topology *topo, int a, int b)
{
    return topo->bytes_per_s[(int64_t)a * topo->ranks + b];
}

/* Classes of links, which differ in rate. Where sockets or switches are not known, the wider class
 * has all links. */
#define LINK_CLASSES(W)                                                                            \
    W(LINK_PACKAGE, "within sockets")                                                              \
    W(LINK_NODE, "within nodes")                                                                   \
    W(LINK_SWITCH, "under one switch")                                                             \
    W(LINK_NODES, "between nodes")
typedef enum LinkClass { LINK_CLASSES(LIST_CONSTANT) LINK_CLASS_COUNT } LinkClass;
const char *link_class_name(LinkClass class);
/* Medians over the pairs of a class; pairs 0: it has none. */
typedef struct LinkSummary {
    int pairs;
    double latency_s, bytes_per_s, bytes_per_s_min, bytes_per_s_max, together_bytes_per_s;
} LinkSummary;
void topo_summarize(const Topology *topo, LinkSummary summary[LINK_CLASS_COUNT]);

/* A pair whose rate is far below that of its class. */
typedef struct SlowPair {
    int a, b;
    LinkClass class;
    double bytes_per_s, class_median;
} SlowPair;
/* Lists pairs with less than 0.8 of the median of their class, slowest first. Links between nodes
 * of which one is slow are left out. Owner of *pairs: the caller. Returns their number. */
int topo_slow_pairs(const Topology *topo, SlowPair **pairs);
/* A node of which even the fastest link to other nodes is slow. */
typedef struct SlowNode {
    int node;
    double bytes_per_s, median;
} SlowNode;
/* Lists nodes of which the fastest link to another has less than 0.8 of the median of nodes. Owner
 * of *nodes: the caller. Returns their number. */
int topo_slow_nodes(const Topology *topo, SlowNode **nodes);

/* How an order was found. */
typedef enum OrderSearch {
    /* the best of all orders */
    ORDER_EXACT,
    /* the best inside each node, and the best order of the nodes */
    ORDER_LEVELS,
    /* more points than ORDER_EXACT_MAX at one level: nearest neighbours, improved by 2-opt */
    ORDER_HEURISTIC
} OrderSearch;
/* Most ranks of an exact search. */
enum { ORDER_EXACT_MAX = 20 };
/* An order of all ranks in which the slowest link between neighbours is as fast as possible. */
typedef struct Order {
    /* ranks in order, [ranks]; owned */
    int *rank;
    OrderSearch search;
    /* rate of the slowest link between neighbours; INFINITY: there is none */
    double slowest;
    /* first of the two neighbours that it joins, as an index in rank; -1: none */
    int slowest_at;
} Order;
/* A ring joins the last rank with the first, too, and begins with rank 0. Of equally good orders
 * the search always finds the same one. Release with order_fini. */
void topo_ring(const Topology *topo, Order *order);
void topo_path(const Topology *topo, Order *order);
void order_fini(Order *order);

/* The tree whose slowest link is as fast as possible, with the root that gives the least depth. */
typedef struct RankTree {
    int root, depth;
    /* parent of each rank, -1 for the root, [ranks]; owned */
    int *parent;
    double slowest;
} RankTree;
void topo_tree(const Topology *topo, RankTree *tree);
void tree_fini(RankTree *tree);

/* Places of a grid: process map[r] plays rank r, and process 0 plays rank 0. Ranks of a node follow
 * each other, so that tensor groups, then neighbouring replicas, share nodes where they fit; within
 * a node and between nodes neighbours are joined by links as fast as possible. int[ranks], owned by
 * the caller. */
int *topo_places(const Topology *topo, OrderSearch *search);
/* The same for links that are all alike, without matrices: nodes in their order, and the ranks of
 * each in theirs. */
int *topo_places_by_node(const Topology *topo);
/* Reads and writes a map of places: a list of processes in YAML. ERR_CONFIG: it is no permutation
 * of `ranks` processes that begins with 0. Owner of *map: the caller. */
Status places_read(int **map, int ranks, const char *path);
Status places_write(const int *map, int ranks, const char *path);
/* Rates of the slowest links in a grid of this shape, if process map[r] plays rank r (NULL: process
 * r). INFINITY where there are no such links. */
typedef struct GridLinks {
    /* between ranks of a tensor group, between replicas, between neighbouring stages */
    double tp, dp, pp;
} GridLinks;
GridLinks topo_grid_links(const Topology *topo, GridShape shape, const int *map);

#endif
