/* Times measured on a machine, and their file. Not collective. */
#ifndef WEFT_MACHINE_TIMES_H
#define WEFT_MACHINE_TIMES_H

#include "parallel/sums.h"
#include "pipeline/operation_times.h"

/* Measured times of an operation. Operations with equal keys are taken to need equal times. */
typedef struct OperationTime {
    /* description of the operation (operation_key); owned */
    char *key;
    /* true: the part was measured */
    bool has[OPERATION_PART_COUNT];
    /* time of each part */
    TimeRange part[OPERATION_PART_COUNT];
} OperationTime;

/* Time of a sum over replicas on one node. */
typedef struct SumTime {
    /* number of ranks that sum */
    int ranks;
    Link link;
} SumTime;

/* Rates of one rank while all ranks of its node compute, given for a machine that was not
 * measured. */
typedef struct Rates {
    /* floating-point operations per second; a multiply-add counts as two */
    double flops_per_s;
    /* bytes read and written per second */
    double bytes_per_s;
    /* seconds that a call of an operation takes besides */
    double call_s;
} Rates;

typedef struct Machine {
    /* name of the host, model of its processor, and time of the measurement in UTC; the last two
     * are NULL if nothing was measured; owned */
    char *host, *cpu, *measured;
    /* settings of the run on which times depend (train_setup); NULL if nothing was measured;
     * owned */
    char *setup;
    /* ranks of one node; they computed at the same time */
    int ranks;
    /* threads of one rank; 0: nothing was measured */
    int threads;
    /* number of equal nodes, at least 1 */
    int nodes;
    /* memory of one node; 0: not known */
    double memory_bytes;
    /* true: the times of operations that were not measured follow from rates */
    bool has_rates;
    Rates rates;
    /* operations in ascending order of their keys; owned */
    OperationTime *operation;
    int operation_count;
    /* copies and additions between operations: seconds per byte read or written */
    double move_s_per_byte;
    /* time between two actions of a pass */
    double action_s;
    /* time of the optimizer's update per trained parameter of the rank */
    TimeRange update_s;
    /* the rest of a step: bookkeeping, and taking micro-batches that the loader has ready */
    TimeRange rest_s;
    /* true: the time of a message between two ranks of a node is known */
    bool has_message;
    Link message;
    /* true: the time of a message between two nodes is known. s_per_byte is the time of a byte on a
     * node's whole connection in one direction, which the ranks of the node share */
    bool has_network;
    Link network;
    /* sums, one for each measured number of ranks; owned */
    SumTime *sum;
    int sum_count;
} Machine;

/* Returns 0.8, 1 and 1.25 times `seconds`: forecasts from rates have errors of that size. */
TimeRange rates_range(double seconds);
/* Returns the operation with this key, or NULL. Borrowed. */
const OperationTime *machine_find(const Machine *machine, const char *key);
/* Adds measured times of an operation. If its key is there already, the new times are combined with
 * the old ones: the mean of the medians, the least low and the greatest high (TimeRange). */
void machine_add(Machine *machine, const OperationTime *time);
/* Reads a file that machine_write wrote. ERR_NOINPUT: there is no such file; ERR_CONFIG: file, line
 * and column of what is wrong. Release with machine_fini. */
Status machine_read(Machine *machine, const char *path);
/* Writes a YAML file; replaces one of that name. ERR_IO. */
Status machine_write(const Machine *machine, const char *path);
void machine_fini(Machine *machine);

#endif
