/* Memory that all ranks of a node map: each rank makes one segment, and all map all. Segments have no name anywhere, so
 * nothing is left behind however the ranks die. */
#ifndef WEFT_PARALLEL_SHARED_H
#define WEFT_PARALLEL_SHARED_H

#include "parallel.h"

#include <sys/types.h>

typedef struct Shared {
    int count;            /* ranks */
    size_t segment_bytes; /* of each rank */
    char **segment;       /* owned; segment[r] of rank r, on a huge-page border, zeroed when made */
    pid_t *process;       /* owned; process[r] of rank r */
} Shared;

/* ERR_CONFIG says what the system refused. Collective on world, whose ranks all share the node; every rank returns the
 * same Status, and nothing is held where it is not OK. Release with shared_fini. */
Status shared_init(Shared *shared, const World *world, size_t bytes);
void shared_fini(Shared *shared);
/* False where the process of a rank has ended (a zombie has). */
bool shared_alive(const Shared *shared, int rank);

#endif
