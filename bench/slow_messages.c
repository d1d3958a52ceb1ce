/* A library before a program's own (LD_PRELOAD): each message that the program begins holds it up
 * for SEND_DELAY_US microseconds more, as a slower network or a library with more to do would: the
 * alpha of alpha + beta n, of which a rank has one at a time. Messages that MPI makes for itself,
 * those of its collectives, are not delayed. */
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
