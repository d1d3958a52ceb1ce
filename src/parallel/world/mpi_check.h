/* The macro around every call of MPI: a failed call cannot be repaired inside a step, so MPI_CHECK
 * dies with the call's text and the library's error message. world_init sets MPI_ERRORS_RETURN, so
 * that MPI returns errors instead of aborting. */
#ifndef WEFT_PARALLEL_MPI_CHECK_H
#define WEFT_PARALLEL_MPI_CHECK_H

#include "base.h"

#include <mpi.h>

#define MPI_CHECK(call) mpi_check((call), #call)

/* Dies unless code is MPI_SUCCESS. call: source text of the call. */
void mpi_check(int code, const char *call);
/* Waits until an operation that MPI has begun is complete. A rank that waits for long sleeps
 * between polls and leaves its core to ranks that compute; MPI's own calls poll without a pause. */
void mpi_await(MPI_Request *request);

#endif
