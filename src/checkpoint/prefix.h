/* Prefixes that wrappers put before all names of a model. */
#ifndef WEFT_CHECKPOINT_PREFIX_H
#define WEFT_CHECKPOINT_PREFIX_H

#include "safe_set.h"

/* Takes away what a wrapper has put before every name ("module.", or whatever leaves the names of a
 * known model), and says so. */
void prefix_strip(SafeSet *set);

#endif
