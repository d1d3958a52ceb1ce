/* The generator behind rng_*, exposed for its known-answer tests only. */
#ifndef WEFT_BASE_PHILOX_H
#define WEFT_BASE_PHILOX_H

#include "base.h"

/* Computes Philox4x32-10 of a 128-bit counter, least significant word first. */
void philox4x32(RngKey key, const uint32_t counter[4], uint32_t out[4]);

#endif
