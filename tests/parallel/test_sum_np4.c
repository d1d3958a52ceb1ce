/* The communicators over 4 ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 4 ranks", 4, SUM_CASES)
