/* Shared by the verbs of weft topo. */
#ifndef WEFT_CLI_TOPO_H
#define WEFT_CLI_TOPO_H

#include "topo.h"

/* The use that a verb makes of a topology, on rank 0. */
typedef Status TopoUse(const Topology *topo, const void *options);
/* Runs a verb of this name, which takes flags only: reads the topology from a file, or measures and
 * describes it with all started ranks if from is NULL, and calls use. Collective on all started
 * processes. */
Status topo_run(const char *name, int argc, char **argv, const char *from, TopoUse *use,
                const void *options);

/* Most ranks of which all links are printed as numbers. */
enum { MATRIX_RANKS_MAX = 16 };
/* topo_text.c. Prints the topology for people. */
void topo_print_text(const Topology *topo);

#endif
