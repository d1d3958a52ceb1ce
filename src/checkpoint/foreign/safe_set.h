/* Tensors in other programs' files, read without running any code: one file, or the shards that an
 * index names. Each format is one row of safe_formats. This interface does not depend on models. */
#ifndef WEFT_CHECKPOINT_SAFE_SET_H
#define WEFT_CHECKPOINT_SAFE_SET_H

#include "base.h"

enum { SAFE_DIMS = 8, SAFE_TENSORS = 1 << 20, SAFE_NAME_BYTES = 1024 };
/* element types: name, bytes of an element, and true if elements can be read as floats */
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
    /* range of bytes that has all values, counted from SafeFile.values_at */
    int64_t begin, end;
    /* true: the values are not in row-major order without gaps, and `stride` is used */
    bool strided;
    /* number of elements between two neighbours along each dimension */
    int64_t stride[SAFE_DIMS];
    /* index in SafeSet.file of the tensor's file */
    int file;
} SafeTensor;
typedef struct SafeFile {
    /* owned */
    char *path;
    /* descriptor; -1: the file is not open */
    int fd;
    /* offset in the file at which values begin */
    int64_t values_at;
    /* number of bytes from values_at to the file's end */
    int64_t bytes;
} SafeFile;
typedef struct SafeSet {
    /* path as the user wrote it; borrowed */
    const char *path;
    /* group of tensors to read; NULL: the format chooses the group, as CheckpointImport.key
     * describes; borrowed */
    const char *key;
    /* number of files */
    int files;
    /* number of tensors */
    int count;
    /* the files, [files]; owned */
    SafeFile *file;
    /* the tensors, sorted by name, [count]; owned */
    SafeTensor *tensor;
} SafeSet;

/* A file format. */
typedef struct SafeFormat {
    const char *name;
    /* line of the format in a table of formats */
    const char *help;
    /* returns true if a file of this format begins with these bytes (at most SAFE_HEAD) */
    bool (*begins)(const uint8_t *head, size_t bytes);
    /* Adds the tensors of an open file, which is the last file of the set. ERR_USAGE: the file has
     * no group SafeSet.key. ERR_DATA: the file violates the format. ERR_IO. */
    Status (*add)(SafeSet *set, SafeFile *file);
} SafeFormat;
enum { SAFE_HEAD = 512 };
/* A file is read by the first row that accepts its first bytes; the last row accepts any. */
extern const SafeFormat *const safe_formats[];
extern const int safe_format_count;
extern const SafeFormat safe_format_safetensors, safe_format_torch, safe_format_pickle;

/* Opens a file of one of the formats, or an .index.json and the shards in its folder. key: see
 * SafeSet. ERR_NOINPUT, ERR_IO: a file cannot be opened or read. ERR_DATA: a violation of the
 * format, two tensors of one name, or an offset or length out of bounds. ERR_USAGE: a file has no
 * group `key`. Release with safe_close in every case. */
Status safe_open(SafeSet *set, const char *path, const char *key);
void safe_close(SafeSet *set);
/* Returns true if the file begins like one of the known formats. Preserves errno. */
bool safe_begins(const char *path);
/* Sorts tensors after their names have been changed. ERR_DATA: two have the same name. */
Status safe_sort(SafeSet *set);
/* Returns the tensor of that name, or NULL; borrowed. */
const SafeTensor *safe_find(const SafeSet *set, const char *name);
/* Returns true if the elements can be read as floats. */
bool safe_is_float(const SafeTensor *tensor);
const char *safe_type_name(SafeType type);
int safe_type_bytes(SafeType type);
/* Returns the type of that name, or SAFE_TYPE_COUNT. */
SafeType safe_type_find(const char *name);
/* Writes the shape as text: "3x4"; "" for a single number. Returns text. */
const char *safe_shape_text(const SafeTensor *tensor, char text[128]);
/* Reads all values as floats, in row-major order; f16 and bf16 are widened, f64 is rounded. plain:
 * room for tensor->elements floats. ERR_IO: a read fails. ERR_DATA: the file was cut short. */
Status safe_read(const SafeSet *set, const SafeTensor *tensor, float *plain);

/* For the formats: adds a zeroed tensor to the set's last file; returns NULL if the set has
 * SAFE_TENSORS tensors. */
SafeTensor *safe_new_tensor(SafeSet *set);
/* For the formats: reads `bytes` bytes at offset `at` of a file. ERR_IO: the read fails. ERR_DATA:
 * the file is shorter. */
Status safe_read_at(const SafeFile *file, void *to, int64_t bytes, int64_t at);

#endif
