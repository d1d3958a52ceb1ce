/* Times measured on a machine, and their file. Not collective. */
#ifndef WEFT_MACHINE_TIMES_H
#define WEFT_MACHINE_TIMES_H

#include "parallel/sums.h"
#include "pipeline/operation_times.h"

/* Measured times of an operation. Operations with equal keys are taken to need equal times. */
typedef struct OperationTime {
    /* description of the operation (operation_key); owned */
    char *key;
    /* whether each part was measured, and its time */
    bool has[OPERATION_PART_COUNT];
    TimeRange part[OPERATION_PART_COUNT];
} OperationTime;

/* Time of a sum over replicas on one node. */
typedef struct SumTime {
    int ranks;
    Link link;
} SumTime;

typedef struct Machine {
    /* name of the host, model of its processor, and time of the measurement in UTC; owned */
    char *host, *cpu, *measured;
    /* settings of the run on which times depend (train_setup); owned */
    char *setup;
    /* ranks that computed at the same time, and threads of each */
    int ranks, threads;
    /* operations in ascending order of their keys; owned */
    OperationTime *operation;
    int operation_count;
    /* copies and additions between operations: seconds per byte read or written */
    double move_byte_s;
    /* time between two actions of a pass */
    double action_s;
    /* time of the optimizer's update per trained parameter of the rank */
    TimeRange update_s;
    /* the rest of a step: bookkeeping, and the loader's micro-batches that are ready */
    TimeRange rest_s;
    /* whether a message between two ranks of a node was measured, and its time */
    bool has_message;
    Link message;
    /* sums, one for each measured number of ranks; owned */
    SumTime *sum;
    int sum_count;
} Machine;

/* Returns the operation with this key, or NULL. Borrowed. */
const OperationTime *machine_find(const Machine *machine, const char *key);
/* Adds measured times of an operation. If its key is there already, the new times are combined with
 * the old ones: the mean of the medians, the least low and the greatest high. */
void machine_add(Machine *machine, const OperationTime *time);
/* Reads a file that machine_write wrote. ERR_NOINPUT: there is no such file; ERR_CONFIG: file, line
 * and column of what is wrong. Release with machine_fini. */
Status machine_read(Machine *machine, const char *path);
/* Writes a YAML file; replaces one of that name. ERR_IO. */
Status machine_write(const Machine *machine, const char *path);
void machine_fini(Machine *machine);

#endif
