/* Times of a model's operations, measured while its steps run. Not collective. */
#ifndef WEFT_PIPELINE_OPERATION_TIMES_H
#define WEFT_PIPELINE_OPERATION_TIMES_H

#include "base/text.h"

/* The parts of an operation that a schedule may run at different times: forward; data: the
 * gradients of inputs, including op_backward_begin; weight: the gradients of weights. */
#define OPERATION_PARTS(W) W(PART_FORWARD, "forward") W(PART_DATA, "data") W(PART_WEIGHT, "weight")
typedef enum OperationPart { OPERATION_PARTS(LIST_CONSTANT) OPERATION_PART_COUNT } OperationPart;
extern const char *const operation_part_names[OPERATION_PART_COUNT];

/* Seconds of each part of an operation. */
typedef struct PartSeconds {
    double s[OPERATION_PART_COUNT];
} PartSeconds;

/* The 10th percentile of measured times, their median, and their 90th percentile, in seconds. */
typedef struct TimeRange {
    double low, median, high;
} TimeRange;
/* Returns the range of the measured times s[0 .. count - 1], and sorts them. count: above 0. */
TimeRange time_range(double *s, int count);

typedef struct OperationTimes OperationTimes;
/* Makes an empty record of times. nodes: number of nodes of the graph; capacity: largest number of
 * times that are kept for each part of a node; later times are only counted in the totals. The
 * caller owns it. */
OperationTimes *operation_times_new(int nodes, int capacity);
void operation_times_free(OperationTimes **times);
/* Adds a time of a part of an operation. */
void operation_times_add(OperationTimes *times, int node, OperationPart part, double seconds);
/* Adds the seconds of copies and additions between operations, which moved `bytes` bytes. */
void operation_times_add_move(OperationTimes *times, double seconds, double bytes);
/* Adds the seconds that the rank has spent between operations on the progress of sums and
 * messages. */
void operation_times_add_poll(OperationTimes *times, double seconds);
/* Sets *range to the range of the times of a part. Returns false if the part has never run. */
bool operation_times_range(const OperationTimes *times, int node, OperationPart part,
                           TimeRange *range);
/* Totals of all added times. */
typedef struct OperationTotals {
    /* operations_s: seconds of operations; moves_s: seconds of moves, which are copies and
     * additions between operations; moved_bytes: bytes of moves; polls_s: seconds of polls */
    double operations_s, moves_s, moved_bytes, polls_s;
    /* number of calls of operation_times_add and operation_times_add_move */
    double actions;
} OperationTotals;
OperationTotals operation_times_totals(const OperationTimes *times);

#endif
