/* Runs the tests of parts and grids (grid_cases.h) with 3 ranks. */
#include "grid_cases.h"

MPI_TEST_MAIN("grids over 3 ranks", 3, GRID_CASES)
