/* Which nodes measure the network with each other in each round (check_network.c). */
#ifndef WEFT_DOCTOR_PAIRS_H
#define WEFT_DOCTOR_PAIRS_H

/* Returns the number of rounds for `size` nodes: size - 1, or size if that is odd, but at most
 * PEERS_MAX. */
int pairs_rounds(int size);
/* Returns the node that is paired with node `rank` in this round; -1 if there is none. */
int pairs_peer(int size, int round, int rank);

#endif
