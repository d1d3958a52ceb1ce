/* Runs the tests of all-reduces (sum_cases.h) with 4 ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 4 ranks", 4, SUM_CASES)
