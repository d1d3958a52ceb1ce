/* Network cards as /sys shows them: network interfaces, and InfiniBand ports. */
#ifndef WEFT_DOCTOR_CARDS_H
#define WEFT_DOCTOR_CARDS_H

#include "figures.h"

enum { CARDS = 64 };
/* Reads all cards except the loopback. Returns the number of entries of card that were filled. */
int cards_read(const char *root, Card card[CARDS]);
/* Compares two readings. network->used: the card that sent most in between, if that is at least
 * `least` bytes; network->fastest: the fastest card that is up. */
void cards_compare(const Card *before, int count_before, const Card *after, int count, double least,
                   Network *network);

#endif
