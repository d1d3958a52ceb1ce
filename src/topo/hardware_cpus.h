/* Describes the CPUs, memory and caches of a node by hwloc. */
#ifndef WEFT_TOPO_HARDWARE_CPUS_H
#define WEFT_TOPO_HARDWARE_CPUS_H

#include "topo/hardware.h"

/* Adds packages, NUMA nodes, caches and cores of this node, and sets the model of its processors.
 * ERR_CONFIG: hwloc fails. */
Status hardware_add_cpus(Hardware *hardware);

#endif
