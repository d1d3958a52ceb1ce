/* Makes weft's own kernels available as Kernels of dnnl.h. They are used where oneDNN is slower or
 * would divide sums among threads, and for all dense layers and convolutions with CPU_PORTABLE. */
#include "../conv/conv_columns.h"
#include "../conv/conv_weight.h"
#include "../dense/dense_product.h"
#include "../conv/depthwise.h"
#include "dnnl_api.h"
#include "../conv/first_conv.h"
#include "../conv/winograd.h"
#include "../simd/simd.h"

#include <omp.h>

/* Makes a Kernel with the formats of spec, except that the weight has the format with the tag
 * `weight`. Owner of the Kernel: the caller; owner of impl: the Kernel. */
static Kernel *own_new(Dnnl *dnnl, const KernelSpec *spec, const OwnTable *table, void *impl,
                       dnnl_format_tag_t weight)
{
    int64_t w[FORMAT_DIMS];
    const int ndim = onednn_dims(spec->role[ROLE_W], w);
    Kernel *k = mem_new(sizeof *k);
    k->kind = spec->kind;
    k->dnnl = dnnl;
    k->table = table;
    k->own_impl = impl;
    for (int r = 0; r < ROLES; ++r)
        if (spec->role[r] && r != ROLE_W) k->role[r] = format_copy(spec->role[r]);
    k->role[ROLE_W] = format_tagged(ndim, w, DTYPE_F32, weight);
    return k;
}

/* Defines module_table, an OwnTable with the functions module_scratch_bytes, module_run and
 * module_free. Its impl is a Type. word: the kernel's name after "own:". */
#define OWN_TABLE(module, Type, word)                                                              \
    static size_t module##_bytes(const void *impl)                                                 \
    {                                                                                              \
        return module##_scratch_bytes(impl);                                                       \
    }                                                                                              \
    static void module##_compute(const void *impl, void *const data[ROLES], void *scratch)         \
    {                                                                                              \
        module##_run(impl, data, scratch);                                                         \
    }                                                                                              \
    static void module##_release(void **impl)                                                      \
    {                                                                                              \
        Type *kernel = *impl;                                                                      \
        module##_free(&kernel);                                                                    \
        *impl = NULL;                                                                              \
    }                                                                                              \
    static const OwnTable module##_table = {.name = "own:" word,                                   \
                                            .scratch_bytes = module##_bytes,                       \
                                            .run = module##_compute,                               \
                                            .free = module##_release};

int own_block_channels(void)
{
    const int lanes = simd_table(DTYPE_F32)->conv_lanes;
    return cpu_portable() || lanes == dnnl_vector_floats() ? lanes : 0;
}

/* Returns whether a format has no blocks. */
static bool is_plain(const Format *format)
{
    int64_t stride[FORMAT_DIMS], length[FORMAT_DIMS], dim[FORMAT_DIMS];
    return onednn_blocks(format, stride, length, dim) == 0;
}

/* ---- Winograd ---- */
OWN_TABLE(winograd, Winograd, "winograd")

/* Makes a Winograd kernel. x and y are in channel blocks of a vector's width; the weight has the
 * same order in all three directions. */
static Kernel *winograd_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS], w[FORMAT_DIMS];
    onednn_dims(spec->role[ROLE_X], x);
    onednn_dims(spec->role[ROLE_W], w);
    Winograd *impl = winograd_new(&(WinogradSpec){.kind = spec->kind,
                                                  .n = x[0],
                                                  .c = x[1],
                                                  .h = x[2],
                                                  .w = x[3],
                                                  .o = w[0],
                                                  .pad = {spec->pad[0], spec->pad[1]},
                                                  .relu = spec->relu,
                                                  .threads = omp_get_max_threads()});
    return own_new(dnnl, spec, &winograd_table, impl,
                   own_block_channels() == 16 ? dnnl_OIhw16i16o : dnnl_OIhw8i8o);
}

/* ---- first convolution of a model ---- */
OWN_TABLE(first_conv, FirstConvRun, "first")

static Kernel *first_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS], w[FORMAT_DIMS];
    onednn_dims(spec->role[ROLE_X], x);
    onednn_dims(spec->role[ROLE_W], w);
    FirstConvRun *impl =
        first_conv_new(&(FirstConvSpec){.kind = spec->kind,
                                        .n = x[0],
                                        .c = x[1],
                                        .h = x[2],
                                        .w = x[3],
                                        .o = w[0],
                                        .kernel = {w[2], w[3]},
                                        .stride = {spec->stride[0], spec->stride[1]},
                                        .pad = {spec->pad[0], spec->pad[1]},
                                        .relu = spec->relu,
                                        .threads = omp_get_max_threads()});
    return own_new(dnnl, spec, &first_conv_table, impl, dnnl_Ohwi8o);
}

/* ---- weight's gradient ---- */
OWN_TABLE(conv_weight, ConvWeightRun, "weight")

static Kernel *weight_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS], w[FORMAT_DIMS];
    onednn_dims(spec->role[ROLE_X], x);
    onednn_dims(spec->role[ROLE_W], w);
    ConvWeightRun *impl =
        conv_weight_new(&(ConvWeightSpec){.n = x[0],
                                          .c = x[1],
                                          .h = x[2],
                                          .w = x[3],
                                          .o = w[0],
                                          .kernel = {w[2], w[3]},
                                          .stride = {spec->stride[0], spec->stride[1]},
                                          .pad = {spec->pad[0], spec->pad[1]}});
    return own_new(dnnl, spec, &conv_weight_table, impl,
                   own_block_channels() == 16 ? dnnl_OIhw16i16o : dnnl_OIhw8i8o);
}

/* ---- any convolution ---- */
OWN_TABLE(conv_columns, ConvColumnsRun, "columns")

static Kernel *columns_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS], y[FORMAT_DIMS], w[FORMAT_DIMS];
    const bool grouped = onednn_dims(spec->role[ROLE_W], w) == FORMAT_DIMS;
    const int64_t *kernel = w + 2 + grouped;
    onednn_dims(spec->role[ROLE_X], x);
    onednn_dims(spec->role[ROLE_Y], y);
    const int x_block = is_plain(spec->role[ROLE_X]) ? 1 : own_block_channels();
    ConvColumnsRun *impl = conv_columns_new(
        &(ConvColumnsSpec){.kind = spec->kind,
                           .n = x[0],
                           .c = x[1],
                           .h = x[2],
                           .w = x[3],
                           .o = y[1],
                           .p = y[2],
                           .q = y[3],
                           .groups = grouped ? w[0] : 1,
                           .kernel = {kernel[0], kernel[1]},
                           .stride = {spec->stride[0], spec->stride[1]},
                           .pad = {spec->pad[0], spec->pad[1]},
                           .x_block = x_block,
                           .y_block = is_plain(spec->role[ROLE_Y]) ? 1 : own_block_channels(),
                           .relu = spec->relu,
                           .threads = omp_get_max_threads()});
    return own_new(dnnl, spec, &conv_columns_table, impl,
                   grouped       ? dnnl_abcde
                   : x_block > 1 ? dnnl_aBcd8b
                                 : dnnl_abcd);
}

/* ---- depthwise ---- */
OWN_TABLE(depthwise, Depthwise, "depthwise")

static Kernel *depthwise_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS];
    const int lanes = own_block_channels();
    onednn_dims(spec->role[ROLE_X], x);
    Depthwise *impl = depthwise_new(&(DepthwiseSpec){.kind = spec->kind,
                                                     .n = x[0],
                                                     .c = x[1],
                                                     .h = x[2],
                                                     .w = x[3],
                                                     .lanes = lanes,
                                                     .stride = spec->stride[0],
                                                     .relu = spec->relu,
                                                     .threads = omp_get_max_threads()});
    return own_new(dnnl, spec, &depthwise_table, impl, lanes == 16 ? dnnl_Goihw16g : dnnl_Goihw8g);
}

/* ---- dense ---- */
OWN_TABLE(dense_product, DenseRun, "product")

static Kernel *product_plan(Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t x[FORMAT_DIMS], w[FORMAT_DIMS];
    const int ndim = onednn_dims(spec->role[ROLE_W], w);
    onednn_dims(spec->role[ROLE_X], x);
    DenseRun *impl =
        dense_product_new(&(DenseSpec){.kind = spec->kind,
                                       .rows = x[0],
                                       .in = format_elements(spec->role[ROLE_X]) / x[0],
                                       .out = w[0],
                                       .relu = spec->relu,
                                       .slices = spec->slices,
                                       .slices_inputs = spec->slices_inputs,
                                       .threads = omp_get_max_threads()});
    const int block =
        ndim == 4 ? format_block(spec->role[ROLE_X], shape_of(4, x[0], x[1], x[2], x[3])) : 0;
    return own_new(dnnl, spec, &dense_product_table, impl,
                   ndim == 2     ? dnnl_ab
                   : block == 1  ? dnnl_abcd
                   : block == 8  ? dnnl_aBcd8b
                   : block == 16 ? dnnl_aBcd16b
                                 : dnnl_acdb);
}

bool own_kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec)
{
    int64_t w[FORMAT_DIMS];
    if (spec->winograd)
        *kernel = winograd_plan(dnnl, spec);
    else if (spec->product)
        *kernel = product_plan(dnnl, spec);
    else if (spec->direct && onednn_dims(spec->role[ROLE_W], w) == FORMAT_DIMS)
        *kernel = depthwise_plan(dnnl, spec);
    else if (spec->direct && !is_plain(spec->role[ROLE_X]))
        *kernel = weight_plan(dnnl, spec);
    else if (spec->direct)
        *kernel = first_plan(dnnl, spec);
    else if (cpu_portable() && spec->kind <= KERNEL_CONV_WEIGHT)
        *kernel = columns_plan(dnnl, spec);
    else
        return false;
    return true;
}
