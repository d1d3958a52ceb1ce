/* Shared by the verbs of weft topo: where a topology comes from. */
#ifndef WEFT_CLI_TOPO_H
#define WEFT_CLI_TOPO_H

#include "topo.h"

/* Reads the topology from a file, or measures it with all started ranks if from is NULL. On ranks
 * other than 0, *topo is empty after a file was read. Collective. */
Status topo_take(Topology *topo, const World *world, const char *from);

#endif
