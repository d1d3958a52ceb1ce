/* Names of tensors as the user wants them: prefixes are replaced, patterns left out. */
#ifndef WEFT_CHECKPOINT_RENAME_H
#define WEFT_CHECKPOINT_RENAME_H

#include "safe_set.h"

/* Prefixes OLD:NEW, of which the first that fits a name counts. ERR_USAGE: no colon; ERR_DATA: one
 * fits no name, or two tensors get the same one. */
Status safe_rename(SafeSet *set, char *const *rename, int count);
/* ERR_DATA: a pattern fits no name, or all of them are left out. */
Status safe_drop(SafeSet *set, char *const *pattern, int count);

#endif
