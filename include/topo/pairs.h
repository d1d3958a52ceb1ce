/* The pairs of a round-robin tournament, and the messages that a pair exchanges to measure its
 * link. */
#ifndef WEFT_TOPO_PAIRS_H
#define WEFT_TOPO_PAIRS_H

#include <mpi.h>

/* Returns the number of rounds in which all pairs of `size` members meet, but at most `most`: size
 * - 1 if size is even, size if it is odd, and 0 for one member. */
int pairs_rounds(int size, int most);
/* Returns the member that is paired with member `rank` in round number `round` of `rounds`; -1:
 * `rank` pauses. */
int pairs_peer(int size, int rounds, int round, int rank);

/* bytes of the largest message of pairs_rate */
enum { PAIR_BYTES_MAX = 1 << 20 };
/* This rank's end of a pair. */
typedef struct PairLink {
    MPI_Comm comm;
    /* rank of the other end in comm */
    int peer;
    /* memory for messages, 2 * PAIR_BYTES_MAX bytes; borrowed */
    char *buffer;
} PairLink;
/* Returns the seconds of the fastest of up to 22 small messages. After a message that connects the
 * two ends, one is always sent; the others only if they fit into budget_s seconds. Both ends call
 * it with the same budget_s. */
double pairs_latency(const PairLink *link, double budget_s);
/* Returns the bytes per second of the fastest of several messages. *bytes: their size, 1 MiB, or
 * less on a slow link on which messages of 1 MiB would exceed budget_s seconds. The call takes at
 * most about twice budget_s, except on a link on which 4 KiB take longer. Both ends call it with
 * the same budget_s. */
double pairs_rate(const PairLink *link, double budget_s, int *bytes);

#endif
