/* Runs the tests of all-reduces (sum_cases.h) with 8 ranks. Transports that distinguish nodes see
 * two nodes of four ranks. */
#include "sum_cases.h"

MPI_TEST_MAIN("sums over 8 ranks", 8, SUM_CASES)
