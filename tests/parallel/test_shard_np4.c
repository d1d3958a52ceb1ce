/* Shards of sums and parameters over 4 ranks. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 4 ranks", 4, SHARD_CASES)
