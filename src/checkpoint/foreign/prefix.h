/* Removes prefixes that wrappers put before the names of a model or of its parts. */
#ifndef WEFT_CHECKPOINT_PREFIX_H
#define WEFT_CHECKPOINT_PREFIX_H

#include "foreign_set.h"

/* Removes the prefix that a wrapper has put before every name ("module.", or any prefix before a
 * known model's names) or before some names, and logs it. ERR_DATA: two names would become
 * equal. */
Status prefix_strip(ForeignSet *set);

#endif
