/* A library to be loaded before a program (LD_PRELOAD): each message that the program starts costs
 * it SEND_DELAY_US more microseconds, as with a slower network or MPI library: alpha of alpha +
 * beta n, paid for one message at a time. Messages inside MPI's own collectives are not delayed. */
#include <mpi.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static void hold_up(void)
{
    const char *us = getenv("SEND_DELAY_US");
    long ns = us ? 1000 * atol(us) : 0;
    if (ns == 0) return;
    prctl(PR_SET_TIMERSLACK, 1UL);
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    hold_up();
    return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    hold_up();
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}
