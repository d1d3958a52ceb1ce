/* Shards of sums and parameters over 6 ranks: three nodes of two, on which transports distinguish
 * nodes. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 6 ranks", 6, SHARD_CASES)
