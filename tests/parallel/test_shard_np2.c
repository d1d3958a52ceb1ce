/* Runs the tests of shards (shard_cases.h) with 2 ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 2 ranks", 2, SHARD_CASES)
