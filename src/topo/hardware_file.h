/* Hardware in files of topologies. */
#ifndef WEFT_TOPO_HARDWARE_FILE_H
#define WEFT_TOPO_HARDWARE_FILE_H

#include "config/yaml.h"
#include "topo/hardware.h"

/* Writes the hardware as an object, a value of an array or the outermost value. */
void hardware_print(Json *json, const Hardware *hardware);
/* Reads such an object; path: name of its file in messages. ERR_CONFIG with line and column.
 * Release with hardware_fini. */
Status hardware_from_node(Hardware *hardware, const char *path, const Node *node);

#endif
