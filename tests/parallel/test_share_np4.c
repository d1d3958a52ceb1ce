/* Shares of sums and values over 4 ranks. */
#include "share_cases.h"

MPI_TEST_MAIN("shares over 4 ranks", 4, SHARE_CASES)
