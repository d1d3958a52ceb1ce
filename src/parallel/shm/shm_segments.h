/* Memory that all ranks of a node map: each rank makes one segment, and every rank maps all of
 * them. Segments have no name in any file system, so the system frees them after a crash. */
#ifndef WEFT_PARALLEL_SHM_SEGMENTS_H
#define WEFT_PARALLEL_SHM_SEGMENTS_H

#include "../world/abort.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct ShmSegments {
    /* number of ranks */
    int count;
    /* bytes of each rank's segment, whole pages including the trailing exit code, [count]; owned */
    size_t *bytes;
    /* address at which each rank's segment is mapped, aligned to a huge page. A new segment
     * contains zeros. Owned. */
    char **segment;
    /* PID of each rank; owned */
    pid_t *pid;
    /* each rank's number in the job; owned */
    int *job_rank;
    /* makes world_abort store the exit code in this rank's segment */
    ExitNotice exit_notice;
} ShmSegments;

/* Makes and maps the segments. bytes: bytes that this rank needs, without the exit code. what:
 * their purpose, for messages, for example "the gradients". ERR_CONFIG if the node's free memory is
 * too small; ERR_CONFIG or ERR_MEMORY, with its name, if a system call fails. Collective on world,
 * whose ranks are all on one node; every rank returns the same Status, and on error there is
 * nothing to release. The ShmSegments must stay at its address until shm_segments_fini releases it,
 * because world_abort has a pointer to exit_notice. */
Status shm_segments_init(ShmSegments *shared, const World *world, size_t bytes, const char *what);
void shm_segments_fini(ShmSegments *shared);
/* ERR_CONFIG if world's ranks are on several nodes. */
Status shm_segments_check_one_node(const World *world);
/* False if the rank's process has ended; a zombie has ended. */
bool shm_segments_rank_is_alive(const ShmSegments *shared, int rank);
/* Exit code that the rank stored before it ended the job; 0 if it has not stored one. */
uint32_t shm_segments_exit_code(const ShmSegments *shared, int rank);
/* Ends the job if a rank's process has ended. doing: this rank's activity, for the message. Called
 * by a thread that has waited for another rank for a long time and by the thread that watches
 * NCCL. */
void shm_segments_abort_if_peer_ended(const ShmSegments *shared, const char *doing);

#endif
