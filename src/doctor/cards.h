/* Network cards as /sys shows them: network interfaces, and InfiniBand ports. */
#ifndef WEFT_DOCTOR_CARDS_H
#define WEFT_DOCTOR_CARDS_H

#include "measurements.h"

enum { CARDS_MAX = 64 };
/* Reads all cards except the loopback. root: "", or a folder that stands for /. Returns the number
 * of entries of card that were filled. */
int cards_read(const char *root, Card card[CARDS_MAX]);
/* Compares two readings. Sets network->used to the card that sent most in between, if that is at
 * least sent_min bytes, and network->fastest to the fastest card that is up. In both, `sent` counts
 * the bytes in between. */
void cards_compare(const Card *before, int count_before, const Card *after, int count,
                   double sent_min, Network *network);

#endif
