/* Memory that all ranks of a node map: each rank makes one segment, and every rank maps all of
 * them. Segments have no name in any file system, so nothing is left behind however the ranks
 * die. */
#ifndef WEFT_PARALLEL_SHARED_H
#define WEFT_PARALLEL_SHARED_H

#include "../world/abort.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct ShmSegment {
    /* number of ranks */
    int count;
    /* bytes of each rank's segment, including the trailing exit code; owned */
    size_t *bytes;
    /* each rank's segment as mapped here, aligned to a huge page, zeroed when made; owned */
    char **segment;
    /* process of each rank; owned */
    pid_t *process;
    /* each rank's number in the job; owned */
    int *job_rank;
    ExitNotice exit_notice;
} ShmSegment;

/* Makes and maps the segments. bytes: size of this rank's segment. what: its purpose, for messages,
 * for example "the gradients". ERR_CONFIG or ERR_MEMORY with what the system refused. Collective on
 * world, whose ranks are all on one node; every rank returns the same Status, and on error there is
 * nothing to release. shared must not move until shm_segment_fini releases it. */
Status shm_segment_init(ShmSegment *shared, const World *world, size_t bytes, const char *what);
void shm_segment_fini(ShmSegment *shared);
/* ERR_CONFIG if world's ranks are on several nodes. */
Status shm_segment_needs_one_node(const World *world);
/* False if the rank's process has ended (a zombie has). */
bool shm_segment_alive(const ShmSegment *shared, int rank);
/* Exit code that the rank left before it ended the job; 0: none. */
uint32_t shm_segment_exit_code(const ShmSegment *shared, int rank);
/* Ends the job if a rank's process has ended. doing: the activity that waits for it, for the
 * message. Called by a rank that has waited for long. */
void shm_segment_check_peers(const ShmSegment *shared, const char *doing);

#endif
