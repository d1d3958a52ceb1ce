/* Runs the tests of shards (shard_cases.h) with 4 ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 4 ranks", 4, SHARD_CASES)
