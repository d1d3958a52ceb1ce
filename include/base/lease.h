/* Who owns a folder, without file locks: a file owner-N in it says who, and is written again every
 * few seconds. Not collective. */
#ifndef WEFT_BASE_LEASE_H
#define WEFT_BASE_LEASE_H

#include "base/status.h"

#include <stdbool.h>

/* How weft run tells its ranks which of its starts they are, "ID:NUMBER": a later start takes a
 * folder over from an earlier one at once. */
#define LEASE_RUN "WEFT_RUN"
enum { LEASE_ID = 17 };

typedef struct Lease Lease;
/* Makes this process the owner of the folder, which is there, and begins a thread that gives a sign
 * of life every beat_s. An owner that is gone, or has ended, is followed; of one elsewhere, which
 * cannot be asked, it is watched for four of its beats whether it still gives signs. ERR_CONFIG:
 * there is another owner, the message says who; ERR_IO; ERR_STOPPED: this process was asked to stop
 * meanwhile. A process whose lease was taken over dies with ERR_CONFIG at its next sign of life.
 * Owner: the caller. */
Status lease_take(Lease **lease, const char *folder, double beat_s);
/* What is in nobody else's lease. */
const char *lease_id(const Lease *lease);
/* Was the owner before this one an earlier start of the same weft run, or of the same job, which
 * went back to its queue? */
bool lease_follows_own(const Lease *lease);
/* Is this process still the owner? False where the folder was renamed, replaced or removed, or the
 * lease in it is another's or gone. NULL: true. Leaves no message. */
bool lease_holds(const Lease *lease);
/* Dies where it is not. Called before what two owners must not do: making, renaming or removing a
 * file of the folder. */
void lease_hold(const Lease *lease);
/* Says in the folder that it has ended in order; the file stays. NULL: nothing. */
void lease_end(Lease **lease);

/* For others: is the folder's newest lease that one? */
bool lease_is(const char *folder, const char *id);
/* Has that start of weft run become the folder's owner, and if so, ended in order? UNREADABLE: the
 * file system does not say. */
typedef enum LeaseOf { LEASE_NOT_TAKEN, LEASE_HELD, LEASE_ENDED, LEASE_UNREADABLE } LeaseOf;
LeaseOf lease_of(const char *folder, const char *run, int start);
/* A random name of LEASE_ID bytes. */
void lease_new_id(char *id);

#endif
