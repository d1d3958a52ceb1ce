/* Sleeps on a word of shared memory until another process changes it, with the kernel's futex;
 * a wake-up calls the kernel only if a process sleeps. *sleepers is the number of processes asleep
 * on the word; several words may share one such counter. */
#ifndef WEFT_PARALLEL_FUTEX_H
#define WEFT_PARALLEL_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* Sleeps until *word is no longer `seen`; may also return spuriously. limit_s, in seconds, must be
 * less than 1. Returns false if that time has passed. */
bool futex_sleep(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen, double limit_s);
/* Wakes all processes asleep on *word. Call it after *word has been changed. */
void futex_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers);

#endif
