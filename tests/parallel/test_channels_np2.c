/* Runs the tests of channels (channel_cases.h) with 2 ranks. */
#include "channel_cases.h"

MPI_TEST_MAIN("channels between 2 ranks", 2, CHANNEL_CASES)
