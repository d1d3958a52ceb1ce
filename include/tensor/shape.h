/* Shapes of tensors, their number formats, memory layouts, and the slices that ranks have of them.
 * Letters: N micro-batch, C channels, H W image, T sequence, K classes. */
#ifndef WEFT_TENSOR_SHAPE_H
#define WEFT_TENSOR_SHAPE_H

#include "base.h"

#include <string.h>

enum { SHAPE_DIMS = 4 };
/* dim[0] is the micro-batch; images (N,C,H,W), sequences (N,T,C), vectors (N,C). */
typedef struct Shape {
    int ndim;
    /* extents; dimensions from ndim on are 1 */
    int64_t dim[SHAPE_DIMS];
} Shape;
#define DTYPES(_)                                                                                  \
    _(F32, "fp32", 4)                                                                              \
    _(I32, "int32", 4)                                                                             \
    _(BF16, "bf16", 2)                                                                             \
    _(F16, "fp16", 2)
#define DTYPE_ENTRY(TYPE, name, bytes) DTYPE_##TYPE,
typedef enum DType { DTYPES(DTYPE_ENTRY) } DType;
#undef DTYPE_ENTRY
/* bytes of one element */
size_t dtype_bytes(DType type);
const char *dtype_name(DType type);

Shape shape_of(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
int64_t shape_count(Shape shape);
bool shape_equal(Shape a, Shape b);
/* Writes "8x64x28x28" to out, at least 64 chars; returns out. */
char *shape_text(Shape shape, char *out);

/* How an activation is laid out in memory. A 4-d shape has its channels (dim[1]) in blocks of
 * `block`, in the order [N][ceil(C/block)][H][W][block], zero-padded: block 1 is plain NCHW, block
 * C is channels-last, and 8 and 16 suit vector units. All other shapes are row-major, and each row
 * (the last dimension) is zero-padded to whole blocks (on GPUs, so that rows of odd width are
 * aligned for tensor cores). flat is true for a (N, C*H*W) view of memory that still has the
 * blocked order of the 4-d `image`: flatten copies nothing, and dense reads that order. flat is
 * false for all other tensors, and image is then unused. */
typedef struct Desc {
    Shape shape;
    DType dtype;
    int block;
    bool flat;
    Shape image;
} Desc;
/* bf16 is the upper half of a float. bf16_of rounds to nearest, ties to even, denormals included;
 * NaN stays NaN. */
typedef struct Bf16 {
    uint16_t bits;
} Bf16;
static inline float bf16_value(Bf16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline Bf16 bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (Bf16){(uint16_t)((nan ? quiet : rounded) >> 16)};
}

/* IEEE 754 half precision (half.c). f16_of rounds to nearest, ties to even; values that are too
 * large become infinite. */
typedef struct F16 {
    uint16_t bits;
} F16;
float f16_value(F16 x);
F16 f16_of(float value);

Desc desc_plain(Shape shape, DType dtype);
bool desc_equal(Desc a, Desc b);
/* Whether the memory is row-major without padding (a flat view of a block-1 image is). */
bool desc_is_plain(Desc d);
/* elements from one row to the next; not for images */
int64_t desc_row(Desc d);
/* elements in memory, padding included */
int64_t desc_elements(Desc d);
size_t desc_bytes(Desc d);

/* Returns the first item of a rank's slice of a dimension of `items` items, which is divided among
 * the ranks in order: rank r has items slice_first(items, ranks, r) up to, but not including,
 * slice_first(items, ranks, r + 1). The lengths of slices differ by at most one item, and no slice
 * is longer than rank 0's. With n times as many ranks, each slice is cut into n slices:
 * slice_first(items, ranks, r) == slice_first(items, n * ranks, n * r). */
int64_t slice_first(int64_t items, int ranks, int rank);
/* One rank's part of one dimension of a tensor; ranks 0: the tensor is whole. */
typedef struct TensorSlice {
    int dim, rank, ranks;
    /* first item and number of items of this rank; items of the whole dimension */
    int64_t first, count, whole;
} TensorSlice;
/* A sum that is always cut into `total` slices, so that its bits do not depend on the number of
 * ranks: each slice is a sum of its own in fp32, and slices are joined by the binary tree of
 * neighbours. Slice i of a part with n units begins at unit slice_first(n, total, i). */
typedef struct SumSlices {
    /* a power of two; 0: the sum is not cut */
    int total;
    /* this rank computes slices first .. first + count - 1, a subtree */
    int first, count;
    /* The terms of the whole sum, over all ranks, are `parts` parts side by side (such as queries,
     * keys and values), which consist of units that are never divided (heads, for example). The
     * first part has `units` units, each other part `others` units. A unit of the first part has
     * `lead` times as many terms as a unit of another part. A slice consists of its units of each
     * part, in the order of the parts. */
    int64_t units, others, lead;
    int parts;
} SumSlices;
/* How a tensor is divided: it is `runs` contiguous runs of equal size, and each run has `items`
 * items of `unit` elements. Every rank has its slice of the items of each run, and stores its
 * slices without gaps. */
typedef struct Slices {
    int64_t runs, items, unit;
    /* Number of ranks that have the slices of one tensor: a block of neighbours in the group. Each
     * block has a tensor of its own. 0: all ranks of the group have slices of one tensor. */
    int ranks;
    /* element type: fp32 or bf16; on GPUs also fp16 */
    DType type;
} Slices;
/* bytes of a rank's slice of one run */
size_t slices_run(const Slices *s, int ranks, int rank);

#endif
