/* The ledger of a run: the time of the ranks, divided into parts that add up to it. Identifiers
 * call a part of the time a line (LedgerLine, line_s). */
#ifndef WEFT_OBSERVE_LEDGER_H
#define WEFT_OBSERVE_LEDGER_H

#include "base/status.h"
#include "base/text.h"
#include "schedule.h"

#include <stdint.h>

/* The parts of the time of a rank. Their times are those of the phases of its process
 * (base/phase.h): line_of in src/train/run/run_waits.c says to which part each phase belongs, and
 * run_divide_waits then moves waiting from messages and sums to bubble and imbalance. */
#define LEDGER_LINES(W)                                                                            \
    /* operations of forward and backward */                                                       \
    W(LEDGER_COMPUTE, "compute")                                                                   \
    /* waiting that would remain if all chunks took the same time and messages took no time */     \
    W(LEDGER_BUBBLE, "bubble")                                                                     \
    /* waiting because chunks take different times, or for a replica that begins a sum later */    \
    W(LEDGER_IMBALANCE, "imbalance")                                                               \
    /* all other waiting for messages between stages, and copying the messages */                  \
    W(LEDGER_MESSAGES, "messages")                                                                 \
    /* exchanges of slices within tensor-parallel groups */                                        \
    W(LEDGER_EXCHANGES, "exchanges")                                                               \
    /* all other waiting for sums over replicas and for all ranks, such as an agreement between \
     * steps, and work on sums outside of operations. With one replica this part is 0, and its    \
     * time is in messages or, on one rank, in other. */  \
    W(LEDGER_SUMS, "sums")                                                                         \
    /* updates of the parameters */                                                                \
    W(LEDGER_UPDATE, "update")                                                                     \
    /* waiting for batches of data */                                                              \
    W(LEDGER_DATA, "data")                                                                         \
    W(LEDGER_EVAL, "eval")                                                                         \
    /* the part of saves for which training waits */                                               \
    W(LEDGER_CHECKPOINT, "checkpoint")                                                             \
    W(LEDGER_OTHER, "other")
typedef enum LedgerLine { LEDGER_LINES(LIST_CONSTANT) LEDGER_LINE_COUNT } LedgerLine;
extern const char *const ledger_names[LEDGER_LINE_COUNT];

/* The time of one rank. */
typedef struct RankLedger {
    /* stage of the rank */
    int stage;
    /* seconds of each part */
    double line_s[LEDGER_LINE_COUNT];
} RankLedger;

/* The time from the beginning of the first step to the end of the last step of a start. */
typedef struct Ledger {
    int ranks;
    /* seconds of each part, the mean over the ranks; the parts add up to the time of a rank */
    double line_s[LEDGER_LINE_COUNT];
    /* the parts of each rank, [ranks]; owned */
    RankLedger *rank;
    /* number of the rank with the most own work. Own work is the sum of compute, update, data and
     * other. */
    int busiest;
    /* busiest_s: seconds of own work of this rank; busy_s: mean of own work over all ranks */
    double busiest_s, busy_s;
    /* number of steps made */
    int64_t steps;
    /* true: forecast_s is set */
    bool has_forecast;
    /* forecast seconds of each part of one step */
    double forecast_s[LEDGER_LINE_COUNT];
    /* schedule of a step; borrowed; NULL: the measured costs of the chunks are not known, as on
     * GPUs; `cost` is then not valid, and path_s is NULL */
    const Schedule *schedule;
    /* mean measured cost of each chunk of the model; owned */
    TaskCost *cost;
    /* The critical path is the longest chain of tasks that wait for each other. path_s: seconds of
     * work of each stage in this chain, [stages]; owned. late_s: seconds of waiting for replicas
     * that begin a sum later, mean over the ranks. The entries of path_s, late_s, and all parts
     * except compute, bubble and imbalance add up to the time of a rank. */
    double *path_s, late_s;
} Ledger;
void ledger_fini(Ledger *ledger);

#endif
