/* Point to point over MPI, on all links at the same time: what a message and a byte take. Medians
 * over the ranks, an even number, in the form in which sums_simulate takes them. MB: what each rank
 * sends.
 *
 *   mpirun -n 4 link_bench [MB]     latency_us=.. overhead_us=.. mbit=..
 *
 * Half of a round trip of 8 bytes, between ranks 2i and 2i + 1, is latency and overhead. In the
 * other two each rank sends to the next one: messages of 8 bytes in a row, of which each takes an
 * overhead; and messages of 256 KB, of which two rows are measured and subtracted, so that what a
 * link lets through at once at the beginning does not count. */
#include "base.h"

#include <mpi.h>
#include <stdlib.h>

enum { ROUND_TRIPS = 300, ROW = 64, ROWS = 30, LARGE = 1 << 18, UNDER_WAY = 16, RANKS_MOST = 1024 };

static int rank, ranks;
static char *from, *to;

static void must(int result)
{
    if (result != MPI_SUCCESS) die("MPI failed");
}

static double round_trip_s(void)
{
    int peer = rank ^ 1;
    double start = clock_s();
    for (int i = 0; i < ROUND_TRIPS; ++i)
        for (int turn = 0; turn < 2; ++turn) {
            if (turn == (rank & 1))
                must(MPI_Send(from, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
            else
                must(MPI_Recv(to, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    return (clock_s() - start) / ROUND_TRIPS;
}

/* Seconds of so many messages to the next rank, as many from the last, `most` under way. */
static double shift_s(int messages, int bytes, int most)
{
    MPI_Request sent[ROW], received[ROW];
    for (int i = 0; i < ROW; ++i) sent[i] = received[i] = MPI_REQUEST_NULL;
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    double start = clock_s();
    for (int i = 0; i < messages + most; ++i) {
        int at = i % most;
        size_t place = (size_t)at * (size_t)bytes;
        if (i >= most) {
            must(MPI_Wait(&received[at], MPI_STATUS_IGNORE));
            must(MPI_Wait(&sent[at], MPI_STATUS_IGNORE));
        }
        if (i >= messages) continue;
        must(MPI_Irecv(to + place, bytes, MPI_BYTE, last, at, MPI_COMM_WORLD, &received[at]));
        must(MPI_Isend(from + place, bytes, MPI_BYTE, next, at, MPI_COMM_WORLD, &sent[at]));
    }
    return clock_s() - start;
}

/* The median of all ranks' figures, on rank 0. */
static double of_all(double mine)
{
    double all[RANKS_MOST];
    must(MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    must(MPI_Barrier(MPI_COMM_WORLD));
    return rank == 0 ? median(all, ranks) : 0;
}

int main(int argc, char **argv)
{
    must(MPI_Init(&argc, &argv));
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    must(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (ranks % 2 != 0 || ranks > RANKS_MOST) die("link_bench needs an even number of ranks");
    int large = (int)((argc > 1 ? atof(argv[1]) : 24) * 1e6 / LARGE);
    from = mem_new((size_t)UNDER_WAY * LARGE);
    to = mem_new((size_t)UNDER_WAY * LARGE);
    of_all(round_trip_s());
    double half = of_all(round_trip_s()) / 2;
    of_all(shift_s(ROW, 8, ROW));
    double overhead = of_all(shift_s(ROWS * ROW, 8, ROW)) / (ROWS * ROW);
    double shorter = of_all(shift_s(large / 4, LARGE, UNDER_WAY));
    double longer = of_all(shift_s(large, LARGE, UNDER_WAY));
    double byte = (longer - shorter - overhead * (large - large / 4)) / (large - large / 4) / LARGE;
    if (rank == 0)
        printf("latency_us=%.1f overhead_us=%.1f mbit=%.1f\n",
               half > overhead ? 1e6 * (half - overhead) : 0, 1e6 * overhead, 8e-6 / byte);
    mem_free(&from);
    mem_free(&to);
    must(MPI_Finalize());
    return 0;
}
