/* A round-robin tournament: in a round every member is in one pair, and an even number p of members
 * needs p - 1 rounds. An odd number is made even by a member that does not exist; its partner
 * pauses. Example of five members, where member 5 does not exist:
 *     round 0    0-5  1-4  2-3
 *     round 1    1-0  2-4  3-5 */
#include "topo/pairs.h"

#include "base.h"

#include <math.h>
#include <stdint.h>

enum {
    TAG_PAIR = 22,
    /* bytes of a message that measures latency */
    SMALL_BYTES = 8,
    /* the most messages that measure latency */
    PINGS_MAX = 22,
    /* bytes of the first messages that measure bandwidth */
    FIRST_BYTES = 4 << 10,
    /* factor from one size to the next */
    SIZE_STEP = 4,
    /* least number of messages of the final size */
    MESSAGES_MIN = 2,
    /* largest number of messages of the final size */
    MESSAGES_MAX = 9,
};

int pairs_rounds(int size, int most)
{
    int rounds = size + size % 2 - 1;
    return size < 2 ? 0 : rounds < most ? rounds : most;
}

int pairs_peer(int size, int rounds, int round, int rank)
{
    int n = size + size % 2, peer;
    /* Only `rounds` of the n - 1 rounds of the tournament are played. turn: number that this round
     * has in the tournament. */
    int turn = (int)((int64_t)round * (n - 1) / rounds);
    if (rank == n - 1)
        peer = (int)((int64_t)turn * (n / 2) % (n - 1));
    else
        peer = (turn - rank + n - 1) % (n - 1);
    if (peer == rank) peer = n - 1;
    return peer < size ? peer : -1;
}

static void swap_with_peer(const PairLink *link, const void *send, void *receive, int bytes)
{
    if (MPI_Sendrecv(send, bytes, MPI_BYTE, link->peer, TAG_PAIR, receive, bytes, MPI_BYTE,
                     link->peer, TAG_PAIR, link->comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        die_lost("MPI_Sendrecv with the other end of a pair failed");
}

/* Sends `bytes` bytes to the other end while the other end sends the same number, so the time is
 * that of one direction. Returns the longer of the times that the two ends have measured; the
 * result is the same on both ends. A send may return while its data is still in a local buffer, but
 * the longer time includes the transfer. */
static double exchange(const PairLink *link, int bytes)
{
    double begin_s = clock_s();
    swap_with_peer(link, link->buffer, link->buffer + bytes, bytes);
    double mine_s = clock_s() - begin_s, other_s;
    swap_with_peer(link, &mine_s, &other_s, sizeof mine_s);
    return fmax(mine_s, other_s);
}

double pairs_latency(const PairLink *link, double budget_s)
{
    double best_s = INFINITY, spent_s = 0;
    /* the first message may include the time to connect */
    exchange(link, SMALL_BYTES);
    for (int i = 0; i < PINGS_MAX && (i == 0 || spent_s + best_s <= budget_s); ++i) {
        double message_s = exchange(link, SMALL_BYTES);
        spent_s += message_s;
        best_s = fmin(best_s, message_s);
    }
    return best_s;
}

double pairs_rate(const PairLink *link, double budget_s, int *bytes)
{
    double best_s = INFINITY, spent_s = 0;
    int messages = 0;
    *bytes = FIRST_BYTES;
    for (;;) {
        double message_s = exchange(link, *bytes);
        spent_s += message_s;
        best_s = fmin(best_s, message_s);
        ++messages;
        if (*bytes < PAIR_BYTES_MAX && spent_s + SIZE_STEP * best_s <= budget_s) {
            *bytes *= SIZE_STEP;
            best_s = INFINITY;
            messages = 0;
        } else if (messages >= MESSAGES_MIN &&
                   (messages == MESSAGES_MAX || spent_s + best_s > budget_s)) {
            return *bytes / best_s;
        }
    }
}
