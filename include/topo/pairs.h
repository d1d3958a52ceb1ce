/* Pairs of a round-robin tournament, and the messages that a pair exchanges to measure its link. */
#ifndef WEFT_TOPO_PAIRS_H
#define WEFT_TOPO_PAIRS_H

#include <mpi.h>

/* Returns the number of rounds for `size` members: size - 1, or size if that is odd, but at most
 * `most`. */
int pairs_rounds(int size, int most);
/* Returns the member that is paired with member `rank` in this one of `rounds` rounds; -1: none. */
int pairs_peer(int size, int rounds, int round, int rank);

/* bytes of the largest message of pairs_rate */
enum { PAIR_BYTES_MAX = 1 << 20 };
/* One end of a pair. */
typedef struct PairLink {
    MPI_Comm comm;
    /* rank of the other end in comm */
    int peer;
    /* 2 * PAIR_BYTES_MAX bytes; borrowed */
    char *buffer;
} PairLink;
/* Returns the seconds of the fastest small message. Both ends call it with the same budget_s, after
 * which no further message begins. */
double pairs_latency(const PairLink *link, double budget_s);
/* Returns bytes per second of the fastest of several messages of 1 MiB, or of a smaller size on a
 * slow link, on which messages of 1 MiB would exceed budget_s; sets *bytes to the size. Both ends
 * call it with the same budget_s, and take at most about twice as long, except on links where 4 KiB
 * exceed it. */
double pairs_rate(const PairLink *link, double budget_s, int *bytes);

#endif
