/* parallel: the world of ranks, the process grid, communicators with ordered sums, channels,
 * gradient buckets. This module and those below it may call MPI; calls come from one thread, and
 * from the one that makes its sums progress (src/parallel/mpi/pump.h). */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#include "parallel/world.h"
#include "parallel/multicast.h"
#include "parallel/grid.h"
#include "parallel/order.h"
#include "parallel/sums.h"
#include "parallel/comm.h"
#include "parallel/channels.h"
#include "parallel/watchdog.h"
#include "parallel/words.h"

#endif
