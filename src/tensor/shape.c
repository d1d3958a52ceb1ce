/* Shapes, memory layouts and slices. All functions are pure. */
#include "tensor.h"

#include <inttypes.h>
#include <string.h>

Shape shape_of(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    const int64_t dim[SHAPE_DIMS] = {d0, d1, d2, d3};
    Shape s = {.ndim = ndim, .dim = {1, 1, 1, 1}};
    for (int i = 0; i < ndim && i < SHAPE_DIMS; ++i) s.dim[i] = dim[i];
    return s;
}

int64_t shape_count(Shape shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; ++i) n *= shape.dim[i];
    return n;
}

bool shape_equal(Shape a, Shape b)
{
    if (a.ndim != b.ndim) return false;
    for (int i = 0; i < a.ndim; ++i)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

char *shape_text(Shape shape, char *out)
{
    enum { ROOM = 64 };
    int used = 0;
    out[0] = 0;
    for (int i = 0; i < shape.ndim && used < ROOM; ++i)
        used +=
            snprintf(out + used, (size_t)(ROOM - used), "%s%" PRId64, i ? "x" : "", shape.dim[i]);
    return out;
}

Desc desc_plain(Shape shape, DType dtype)
{
    return (Desc){.shape = shape, .dtype = dtype, .block = 1};
}

bool desc_equal(Desc a, Desc b)
{
    if (!shape_equal(a.shape, b.shape) || a.dtype != b.dtype || a.flat != b.flat) return false;
    if (a.flat && !shape_equal(a.image, b.image)) return false;
    return a.block == b.block;
}

/* Returns the shape in which the memory of d is laid out: the image's if d is a flattened image. */
static Shape memory_shape(Desc d)
{
    return d.flat ? d.image : d.shape;
}

/* Rounds n up to a multiple of `block`. */
static int64_t whole_blocks(int64_t n, int block)
{
    return (n + block - 1) / block * block;
}

int64_t desc_row_stride(Desc d)
{
    return d.shape.ndim > 0 ? whole_blocks(d.shape.dim[d.shape.ndim - 1], d.block) : 1;
}

bool desc_is_plain(Desc d)
{
    Shape s = memory_shape(d);
    if (d.block == 1) return true;
    if (s.ndim != 4) return desc_row_stride(d) == s.dim[s.ndim - 1];
    return s.dim[2] * s.dim[3] == 1 && s.dim[1] % d.block == 0;
}

int64_t desc_elements(Desc d)
{
    Shape s = memory_shape(d);
    if (s.ndim == 0) return 1;
    if (s.ndim != 4) return shape_count(s) / s.dim[s.ndim - 1] * desc_row_stride(d);
    int64_t channels = whole_blocks(s.dim[1], d.block);
    return s.dim[0] * channels * s.dim[2] * s.dim[3];
}

size_t dtype_bytes(DType type)
{
#define BYTES(TYPE, name, bytes) bytes,
    static const size_t size[] = {DTYPES(BYTES)};
    return size[type];
}

const char *dtype_name(DType type)
{
#define NAME(TYPE, name, bytes) name,
    static const char *const names[] = {DTYPES(NAME)};
    return names[type];
}

size_t desc_bytes(Desc d)
{
    return (size_t)desc_elements(d) * dtype_bytes(d.dtype);
}

int64_t slice_first(int64_t items, int ranks, int rank)
{
    return items / ranks * rank + (items % ranks * rank + ranks - 1) / ranks;
}

size_t slices_range_bytes(const Slices *s, int ranks, int rank)
{
    int64_t items = slice_first(s->items, ranks, rank + 1) - slice_first(s->items, ranks, rank);
    return (size_t)(items * s->item_elements) * dtype_bytes(s->type);
}
