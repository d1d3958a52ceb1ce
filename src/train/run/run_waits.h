/* Times of the ranks, and the division of their waiting by cause. */
#ifndef WEFT_TRAIN_RUN_WAITS_H
#define WEFT_TRAIN_RUN_WAITS_H

#include "run.h"

/* Seconds of a rank by phase since the first step of this start began, the number of steps since
 * then, and the rank's pipeline stage. */
typedef struct RankTimes {
    double phase_s[PHASE_COUNT];
    int64_t steps;
    int stage;
} RankTimes;

/* Returns the seconds of a rank's own work: forward, backward, update, data (waits for the loader)
 * and other; without waits for other ranks, evaluations and saves. */
double rank_busy_s(const RankTimes *times);
/* Divides the waiting of each rank in ledger->rank by its cause, and finds the critical path. all:
 * [ranks]; time: [ranks][chunks of a stage]. */
void run_divide_waits(const Run *run, const RankTimes *all, const ChunkTime *time, Ledger *ledger);

#endif
