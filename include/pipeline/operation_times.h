/* Times of a model's operations, measured while its steps run. Not collective. */
#ifndef WEFT_PIPELINE_OPERATION_TIMES_H
#define WEFT_PIPELINE_OPERATION_TIMES_H

#include "base/text.h"

/* The parts of an operation that a schedule may run at different times. The gradients of inputs
 * include op_backward_begin. */
#define OPERATION_PARTS(W) W(PART_FORWARD, "forward") W(PART_DATA, "data") W(PART_WEIGHT, "weight")
typedef enum OperationPart { OPERATION_PARTS(LIST_CONSTANT) OPERATION_PART_COUNT } OperationPart;
extern const char *const operation_part_names[OPERATION_PART_COUNT];

/* Seconds of each part of an operation. */
typedef struct PartSeconds {
    double s[OPERATION_PART_COUNT];
} PartSeconds;

/* Ten per cent of the measured times are below `low`, half of them below `median`, and ten per cent
 * above `high`. Seconds. */
typedef struct TimeRange {
    double low, median, high;
} TimeRange;
/* Sorts the measured times s[count], count > 0. */
TimeRange time_range(double *s, int count);

typedef struct OperationTimes OperationTimes;
/* nodes: of the graph. capacity: number of times that are kept of each part of a node; later ones
 * are left out. Owner: the caller. */
OperationTimes *operation_times_new(int nodes, int capacity);
void operation_times_free(OperationTimes **times);
void operation_times_add(OperationTimes *times, int node, OperationPart part, double seconds);
/* Adds seconds of copies and additions between operations, that moved this number of bytes. */
void operation_times_add_move(OperationTimes *times, double seconds, double bytes);
/* Adds seconds in which sums and messages made progress between operations. */
void operation_times_add_poll(OperationTimes *times, double seconds);
/* False if a part of a node has never run. */
bool operation_times_range(const OperationTimes *times, int node, OperationPart part,
                           TimeRange *range);
/* Sums of what was added. */
typedef struct OperationTotals {
    double operations_s, moves_s, moved_bytes, polls_s;
    /* number of times of operations and moves */
    double actions;
} OperationTotals;
OperationTotals operation_times_totals(const OperationTimes *times);

#endif
