/* Files of tensors as Hugging Face's tools write them (safetensors, format of 2022): eight bytes of
 * length, a header in JSON, the values. No word of models here. */
#ifndef WEFT_CHECKPOINT_SAFETENSORS_H
#define WEFT_CHECKPOINT_SAFETENSORS_H

#include "base.h"

enum { SAFE_DIMS = 8 };
/* kinds of values: name, bytes of one, can it be read as a float? */
#define SAFE_TYPES(_)                                                                              \
    _(BOOL, 1, false)                                                                              \
    _(U8, 1, false)                                                                                \
    _(I8, 1, false)                                                                                \
    _(F8_E4M3, 1, false)                                                                           \
    _(F8_E5M2, 1, false)                                                                           \
    _(U16, 2, false)                                                                               \
    _(I16, 2, false)                                                                               \
    _(F16, 2, true)                                                                                \
    _(BF16, 2, true)                                                                               \
    _(U32, 4, false)                                                                               \
    _(I32, 4, false)                                                                               \
    _(F32, 4, true)                                                                                \
    _(U64, 8, false)                                                                               \
    _(I64, 8, false)                                                                               \
    _(F64, 8, true)                                                                                \
    _(C64, 8, false)
#define SAFE_CONSTANT(name, bytes, floats) SAFE_##name,
typedef enum SafeType { SAFE_TYPES(SAFE_CONSTANT) SAFE_TYPE_COUNT } SafeType;

typedef struct SafeTensor {
    /* owned */
    char *name;
    SafeType type;
    int ndim;
    int64_t dim[SAFE_DIMS], elements;
    /* of its file, from the first byte of the values */
    int64_t begin, end;
    /* which of the set's */
    int file;
} SafeTensor;
typedef struct SafeFile {
    /* owned */
    char *path;
    int fd;
    /* where values begin, and how many bytes of them there are */
    int64_t data, bytes;
} SafeFile;
/* A file, or the shards that an index names. */
typedef struct SafeSet {
    /* borrowed: as the user said it */
    const char *path;
    int files, count;
    /* owned, both; tensors sorted by name */
    SafeFile *file;
    SafeTensor *tensor;
} SafeSet;

/* path: FILE.safetensors, or FILE.safetensors.index.json with shards beside it. ERR_NOINPUT;
 * ERR_IO; ERR_DATA for whatever the format does not allow, two tensors of one name, and what is
 * out of bounds. Release with safe_close in every case. */
Status safe_open(SafeSet *set, const char *path);
void safe_close(SafeSet *set);
/* NULL: there is none of that name */
const SafeTensor *safe_find(const SafeSet *set, const char *name);
bool safe_is_float(const SafeTensor *tensor);
const char *safe_type_name(SafeType type);
/* "3x4"; "" of a single number */
const char *safe_shape_text(const SafeTensor *tensor, char text[128]);
/* All of it as floats, in row-major order; f16 and bf16 are widened, f64 rounded. plain: `elements`
 * of them. ERR_IO. */
Status safe_read(const SafeSet *set, const SafeTensor *tensor, float *plain);

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
