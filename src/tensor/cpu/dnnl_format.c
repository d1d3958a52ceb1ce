/* Formats: how tensors lie in memory, in oneDNN's words and in ours (Desc). */
#include "dnnl_api.h"

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
