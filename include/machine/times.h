/* Times measured on a machine: in memory, and in a file. Not collective. */
#ifndef WEFT_MACHINE_TIMES_H
#define WEFT_MACHINE_TIMES_H

#include "parallel/sums.h"
#include "pipeline/operation_times.h"

/* Measured times of an operation. Operations with equal keys are assumed to need equal times. */
typedef struct OperationTime {
    /* description of the operation (operation_key); owned */
    char *key;
    /* true: the part was measured */
    bool has[OPERATION_PART_COUNT];
    /* time of each part */
    TimeRange part[OPERATION_PART_COUNT];
} OperationTime;

/* Time of a sum over replicas on one node: link.latency_s + bytes * link.s_per_byte. */
typedef struct SumTime {
    /* number of ranks whose values are summed */
    int ranks;
    Link link;
} SumTime;
/* largest factor of an overlap that a file may have */
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

typedef struct Machine {
    /* name of the host, model of its processor, and time of the measurement in UTC; the last two
     * are NULL if nothing was measured; owned */
    char *host, *cpu, *measured;
    /* settings on which times depend (train_setup), as in the measured run; NULL if nothing was
     * measured; owned */
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
    /* Rates of all ranks of a node together, while all nodes work, in bytes per second; 0: not
     * known. read: of reading the training set; save: of writing a file, syncing it and reading it
     * back. */
    double read_bytes_per_s, save_bytes_per_s;
    /* true: the times of operations that were not measured are computed from `rates` */
    bool has_rates;
    Rates rates;
    /* operations in ascending order of their keys; owned */
    OperationTime *operation;
    int operation_count;
    /* copies and additions between operations: seconds per byte read or written */
    double move_s_per_byte;
    /* time between two actions of a pass, in seconds */
    double action_s;
    /* seconds of the optimizer's update for each trained parameter of the rank */
    TimeRange update_s;
    /* seconds of the rest of a step: bookkeeping, and fetching micro-batches that the loader has
     * ready */
    TimeRange rest_s;
    /* true: the time of a message between two ranks of a node is known */
    bool has_message;
    Link message;
    /* true: the time of a message between two nodes is known. s_per_byte is the time of a byte on a
     * node's whole connection in one direction, which the ranks of the node share */
    bool has_network;
    Link network;
    /* factor by which computing takes longer while messages between nodes are on their way to or
     * from the rank's node, also those of sums; 1: it does not */
    double overlap_compute;
    /* sums, one for each measured number of ranks; owned */
    SumTime *sum;
    int sum_count;
} Machine;

/* Returns the range 0.8, 1 and 1.25 times `seconds`, since forecasts from rates have errors of
 * about that size. */
TimeRange rates_range(double seconds);
/* Returns the operation with this key, or NULL. Borrowed. */
const OperationTime *machine_find(const Machine *machine, const char *key);
/* Adds measured times of an operation. If the machine has the key already, the new times are
 * combined with the old ones: the mean of the medians, the least low and the greatest high
 * (TimeRange). */
void machine_add(Machine *machine, const OperationTime *time);
/* Reads a file of machine_write, or one written by hand with rates. ERR_NOINPUT: there is no such
 * file. ERR_CONFIG: the file is invalid; the message has line and column. Release with
 * machine_fini. */
Status machine_read(Machine *machine, const char *path);
/* Writes a YAML file without Machine.rates; a file with this path is replaced. ERR_IO: it cannot be
 * written. */
Status machine_write(const Machine *machine, const char *path);
void machine_fini(Machine *machine);

#endif
