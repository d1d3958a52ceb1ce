/* Times measured on a machine: in memory, and in a file. Not collective. */
#ifndef WEFT_MACHINE_TIMES_H
#define WEFT_MACHINE_TIMES_H

#include "parallel/sums.h"
#include "pipeline/operation_times.h"

/* Measured times of an operation. Operations with equal keys are assumed to take equal times. */
typedef struct OperationTime {
    /* description of the operation (operation_key); owned */
    char *key;
    /* true: the part was measured, [part] */
    bool has[OPERATION_PART_COUNT];
    /* seconds of each part that was measured, [part] */
    TimeRange part[OPERATION_PART_COUNT];
} OperationTime;

/* Time of a sum over replicas on one node: link.latency_s + bytes * link.s_per_byte. */
typedef struct SumTime {
    /* number of ranks whose values are summed */
    int ranks;
    Link link;
} SumTime;
/* largest value of Machine.overlap_compute that a file may have */
enum { OVERLAP_MAX = 100 };

/* Rates of one rank while all ranks of its node compute. They are written by hand into the file of
 * a machine that was not measured, or not with all operations. */
typedef struct Rates {
    /* floating-point operations per second; a multiply-add counts as two */
    double flops_per_s;
    /* bytes read and written per second */
    double bytes_per_s;
    /* seconds of a call of an operation, in addition to its calculations and its memory traffic */
    double call_s;
} Rates;

/* The times and rates of a machine, which is a node or several equal nodes. */
typedef struct Machine {
    /* name of the host; owned */
    char *host;
    /* model of the host's processor; owned; NULL if nothing was measured */
    char *cpu;
    /* time of the measurement in UTC, as text; owned; NULL if nothing was measured */
    char *measured;
    /* settings on which times depend (train_settings_text), as in the measured run; NULL if nothing
     * was measured; owned */
    char *setup;
    /* number of ranks of one node, which all computed during the measurement */
    int ranks;
    /* number of threads of one rank; 0: nothing was measured */
    int threads;
    /* number of equal nodes, at least 1 */
    int nodes;
    /* memory of one node in bytes; 0: not known */
    double memory_bytes;
    /* bytes per second that all ranks of a node together read and write in memory; 0: not known */
    double memory_bytes_per_s;
    /* bytes per second of all ranks of a node together, while all nodes work; 0: not known. read:
     * rate of reading the training set; save: rate of writing a file, syncing it and reading it
     * back */
    double read_bytes_per_s, save_bytes_per_s;
    /* true: the times of operations that were not measured are computed from `rates` */
    bool has_rates;
    Rates rates;
    /* times of operations, in ascending order of their keys, [operation_count]; owned */
    OperationTime *operation;
    int operation_count;
    /* seconds per byte that copies and additions between operations read or write */
    double move_s_per_byte;
    /* time between two actions of a pass, in seconds */
    double action_s;
    /* seconds of the optimizer's update for each trained parameter of the rank */
    TimeRange update_s;
    /* seconds of the rest of a step: bookkeeping, and fetching micro-batches that the loader has
     * ready */
    TimeRange rest_s;
    /* true: message_link is known, the time of a message between two ranks of a node */
    bool has_message;
    Link message_link;
    /* true: network_link is known, the time of a message between two nodes. Its s_per_byte is the
     * time of a byte on a node's whole connection in one direction, which the ranks of the node
     * share */
    bool has_network;
    Link network_link;
    /* factor by which computing takes longer while messages between nodes, including those of sums,
     * are on their way to or from the rank's node; 1: it takes no longer */
    double overlap_compute;
    /* times of sums, one for each measured number of ranks, [sum_count]; owned */
    SumTime *sum_time;
    int sum_count;
} Machine;

/* Returns a range with the low value 0.8, the median 1 and the high value 1.25 times `seconds`.
 * Forecasts from rates have errors of about this size. */
TimeRange rates_range(double seconds);
/* Returns the times of the operation with this key, or NULL. Borrowed. */
const OperationTime *machine_find(const Machine *machine, const char *key);
/* Adds measured times of an operation. If the machine already has the key, the new times are
 * combined with the old ones: the mean of the medians, the lower low value and the greater high
 * value (TimeRange). */
void machine_add(Machine *machine, const OperationTime *time);
/* Reads a file that machine_write has written, or one that was written by hand with rates.
 * ERR_NOINPUT: there is no such file. ERR_CONFIG: the file is invalid; the error's text has line
 * and column. Release with machine_fini. */
Status machine_read(Machine *machine, const char *path);
/* Writes a YAML file, without Machine.rates, and replaces a file at this path. ERR_IO: the file
 * cannot be written. */
Status machine_write(const Machine *machine, const char *path);
void machine_fini(Machine *machine);

#endif
