/* Sleeping on a word of shared memory until another process changes it: the kernel's futex, called
 * only where somebody sleeps. `sleepers` counts those asleep on the word (one count may serve
 * several words). */
#ifndef WEFT_PARALLEL_FUTEX_H
#define WEFT_PARALLEL_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* Until *word is no longer `seen`, or for no reason. False: limit_s (below 1) has passed. */
bool futex_sleep(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen, double limit_s);
/* After *word was changed: wakes all that sleep on it. */
void futex_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers);

#endif
