/* Shards of sums and parameters over 8 ranks: two nodes of four, on which transports distinguish
 * nodes. */
#include "shard_cases.h"

MPI_TEST_MAIN("shards over 8 ranks", 8, SHARD_CASES)
