/* Functions for the calls that differ between the C APIs of oneDNN 2.x (Debian 12) and 3.x:
 * formats, and descriptions of primitives. Nearly every function is written twice, once for each
 * API. */
#include "dnnl_api.h"

#include <string.h>

const char *onednn_text(dnnl_status_t status)
{
    static const char *const text[] = {"success",
                                       "out of memory",
                                       "invalid arguments",
                                       "not implemented",
                                       "last implementation reached",
                                       "run-time error",
                                       "not required"};
    return (size_t)status < sizeof text / sizeof text[0] ? text[status] : "unknown error";
}

void onednn_must(dnnl_status_t status, const char *call)
{
    if (status != dnnl_success)
        die_as(status == dnnl_out_of_memory ? ERR_MEMORY : ERR_BUG, "oneDNN: %s: %s", call,
               onednn_text(status));
}

static dnnl_data_type_t data_type(DType type)
{
    return type == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Returns the description of the primitive of spec->hint; NULL without a hint. */
static dnnl_primitive_desc_t hint_desc(const KernelSpec *spec)
{
    if (!spec->hint) return NULL;
    return spec->hint->inner ? spec->hint->inner->desc : spec->hint->desc;
}

#if DNNL3
MemoryDesc onednn_desc(const Format *f)
{
    return f ? f->md : NULL;
}

Format *format_clone(MemoryDesc md)
{
    Format *f = mem_new(sizeof *f);
    onednn_must(dnnl_memory_desc_clone(&f->md, md), "dnnl_memory_desc_clone");
    return f;
}

Format *format_part(const Format *format, int64_t count)
{
    dnnl_dims_t dim = {0}, from = {0};
    Format *f = mem_new(sizeof *f);
    onednn_dims(format, dim);
    dim[0] = count;
    if (dnnl_memory_desc_create_submemory(&f->md, format->md, dim, from) != dnnl_success)
        mem_free(&f);
    return f;
}

Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag)
{
    Format *f = mem_new(sizeof *f);
    dnnl_dims_t dims = {0};
    memcpy(dims, dim, (size_t)ndim * sizeof *dim);
    onednn_must(dnnl_memory_desc_create_with_tag(&f->md, ndim, dims, data_type(type), tag),
                "dnnl_memory_desc_create_with_tag");
    return f;
}

void format_free(Format **format)
{
    if (*format) onednn_must(dnnl_memory_desc_destroy((*format)->md), "dnnl_memory_desc_destroy");
    mem_free(format);
}

DType format_type(const Format *format)
{
    dnnl_data_type_t type = dnnl_data_type_undef;
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_data_type, &type),
                "dnnl_memory_desc_query");
    return type == dnnl_bf16 ? DTYPE_BF16 : DTYPE_F32;
}

int onednn_dims(const Format *format, int64_t *dim)
{
    const dnnl_dims_t *all = NULL;
    int ndim = 0;
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_ndims_s32, &ndim),
                "dnnl_memory_desc_query");
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_dims, &all),
                "dnnl_memory_desc_query");
    memcpy(dim, *all, (size_t)ndim * sizeof *dim);
    return ndim;
}

int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim)
{
    const dnnl_dims_t *strides = NULL, *lengths = NULL, *dims = NULL;
    int count = 0, ndim = onednn_dims(format, (dnnl_dims_t){0});
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_strides, &strides),
                "dnnl_memory_desc_query");
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_inner_nblks_s32, &count),
                "dnnl_memory_desc_query");
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_inner_blks, &lengths),
                "dnnl_memory_desc_query");
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_inner_idxs, &dims),
                "dnnl_memory_desc_query");
    memcpy(stride, *strides, (size_t)ndim * sizeof *stride);
    memcpy(length, *lengths, (size_t)count * sizeof *length);
    memcpy(dim, *dims, (size_t)count * sizeof *dim);
    return count;
}

bool format_elementwise(const Format *format)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    onednn_must(dnnl_memory_desc_query(format->md, dnnl_query_format_kind, &kind),
                "dnnl_memory_desc_query");
    return kind == dnnl_blocked;
}

dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    const dnnl_dims_t stride = {spec->stride[0], spec->stride[1]}, dilate = {0, 0};
    const dnnl_dims_t pad = {spec->pad[0], spec->pad[1]};
    MemoryDesc x = onednn_desc(spec->role[ROLE_X]), w = onednn_desc(spec->role[ROLE_W]);
    MemoryDesc b = onednn_desc(spec->role[ROLE_B]), y = onednn_desc(spec->role[ROLE_Y]);
    dnnl_primitive_desc_t hint = hint_desc(spec);
    if (spec->kind == KERNEL_CONV_FORWARD)
        return dnnl_convolution_forward_primitive_desc_create(pd, dnnl->engine,
                                                              dnnl_forward_training, alg, x, w, b,
                                                              y, stride, dilate, pad, pad, attr);
    if (spec->kind == KERNEL_CONV_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, dnnl->engine, alg, x, w, y, stride, dilate, pad, pad, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, dnnl->engine, alg, x, w, b, y, stride, dilate, pad, pad, hint, attr);
}

dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr)
{
    MemoryDesc x = onednn_desc(spec->role[ROLE_X]), w = onednn_desc(spec->role[ROLE_W]);
    MemoryDesc b = onednn_desc(spec->role[ROLE_B]), y = onednn_desc(spec->role[ROLE_Y]);
    dnnl_primitive_desc_t hint = hint_desc(spec);
    if (spec->kind == KERNEL_DENSE_FORWARD)
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, dnnl->engine, dnnl_forward_training, x, w, b, y, attr);
    if (spec->kind == KERNEL_DENSE_DATA)
        return dnnl_inner_product_backward_data_primitive_desc_create(pd, dnnl->engine, x, w, y,
                                                                      hint, attr);
    return dnnl_inner_product_backward_weights_primitive_desc_create(pd, dnnl->engine, x, w, b, y,
                                                                     hint, attr);
}

dnnl_status_t onednn_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#else
MemoryDesc onednn_desc(const Format *f)
{
    return f ? &f->md : NULL;
}

Format *format_clone(MemoryDesc md)
{
    Format *f = mem_new(sizeof *f);
    f->md = *md;
    return f;
}

Format *format_part(const Format *format, int64_t count)
{
    const dnnl_blocking_desc_t *b = &format->md.format_desc.blocking;
    dnnl_dim_t block = 1;
    Format *f = format_clone(&format->md);
    for (int i = 0; i < b->inner_nblks; ++i)
        if (b->inner_idxs[i] == 0) block *= b->inner_blks[i];
    f->md.dims[0] = count;
    f->md.padded_dims[0] = (count + block - 1) / block * block;
    return f;
}

Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag)
{
    Format *f = mem_new(sizeof *f);
    dnnl_dims_t dims = {0};
    memcpy(dims, dim, (size_t)ndim * sizeof *dim);
    onednn_must(dnnl_memory_desc_init_by_tag(&f->md, ndim, dims, data_type(type), tag),
                "dnnl_memory_desc_init_by_tag");
    return f;
}

void format_free(Format **format)
{
    mem_free(format);
}

DType format_type(const Format *format)
{
    return format->md.data_type == dnnl_bf16 ? DTYPE_BF16 : DTYPE_F32;
}

int onednn_dims(const Format *format, int64_t *dim)
{
    memcpy(dim, format->md.dims, (size_t)format->md.ndims * sizeof *dim);
    return format->md.ndims;
}

int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim)
{
    const dnnl_blocking_desc_t *b = &format->md.format_desc.blocking;
    memcpy(stride, b->strides, (size_t)format->md.ndims * sizeof *stride);
    memcpy(length, b->inner_blks, (size_t)b->inner_nblks * sizeof *length);
    memcpy(dim, b->inner_idxs, (size_t)b->inner_nblks * sizeof *dim);
    return b->inner_nblks;
}

bool format_elementwise(const Format *format)
{
    return format->md.format_kind == dnnl_blocked;
}

dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    const dnnl_dims_t stride = {spec->stride[0], spec->stride[1]};
    const dnnl_dims_t pad = {spec->pad[0], spec->pad[1]};
    MemoryDesc x = onednn_desc(spec->role[ROLE_X]), w = onednn_desc(spec->role[ROLE_W]);
    MemoryDesc b = onednn_desc(spec->role[ROLE_B]), y = onednn_desc(spec->role[ROLE_Y]);
    dnnl_convolution_desc_t d;
    dnnl_status_t status;
    if (spec->kind == KERNEL_CONV_FORWARD)
        status = dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, alg, x, w, b, y,
                                                    stride, pad, pad);
    else if (spec->kind == KERNEL_CONV_DATA)
        status = dnnl_convolution_backward_data_desc_init(&d, alg, x, w, y, stride, pad, pad);
    else
        status = dnnl_convolution_backward_weights_desc_init(&d, alg, x, w, b, y, stride, pad, pad);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(pd, &d, attr, dnnl->engine, hint_desc(spec));
}

dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr)
{
    MemoryDesc x = onednn_desc(spec->role[ROLE_X]), w = onednn_desc(spec->role[ROLE_W]);
    MemoryDesc b = onednn_desc(spec->role[ROLE_B]), y = onednn_desc(spec->role[ROLE_Y]);
    dnnl_inner_product_desc_t d;
    dnnl_status_t status;
    if (spec->kind == KERNEL_DENSE_FORWARD)
        status = dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, x, w, b, y);
    else if (spec->kind == KERNEL_DENSE_DATA)
        status = dnnl_inner_product_backward_data_desc_init(&d, x, w, y);
    else
        status = dnnl_inner_product_backward_weights_desc_init(&d, x, w, b, y);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(pd, &d, attr, dnnl->engine, hint_desc(spec));
}

dnnl_status_t onednn_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#endif
