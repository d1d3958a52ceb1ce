/* The ranks on each part of a node, for pictures and texts. A layout is a group of nodes. Two nodes
 * are in one layout if they have equal hardware and the same number of ranks, and if the i-th rank
 * of one node has the same CPUs as the i-th rank of the other. Nodes without described hardware are
 * one layout. A picture shows only the first node of each layout. Not collective. */
#ifndef WEFT_TOPO_LAYOUT_H
#define WEFT_TOPO_LAYOUT_H

#include "topo.h"

/* Returns the index of each node's layout, [nodes], owned by the caller. Layouts have the indexes
 * 0, 1, ... in the order of their first nodes. *count: number of layouts. */
int *topo_layouts(const Topology *topo, int *count);
/* Returns the hardware of a node, or NULL if it is not described. Borrowed. */
const Hardware *topo_hardware(const Topology *topo, int node);
/* Returns the ranks of a node that may use at least one CPU of the set, as a list "0 1". Ranks that
 * may use all CPUs of the node are left out. The list is empty if there are no such ranks or the
 * node's hardware is not described. If there are more than `most` such ranks, the list has the
 * first `most` and then "...". The caller owns it. */
char *topo_ranks_on(const Topology *topo, int node, const cpu_set_t *cpus, int most);
/* Returns the ranks that topo_ranks_on leaves out because they may use all CPUs of the node, as a
 * list in the same form. The caller owns it. */
char *topo_ranks_unbound(const Topology *topo, int node, int most);

/* Writes a size of memory, such as "1.25 MiB", to `out`, which has at least 16 bytes. The units are
 * powers of 1024. Returns out. */
char *memory_text(int64_t bytes, char *out);
/* Returns true if the part is a core, or an L2 cache with only one core. *core: index of the core.
 * *l2_bytes: size of the L2 cache, 0 if the part is a core. */
bool hardware_is_core(const Hardware *hardware, int part, int *core, int64_t *l2_bytes);

#endif
