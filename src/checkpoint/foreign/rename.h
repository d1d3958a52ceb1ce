/* Renames and drops tensors by the user's rules: prefixes of names are replaced, and tensors whose
 * names fit a pattern are left out. */
#ifndef WEFT_CHECKPOINT_RENAME_H
#define WEFT_CHECKPOINT_RENAME_H

#include "foreign_set.h"

/* Renames tensors by rules OLD:NEW, which replace a prefix of a name. The first rule that fits a
 * name is applied. ERR_USAGE: a rule has no colon. ERR_DATA: a rule is applied to no name, or two
 * tensors would get the same name. */
Status foreign_rename(ForeignSet *set, char *const *rename, int count);
/* Removes the tensors whose names fit a pattern (fnmatch). ERR_DATA: a pattern fits none of the
 * names that the patterns before it have left, or no tensor is left. */
Status foreign_drop(ForeignSet *set, char *const *pattern, int count);

#endif
