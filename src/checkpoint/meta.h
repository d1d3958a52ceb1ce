/* Attributes of HDF5 objects, and those of a checkpoint's root. */
#ifndef WEFT_CHECKPOINT_META_H
#define WEFT_CHECKPOINT_META_H

#include "stored.h"

bool attr_put_text(hid_t object, const char *name, const char *text);
/* NULL: none, or not one string. Owner: the caller */
char *attr_text(hid_t object, const char *name);
bool attr_put_int(hid_t object, const char *name, int64_t value);
bool attr_put_real(hid_t object, const char *name, double value);
/* A hash as 16 hexadecimal digits. *there: is there such an attribute? false: it is damaged. */
bool attr_put_hash(hid_t object, const char *name, uint64_t hash);
bool attr_hash(hid_t object, const char *name, uint64_t *hash, bool *there);
/* As many as there are, 0 of them, too. */
bool attr_put_array(hid_t object, const char *name, const int64_t *value, int count);
/* *count 0: there is no such attribute. Owner of *value: the caller; false: it is damaged, or more
 * than `most`. */
bool attr_array(hid_t object, const char *name, int most, int64_t **value, int *count);
/* Nothing where count is 0. */
bool attr_put_floats(hid_t object, const char *name, const float *value, int count);
bool attr_int(hid_t object, const char *name, int64_t *value);
bool attr_real(hid_t object, const char *name, double *value);
/* At most so many; *count is 0 where there is no such attribute; false: it is damaged. */
bool attr_floats(hid_t object, const char *name, float *value, int most, int *count);

/* Binds checksums to the tensor that they are of: a hash of its path, its shape and element type in
 * the file, and its checksums, of the whole or of each block. */
uint64_t checksum_bind(const char *path, bool ids, int ndim, const int64_t *dim,
                       const uint64_t *hash, int hashes);

bool meta_put(hid_t root, const CheckpointMeta *meta);
/* meta_state.c: what evaluations and a hook have left; what a sample is, and names of classes.
 * Reading: the attribute that is missing or damaged, or NULL. */
bool meta_put_state(hid_t root, const CheckpointMeta *meta);
bool meta_put_input(hid_t root, const CheckpointMeta *meta);
const char *meta_get_state(hid_t root, CheckpointMeta *meta);
const char *meta_get_input(hid_t root, CheckpointMeta *meta);
Status meta_get(hid_t root, const char *path, CheckpointMeta *meta);

#endif
