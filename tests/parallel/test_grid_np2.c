/* Runs the tests of parts and grids (grid_cases.h) with 2 ranks. */
#include "grid_cases.h"

MPI_TEST_MAIN("grids over 2 ranks", 2, GRID_CASES)
