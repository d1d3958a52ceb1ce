/* Shares of sums and values over 2 ranks. */
#include "share_cases.h"

MPI_TEST_MAIN("shares over 2 ranks", 2, SHARE_CASES)
