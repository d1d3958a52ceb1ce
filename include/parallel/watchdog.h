/* A thread of each rank that notices ranks which make no progress while a run makes steps. */
#ifndef WEFT_PARALLEL_WATCHDOG_H
#define WEFT_PARALLEL_WATCHDOG_H

#include "base/beat.h"
#include "parallel/world.h"

typedef struct Watchdog Watchdog;
/* Arguments of watchdog_new. */
typedef struct WatchdogOptions {
    /* number of seconds after which the job ends if no rank has made progress within a step; 0: it
     * never ends for this reason */
    double hang_s;
    /* the run's folder. When the watchdog ends the job, it writes each rank's last activity to
     * hang-HOST.txt there. Rank 0's value is used; borrowed. */
    const char *folder;
    /* id of a lease: hang-HOST.txt is written only while the folder's lease has this id; NULL: it
     * is always written. Rank 0's value is used; borrowed. */
    const char *owner;
} WatchdogOptions;
/* Watches the progress that all ranks mark (base/beat.h, Beat), through memory shared by a node's
 * ranks and datagrams between nodes. The watchdog ends the job, even where MPI_Abort hangs, in
 * three cases:
 * - a rank is stopped or dead: the message has the last activity of the node's ranks;
 * - a node is silent: the message names the node;
 * - no rank has marked progress for hang_s seconds.
 * A late step alone does not end the job. If a step has taken three times as long as usual, and 5 s
 * at least (30 s if the usual time is not known), a warning names the ranks that are behind. A
 * server (beat_set_server) makes no steps and counts as behind only while it handles a request.
 * Time between two steps and a suspension of the whole job are not limited. If the ranks of a node
 * cannot share memory, the watchdog prints a warning and watches only its own rank. Both functions
 * are collective. */
Watchdog *watchdog_new(const World *world, const WatchdogOptions *options);
void watchdog_free(Watchdog **watchdog);

#endif
