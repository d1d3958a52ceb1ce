/* Shares of sums and values over 3 ranks. */
#include "share_cases.h"

MPI_TEST_MAIN("shares over 3 ranks", 3, SHARE_CASES)
