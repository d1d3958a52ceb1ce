/* Shares of sums and values over 8 ranks: two nodes of four, where transports meet nodes. */
#include "share_cases.h"

MPI_TEST_MAIN("shares over 8 ranks", 8, SHARE_CASES)
