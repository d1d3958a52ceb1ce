/* Writes and reads the hardware of a node in files of topologies. */
#ifndef WEFT_TOPO_HARDWARE_FILE_H
#define WEFT_TOPO_HARDWARE_FILE_H

#include "config/yaml.h"
#include "topo/hardware.h"

/* Writes the hardware as a JSON object without a key. */
void hardware_print(Json *json, const Hardware *hardware);
/* Reads the hardware from such an object. path: name of its file in messages. ERR_CONFIG, with line
 * and column in the message. Release with hardware_fini. */
Status hardware_from_yaml(Hardware *hardware, const char *path, const YamlNode *node);

#endif
