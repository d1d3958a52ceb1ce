/* Formats: memory layouts as oneDNN describes them, and their conversion to Desc. */
#include "dnnl_api.h"
#include "../view.h"

Format *format_any(int ndim, const int64_t *dim, DType type)
{
    return format_tagged(ndim, dim, type, dnnl_format_tag_any);
}

Format *format_plain(int ndim, const int64_t *dim, DType type)
{
    static const dnnl_format_tag_t tag[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    return format_tagged(ndim, dim, type, tag[ndim]);
}

Format *format_image(Shape shape, int block, bool channels_last, DType type)
{
    dnnl_format_tag_t tag = dnnl_acdb;
    if (block == 16 && !(channels_last && shape.dim[1] == 16)) tag = dnnl_aBcd16b;
    if (block == 8 && !(channels_last && shape.dim[1] == 8)) tag = dnnl_aBcd8b;
    if (block == 1) tag = dnnl_abcd;
    return format_tagged(4, shape.dim, type, tag);
}

Format *format_copy(const Format *format)
{
    return format_clone(onednn_desc(format));
}

bool format_equal(const Format *a, const Format *b)
{
    return dnnl_memory_desc_equal(onednn_desc(a), onednn_desc(b));
}

int64_t format_elements(const Format *format)
{
    return (int64_t)(format_bytes(format) / dtype_bytes(format_type(format)));
}

size_t format_bytes(const Format *format)
{
    return dnnl_memory_desc_get_size(onednn_desc(format));
}

int format_block(const Format *format, Shape shape)
{
    const int candidate[] = {1, 16, 8, (int)shape.dim[1]};
    for (size_t i = 0; i < sizeof candidate / sizeof candidate[0]; ++i)
        for (int last = 0; last < 2; ++last) {
            Format *f = format_image(shape, candidate[i], last, format_type(format));
            bool same = format_equal(format, f);
            format_free(&f);
            if (same) return candidate[i];
        }
    return 0;
}

/* A task that unpacks a tensor. The offset of an element in `stored` is the sum over the dimensions
 * d of at[d][index of the element in dimension d]. */
typedef struct Unpack {
    const float *stored;
    float *plain;
    int ndim;
    int64_t dim[FORMAT_DIMS];
    /* owned */
    int64_t *at[FORMAT_DIMS];
} Unpack;

static void unpack_rows(const void *task, int64_t begin, int64_t end)
{
    const Unpack *u = task;
    const int last = u->ndim - 1;
    for (int64_t row = begin; row < end; ++row) {
        int64_t base = 0, rest = row;
        for (int d = last - 1; d >= 0; --d) {
            base += u->at[d][rest % u->dim[d]];
            rest /= u->dim[d];
        }
        const float *from = u->stored + base;
        float *to = u->plain + row * u->dim[last];
        for (int64_t k = 0; k < u->dim[last]; ++k) to[k] = from[u->at[last][k]];
    }
}

void format_unpack(const Format *format, const float *stored, float *plain)
{
    int64_t stride[DNNL_MAX_NDIMS], length[DNNL_MAX_NDIMS], dim[DNNL_MAX_NDIMS], rows = 1;
    Unpack u = {.stored = stored, .plain = plain};
    u.ndim = onednn_dims(format, u.dim);
    int blocks = onednn_blocks(format, stride, length, dim);
    for (int d = 0; d < u.ndim; ++d) {
        u.at[d] = mem_new((size_t)u.dim[d] * sizeof *u.at[d]);
        for (int64_t k = 0; k < u.dim[d]; ++k) {
            int64_t rest = k, inside = 1;
            for (int b = blocks - 1; b >= 0; inside *= length[b--]) {
                if (dim[b] != d) continue;
                u.at[d][k] += rest % length[b] * inside;
                rest /= length[b];
            }
            u.at[d][k] += rest * stride[d];
        }
        if (d + 1 < u.ndim) rows *= u.dim[d];
    }
    work_run(unpack_rows, &u, rows, rows * u.dim[u.ndim - 1]);
    for (int d = 0; d < u.ndim; ++d) mem_free(&u.at[d]);
}
