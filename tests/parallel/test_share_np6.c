/* Shares of sums and values over 6 ranks: three nodes of two, where transports meet nodes. */
#include "share_cases.h"

MPI_TEST_MAIN("shares over 6 ranks", 6, SHARE_CASES)
