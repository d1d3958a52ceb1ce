/* One way to call MPI: a failed call cannot be mended inside a step, so it dies with the call's
 * text and the library's own words. World sets MPI_ERRORS_RETURN, so that MPI leaves the words to
 * us. */
#ifndef WEFT_PARALLEL_MPI_CHECK_H
#define WEFT_PARALLEL_MPI_CHECK_H

#include "base.h"

#include <mpi.h>

#define MPI_CHECK(call) mpi_check((call), #call)

/* Dies where code is not MPI_SUCCESS; call is its source text. */
void mpi_check(int code, const char *call);

#endif
