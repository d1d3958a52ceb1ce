/* oneDNN behind the words of dnnl.h: formats, kernels, running them. The only file that knows whether oneDNN is 2.x
 * (Debian 12) or 3.x; what differs is together in the first part. Scratch memory is always the caller's. */
#include "dnnl.h"

#include <dnnl.h>
#include <string.h>

#define DNNL3 (DNNL_VERSION_MAJOR >= 3)

struct Dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};
struct Format {
    dnnl_memory_desc_t md; /* 2.x: a struct; 3.x: an owned handle */
};
enum { KERNEL_ARGS = ROLES + 1 }; /* the roles and the scratchpad */
struct Kernel {
    KernelKind kind;
    Dnnl *dnnl; /* borrowed from the backend */
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    Format *role[ROLES], *scratch;
    int arg_count, arg_role[KERNEL_ARGS]; /* role of each argument; ROLES is the scratchpad */
    dnnl_exec_arg_t arg[KERNEL_ARGS];
    void *data[KERNEL_ARGS]; /* what the memory objects point to now */
};

/* Where each role of a kind is found in oneDNN's terms. */
typedef struct RoleName {
    dnnl_query_t query;
    int index, arg;
} RoleName;
static const RoleName role_names[KERNEL_KINDS][ROLES] = {
#define FORWARD                                                                                    \
    {                                                                                              \
        {dnnl_query_src_md, 0, DNNL_ARG_SRC}, {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS},        \
            {dnnl_query_weights_md, 1, DNNL_ARG_BIAS},                                             \
        {                                                                                          \
            dnnl_query_dst_md, 0, DNNL_ARG_DST                                                     \
        }                                                                                          \
    }
#define DATA                                                                                       \
    {                                                                                              \
        {dnnl_query_diff_src_md, 0, DNNL_ARG_DIFF_SRC},                                            \
            {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS}, {dnnl_query_undef, 0, 0},                \
        {                                                                                          \
            dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST                                           \
        }                                                                                          \
    }
#define WEIGHT                                                                                     \
    {                                                                                              \
        {dnnl_query_src_md, 0, DNNL_ARG_SRC},                                                      \
            {dnnl_query_diff_weights_md, 0, DNNL_ARG_DIFF_WEIGHTS},                                \
            {dnnl_query_diff_weights_md, 1, DNNL_ARG_DIFF_BIAS},                                   \
        {                                                                                          \
            dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST                                           \
        }                                                                                          \
    }
    [KERNEL_CONV_FORWARD] = FORWARD,
    [KERNEL_CONV_DATA] = DATA,
    [KERNEL_CONV_WEIGHT] = WEIGHT,
    [KERNEL_DENSE_FORWARD] = FORWARD,
    [KERNEL_DENSE_DATA] = DATA,
    [KERNEL_DENSE_WEIGHT] = WEIGHT,
    [KERNEL_REORDER] = {[ROLE_X] = {dnnl_query_src_md, 0, DNNL_ARG_FROM},
                        [ROLE_Y] = {dnnl_query_dst_md, 0, DNNL_ARG_TO}},
#undef FORWARD
#undef DATA
#undef WEIGHT
};

static const char *status_text(dnnl_status_t status)
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

static void must(dnnl_status_t status, const char *call)
{
    if (status != dnnl_success)
        die_as(status == dnnl_out_of_memory ? ERR_MEMORY : ERR_BUG, "oneDNN: %s: %s", call,
               status_text(status));
}

static dnnl_data_type_t data_type(DType type)
{
    return type == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* ---- where 2.x and 3.x differ ---- */
#if DNNL3
static const_dnnl_memory_desc_t md_of(const Format *f)
{
    return f ? f->md : NULL;
}

static Format *format_clone(const_dnnl_memory_desc_t md)
{
    Format *f = mem_new(sizeof *f);
    must(dnnl_memory_desc_clone(&f->md, md), "dnnl_memory_desc_clone");
    return f;
}

static Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag)
{
    Format *f = mem_new(sizeof *f);
    dnnl_dims_t dims = {0};
    memcpy(dims, dim, (size_t)ndim * sizeof *dim);
    must(dnnl_memory_desc_create_with_tag(&f->md, ndim, dims, data_type(type), tag),
         "dnnl_memory_desc_create_with_tag");
    return f;
}

void format_free(Format **format)
{
    if (*format) must(dnnl_memory_desc_destroy((*format)->md), "dnnl_memory_desc_destroy");
    mem_free(format);
}

DType format_type(const Format *format)
{
    dnnl_data_type_t type = dnnl_data_type_undef;
    must(dnnl_memory_desc_query(format->md, dnnl_query_data_type, &type), "dnnl_memory_desc_query");
    return type == dnnl_bf16 ? DTYPE_BF16 : DTYPE_F32;
}

bool format_elementwise(const Format *format)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    must(dnnl_memory_desc_query(format->md, dnnl_query_format_kind, &kind),
         "dnnl_memory_desc_query");
    return kind == dnnl_blocked;
}

static dnnl_status_t conv_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                 const KernelSpec *spec, const_dnnl_primitive_attr_t attr)
{
    dnnl_alg_kind_t alg = spec->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    const dnnl_dims_t stride = {spec->stride[0], spec->stride[1]}, dilate = {0, 0};
    const dnnl_dims_t pad = {spec->pad[0], spec->pad[1]};
    const_dnnl_memory_desc_t x = md_of(spec->role[ROLE_X]), w = md_of(spec->role[ROLE_W]);
    const_dnnl_memory_desc_t b = md_of(spec->role[ROLE_B]), y = md_of(spec->role[ROLE_Y]);
    dnnl_primitive_desc_t hint = spec->hint ? spec->hint->desc : NULL;
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

static dnnl_status_t dense_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                  const KernelSpec *spec, const_dnnl_primitive_attr_t attr)
{
    const_dnnl_memory_desc_t x = md_of(spec->role[ROLE_X]), w = md_of(spec->role[ROLE_W]);
    const_dnnl_memory_desc_t b = md_of(spec->role[ROLE_B]), y = md_of(spec->role[ROLE_Y]);
    dnnl_primitive_desc_t hint = spec->hint ? spec->hint->desc : NULL;
    if (spec->kind == KERNEL_DENSE_FORWARD)
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, dnnl->engine, dnnl_forward_training, x, w, b, y, attr);
    if (spec->kind == KERNEL_DENSE_DATA)
        return dnnl_inner_product_backward_data_primitive_desc_create(pd, dnnl->engine, x, w, y,
                                                                      hint, attr);
    return dnnl_inner_product_backward_weights_primitive_desc_create(pd, dnnl->engine, x, w, b, y,
                                                                     hint, attr);
}

static dnnl_status_t append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#else
static const dnnl_memory_desc_t *md_of(const Format *f)
{
    return f ? &f->md : NULL;
}

static Format *format_clone(const dnnl_memory_desc_t *md)
{
    Format *f = mem_new(sizeof *f);
    f->md = *md;
    return f;
}

static Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag)
{
    Format *f = mem_new(sizeof *f);
    dnnl_dims_t dims = {0};
    memcpy(dims, dim, (size_t)ndim * sizeof *dim);
    must(dnnl_memory_desc_init_by_tag(&f->md, ndim, dims, data_type(type), tag),
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

bool format_elementwise(const Format *format)
{
    return format->md.format_kind == dnnl_blocked;
}

static dnnl_status_t conv_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                 const KernelSpec *spec, const_dnnl_primitive_attr_t attr)
{
    dnnl_alg_kind_t alg = spec->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    const dnnl_dims_t stride = {spec->stride[0], spec->stride[1]};
    const dnnl_dims_t pad = {spec->pad[0], spec->pad[1]};
    const dnnl_memory_desc_t *x = md_of(spec->role[ROLE_X]), *w = md_of(spec->role[ROLE_W]);
    const dnnl_memory_desc_t *b = md_of(spec->role[ROLE_B]), *y = md_of(spec->role[ROLE_Y]);
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
    return dnnl_primitive_desc_create(pd, &d, attr, dnnl->engine,
                                      spec->hint ? spec->hint->desc : NULL);
}

static dnnl_status_t dense_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                  const KernelSpec *spec, const_dnnl_primitive_attr_t attr)
{
    const dnnl_memory_desc_t *x = md_of(spec->role[ROLE_X]), *w = md_of(spec->role[ROLE_W]);
    const dnnl_memory_desc_t *b = md_of(spec->role[ROLE_B]), *y = md_of(spec->role[ROLE_Y]);
    dnnl_inner_product_desc_t d;
    dnnl_status_t status;
    if (spec->kind == KERNEL_DENSE_FORWARD)
        status = dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, x, w, b, y);
    else if (spec->kind == KERNEL_DENSE_DATA)
        status = dnnl_inner_product_backward_data_desc_init(&d, x, w, y);
    else
        status = dnnl_inner_product_backward_weights_desc_init(&d, x, w, b, y);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(pd, &d, attr, dnnl->engine,
                                      spec->hint ? spec->hint->desc : NULL);
}

static dnnl_status_t append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#endif

/* ---- engine ---- */
Status dnnl_new(Dnnl **dnnl)
{
    *dnnl = mem_new(sizeof **dnnl);
    dnnl_status_t status = dnnl_engine_create(&(*dnnl)->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&(*dnnl)->stream, (*dnnl)->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) return OK;
    dnnl_free(dnnl);
    return fail(ERR_CONFIG, "oneDNN has no CPU engine here: %s", status_text(status));
}

void dnnl_free(Dnnl **dnnl)
{
    if (!*dnnl) return;
    if ((*dnnl)->stream) must(dnnl_stream_destroy((*dnnl)->stream), "dnnl_stream_destroy");
    if ((*dnnl)->engine) must(dnnl_engine_destroy((*dnnl)->engine), "dnnl_engine_destroy");
    mem_free(dnnl);
}

void dnnl_versions(FILE *out)
{
    const dnnl_version_t *v = dnnl_version();
    fprintf(out, "oneDNN %d.%d.%d (built against %d.%d.%d)\n", v->major, v->minor, v->patch,
            DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

int dnnl_vector_floats(void)
{
#if defined(__x86_64__)
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    if (isa & dnnl_cpu_isa_avx512_core & ~dnnl_cpu_isa_avx2) return 16;
    if (isa & dnnl_cpu_isa_avx & ~dnnl_cpu_isa_sse41) return 8;
#endif
    return 0;
}

/* The processor's name, into out of at least 128 chars, returned. */
static char *cpu_name(char *out)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, 128, "this CPU");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(out, 128, "this CPU (%.*s)", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f) fclose(f);
    return out;
}

Status dnnl_bf16_check(void)
{
    char name[128];
#if defined(__x86_64__)
    const int wanted = dnnl_cpu_isa_avx512_core_bf16;
    if (((int)dnnl_get_effective_cpu_isa() & wanted) == wanted) return OK;
#endif
    return fail(ERR_CONFIG,
                "train.precision: bf16 needs AVX512_BF16 or AMX, and %s lacks them: bf16 would be "
                "slower than fp32 there; use train.precision=fp32",
                cpu_name(name));
}

/* ---- formats ---- */
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
    return format_clone(md_of(format));
}

bool format_equal(const Format *a, const Format *b)
{
    return dnnl_memory_desc_equal(md_of(a), md_of(b));
}

int64_t format_elements(const Format *format)
{
    return (int64_t)(format_bytes(format) / dtype_bytes(format_type(format)));
}

size_t format_bytes(const Format *format)
{
    return dnnl_memory_desc_get_size(md_of(format));
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

/* ---- kernels ---- */
static dnnl_primitive_attr_t attr_new(const KernelSpec *spec)
{
    dnnl_primitive_attr_t attr;
    must(dnnl_primitive_attr_create(&attr), "dnnl_primitive_attr_create");
    must(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
         "dnnl_primitive_attr_set_scratchpad_mode");
    if (spec->relu) {
        dnnl_post_ops_t ops;
        must(dnnl_post_ops_create(&ops), "dnnl_post_ops_create");
        must(append_relu(ops), "dnnl_post_ops_append_eltwise");
        must(dnnl_primitive_attr_set_post_ops(attr, ops), "dnnl_primitive_attr_set_post_ops");
        must(dnnl_post_ops_destroy(ops), "dnnl_post_ops_destroy");
    }
    return attr;
}

static dnnl_status_t desc_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                 const KernelSpec *spec)
{
    dnnl_primitive_attr_t attr = attr_new(spec);
    dnnl_status_t status;
    if (spec->kind == KERNEL_REORDER)
        status = dnnl_reorder_primitive_desc_create(pd, md_of(spec->role[ROLE_X]), dnnl->engine,
                                                    md_of(spec->role[ROLE_Y]), dnnl->engine, attr);
    else if (spec->kind <= KERNEL_CONV_WEIGHT)
        status = conv_create(pd, dnnl, spec, attr);
    else
        status = dense_create(pd, dnnl, spec, attr);
    must(dnnl_primitive_attr_destroy(attr), "dnnl_primitive_attr_destroy");
    return status;
}

Status kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = desc_create(&desc, dnnl, spec);
    *kernel = NULL;
    if (status != dnnl_success)
        return fail(ERR_CONFIG, "oneDNN cannot compute this: %s", status_text(status));
    Kernel *k = *kernel = mem_new(sizeof *k);
    k->kind = spec->kind;
    k->dnnl = dnnl;
    k->desc = desc;
    for (int r = 0; r < ROLES; ++r)
        if (spec->role[r]) {
            const RoleName *name = &role_names[spec->kind][r];
            k->role[r] = format_clone(dnnl_primitive_desc_query_md(desc, name->query, name->index));
        }
    k->scratch = format_clone(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
    return OK;
}

const Format *kernel_format(const Kernel *kernel, KernelRole role)
{
    return kernel->role[role];
}

const char *kernel_name(const Kernel *kernel)
{
    const char *text = NULL;
    must(dnnl_primitive_desc_query(kernel->desc, dnnl_query_impl_info_str, 0, &text),
         "dnnl_primitive_desc_query");
    return text;
}

size_t kernel_scratch_bytes(const Kernel *kernel)
{
    return dnnl_memory_desc_get_size(md_of(kernel->scratch));
}

/* Winograd's three buffers lie at borders of 2 MiB, and for each oneDNN asks for 2 MiB more to find one. Of that the last page
 * of a buffer takes some: with pages of 2 MiB, which arenas have where the kernel gives them, half on average. */
size_t kernel_scratch_spare(const Kernel *kernel)
{
    size_t spare = (size_t)3 << 20;
    return strstr(kernel_name(kernel), "wino") && kernel_scratch_bytes(kernel) > spare ? spare : 0;
}

static Status kernel_add_arg(Kernel *k, const Format *format, int role, int arg)
{
    dnnl_exec_arg_t *a = &k->arg[k->arg_count];
    dnnl_status_t status =
        dnnl_memory_create(&a->memory, md_of(format), k->dnnl->engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success)
        return fail(ERR_BUG, "oneDNN: no memory object: %s", status_text(status));
    a->arg = arg;
    k->arg_role[k->arg_count++] = role;
    return OK;
}

/* oneDNN makes the code of its fp32 matrix product, 4 MB of it, when the first one runs: most of it for any shape of more than
 * a row, some where the second factor is transposed. Here that happens before: a step takes no memory, and a plan knows
 * all of it. */
static void make_product(const Kernel *kernel)
{
    const float a[4] = {0}, b[4] = {0};
    float product[4];
    if (format_type(kernel->role[ROLE_X]) != DTYPE_F32 || !strstr(kernel_name(kernel), "gemm:jit"))
        return;
    for (const char *second = "NT"; *second; ++second)
        must(dnnl_sgemm('N', *second, 2, 2, 2, 1, a, 2, b, 2, 0, product, 2), "dnnl_sgemm");
}

Status kernel_build(Kernel *kernel)
{
    dnnl_status_t status = dnnl_primitive_create(&kernel->primitive, kernel->desc);
    if (status != dnnl_success)
        return fail(ERR_CONFIG, "oneDNN cannot build its kernel %s: %s", kernel_name(kernel),
                    status_text(status));
    make_product(kernel);
    for (int r = 0; r < ROLES; ++r)
        if (kernel->role[r])
            TRY(kernel_add_arg(kernel, kernel->role[r], r, role_names[kernel->kind][r].arg));
    if (kernel_scratch_bytes(kernel) == 0) return OK;
    return kernel_add_arg(kernel, kernel->scratch, ROLES, DNNL_ARG_SCRATCHPAD);
}

/* A handle is set only when it changes: 2.x writes the padding's zeros again each time one is set. */
void kernel_run(Kernel *kernel, void *const data[ROLES], void *scratch)
{
    for (int i = 0; i < kernel->arg_count; ++i) {
        void *p = kernel->arg_role[i] == ROLES ? scratch : data[kernel->arg_role[i]];
        if (p == kernel->data[i]) continue;
        must(dnnl_memory_set_data_handle(kernel->arg[i].memory, p), "dnnl_memory_set_data_handle");
        kernel->data[i] = p;
    }
    must(dnnl_primitive_execute(kernel->primitive, kernel->dnnl->stream, kernel->arg_count,
                                kernel->arg),
         kernel_name(kernel));
}

void kernel_free(Kernel **kernel)
{
    Kernel *k = *kernel;
    if (!k) return;
    for (int i = 0; i < k->arg_count; ++i)
        must(dnnl_memory_destroy(k->arg[i].memory), "dnnl_memory_destroy");
    if (k->primitive) must(dnnl_primitive_destroy(k->primitive), "dnnl_primitive_destroy");
    must(dnnl_primitive_desc_destroy(k->desc), "dnnl_primitive_desc_destroy");
    for (int r = 0; r < ROLES; ++r) format_free(&k->role[r]);
    format_free(&k->scratch);
    mem_free(kernel);
}
