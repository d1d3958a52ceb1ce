/* parallel: the world of ranks, the process grid, communicators with ordered sums, channels,
 * gradient buckets. Only this module and modules that include this header may call MPI. A rank
 * calls MPI from its main thread and from the thread that moves its messages
 * (src/parallel/mpi/progress_thread.h), never from two threads at the same time. */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#include "parallel/world.h"
#include "parallel/multicast.h"
#include "parallel/grid.h"
#include "parallel/order.h"
#include "parallel/sums.h"
#include "parallel/comm.h"
#include "parallel/channels.h"
#include "parallel/node_memory.h"
#include "parallel/watchdog.h"
#include "parallel/config_words.h"

#endif
