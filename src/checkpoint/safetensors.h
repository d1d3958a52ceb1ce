/* Writing files of tensors as Hugging Face's tools do (safetensors, format of 2022): eight bytes of
 * length, a header in JSON, the values. Reading them is safe_format_safetensors. */
#ifndef WEFT_CHECKPOINT_SAFETENSORS_H
#define WEFT_CHECKPOINT_SAFETENSORS_H

#include "safe_set.h"

/* What is written. counter: not floats, but one I64 of that value. */
typedef struct SafeEntry {
    /* borrowed */
    const char *name;
    int ndim;
    int64_t dim[SAFE_DIMS];
    bool counter;
    int64_t value;
    /* the caller's own, which stays with it when entries are sorted */
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
