/* Shards of sums and parameters over 2 ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 2 ranks", 2, SHARD_CASES)
