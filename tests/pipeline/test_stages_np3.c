/* Runs the tests of pipelines (stage_cases.h) with 3 stages. */
#include "stage_cases.h"

MPI_TEST_MAIN("3 stages", 3, STAGE_CASES)
