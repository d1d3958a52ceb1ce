/* The communicators over 8 ranks: two nodes of four, on which transports distinguish nodes. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 8 ranks", 8, SUM_CASES)
