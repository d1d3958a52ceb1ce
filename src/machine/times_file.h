/* The keys of the file of a machine's times, and which of them a file must have. */
#ifndef WEFT_MACHINE_TIMES_FILE_H
#define WEFT_MACHINE_TIMES_FILE_H

#include "machine/times.h"

/* The keys are in three groups: KEY_VERSION to KEY_RANKS, which every file must have; KEY_CPU to
 * KEY_OPERATIONS, which a file without `rates` must have, because its times were measured; and
 * optional keys. KEY_MEASURED is the time of the measurement, KEY_MEMORY is Machine.memory_bytes,
 * KEY_REST is Machine.rest_s. */
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
    W(KEY_MEMORY_RATE, "memory")                                                                   \
    W(KEY_FILES, "files")                                                                          \
    W(KEY_NETWORK, "network")                                                                      \
    W(KEY_OVERLAP, "overlap")                                                                      \
    W(KEY_RATES, "rates")
enum {
    FILE_KEYS(LIST_CONSTANT) KEY_COUNT,
    /* number of keys that a file with `rates` must have */
    REQUIRED_WITH_RATES = KEY_CPU,
    /* number of keys that a file without `rates` must have */
    REQUIRED_WITHOUT_RATES = KEY_MESSAGE,
    MACHINE_VERSION = 1
};
extern const char *const machine_keys[KEY_COUNT];

#endif
