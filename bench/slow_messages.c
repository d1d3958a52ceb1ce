/* A library for LD_PRELOAD that makes MPI_Send and MPI_Isend SEND_DELAY_US microseconds slower, as
 * with a slower network or MPI library. If a message of n bytes takes alpha + beta n, it increases
 * alpha. The messages of MPI's own collectives are not delayed. */
#include <mpi.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static void delay(void)
{
    const char *us = getenv("SEND_DELAY_US");
    long ns = us ? 1000 * atol(us) : 0;
    if (ns == 0) return;
    prctl(PR_SET_TIMERSLACK, 1UL);
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    delay();
    return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    delay();
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}
