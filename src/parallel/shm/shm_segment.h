/* Memory that all ranks of a node map: each rank makes one segment, and all map all. Segments have
 * no name anywhere, so nothing is left behind however the ranks die. */
#ifndef WEFT_PARALLEL_SHARED_H
#define WEFT_PARALLEL_SHARED_H

#include "../world/abort.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct ShmSegment {
    /* ranks */
    int count;
    /* owned; bytes[r] of rank r's segment, what is behind it included */
    size_t *bytes;
    /* owned; segment[r] of rank r, on a huge-page bound, zeroed when made */
    char **segment;
    /* owned; process[r] of rank r */
    pid_t *process;
    /* owned; rank r's rank among all processes of the job */
    int *job_rank;
    Farewell farewell;
} ShmSegment;

/* bytes: of this rank's segment. what: who needs it, for messages: "the gradients". ERR_CONFIG says
 * what the system refused. Collective on world, whose ranks all share the node; every rank returns
 * the same Status, and there is nothing to release where it is not OK. shared may not move until
 * shm_segment_fini releases it. */
Status shm_segment_init(ShmSegment *shared, const World *world, size_t bytes, const char *what);
void shm_segment_fini(ShmSegment *shared);
/* ERR_CONFIG where world's ranks are on several nodes. */
Status shm_segment_needs_one_node(const World *world);
/* False where the process of a rank has ended (a zombie has). */
bool shm_segment_alive(const ShmSegment *shared, int rank);
/* The code that a rank has said it ends the job with; 0: none. */
uint32_t shm_segment_farewell(const ShmSegment *shared, int rank);
/* Ends the job where a rank's process has ended; doing: what waits for it, for the message. For a
 * rank that has waited long. */
void shm_segment_check_peers(const ShmSegment *shared, const char *doing);

#endif
