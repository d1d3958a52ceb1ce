/* The generator of random numbers behind rng.h. Only rng.c and a test of its known answers use it
 * directly. */
#ifndef WEFT_BASE_PHILOX_H
#define WEFT_BASE_PHILOX_H

#include "base.h"

/* Computes Philox4x32-10 of a 128-bit counter, whose least significant word is the first. */
void philox4x32(RngKey key, const uint32_t counter[4], uint32_t out[4]);

#endif
