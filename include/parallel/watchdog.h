/* A thread of each rank that notices ranks which do not go on, while a run makes steps. */
#ifndef WEFT_PARALLEL_WATCHDOG_H
#define WEFT_PARALLEL_WATCHDOG_H

#include "base/beat.h"
#include "parallel/world.h"

typedef struct Watchdog Watchdog;
typedef struct WatchdogOptions {
    /* without a mark of any rank in a step, the job ends; 0: never */
    double hang_s;
    /* Borrowed, rank 0's counts: where what the ranks did last is written when the job ends
     * (hang-HOST.txt), unless the folder's lease has another id than owner by then. NULL: whatever
     * lease it has. */
    const char *folder, *owner;
} WatchdogOptions;
/* Watches what all ranks mark (base.h, Beat), by memory that a node's ranks share and by datagrams
 * between nodes. A rank that is stopped or dead, or a node that is silent, is named with what it
 * was at and with those that wait for it, and the job ends, also where MPI_Abort hangs. A step that
 * takes more than three usual ones, and 5 s at least, is only warned of, with the ranks that are
 * behind, until no rank has marked anything for hang_s. One that serves (beat_serve) is in no step,
 * and behind only while it does what it was asked. What happens between two steps may take its
 * time, and so may a job that is suspended as a whole. Where nothing can be shared, the watchdog
 * says so and watches its own rank alone. Collective, both. */
Watchdog *watchdog_new(const World *world, const WatchdogOptions *options);
void watchdog_free(Watchdog **watchdog);

#endif
