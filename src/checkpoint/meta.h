/* Reads and writes attributes of HDF5 objects, and the attributes of a checkpoint's root. The
 * functions attr_put_* and meta_put* return false if HDF5 fails. */
#ifndef WEFT_CHECKPOINT_META_H
#define WEFT_CHECKPOINT_META_H

#include "stored.h"

bool attr_put_text(hid_t object, const char *name, const char *text);
/* Returns the text of an attribute; NULL if there is no such attribute, or if it is not one string.
 * Owner: the caller. */
char *attr_text(hid_t object, const char *name);
bool attr_put_int(hid_t object, const char *name, int64_t value);
bool attr_put_real(hid_t object, const char *name, double value);
/* Writes a hash as 16 hexadecimal digits. */
bool attr_put_hash(hid_t object, const char *name, uint64_t hash);
/* Reads a hash. *found: whether there is an attribute of this name with one string. Returns false
 * if the string is damaged. */
bool attr_hash(hid_t object, const char *name, uint64_t *hash, bool *found);
/* Writes `count` values; count may be 0. */
bool attr_put_array(hid_t object, const char *name, const int64_t *value, int count);
/* Reads at most `most` values. *count is 0 if there is no such attribute. Owner of *value: the
 * caller. Returns false if the attribute is damaged, has no values, or has more than `most`
 * values. */
bool attr_array(hid_t object, const char *name, int most, int64_t **value, int *count);
/* Writes no attribute if count is 0. */
bool attr_put_floats(hid_t object, const char *name, const float *value, int count);
/* These two functions read one number. They return false if the attribute is missing or damaged. */
bool attr_int(hid_t object, const char *name, int64_t *value);
bool attr_real(hid_t object, const char *name, double *value);
/* Reads at most `most` values. *count is 0 if there is no such attribute. Returns false if the
 * attribute is damaged or has more than `most` values. */
bool attr_floats(hid_t object, const char *name, float *value, int most, int *count);

/* Returns the hash of a tensor's path, element type, shape in the file, and checksums: one for the
 * whole tensor, or one for each block. This hash binds the checksums to the tensor. ids: true if
 * the elements are 64-bit ids, false if they are fp32. */
uint64_t checksum_bind(const char *path, bool ids, int ndim, const int64_t *dim,
                       const uint64_t *hash, int hashes);

/* Writes all attributes of a checkpoint's root. */
bool meta_put(hid_t root, const CheckpointMeta *meta);
/* Functions of meta_state.c. The two functions for the state write and read evaluations, learning
 * rate and hook. The two functions for the input write and read the description of a sample, names
 * of classes, ranges of the data's values, files of a set that grows, and the record of algorithms.
 * The get functions return the name of an attribute that is missing or damaged, or NULL. */
bool meta_put_state(hid_t root, const CheckpointMeta *meta);
bool meta_put_input(hid_t root, const CheckpointMeta *meta);
const char *meta_get_state(hid_t root, CheckpointMeta *meta);
const char *meta_get_input(hid_t root, CheckpointMeta *meta);
/* Reads all attributes of a checkpoint's root. The attributes step, epoch, data_step, seed,
 * best_metric, config, weft and grid must exist; all other attributes may be missing, but if the
 * first attribute of a group exists (for example evaluations), the rest of the group must exist.
 * ERR_DATA names the first attribute that is missing or damaged; *meta then owns nothing. Damage of
 * best_metric_of, init_from, data_train, data_test, data_tokenizer, data_ids and data_columns is no
 * error: their fields stay unknown. */
Status meta_get(hid_t root, const char *path, CheckpointMeta *meta);

#endif
