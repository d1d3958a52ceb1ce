/* Measuring the network between pairs of nodes (check_network.c): which nodes are a pair in each
 * round, and which messages a pair exchanges. */
#ifndef WEFT_DOCTOR_PAIRS_H
#define WEFT_DOCTOR_PAIRS_H

/* Returns the number of rounds for `size` nodes: size - 1, or size if that is odd, but at most
 * PEERS_MAX. */
int pairs_rounds(int size);
/* Returns the node that is paired with node `rank` in this round; -1 if there is none. */
int pairs_peer(int size, int round, int rank);

/* Exchanges a message of `bytes` bytes in both directions; returns its seconds, equal on both
 * ends. link: passed on by the functions below. */
typedef double PairExchange(void *link, int bytes);
/* Returns the seconds of the fastest small message. Both ends call it with the same budget_s, after
 * which no further message begins. */
double pairs_latency(PairExchange *exchange, void *link, double budget_s);
/* Returns bytes per second of the fastest of several messages of 1 MiB, or of a smaller size on a
 * slow link, on which messages of 1 MiB would exceed budget_s; sets *bytes to the size. Both ends
 * call it with the same budget_s, and take at most about twice as long, except on links where 4 KiB
 * exceed it. */
double pairs_rate(PairExchange *exchange, void *link, double budget_s, int *bytes);

#endif
