/* Runs the tests of pipelines (stage_cases.h) with 2 stages. */
#include "stage_cases.h"

MPI_TEST_MAIN("2 stages", 2, STAGE_CASES)
