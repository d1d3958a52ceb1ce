/* Who is measured with whom, and when. */
#ifndef WEFT_DOCTOR_PAIRS_H
#define WEFT_DOCTOR_PAIRS_H

/* Of size nodes: size - 1, or size where that is odd, but at most PEERS. */
int pairs_rounds(int size);
/* The other node of a pair; -1: none in this round. */
int pairs_peer(int size, int round, int rank);

#endif
