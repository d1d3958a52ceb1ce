/* MPI_CHECK, the macro around calls of MPI. If a call fails, it dies with the function's name and
 * the library's error message, because the step cannot be completed. world_init sets
 * MPI_ERRORS_RETURN, so that MPI returns errors instead of aborting. */
#ifndef WEFT_PARALLEL_MPI_CHECK_H
#define WEFT_PARALLEL_MPI_CHECK_H

#include "base.h"

#include <mpi.h>

#define MPI_CHECK(call) mpi_check((call), #call)

/* Dies if `code` is not MPI_SUCCESS. call: source text of the call that returned it. */
void mpi_check(int code, const char *call);
/* Waits until a nonblocking operation of MPI is complete. A rank that waits for a long time sleeps
 * between polls and leaves its core to ranks that compute; MPI_Wait would poll without a pause. */
void mpi_await(MPI_Request *request);
/* Waits in the same way until one of `count` operations is complete. Returns its index;
 * MPI_UNDEFINED: all were complete before. */
int mpi_await_any(int count, MPI_Request *request);
/* Waits in the same way until all of `count` operations are complete. */
void mpi_await_all(int count, MPI_Request *request);

#endif
