/* Runs the tests of all-reduces (sum_cases.h) with 3 ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 3 ranks", 3, SUM_CASES)
