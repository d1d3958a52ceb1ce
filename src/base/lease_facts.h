/* What a lease says of its owner, as text, and what follows from it. */
#ifndef WEFT_BASE_LEASE_FACTS_H
#define WEFT_BASE_LEASE_FACTS_H

#include "base.h"

enum { LEASE_TEXT = 1024, LEASE_WORD = 128, LEASE_WHO = 512 };

typedef struct LeaseFacts {
    char id[LEASE_ID], host[LEASE_WORD];
    /* where a process number means something: the kernel's boot, and the processes it counts */
    char place[LEASE_WORD];
    int64_t process, began;
    /* the batch job ("slurm"), its cluster, which of its starts it is; "": none */
    char system[16], cluster[64], job[32];
    int64_t turn;
    /* of weft run, or of a script that starts a run again: who it is, and which of its starts; "":
     * none */
    char run[LEASE_ID];
    int64_t start;
    char since[32];
    double beat_s;
    int64_t beat;
    bool ended;
} LeaseFacts;

typedef enum LeaseState {
    LEASE_ALIVE,
    /* or it has ended */
    LEASE_GONE,
    LEASE_UNKNOWN,
    /* there is another one by now */
    LEASE_MOVED
} LeaseState;

void lease_facts_mine(LeaseFacts *facts, double beat_s);
/* LEASE_TEXT bytes, always: a text over another leaves nothing of it. */
void lease_facts_write(const LeaseFacts *facts, char *text);
/* False for what is no such text. */
bool lease_facts_read(LeaseFacts *facts, const char *text);
/* Into LEASE_WHO bytes: "process 12 on node07, job 17, since ...". */
void lease_facts_say(const LeaseFacts *facts, char *out);
/* Is it an earlier start of the same weft run? */
bool lease_facts_own(const LeaseFacts *owner, const LeaseFacts *me);
/* What can be known of the owner at once: of its process where that is of this host, of its job
 * where Slurm answers. */
LeaseState lease_facts_judge(const LeaseFacts *owner, const LeaseFacts *me);

#endif
