/* Declarations shared by the verbs of weft topo. */
#ifndef WEFT_CLI_TOPO_H
#define WEFT_CLI_TOPO_H

#include "topo.h"

/* Function that does the work of a verb with a topology. Called on rank 0. */
typedef Status TopoUse(const Topology *topo, const void *options);
/* Runs the verb `name`, which has only flags. Reads the topology from the file `from`. If `from` is
 * NULL, it measures the links between all ranks that were started, and describes their hardware.
 * Then it calls `use`. Collective on all ranks that were started. */
Status topo_run(const char *name, int argc, char **argv, const char *from, TopoUse *use,
                const void *options);

/* largest number of ranks for which the numbers of all links are printed */
enum { MATRIX_RANKS_MAX = 16 };
/* Prints the topology as text for people (topo_text.c). */
void topo_print_text(const Topology *topo);

#endif
