/* A thread of each rank that notices ranks which make no progress while a run makes steps. */
#ifndef WEFT_PARALLEL_WATCHDOG_H
#define WEFT_PARALLEL_WATCHDOG_H

#include "base/beat.h"
#include "parallel/world.h"

typedef struct Watchdog Watchdog;
typedef struct WatchdogOptions {
    /* seconds in a step without progress of any rank after which the job ends; 0: never */
    double hang_s;
    /* the run's folder, where hang-HOST.txt records what each rank did last when the job ends; and
     * the id of the lease that the folder must still have for that (NULL: any). Rank 0's values
     * count; borrowed. */
    const char *folder, *owner;
} WatchdogOptions;
/* Watches the progress that all ranks mark (base.h, Beat), through memory shared by a node's ranks
 * and datagrams between nodes. If a rank is stopped or dead, or a node is silent, the watchdog
 * names it with its last activity and the ranks that wait for it, and ends the job even where
 * MPI_Abort hangs. A step that takes more than three times as long as usual, and 5 s at least,
 * causes only a warning with the ranks that are behind, until no rank has marked anything for
 * hang_s. A server (beat_serve) is in no step, and counts as behind only while it handles a
 * request. Time between two steps is not limited, and neither is a suspension of the whole job.
 * Where no memory can be shared, the watchdog says so and watches only its own rank. Both functions
 * are collective. */
Watchdog *watchdog_new(const World *world, const WatchdogOptions *options);
void watchdog_free(Watchdog **watchdog);

#endif
