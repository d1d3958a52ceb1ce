/* Runs the tests of channels (channel_cases.h) with 3 ranks. */
#include "channel_cases.h"

MPI_TEST_MAIN("channels between 3 ranks", 3, CHANNEL_CASES)
