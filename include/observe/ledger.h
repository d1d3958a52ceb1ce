/* The ledger of a run: where the ranks' time went, in parts that add up to it. */
#ifndef WEFT_OBSERVE_LEDGER_H
#define WEFT_OBSERVE_LEDGER_H

#include "base/status.h"
#include "base/text.h"
#include "schedule.h"

#include <stdint.h>

#define LEDGER_LINES(W)                                                                            \
    /* operations forward and backward */                                                          \
    W(LEDGER_COMPUTE, "compute")                                                                   \
    /* waiting that the schedule would have if all chunks took the same time and messages none */  \
    W(LEDGER_BUBBLE, "bubble")                                                                     \
    /* waiting because chunks take different times, and for replicas that begin a sum later */     \
    W(LEDGER_IMBALANCE, "imbalance")                                                               \
    /* the other waiting for messages between stages, and copying them */                          \
    W(LEDGER_MESSAGES, "messages")                                                                 \
    /* exchanges of slices within tensor groups */                                                 \
    W(LEDGER_EXCHANGES, "exchanges")                                                               \
    /* the other waiting for sums over replicas, and work on them outside of operations */         \
    W(LEDGER_SUMS, "sums")                                                                         \
    W(LEDGER_UPDATE, "update")                                                                     \
    /* waiting for the loader */                                                                   \
    W(LEDGER_DATA, "data")                                                                         \
    W(LEDGER_EVAL, "eval")                                                                         \
    /* the part of saves for which training waits */                                               \
    W(LEDGER_CHECKPOINT, "checkpoint")                                                             \
    W(LEDGER_OTHER, "other")
typedef enum LedgerLine { LEDGER_LINES(LIST_CONSTANT) LEDGER_LINE_COUNT } LedgerLine;
extern const char *const ledger_names[LEDGER_LINE_COUNT];

/* Where the time of one rank went. */
typedef struct RankLedger {
    /* stage of the pipeline */
    int stage;
    /* seconds of each part */
    double line_s[LEDGER_LINE_COUNT];
} RankLedger;

/* The time from the first step to the end of the last one. */
typedef struct Ledger {
    int ranks;
    /* seconds of each part, the mean over the ranks; their sum is the time of a rank */
    double line_s[LEDGER_LINE_COUNT];
    /* the parts of each rank, [ranks]; owned */
    RankLedger *rank;
    /* the rank that waits least for others, its seconds of work of its own (compute, update, data
     * and other), and the mean of all ranks */
    int busiest;
    double busiest_s, busy_s;
    /* steps made; forecast seconds of each part of a step, if there is a forecast */
    int64_t steps;
    bool has_forecast;
    double forecast_s[LEDGER_LINE_COUNT];
    /* The rest is not known on devices. Schedule of a step, borrowed; NULL: not known. The mean
     * measured cost of each chunk of the model; owned. */
    const Schedule *schedule;
    TaskCost *cost;
    /* The critical path, which adds up to the time of a rank: work of each stage in the longest
     * chain of the schedule, [stages]; owned; then waiting for replicas that begin a sum later; and
     * all parts but compute, bubble and imbalance. */
    double *path_s, late_s;
} Ledger;
void ledger_fini(Ledger *ledger);

#endif
