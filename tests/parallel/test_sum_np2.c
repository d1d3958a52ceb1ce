/* Runs the tests of all-reduces (sum_cases.h) with 2 ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 2 ranks", 2, SUM_CASES)
