/* Declarations shared by the verbs of weft topo. */
#ifndef WEFT_CLI_TOPO_H
#define WEFT_CLI_TOPO_H

#include "topo.h"

/* The work of a verb with a topology, on rank 0. */
typedef Status TopoUse(const Topology *topo, const void *options);
/* Runs the verb `name`, which has only flags. Reads the topology from the file `from`, or, if from
 * is NULL, measures and describes it with all started ranks; then calls `use`. Collective on all
 * started processes. */
Status topo_run(const char *name, int argc, char **argv, const char *from, TopoUse *use,
                const void *options);

/* largest number of ranks for which all links are printed as numbers */
enum { MATRIX_RANKS_MAX = 16 };
/* topo_text.c. Prints the topology for people. */
void topo_print_text(const Topology *topo);

#endif
