/* Attributes of HDF5 objects, and those of a checkpoint's root. */
#ifndef WEFT_CHECKPOINT_META_H
#define WEFT_CHECKPOINT_META_H

#include "stored.h"

bool attr_put_text(hid_t object, const char *name, const char *text);
/* Returns NULL where there is no such attribute, or it is not one string. Owner: the caller. */
char *attr_text(hid_t object, const char *name);
bool attr_put_int(hid_t object, const char *name, int64_t value);
bool attr_put_real(hid_t object, const char *name, double value);
/* A hash is stored as 16 hexadecimal digits. attr_hash: *there says whether the attribute exists;
 * returns false where it is damaged. */
bool attr_put_hash(hid_t object, const char *name, uint64_t hash);
bool attr_hash(hid_t object, const char *name, uint64_t *hash, bool *found);
/* Writes `count` values, which may be 0. */
bool attr_put_array(hid_t object, const char *name, const int64_t *value, int count);
/* Reads at most `most` values. *count 0 where there is no such attribute. Owner of *value: the
 * caller. Returns false where it is damaged or has more values. */
bool attr_array(hid_t object, const char *name, int most, int64_t **value, int *count);
/* Writes no attribute where count is 0. */
bool attr_put_floats(hid_t object, const char *name, const float *value, int count);
bool attr_int(hid_t object, const char *name, int64_t *value);
bool attr_real(hid_t object, const char *name, double *value);
/* Reads at most `most` values; *count is 0 where there is no such attribute. Returns false where it
 * is damaged. */
bool attr_floats(hid_t object, const char *name, float *value, int most, int *count);

/* Binds checksums to their tensor: a hash of its path, its shape and element type in the file, and
 * its checksums (one for the whole tensor, or one for each block). */
uint64_t checksum_bind(const char *path, bool ids, int ndim, const int64_t *dim,
                       const uint64_t *hash, int hashes);

bool meta_put(hid_t root, const CheckpointMeta *meta);
/* meta_state.c: state of evaluations and of a hook; the description of a sample, and names of
 * classes. The get functions return the name of an attribute that is missing or damaged, or
 * NULL. */
bool meta_put_state(hid_t root, const CheckpointMeta *meta);
bool meta_put_input(hid_t root, const CheckpointMeta *meta);
const char *meta_get_state(hid_t root, CheckpointMeta *meta);
const char *meta_get_input(hid_t root, CheckpointMeta *meta);
Status meta_get(hid_t root, const char *path, CheckpointMeta *meta);

#endif
