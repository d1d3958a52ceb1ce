/* Point to point over MPI, on all links at the same time: what a message and a byte take. Medians
 * over the ranks, an even number, in the form in which sums_simulate takes them. MB: what each rank
 * sends.
 *
 *   mpirun -n 4 link_bench [MB]     latency_us=.. overhead_us=.. mbit=..
 *
 * Half of a round trip of 8 bytes, between ranks 2i and 2i + 1, is latency and overhead. In the
 * other two each rank sends to the next one: messages of 8 bytes in a row, of which each takes an
 * overhead; and messages of 1 MB, a few under way, of which each takes as long as its bytes, for
 * that is longer than the work on the next one, which is done meanwhile. As many as are under way
 * are skipped first: what a link lets through at once at the beginning, and the time until it is at
 * full speed, do not count, and where all of them end at the same time, so do the last ones.
 * Refuses a link so fast that the work is longer. */
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

/* Seconds that a message takes in a row to the next rank, with as many from the last, `most` under
 * way: those that come after the first `skipped`. */
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
