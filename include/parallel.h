/* parallel: the world of ranks, the process grid, communicators with ordered sums, channels,
 * gradient buckets. Only this module and those that include it may call MPI. All MPI calls of a
 * rank come from its main thread or from the thread that keeps its sums moving (src/parallel/mpi),
 * one at a time. */
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
#include "parallel/config_words.h"

#endif
