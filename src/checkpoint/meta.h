/* Attributes of HDF5 objects, and those of a checkpoint's root. */
#ifndef WEFT_CHECKPOINT_META_H
#define WEFT_CHECKPOINT_META_H

#include "stored.h"

bool attr_put_text(hid_t object, const char *name, const char *text);
/* NULL: none, or not one string. Owner: the caller */
char *attr_text(hid_t object, const char *name);
bool attr_int(hid_t object, const char *name, int64_t *value);

bool meta_put(hid_t root, const CheckpointMeta *meta);
Status meta_get(hid_t root, const char *path, CheckpointMeta *meta);

#endif
