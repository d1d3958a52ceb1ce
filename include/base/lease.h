/* Ownership of a folder without file locks: a file owner-N in it names the owner, which writes it
 * again every few seconds. Not collective. */
#ifndef WEFT_BASE_LEASE_H
#define WEFT_BASE_LEASE_H

#include "base/status.h"

#include <stdbool.h>

/* Environment variable in which weft run passes "ID:NUMBER" to its ranks, the number counting its
 * starts: a later start takes a folder over from an earlier one at once. */
#define LEASE_RUN "WEFT_RUN"
enum { LEASE_ID = 17 };

typedef struct Lease Lease;
/* Makes this process the owner of an existing folder, and starts a thread that gives a sign of life
 * every beat_s. An owner that has ended or died is replaced. If the owner is on a host that cannot
 * be queried, its file is watched for four of its beats for a sign of life. ERR_CONFIG: there is
 * another owner, which the message names; ERR_IO; ERR_STOPPED: a stop was requested meanwhile. A
 * process whose lease was taken over dies with ERR_CONFIG at its next sign of life. Owner: the
 * caller. */
Status lease_take(Lease **lease, const char *folder, double beat_s);
/* Returns the lease's unique id. */
const char *lease_id(const Lease *lease);
/* Returns whether the previous owner was an earlier start of the same weft run, or of the same
 * batch job after a requeue. */
bool lease_follows_same_run(const Lease *lease);
/* Returns whether this process is still the owner: false where the folder was renamed, replaced or
 * removed, or its lease was taken over or removed. NULL: true. Sets no message. */
bool lease_holds(const Lease *lease);
/* Dies where lease_holds is false. Called before actions that two owners must not both do: making,
 * renaming or removing a file of the folder. */
void lease_hold(const Lease *lease);
/* Records in the folder that the owner has ended in order, and frees the lease; the file stays.
 * NULL: does nothing. */
void lease_end(Lease **lease);

/* For other processes: returns whether the folder's newest lease has that id. */
bool lease_is(const char *folder, const char *id);
/* For other processes: state of the lease of one start of weft run. LEASE_HELD: that start owns the
 * folder; LEASE_ENDED: it did, and ended in order; LEASE_UNREADABLE: the file system does not
 * answer. */
typedef enum LeaseOf { LEASE_NOT_TAKEN, LEASE_HELD, LEASE_ENDED, LEASE_UNREADABLE } LeaseOf;
LeaseOf lease_of(const char *folder, const char *run, int start);
/* Writes a random name of LEASE_ID bytes. */
void lease_new_id(char *id);

#endif
