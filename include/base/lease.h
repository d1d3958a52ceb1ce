/* A lease is the ownership of a folder by one process, without file locks: the file owner-N with
 * the largest N in the folder names the owner, and the owner writes a heartbeat into this file
 * every few seconds. Not collective. */
#ifndef WEFT_BASE_LEASE_H
#define WEFT_BASE_LEASE_H

#include "base/status.h"

#include <stdbool.h>

/* Environment variable in which weft run passes "ID:START" to its ranks: the id of the weft run,
 * and the number of the start. A later start of the same weft run takes over a folder from an
 * earlier start without waiting. */
#define LEASE_RUN "WEFT_RUN"

typedef struct Lease Lease;
/* Makes this process the owner of an existing folder, and starts a thread that writes a heartbeat
 * every beat_s. An owner that has ended or died is replaced. If the owner is on a host that cannot
 * be queried, its file is watched for four of its heartbeat intervals. ERR_CONFIG: there is another
 * owner, which the message names; ERR_IO: the folder or a file in it cannot be read or written;
 * ERR_STOPPED: a stop was requested meanwhile; ERR_MEMORY: the thread cannot be started. At its
 * next heartbeat a process dies with ERR_CONFIG if its lease was taken over or removed, or with
 * ERR_IO if the folder was moved, replaced or removed. Owner of *lease: the caller; NULL after an
 * error. */
Status lease_take(Lease **lease, const char *folder, double beat_s);
/* Returns the lease's unique id. */
const char *lease_id(const Lease *lease);
/* Returns whether the previous owner was an earlier start of the same weft run, or of the same
 * batch job after a requeue. */
bool lease_follows_same_run(const Lease *lease);
/* Returns whether this process still owns the folder. False if the folder was renamed, replaced or
 * removed, or the lease was taken over or removed. An I/O error counts as still owned, because it
 * is no evidence of another owner. Returns true if `lease` is NULL. Sets no message. */
bool lease_is_held(const Lease *lease);
/* Ends the process with a message if lease_is_held is false. Called before the process makes,
 * renames or removes a file of the folder, which only the owner may do. */
void lease_require(const Lease *lease);
/* Records in the file that the owner has ended normally, if the lease is still held, and frees the
 * lease; the file stays. *lease NULL: does nothing. */
void lease_end(Lease **lease);

/* For other processes: returns whether the folder's owner has that lease id. Also false if the id
 * cannot be read. */
bool lease_owner_is(const char *folder, const char *id);
/* For other processes: whether one start of weft run owns the folder. */
typedef enum LeaseStart {
    /* the start never owned the folder, another owner followed, or there is no folder or lease */
    LEASE_START_NOT_OWNER,
    /* the start is the last owner, and has recorded no end; it may have died */
    LEASE_START_IS_OWNER,
    /* the start was the last owner, and ended normally */
    LEASE_START_ENDED,
    /* the folder or its newest lease exists, but cannot be read */
    LEASE_START_UNREADABLE
} LeaseStart;
/* Returns the state of start `start` of the weft run with id `run`. */
LeaseStart lease_start_state(const char *folder, const char *run, int start);

#endif
