/* The keys of the file of a machine's times. */
#ifndef WEFT_MACHINE_TIMES_FILE_H
#define WEFT_MACHINE_TIMES_FILE_H

#include "machine/times.h"

/* Three groups: keys that every file has, before KEYS_DESCRIBED; keys of measured times, before
 * KEYS_MEASURED, which a file without `rates` must have; and optional keys. */
#define FILE_KEYS(W)                                                                               \
    W(KEY_VERSION, "weft_machine")                                                                 \
    W(KEY_HOST, "host")                                                                            \
    W(KEY_RANKS, "ranks")                                                                          \
    W(KEY_CPU, "cpu")                                                                              \
    W(KEY_MEASURED, "measured")                                                                    \
    W(KEY_SETUP, "setup")                                                                          \
    W(KEY_THREADS, "threads")                                                                      \
    W(KEY_MOVE, "move_byte_s")                                                                     \
    W(KEY_ACTION, "action_s")                                                                      \
    W(KEY_UPDATE, "update_s")                                                                      \
    W(KEY_REST, "rest_s")                                                                          \
    W(KEY_OPERATIONS, "operations")                                                                \
    W(KEY_MESSAGE, "message")                                                                      \
    W(KEY_SUMS, "sums")                                                                            \
    W(KEY_NODES, "nodes")                                                                          \
    W(KEY_MEMORY, "memory_bytes")                                                                  \
    W(KEY_NETWORK, "network")                                                                      \
    W(KEY_RATES, "rates")
enum {
    FILE_KEYS(LIST_CONSTANT) KEY_COUNT,
    KEYS_DESCRIBED = KEY_CPU,
    KEYS_MEASURED = KEY_MESSAGE,
    MACHINE_VERSION = 1
};
extern const char *const machine_keys[KEY_COUNT];

#endif
