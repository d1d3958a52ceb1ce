/* Runs the tests of channels (channel_cases.h) with 4 ranks. */
#include "channel_cases.h"

MPI_TEST_MAIN("channels between 4 ranks", 4, CHANNEL_CASES)
