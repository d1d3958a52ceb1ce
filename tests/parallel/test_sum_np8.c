/* The communicators over 8 ranks: two nodes of four, where transports meet nodes. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 8 ranks", 8, SUM_CASES)
