/* The facts about an owner that a lease records as text, and conclusions from them. */
#ifndef WEFT_BASE_LEASE_FACTS_H
#define WEFT_BASE_LEASE_FACTS_H

#include "base.h"

enum { LEASE_TEXT = 1024, LEASE_WORD = 128, LEASE_OWNER_TEXT = 512 };

typedef struct LeaseFacts {
    char id[LEASE_ID], host[LEASE_WORD];
    /* scope of process numbers: the kernel's boot id and the pid namespace */
    char place[LEASE_WORD];
    int64_t process, began;
    /* batch system ("slurm"), its cluster, and the job; "": none; turn: how often the job was
     * requeued */
    char system[16], cluster[64], job[32];
    int64_t turn;
    /* id of the weft run, or of the script that restarts a run, and the number of this start; "":
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
    /* the owner has ended or died */
    LEASE_OWNER_ENDED,
    LEASE_UNKNOWN,
    /* another owner has taken its place */
    LEASE_MOVED
} LeaseState;

void lease_facts_mine(LeaseFacts *facts, double beat_s);
/* Writes always LEASE_TEXT bytes, so that a text that overwrites another leaves nothing of it. */
void lease_facts_write(const LeaseFacts *facts, char *text);
/* False for any other text. */
bool lease_facts_read(LeaseFacts *facts, const char *text);
/* Writes "process 12 on node07, job 17, since ..." into LEASE_OWNER_TEXT bytes. */
void lease_facts_say(const LeaseFacts *facts, char *out);
/* Returns whether the owner is an earlier start of the same weft run or the same batch job. */
bool lease_facts_same_run(const LeaseFacts *owner, const LeaseFacts *me);
/* Determines what can be known at once: from the owner's process where it is on this host, from its
 * job where Slurm answers. */
LeaseState lease_facts_judge(const LeaseFacts *owner, const LeaseFacts *me);

#endif
