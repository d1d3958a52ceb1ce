/* Runs the tests of all-reduces (sum_cases.h) with 6 ranks. Transports that distinguish nodes see
 * three nodes of two ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 6 ranks", 6, SUM_CASES)
