/* The communicators over 6 ranks: three nodes of two, on which transports distinguish nodes. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 6 ranks", 6, SUM_CASES)
