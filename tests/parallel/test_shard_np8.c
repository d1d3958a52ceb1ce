/* Runs the tests of shards (shard_cases.h) with 8 ranks. Transports that distinguish nodes see two
 * nodes of four ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 8 ranks", 8, SHARD_CASES)
