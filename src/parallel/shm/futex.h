/* Sleeps on a word of shared memory until another process changes it, by the kernel's futex. A
 * wake-up calls the kernel only if a process sleeps. *sleepers is the number of processes asleep on
 * the word; several words may share one such counter. */
#ifndef WEFT_PARALLEL_FUTEX_H
#define WEFT_PARALLEL_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* Sleeps until *word has another value than `seen`; may also return early without reason. limit_s:
 * longest time of the sleep in seconds, below 1. Returns false if that time has passed. */
bool futex_sleep(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen, double limit_s);
/* Wakes all processes asleep on *word. The caller has already changed *word. */
void futex_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers);

#endif
