/* Pipelines of 2 stages. */
#include "stage_cases.h"

MPI_TEST_MAIN("2 stages", 2, STAGE_CASES)
