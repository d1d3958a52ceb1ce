/* Which ranks are on which parts of a node. Nodes with equal hardware, whose ranks have equal CPUs,
 * have one layout, so that they are shown once. Not collective. */
#ifndef WEFT_TOPO_LAYOUT_H
#define WEFT_TOPO_LAYOUT_H

#include "topo.h"

/* Returns the layout of each node, [nodes], counted in the order of their first nodes. The caller
 * owns it. */
int *topo_layouts(const Topology *topo, int *count);
/* Returns the hardware of a node, or NULL if it is not described. Borrowed. */
const Hardware *topo_hardware(const Topology *topo, int node);
/* Lists the ranks of a node, as "0 1", that may use a CPU of the set, but not all CPUs of the node;
 * "" if there are none. After `most` ranks the list ends with "...". The caller owns it. */
char *topo_ranks_on(const Topology *topo, int node, const cpu_set_t *cpus, int most);
/* Lists the ranks of a node that may use all of its CPUs, in the same way. */
char *topo_ranks_unbound(const Topology *topo, int node, int most);

/* Writes a size of memory in powers of 1024, "1.25 MiB", into at least 16 chars, which it
 * returns. */
char *memory_text(int64_t bytes, char *out);
/* True if the part is a core, or an L2 cache with one core. *core: index of the core; *l2_bytes:
 * size of that cache, 0 if there is none. */
bool hardware_is_core(const Hardware *hardware, int part, int *core, int64_t *l2_bytes);

#endif
