/* Prefixes that wrappers put before all names of a model. */
#ifndef WEFT_CHECKPOINT_PREFIX_H
#define WEFT_CHECKPOINT_PREFIX_H

#include "safe_set.h"

/* Removes the prefix that a wrapper has put before every name ("module.", or whatever leaves the
 * names of a known model), or a wrapper's word before some of them, and logs it. ERR_DATA: a name
 * would be there twice. */
Status prefix_strip(SafeSet *set);

#endif
