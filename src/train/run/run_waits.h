/* Times of the ranks, and the division of their waiting by cause. */
#ifndef WEFT_TRAIN_RUN_WAITS_H
#define WEFT_TRAIN_RUN_WAITS_H

#include "run.h"

/* Times of a rank since the first step of this start began. */
typedef struct RankTimes {
    /* seconds by phase */
    double phase_s[PHASE_COUNT];
    /* number of steps */
    int64_t steps;
    /* pipeline stage of the rank */
    int stage;
} RankTimes;

/* Returns the seconds of a rank's own work: forward, backward, update, data (waits for the loader)
 * and other; without waits for other ranks, evaluations and saves. */
double rank_busy_s(const RankTimes *times);
/* Divides the waiting of each rank in ledger->rank by its cause, and finds the critical path. all:
 * times of the ranks, [ranks]. time: times of their chunks, [ranks][chunks of a stage]. */
void run_divide_waits(const Run *run, const RankTimes *all, const ChunkTime *time, Ledger *ledger);

#endif
