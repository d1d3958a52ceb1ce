/* Runs the tests of shards (shard_cases.h) with 3 ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 3 ranks", 3, SHARD_CASES)
