/* Runs the tests of parts and grids (grid_cases.h) with 4 ranks. */
#include "grid_cases.h"

MPI_TEST_MAIN("grids over 4 ranks", 4, GRID_CASES)
