/* Memory that several ranks of one node share. Each rank makes one segment, and every rank maps all
 * segments. Segments have no name in any file system, so the system frees them after a crash. */
#ifndef WEFT_PARALLEL_SHM_SEGMENTS_H
#define WEFT_PARALLEL_SHM_SEGMENTS_H

#include "../world/abort.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct ShmSegments {
    /* number of ranks */
    int count;
    /* bytes of each rank's segment, a multiple of the page size, with the exit code at the end;
     * [count]; owned */
    size_t *bytes;
    /* address at which each rank's segment is mapped, aligned to a huge page, [count]; a new
     * segment contains zeros; owned */
    char **segment;
    /* process id of each rank, [count]; owned */
    pid_t *pid;
    /* number of each rank in the job, [count]; owned */
    int *job_rank;
    /* entry by which world_abort stores the exit code in this rank's segment */
    ExitNotice exit_notice;
} ShmSegments;

/* Makes and maps the segments. bytes: bytes that this rank needs, without the exit code. what:
 * their purpose, for messages, for example "the gradients". ERR_CONFIG if the available memory of
 * the node is too small. ERR_CONFIG or ERR_MEMORY if a system call fails; the message names the
 * call. All ranks of world must be on one node. Collective on world; every rank returns the same
 * Status, and on error there is nothing to release. The ShmSegments must stay at its address until
 * shm_segments_fini, because world_abort has a pointer to exit_notice. */
Status shm_segments_init(ShmSegments *shared, const World *world, size_t bytes, const char *what);
void shm_segments_fini(ShmSegments *shared);
/* Returns ERR_CONFIG if the ranks of world are on several nodes, else OK. */
Status shm_segments_check_one_node(const World *world);
/* Returns false if the rank's process has ended or is a zombie. */
bool shm_segments_rank_is_alive(const ShmSegments *shared, int rank);
/* Returns the exit code that the rank stored before it ended the job; 0 if it has not stored
 * one. */
uint32_t shm_segments_exit_code(const ShmSegments *shared, int rank);
/* Ends the job if the process of a rank has ended. doing: activity of the calling rank, for the
 * message. */
void shm_segments_abort_if_peer_ended(const ShmSegments *shared, const char *doing);

#endif
