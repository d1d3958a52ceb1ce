/* Runs the tests of shards (shard_cases.h) with 6 ranks. Transports that distinguish nodes see
 * three nodes of two ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 6 ranks", 6, SHARD_CASES)
