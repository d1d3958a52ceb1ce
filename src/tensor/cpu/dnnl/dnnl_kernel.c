/* Plans, builds and runs kernels: oneDNN's primitives are handled here; weft's own kernels
 * (dnnl_own.c) and oneDNN's kernels in parts (dnnl_parts.c) are called by their tables. The caller
 * provides scratch memory. This file also has dnnl_product, oneDNN's matrix product of plain fp32
 * matrices. */
#include "dnnl_api.h"

#include <string.h>

/* oneDNN's numbers for a tensor of a primitive */
typedef struct RoleName {
    /* the query that returns the tensor's format, and the query's index */
    dnnl_query_t query;
    int index;
    /* the argument of an execution */
    int arg;
} RoleName;
/* oneDNN's numbers for each kind of kernel and each role */
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

/* Makes a primitive's attributes: the caller provides scratch memory, and relu is applied to the
 * result if spec->relu is set. */
static dnnl_primitive_attr_t attr_new(const KernelSpec *spec)
{
    dnnl_primitive_attr_t attr;
    onednn_must(dnnl_primitive_attr_create(&attr), "dnnl_primitive_attr_create");
    onednn_must(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
                "dnnl_primitive_attr_set_scratchpad_mode");
    if (spec->relu) {
        dnnl_post_ops_t ops;
        onednn_must(dnnl_post_ops_create(&ops), "dnnl_post_ops_create");
        onednn_must(onednn_relu(ops), "dnnl_post_ops_append_eltwise");
        onednn_must(dnnl_primitive_attr_set_post_ops(attr, ops),
                    "dnnl_primitive_attr_set_post_ops");
        onednn_must(dnnl_post_ops_destroy(ops), "dnnl_post_ops_destroy");
    }
    return attr;
}

static dnnl_status_t desc_create(dnnl_primitive_desc_t *pd, const Dnnl *dnnl,
                                 const KernelSpec *spec)
{
    dnnl_primitive_attr_t attr = attr_new(spec);
    dnnl_status_t status;
    if (spec->kind == KERNEL_REORDER)
        status =
            dnnl_reorder_primitive_desc_create(pd, onednn_desc(spec->role[ROLE_X]), dnnl->engine,
                                               onednn_desc(spec->role[ROLE_Y]), dnnl->engine, attr);
    else if (spec->kind <= KERNEL_CONV_WEIGHT)
        status = onednn_conv2d(pd, dnnl, spec, attr);
    else
        status = onednn_dense(pd, dnnl, spec, attr);
    onednn_must(dnnl_primitive_attr_destroy(attr), "dnnl_primitive_attr_destroy");
    return status;
}

Status kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec)
{
    if (own_kernel_plan(kernel, dnnl, spec)) return OK;
    *kernel = NULL;
    if (cpu_portable() && spec->kind != KERNEL_REORDER)
        return fail(ERR_CONFIG,
                    "train.cpu: portable has no kernel for a dense layer that shares its "
                    "weight and whose input is a flattened image: do not share the "
                    "weight, or use another value of train.cpu");
    const bool undivided = spec->kind == KERNEL_REORDER || dnnl->same_threads;
    return undivided ? kernel_plan_onednn(kernel, dnnl, spec) : parts_plan(kernel, dnnl, spec);
}

Status kernel_plan_onednn(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = desc_create(&desc, dnnl, spec);
    *kernel = NULL;
    if (status != dnnl_success)
        return fail(ERR_CONFIG, "oneDNN has no kernel for this operation: %s", onednn_text(status));
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
    if (kernel->inner) return kernel_name(kernel->inner);
    if (kernel->table) return kernel->table->name;
    const char *text = NULL;
    onednn_must(dnnl_primitive_desc_query(kernel->desc, dnnl_query_impl_info_str, 0, &text),
                "dnnl_primitive_desc_query");
    return text;
}

size_t kernel_scratch_bytes(const Kernel *kernel)
{
    if (kernel->table) return kernel->table->scratch_bytes(kernel->own_impl);
    return dnnl_memory_desc_get_size(onednn_desc(kernel->scratch));
}

static Status kernel_add_arg(Kernel *k, const Format *format, int role, int arg)
{
    dnnl_exec_arg_t *a = &k->arg[k->arg_count];
    dnnl_status_t status =
        dnnl_memory_create(&a->memory, onednn_desc(format), k->dnnl->engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success)
        return fail(ERR_BUG, "oneDNN cannot create a memory object: %s", onednn_text(status));
    a->arg = arg;
    k->arg_role[k->arg_count++] = role;
    return OK;
}

void dnnl_product_prepare(void)
{
    const float a[4] = {0}, b[4] = {0};
    float product[4];
    for (const char *letters = "NNNTTN"; *letters; letters += 2)
        onednn_must(dnnl_sgemm(letters[0], letters[1], 2, 2, 2, 1, a, 2, b, 2, 0, product, 2),
                    "dnnl_sgemm");
}

void dnnl_product(const DenseProduct *p, const DensePart *part, bool adds)
{
    const bool a_transposed = p->a_col != 1, b_transposed = p->b_col != 1;
    const int64_t rows = part->row_end - part->row, columns = part->column_end - part->column;
    /* oneDNN requires that the distance from one row to the next is at least a row's length, even
     * if there is only one row */
    const int64_t a_row = p->a_row > p->k ? p->a_row : p->k;
    const int64_t b_row = p->b_row > columns ? p->b_row : columns;
    onednn_must(dnnl_sgemm(a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', rows, columns, p->k,
                           1, p->a + part->row * p->a_row, a_transposed ? p->a_col : a_row,
                           p->b + part->column * p->b_col, b_transposed ? p->b_col : b_row,
                           adds ? 1 : 0, p->out + part->row * p->out_row + part->column,
                           p->out_row),
                "dnnl_sgemm");
}

Status kernel_build(Kernel *kernel)
{
    if (kernel->table) return kernel->table->build ? kernel->table->build(kernel->own_impl) : OK;
    dnnl_status_t status = dnnl_primitive_create(&kernel->primitive, kernel->desc);
    if (status != dnnl_success)
        return fail(ERR_CONFIG, "oneDNN cannot build its kernel %s: %s", kernel_name(kernel),
                    onednn_text(status));
    /* such kernels run oneDNN's matrix product; without this call, they would generate its code in
     * the first step */
    if (format_type(kernel->role[ROLE_X]) == DTYPE_F32 && strstr(kernel_name(kernel), "gemm:jit"))
        dnnl_product_prepare();
    for (int r = 0; r < ROLES; ++r)
        if (kernel->role[r])
            TRY(kernel_add_arg(kernel, kernel->role[r], r, role_names[kernel->kind][r].arg));
    if (kernel_scratch_bytes(kernel) == 0) return OK;
    return kernel_add_arg(kernel, kernel->scratch, ROLES, DNNL_ARG_SCRATCHPAD);
}

void kernel_run(Kernel *kernel, void *const data[ROLES], void *scratch)
{
    if (kernel->table) {
        kernel->table->run(kernel->own_impl, data, scratch);
        return;
    }
    for (int i = 0; i < kernel->arg_count; ++i) {
        void *p = kernel->arg_role[i] == ROLES ? scratch : data[kernel->arg_role[i]];
        /* each time an address is set, oneDNN 2.x writes the zeros of the padding again */
        if (p == kernel->data[i]) continue;
        onednn_must(dnnl_memory_set_data_handle(kernel->arg[i].memory, p),
                    "dnnl_memory_set_data_handle");
        kernel->data[i] = p;
    }
    onednn_must(dnnl_primitive_execute(kernel->primitive, kernel->dnnl->stream, kernel->arg_count,
                                       kernel->arg),
                kernel_name(kernel));
}

void kernel_free(Kernel **kernel)
{
    Kernel *k = *kernel;
    if (!k) return;
    for (int i = 0; i < k->arg_count; ++i)
        onednn_must(dnnl_memory_destroy(k->arg[i].memory), "dnnl_memory_destroy");
    if (k->primitive) onednn_must(dnnl_primitive_destroy(k->primitive), "dnnl_primitive_destroy");
    if (k->desc) onednn_must(dnnl_primitive_desc_destroy(k->desc), "dnnl_primitive_desc_destroy");
    if (k->table) k->table->free(&k->own_impl);
    for (int r = 0; r < ROLES; ++r) format_free(&k->role[r]);
    format_free(&k->scratch);
    mem_free(kernel);
}
