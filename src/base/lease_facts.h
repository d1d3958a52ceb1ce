/* The facts about an owner that a lease file records as text, and whether they show that the owner
 * has ended. */
#ifndef WEFT_BASE_LEASE_FACTS_H
#define WEFT_BASE_LEASE_FACTS_H

#include "base.h"

/* LEASE_TEXT: bytes of the text of a lease. LEASE_WORD: bytes of a word in it, with a final zero.
 * LEASE_OWNER_TEXT: bytes of the description of an owner, with a final zero. */
enum { LEASE_TEXT = 1024, LEASE_WORD = 128, LEASE_OWNER_TEXT = 512 };

/* The facts about an owner. */
typedef struct LeaseFacts {
    /* random id of the lease */
    char id[RANDOM_ID_BYTES];
    /* name of the host */
    char host[LEASE_WORD];
    /* scope in which process numbers are unique: the kernel's boot id and the pid namespace; "":
     * unknown */
    char process_scope[LEASE_WORD];
    /* process: process number; began: time at which the process began, in ticks since the boot
     * (process_began) */
    int64_t process, began;
    /* system: batch system ("slurm"); cluster: its cluster; job: number of the job; "": none */
    char system[16], cluster[64], job[32];
    /* number of times that the job was requeued */
    int64_t requeues;
    /* id of the weft run, or of the script that restarts a run (LEASE_RUN); "": none */
    char run[RANDOM_ID_BYTES];
    /* number of this start of the weft run */
    int64_t start;
    /* local time at which the owner took the lease, for messages */
    char since[32];
    /* seconds between heartbeats */
    double beat_s;
    /* number of the last heartbeat */
    int64_t beat;
    /* true: the owner, or an earlier start of the same run, has chosen its beginning
     * (lease_begun) */
    bool begun;
    /* true: the owner has ended normally */
    bool ended;
} LeaseFacts;

typedef enum OwnerState {
    OWNER_ALIVE,
    /* the owner has ended normally or died */
    OWNER_ENDED,
    OWNER_UNKNOWN,
    /* the owner's file was removed meanwhile; the folder must be read again */
    OWNER_FILE_REMOVED
} OwnerState;

/* Collects the facts about this process. beat_s: seconds between its heartbeats. */
void lease_facts_of_process(LeaseFacts *facts, double beat_s);
/* Writes the text of a lease: always LEASE_TEXT bytes, so that an earlier text is overwritten
 * completely. */
void lease_facts_write(const LeaseFacts *facts, char *text);
/* Reads the text of lease_facts_write. Returns false for any other text. */
bool lease_facts_read(LeaseFacts *facts, const char *text);
/* Writes "process 12 on node07, slurm job 17, since ..." to `out`, LEASE_OWNER_TEXT bytes. */
void lease_facts_describe(const LeaseFacts *facts, char *out);
/* Returns true if the owner is an earlier start of the same weft run, or of the same batch job. */
bool lease_facts_is_same_run(const LeaseFacts *owner, const LeaseFacts *me);
/* Returns the owner's state without waiting for a heartbeat, by the first rule that applies:
 * - The owner has recorded its end: OWNER_ENDED.
 * - The owner has the process_scope of this process, and the state of its process can be read:
 *   OWNER_ALIVE if the process is running, else OWNER_ENDED.
 * - The owner was an earlier start of the same weft run or batch job: OWNER_ENDED.
 * - The owner belongs to another job of the same cluster, and Slurm no longer lists that job:
 *   OWNER_ENDED.
 * - Otherwise: OWNER_UNKNOWN. */
OwnerState lease_facts_owner_state(const LeaseFacts *owner, const LeaseFacts *me);

#endif
