/* Writes tensors in safetensors, the format of Hugging Face's tools (2022): eight bytes with the
 * header's length, the header in JSON, the values. foreign_format_safetensors (foreign_set.h) reads
 * the format. */
#ifndef WEFT_CHECKPOINT_SAFETENSORS_H
#define WEFT_CHECKPOINT_SAFETENSORS_H

#include "foreign_set.h"

/* One tensor to write. */
typedef struct SafeEntry {
    /* borrowed */
    const char *name;
    int ndim;
    int64_t dim[FOREIGN_DIMS];
    /* true: the tensor is a single I64, `value`; false: it has floats, from SafeOut.get */
    bool counter;
    int64_t value;
    /* the caller's pointer, which stays with the entry when entries are sorted */
    const void *source;
} SafeEntry;
typedef struct SafeOut {
    int count;
    /* entries, [count]; borrowed; safe_write sorts them */
    SafeEntry *entry;
    void *user;
    /* fills `plain` with entry[i], after the entries have been sorted */
    Status (*get)(void *user, int i, float *plain);
} SafeOut;
/* Writes path.part, syncs and renames it. Sorts the entries as the format's own library does: by
 * the bytes of an element, descending, then by name. ERR_IO: the file cannot be written. Also
 * returns errors of out->get. */
Status safe_write(const char *path, SafeOut *out);

#endif
