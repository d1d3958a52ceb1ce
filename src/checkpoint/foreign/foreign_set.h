/* Tensors in other programs' files, read without running any code: one file, or the shards that an
 * index names. Each format is one row of foreign_formats. This interface does not depend on
 * models. */
#ifndef WEFT_CHECKPOINT_FOREIGN_SET_H
#define WEFT_CHECKPOINT_FOREIGN_SET_H

#include "base.h"

enum { FOREIGN_DIMS = 8, FOREIGN_TENSORS = 1 << 20, FOREIGN_NAME_BYTES = 1024 };
/* element types: name, bytes of an element, and true if elements can be read as floats */
#define FOREIGN_TYPES(_)                                                                           \
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
#define FOREIGN_CONSTANT(name, bytes, floats) FOREIGN_##name,
typedef enum ForeignType { FOREIGN_TYPES(FOREIGN_CONSTANT) FOREIGN_TYPE_COUNT } ForeignType;

typedef struct ForeignTensor {
    /* owned */
    char *name;
    ForeignType type;
    int ndim;
    int64_t dim[FOREIGN_DIMS], elements;
    /* range of bytes that has all values, counted from ForeignFile.values_at */
    int64_t begin, end;
    /* true: the values are not in row-major order without gaps, and `stride` is used */
    bool strided;
    /* number of elements between two neighbours along each dimension */
    int64_t stride[FOREIGN_DIMS];
    /* index in ForeignSet.file of the tensor's file */
    int file;
} ForeignTensor;
typedef struct ForeignFile {
    /* owned */
    char *path;
    /* descriptor; -1: the file is not open */
    int fd;
    /* offset in the file at which values begin */
    int64_t values_at;
    /* number of bytes from values_at to the file's end */
    int64_t bytes;
} ForeignFile;
typedef struct ForeignSet {
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
    ForeignFile *file;
    /* the tensors, sorted by name, [count]; owned */
    ForeignTensor *tensor;
} ForeignSet;

/* A file format. */
typedef struct ForeignFormat {
    const char *name;
    /* line of the format in a table of formats */
    const char *help;
    /* returns true if a file of this format begins with these bytes (at most FOREIGN_HEAD) */
    bool (*begins)(const uint8_t *head, size_t bytes);
    /* Adds the tensors of an open file, which is the last file of the set. ERR_USAGE: the file has
     * no group ForeignSet.key. ERR_DATA: the file violates the format. ERR_IO. */
    Status (*add)(ForeignSet *set, ForeignFile *file);
} ForeignFormat;
enum { FOREIGN_HEAD = 512 };
/* A file is read by the first row that accepts its first bytes; the last row accepts any. */
extern const ForeignFormat *const foreign_formats[];
extern const int foreign_format_count;
extern const ForeignFormat foreign_format_safetensors, foreign_format_torch, foreign_format_pickle;

/* Opens a file of one of the formats, or an .index.json and the shards in its folder. key: see
 * ForeignSet. ERR_NOINPUT, ERR_IO: a file cannot be opened or read. ERR_DATA: a violation of the
 * format, two tensors of one name, or an offset or length out of bounds. ERR_USAGE: a file has no
 * group `key`. Release with foreign_close in every case. */
Status foreign_open(ForeignSet *set, const char *path, const char *key);
void foreign_close(ForeignSet *set);
/* Returns true if the file begins like one of the known formats. Preserves errno. */
bool foreign_begins(const char *path);
/* Sorts tensors after their names have been changed. ERR_DATA: two have the same name. */
Status foreign_sort(ForeignSet *set);
/* Returns the tensor of that name, or NULL; borrowed. */
const ForeignTensor *foreign_find_tensor(const ForeignSet *set, const char *name);
/* Returns true if the elements can be read as floats. */
bool foreign_is_float(const ForeignTensor *tensor);
const char *foreign_type_name(ForeignType type);
int foreign_type_bytes(ForeignType type);
/* Returns the type of that name, or FOREIGN_TYPE_COUNT. */
ForeignType foreign_type_find(const char *name);
/* Writes the shape as text: "3x4"; "" for a single number. Returns text. */
const char *foreign_shape_text(const ForeignTensor *tensor, char text[128]);
/* Reads all values as floats, in row-major order; f16 and bf16 are widened, f64 is rounded. plain:
 * room for tensor->elements floats. ERR_IO: a read fails. ERR_DATA: the file was cut short. */
Status foreign_read(const ForeignSet *set, const ForeignTensor *tensor, float *plain);

/* For the formats: adds a zeroed tensor to the set's last file; returns NULL if the set has
 * FOREIGN_TENSORS tensors. */
ForeignTensor *foreign_new_tensor(ForeignSet *set);
/* For the formats: reads `bytes` bytes at offset `at` of a file. ERR_IO: the read fails. ERR_DATA:
 * the file is shorter. */
Status foreign_read_at(const ForeignFile *file, void *to, int64_t bytes, int64_t at);

#endif
