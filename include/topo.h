/* topo: the nodes and the ranks on them, the speed of the links between ranks, and orders of ranks
 * in which the slowest link is as fast as possible: rings, paths, trees and the places of a grid.
 * Nothing in this module changes the results of a run. */
#ifndef WEFT_TOPO_H
#define WEFT_TOPO_H

#include "parallel.h"
#include "topo/hardware.h"

/* Largest number of ranks of a topology in a file. */
enum { TOPO_RANKS_MAX = 4096 };
/* Nodes, the ranks on them, and the links between ranks. Matrices are [ranks][ranks], symmetric, 0
 * on the diagonal. */
typedef struct Topology {
    /* ranks: number of ranks, 0 if only the nodes are described; nodes: number of nodes */
    int ranks, nodes;
    /* names of the nodes, [nodes]; owned */
    char **host;
    /* node of each rank, [ranks]; owned */
    int *node;
    /* CPUs that each rank may use, "0-3,8", [ranks]; owned */
    char **cpus;
    /* seconds of a small message while no other pair sends; matrix, owned; this matrix and the next
     * two are NULL if nothing was measured */
    double *latency_s;
    /* rate of a large message while no other pair sends; matrix, owned */
    double *bytes_per_s;
    /* rate of a large message while all ranks send; matrix, owned */
    double *together_bytes_per_s;
    /* network switches from the top-level switch to the switch of the node, "s0.s4", as
     * SLURM_TOPOLOGY_ADDR has them, [nodes]; "": not known; owned */
    char **switches;
    /* index in `hardware` of each node's kind of hardware, -1: not described, [nodes]; owned; NULL:
     * no node is described */
    int *hardware_index;
    /* hardware of each kind of node, [hardware_count]; owned */
    Hardware *hardware;
    int hardware_count;
} Topology;
/* Measures all pairs of ranks in rounds. In a round each rank is in at most one pair; first the
 * pairs of the round send one after the other, then all at the same time. The slow pairs, at most
 * the 64 slowest, are then measured once more, each alone, and the higher rate counts. Every rank
 * gets the result and releases it with topo_fini. budget_s: approximate seconds of all
 * measurements. Collective. */
Status topo_measure(Topology *topo, const World *world, double budget_s);
/* Fills ranks, nodes, switches and CPUs without measuring; the matrices are NULL. Release with
 * topo_fini. Collective. */
void topo_describe(Topology *topo, const World *world);
/* Adds the hardware of all nodes, with GPUs if `gpus` is true, to a topology from topo_measure or
 * topo_describe. ERR_CONFIG: hwloc fails on a node; nothing is added. Collective. */
Status topo_describe_hardware(Topology *topo, const World *world, bool gpus);
/* Reads a file that topo_write has written, or hwloc's XML of a node (lstopo FILE.xml), which has
 * no ranks. ERR_NOINPUT: there is no such file. ERR_CONFIG: the file is invalid; the message has
 * line and column. Release with topo_fini. */
Status topo_read(Topology *topo, const char *path);
/* Writes the content of a topology file to `out`; the caller finds errors with ferror(out). */
void topo_print(const Topology *topo, FILE *out);
/* Writes a topology file. ERR_IO: the file cannot be written. */
Status topo_write(const Topology *topo, const char *path);
void topo_fini(Topology *topo);
/* Removes the hardware that topo_describe_hardware added. */
void topo_fini_hardware(Topology *topo);
/* Returns the rate of the link between two ranks, in bytes per second. */
static inline double topo_rate(const Topology *topo, int a, int b)
{
    return topo->bytes_per_s[(int64_t)a * topo->ranks + b];
}

/* Classes of links, which differ in rate. If sockets are not known, all links of a node are in
 * LINK_NODE; if switches are not known, all links between nodes are in LINK_NODES. */
#define LINK_CLASSES(W)                                                                            \
    W(LINK_PACKAGE, "within sockets")                                                              \
    W(LINK_NODE, "within nodes")                                                                   \
    W(LINK_SWITCH, "under one switch")                                                             \
    W(LINK_NODES, "between nodes")
typedef enum LinkClass { LINK_CLASSES(LIST_CONSTANT) LINK_CLASS_COUNT } LinkClass;
/* Returns the name of a class, for example "within nodes". */
const char *link_class_name(LinkClass class);
/* The links of a class. pairs: number of its pairs of ranks, 0 if nothing was measured. The other
 * fields are those of Topology: medians over the pairs, and the lowest and the highest rate. */
typedef struct LinkSummary {
    int pairs;
    double latency_s, bytes_per_s, bytes_per_s_min, bytes_per_s_max, together_bytes_per_s;
} LinkSummary;
/* Computes the summary of each class. */
void topo_summarize(const Topology *topo, LinkSummary summary[LINK_CLASS_COUNT]);

/* A pair of ranks, a and b, whose rate is far below that of its class. class_median: median rate of
 * the class. */
typedef struct SlowPair {
    int a, b;
    LinkClass class;
    double bytes_per_s, class_median;
} SlowPair;
/* Lists the pairs with less than 0.8 of the median rate of their class, the pair with the lowest
 * fraction of the median first. If a node is slow (topo_slow_nodes), its links to other nodes are
 * left out of the list and of the median. The caller owns *pairs. Returns the number of pairs. */
int topo_slow_pairs(const Topology *topo, SlowPair **pairs);
/* A slow node: even its fastest link to other nodes is slow. */
typedef struct SlowNode {
    int node;
    /* bytes_per_s: rate of this node's fastest link to another node; nodes_median: median of this
     * rate over all nodes */
    double bytes_per_s, nodes_median;
} SlowNode;
/* Lists the nodes whose fastest link to another node has less than 0.8 of the median of this rate
 * over all nodes. The caller owns *nodes. Returns the number of nodes. */
int topo_slow_nodes(const Topology *topo, SlowNode **nodes);

/* How an order was found. */
typedef enum OrderSearch {
    /* the best of all orders */
    ORDER_EXACT,
    /* the best order of the nodes, and the best order of the ranks inside each node */
    ORDER_LEVELS,
    /* not certainly the best: nearest neighbours, improved by 2-opt, because a node has more than
     * ORDER_EXACT_MAX ranks, or there are more than ORDER_EXACT_MAX nodes */
    ORDER_HEURISTIC
} OrderSearch;
/* Largest number of ranks, or of nodes, of an exact search; order.c says what such a search
 * costs. */
enum { ORDER_EXACT_MAX = 20 };
/* An order of all ranks, chosen so that the slowest link between neighbours is as fast as
 * possible. */
typedef struct Order {
    /* ranks in order, [ranks]; owned */
    int *rank;
    OrderSearch search;
    /* rate of the slowest link between neighbours; INFINITY: there is none */
    double slowest;
    /* index in `rank` of the first of the two neighbours with this link; -1: there is none */
    int slowest_at;
} Order;
/* topo_path finds an order of all ranks. topo_ring finds an order that begins with rank 0, and in
 * which the last rank is also a neighbour of the first. If several orders are equally good, every
 * call finds the same one. Release with order_fini. */
void topo_ring(const Topology *topo, Order *order);
void topo_path(const Topology *topo, Order *order);
void order_fini(Order *order);

/* The tree of all ranks whose slowest link is as fast as possible, with the root for which the tree
 * is least deep. */
typedef struct RankTree {
    int root, depth;
    /* parent of each rank, -1 for the root, [ranks]; owned */
    int *parent;
    /* rate of the slowest link; INFINITY: there is only one rank */
    double slowest;
} RankTree;
/* Finds this tree. Release with tree_fini. */
void topo_tree(const Topology *topo, RankTree *tree);
void tree_fini(RankTree *tree);

/* Returns the places of a grid, map[ranks], owned by the caller: map[r] is the number in
 * MPI_COMM_WORLD of the process that gets rank r of the grid; map[0] is 0. The ranks of a node are
 * consecutive. So the ranks of a tensor-parallel group share a node if they fit on it, and
 * neighbouring replicas share a node if there is room. The links between neighbours, within a node
 * and between nodes, are as fast as possible. *search: how the order was found. */
int *topo_places(const Topology *topo, OrderSearch *search);
/* Returns places in the same form without using rates: the nodes in the order of their numbers, and
 * the ranks of each node in the order of their numbers. */
int *topo_places_by_node(const Topology *topo);
/* Read and write a map of places: a list of the numbers of processes in YAML. ERR_NOINPUT: there is
 * no such file. ERR_CONFIG: the list is not a permutation of `ranks` processes, or does not begin
 * with 0. ERR_IO: the file cannot be read or written. The caller owns *map. */
Status places_read(int **map, int ranks, const char *path);
Status places_write(const int *map, int ranks, const char *path);
/* Rates of the slowest links in a grid, in bytes per second; INFINITY: there are no such links. */
typedef struct GridLinks {
    /* tp: between any two ranks of a tensor-parallel group; dp: between any two replicas; pp:
     * between neighbouring stages */
    double tp, dp, pp;
} GridLinks;
/* Returns the slowest rates of a grid of this shape in which process map[r] has rank r; if map is
 * NULL, process r has rank r. */
GridLinks topo_grid_links(const Topology *topo, GridShape shape, const int *map);

#endif
