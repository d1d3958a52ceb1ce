/* A lease is the ownership of a folder by one process, without file locks: the file owner-N with
 * the largest number N in the folder names the owner, and the owner writes a heartbeat into this
 * file every few seconds. Not collective. */
#ifndef WEFT_BASE_LEASE_H
#define WEFT_BASE_LEASE_H

#include "base/status.h"

#include <stdbool.h>

/* Environment variable with the text "ID:START": the id of a `weft run`, or of a job or chain of
 * jobs of `weft sbatch`, and the number of the current start. `weft run` and the job scripts of
 * `weft sbatch` set it for the ranks that they start. A later start with the same ID takes over a
 * folder from an earlier start without waiting. */
#define LEASE_RUN "WEFT_RUN"

typedef struct Lease Lease;
/* Makes this process the owner of an existing folder, and starts a thread that writes a heartbeat
 * every beat_s seconds. An owner that has ended or died is replaced. If the owner is on another
 * host, where its state cannot be queried, lease_take watches the owner's file: it fails with
 * ERR_CONFIG if a heartbeat arrives, and takes the folder over if none arrives within four of the
 * owner's heartbeat intervals. ERR_CONFIG: there is another owner, which the message names. ERR_IO:
 * the folder or a file in it cannot be read or written. ERR_STOPPED: a stop was requested
 * meanwhile. ERR_MEMORY: the thread cannot be started. Later, at its next heartbeat, the process
 * dies with ERR_CONFIG if its lease was taken over or removed, and with ERR_IO if the folder was
 * moved, replaced or removed. The caller owns *lease, and ends it with lease_end; *lease is NULL
 * after an error. */
Status lease_take(Lease **lease, const char *folder, double beat_s);
/* Returns the lease's unique id. */
const char *lease_id(const Lease *lease);
/* Records that this start has chosen the beginning of its run, so that the files in the folder are
 * those of the run. Later starts of the same run inherit this fact. */
void lease_begun(Lease *lease);
/* Returns true if an earlier start of the same weft run, or of the same batch job before it was
 * requeued, has called lease_begun, and no other run has owned the folder since. */
bool lease_follows_same_run(const Lease *lease);
/* Returns true if this process still owns the folder. Returns false if the folder was renamed,
 * replaced or removed, or the lease was taken over or removed. Returns true after an I/O error,
 * which does not show that there is another owner, and if `lease` is NULL. Sets no message. */
bool lease_is_held(const Lease *lease);
/* Ends the process with a message if lease_is_held is false. Call it before this process makes,
 * renames or removes a file of the folder, which only the owner may do. */
void lease_require(const Lease *lease);
/* Records in the lease's file that the owner has ended normally, if the lease is still held; the
 * file stays. Frees the lease. Does nothing if *lease is NULL. */
void lease_end(Lease **lease);

/* For other processes: returns true if the folder's newest lease has the id `id`; false if it has
 * not, or cannot be read. */
bool lease_owner_is(const char *folder, const char *id);
/* For other processes: whether one start owns a folder. A start is one launch of the ranks by a
 * `weft run`. */
typedef enum LeaseStart {
    /* The start never owned the folder, or is no longer the last owner; or there is no folder or no
     * lease. */
    LEASE_START_NOT_OWNER,
    /* The start is the last owner, and has not recorded its end. It may have died. */
    LEASE_START_IS_OWNER,
    /* The start is the last owner, and has ended normally. */
    LEASE_START_ENDED,
    /* The folder or its newest lease exists, but cannot be read. */
    LEASE_START_UNREADABLE
} LeaseStart;
/* Returns the state of start number `start` of the weft run with the id `run`. */
LeaseStart lease_start_state(const char *folder, const char *run, int start);

#endif
