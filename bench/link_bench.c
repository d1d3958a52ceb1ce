/* Measures the time of a message and of a byte from rank to rank over MPI, on all links at the
 * same time. Prints medians over an even number of ranks, as arguments for sums_simulate. MB:
 * bytes that each rank sends.
 *
 *   mpirun -n 4 link_bench [MB]     latency_us=.. overhead_us=.. mbit=..
 *
 * Half of a round trip of 8 bytes, between ranks 2i and 2i + 1, is latency plus overhead. In the
 * other two measurements each rank sends to the next one. Messages of 8 bytes, one after the
 * other, each take one overhead. Messages of 1 MB, several at a time, each take the time of their
 * bytes, which is longer than the overhead of the next message and hides it. The first messages,
 * as many as are in flight at a time, are not counted, because a link may take a burst at first
 * and needs time to reach its full speed.
 * Refuses a link that is so fast that the overhead is longer. */
#include "base.h"

#include <mpi.h>
#include <stdlib.h>

enum { ROUND_TRIPS = 300, ROW = 64, ROWS = 30, LARGE = 1 << 20, UNDER_WAY = 8, RANKS_MOST = 1024 };

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

/* Returns the seconds a message takes when a row of them goes to the next rank and as many arrive
 * from the previous one, `most` at a time. The first `skipped` messages are not counted. */
static double shift_s(int messages, int skipped, int bytes, int most)
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
        if (i >= most && i - most + 1 == skipped) start = clock_s();
        if (i >= messages) continue;
        must(MPI_Irecv(to + place, bytes, MPI_BYTE, last, at, MPI_COMM_WORLD, &received[at]));
        must(MPI_Isend(from + place, bytes, MPI_BYTE, next, at, MPI_COMM_WORLD, &sent[at]));
    }
    return (clock_s() - start) / (messages - skipped);
}

/* Returns the median over ranks, on rank 0. */
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
    int turns = (int)((argc > 1 ? atof(argv[1]) : 48) * 1e6 / LARGE / UNDER_WAY);
    if (turns < 3) die("link_bench sends 26 MB at least");
    from = mem_new((size_t)UNDER_WAY * LARGE);
    to = mem_new((size_t)UNDER_WAY * LARGE);
    of_all(round_trip_s());
    double half = of_all(round_trip_s()) / 2;
    of_all(shift_s(ROW, 0, 8, ROW));
    double overhead = of_all(shift_s(ROWS * ROW, 0, 8, ROW));
    double message = of_all(shift_s(turns * UNDER_WAY, UNDER_WAY, LARGE, UNDER_WAY));
    if (rank == 0 && message < overhead)
        die("the work on a message takes longer than 1 MB on the link, which it hides");
    if (rank == 0)
        printf("latency_us=%.1f overhead_us=%.1f mbit=%.1f\n",
               half > overhead ? 1e6 * (half - overhead) : 0, 1e6 * overhead,
               8e-6 * LARGE / message);
    mem_free(&from);
    mem_free(&to);
    must(MPI_Finalize());
    return 0;
}
