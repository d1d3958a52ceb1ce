/* Writes tensors in safetensors, the format of Hugging Face's tools (2022): eight bytes of length,
 * a header in JSON, the values. Reading it is safe_format_safetensors (safe_set.h). */
#ifndef WEFT_CHECKPOINT_SAFETENSORS_H
#define WEFT_CHECKPOINT_SAFETENSORS_H

#include "safe_set.h"

/* One tensor to write. counter: a single I64 with this value, and no floats. */
typedef struct SafeEntry {
    /* borrowed */
    const char *name;
    int ndim;
    int64_t dim[SAFE_DIMS];
    bool counter;
    int64_t value;
    /* pointer of the caller's, which stays with the entry when entries are sorted */
    const void *source;
} SafeEntry;
typedef struct SafeOut {
    int count;
    SafeEntry *entry;
    void *user;
    /* fills plain with entry i */
    Status (*get)(void *user, int i, float *plain);
} SafeOut;
/* Writes path.part, syncs and renames it. Entries are sorted as the format's own library orders
 * them: by the bytes of a value, falling, then by name. ERR_IO; what get returns. */
Status safe_write(const char *path, SafeOut *out);

#endif
