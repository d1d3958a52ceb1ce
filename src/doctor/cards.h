/* Network cards as /sys has them: Ethernet and its like, and ports of InfiniBand. */
#ifndef WEFT_DOCTOR_CARDS_H
#define WEFT_DOCTOR_CARDS_H

#include "figures.h"

enum { CARDS = 64 };
/* But the loopback. Returns how many of card were filled. */
int cards_read(const char *root, Card card[CARDS]);
/* What was sent between two readings: the card with most of it, if that is at least `least` bytes,
 * and the fastest of those that are up. */
void cards_compare(const Card *before, int count_before, const Card *after, int count, double least,
                   Network *network);

#endif
