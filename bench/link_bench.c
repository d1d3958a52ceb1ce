/* Measures the time of a message and of a byte from rank to rank over MPI, on all links at the same
 * time. Prints medians over an even number of ranks, as arguments for sums_simulate. MB: bytes that
 * each rank sends.
 *
 *   mpirun -n 4 link_bench [MB]     latency_us=.. overhead_us=.. mbit=..
 *
 * Half of a round trip of 8 bytes, between ranks 2i and 2i + 1, is latency plus overhead. In the
 * other two measurements each rank sends to the next one. Messages of 8 bytes, one after the other,
 * take one overhead each. Messages of 1 MB, several in flight at a time, take the time of their
 * bytes each, if this time hides the overhead of the next message; a link on which 1 MB takes less
 * time than the overhead is an error. The first messages in flight are not counted, since a link
 * may accept a burst at once, and needs time to reach its full speed. */
#include "base.h"

#include <mpi.h>
#include <stdlib.h>

enum {
    ROUND_TRIPS = 300,
    BURST = 64,
    BURSTS = 30,
    LARGE = 1 << 20,
    IN_FLIGHT = 8,
    RANKS_MAX = 1024
};

static int rank, ranks;
static char *from, *to;

static void check_mpi(int result)
{
    if (result != MPI_SUCCESS) die("MPI failed");
}

static double round_trip_s(void)
{
    int peer = rank ^ 1;
    double start = clock_s();
    for (int i = 0; i < ROUND_TRIPS; ++i)
        for (int direction = 0; direction < 2; ++direction) {
            if (direction == (rank & 1))
                check_mpi(MPI_Send(from, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
            else
                check_mpi(MPI_Recv(to, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    return (clock_s() - start) / ROUND_TRIPS;
}

/* Returns the seconds per message while this rank sends `messages` messages to the next rank and
 * receives as many from the previous rank. in_flight: number of messages in flight at a time. The
 * first `skipped` messages are not counted. */
static double shift_s(int messages, int skipped, int bytes, int in_flight)
{
    MPI_Request sent[BURST], received[BURST];
    for (int i = 0; i < BURST; ++i) sent[i] = received[i] = MPI_REQUEST_NULL;
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    double start = clock_s();
    for (int i = 0; i < messages + in_flight; ++i) {
        int slot = i % in_flight;
        size_t offset = (size_t)slot * (size_t)bytes;
        if (i >= in_flight) {
            check_mpi(MPI_Wait(&received[slot], MPI_STATUS_IGNORE));
            check_mpi(MPI_Wait(&sent[slot], MPI_STATUS_IGNORE));
        }
        if (i >= in_flight && i - in_flight + 1 == skipped) start = clock_s();
        if (i >= messages) continue;
        check_mpi(
            MPI_Irecv(to + offset, bytes, MPI_BYTE, last, slot, MPI_COMM_WORLD, &received[slot]));
        check_mpi(
            MPI_Isend(from + offset, bytes, MPI_BYTE, next, slot, MPI_COMM_WORLD, &sent[slot]));
    }
    return (clock_s() - start) / (messages - skipped);
}

/* Returns the median over all ranks; valid on rank 0. */
static double median_over_ranks(double mine)
{
    double all[RANKS_MAX];
    check_mpi(MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    check_mpi(MPI_Barrier(MPI_COMM_WORLD));
    return rank == 0 ? median(all, ranks) : 0;
}

int main(int argc, char **argv)
{
    check_mpi(MPI_Init(&argc, &argv));
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (ranks % 2 != 0 || ranks > RANKS_MAX) die("link_bench needs an even number of ranks");
    int bursts = (int)((argc > 1 ? atof(argv[1]) : 48) * 1e6 / LARGE / IN_FLIGHT);
    if (bursts < 3) die("link_bench needs MB of at least 26");
    from = mem_new((size_t)IN_FLIGHT * LARGE);
    to = mem_new((size_t)IN_FLIGHT * LARGE);
    median_over_ranks(round_trip_s());
    double half = median_over_ranks(round_trip_s()) / 2;
    median_over_ranks(shift_s(BURST, 0, 8, BURST));
    double overhead = median_over_ranks(shift_s(BURSTS * BURST, 0, 8, BURST));
    double message = median_over_ranks(shift_s(bursts * IN_FLIGHT, IN_FLIGHT, LARGE, IN_FLIGHT));
    if (rank == 0 && message < overhead)
        die("the link is too fast: the overhead of a message takes longer than its 1 MB");
    if (rank == 0)
        printf("latency_us=%.1f overhead_us=%.1f mbit=%.1f\n",
               half > overhead ? 1e6 * (half - overhead) : 0, 1e6 * overhead,
               8e-6 * LARGE / message);
    mem_free(&from);
    mem_free(&to);
    check_mpi(MPI_Finalize());
    return 0;
}
