/* Layouts: the ranks on the parts of a node. Nodes with equal hardware and with ranks on equal CPUs
 * have one layout, so that they are shown once. Not collective. */
#ifndef WEFT_TOPO_LAYOUT_H
#define WEFT_TOPO_LAYOUT_H

#include "topo.h"

/* Returns the number of each node's layout, [nodes], owned by the caller. Layouts are numbered from
 * 0 in the order of their first nodes. *count: number of layouts. */
int *topo_layouts(const Topology *topo, int *count);
/* Returns the hardware of a node, or NULL if it is not described. Borrowed. */
const Hardware *topo_hardware(const Topology *topo, int node);
/* Returns a list of the ranks of a node, as "0 1", that may use a CPU of the set, but not all CPUs
 * of the node; "" if there are none. After `most` ranks the list ends with "...". The caller owns
 * the list. */
char *topo_ranks_on(const Topology *topo, int node, const cpu_set_t *cpus, int most);
/* Returns a list, in the same form, of the ranks of a node that may use all CPUs of the node. */
char *topo_ranks_unbound(const Topology *topo, int node, int most);

/* Writes a size of memory in powers of 1024, "1.25 MiB", to out, at least 16 chars, and returns
 * out. */
char *memory_text(int64_t bytes, char *out);
/* Returns true if the part is a core, or an L2 cache with only one core. *core: index of the core.
 * *l2_bytes: size of the L2 cache; 0: the part is a core. */
bool hardware_is_core(const Hardware *hardware, int part, int *core, int64_t *l2_bytes);

#endif
