/* Renames and drops tensors by the user's rules: prefixes of names are replaced, and tensors whose
 * names fit a pattern are left out. */
#ifndef WEFT_CHECKPOINT_RENAME_H
#define WEFT_CHECKPOINT_RENAME_H

#include "safe_set.h"

/* Renames tensors by rules OLD:NEW for prefixes; the first rule that fits a name is applied.
 * ERR_USAGE: no colon; ERR_DATA: a prefix fits no name, or two tensors would get the same name. */
Status safe_rename(SafeSet *set, char *const *rename, int count);
/* Removes the tensors whose names fit a pattern. ERR_DATA: a pattern fits no name, or all tensors
 * are removed. */
Status safe_drop(SafeSet *set, char *const *pattern, int count);

#endif
