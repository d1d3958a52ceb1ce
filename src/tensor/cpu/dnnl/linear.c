/* The shared code of dense, conv2d and conv_transpose2d (linear.h). The kernel for the weight's
 * gradient writes the stored order. If oneDNN uses another implementation for that order than for
 * the order that it prefers, the kernel writes the preferred order to the workspace, and a reorder
 * writes the gradient. */
#include "linear.h"
#include "../mask.h"
#include "../sizes.h"
#include "../view.h"

#include <string.h>

typedef struct Linear {
    /* kernel for forward; owned, as are all kernels below */
    Kernel *forward;
    /* kernel for the gradient of x; NULL: dx is not needed */
    Kernel *data;
    /* kernel for the gradients of the parameters; NULL: all parameters are frozen */
    Kernel *weight;
    /* reorder that copies the weight to run->cache, in the order that the kernel `forward` reads;
     * NULL: the kernel reads the stored order */
    Kernel *forward_copy;
    /* reorder that copies the weight to run->cache, in the order that the kernel `data` reads;
     * NULL: the kernel reads the stored order, or data_shares is true */
    Kernel *data_copy;
    /* reorder of the result of the kernel `weight` to the stored order; NULL: the kernel writes the
     * stored order */
    Kernel *weight_copy;
    /* true: the kernel `data` reads the weight that forward_copy writes */
    bool data_shares;
    /* reorder of a weight from plain to stored order; NULL before the first linear_pack, or if both
     * orders are equal */
    Kernel *pack;
    /* stored and plain format of the fp32 weight; owned */
    Format *stored, *plain;
    /* byte offset in the cache of the weight that data_copy writes */
    size_t data_at;
    /* byte offset in the workspace of the result of the kernel `weight`, if weight_copy is set */
    size_t weight_at;
    /* LinearSpec.dead_taps */
    bool dead_taps;
} Linear;

/* Makes a reorder between two orders of the weight; *kernel is NULL if they are equal. */
static Status copy_new(Kernel **kernel, Dnnl *dnnl, const Format *from, const Format *to)
{
    *kernel = NULL;
    if (format_equal(from, to)) return OK;
    TRY(kernel_plan(
        kernel, dnnl,
        &(KernelSpec){.kind = KERNEL_REORDER, .role = {[ROLE_X] = from, [ROLE_Y] = to}}));
    return kernel_build(*kernel);
}

static void copy_run(Kernel *k, const void *from, void *to, void *scratch)
{
    kernel_run(k, (void *const[ROLES]){[ROLE_X] = (void *)(uintptr_t)from, [ROLE_Y] = to}, scratch);
}

static KernelSpec kernel_spec(const LinearSpec *s, int direction, const Kernel *hint)
{
    return (KernelSpec){
        .kind = (KernelKind)(s->forward + (KernelKind)direction),
        .role = {s->x, direction == LINEAR_WEIGHT ? s->dw_any : s->w_any, s->b, s->y},
        .stride = {s->stride[0], s->stride[1]},
        .pad = {s->pad[0], s->pad[1]},
        .winograd = s->winograd,
        .direct = s->direct[direction],
        .product = s->product,
        .slices = s->slices,
        .slices_inputs = s->slices_inputs,
        .hint = hint,
    };
}

/* Sets the stored order. In fp32 it is the order of the forward kernel's weight, in bf16 the order
 * in which the weight kernel writes the fp32 gradient. It is the plain order if that order is not a
 * permutation of the elements. */
static Status plan_stored(Linear *l, Dnnl *dnnl, const LinearSpec *s)
{
    Kernel *gradient = NULL;
    const Format *w = kernel_format(l->forward, ROLE_W);
    if (format_type(w) != DTYPE_F32) {
        KernelSpec k = kernel_spec(s, LINEAR_WEIGHT, l->forward);
        TRY(kernel_plan(&gradient, dnnl, &k));
        w = kernel_format(gradient, ROLE_W);
    }
    l->plain = format_copy(s->w_plain);
    l->stored = format_copy(format_elementwise(w) ? w : s->w_plain);
    kernel_free(&gradient);
    return OK;
}

static Status plan_forward(Linear *l, Dnnl *dnnl, const LinearSpec *s, const OpSpec *op)
{
    KernelSpec k = kernel_spec(s, LINEAR_FORWARD, NULL);
    k.relu = op->act == ACT_RELU;
    TRY(kernel_plan(&l->forward, dnnl, &k));
    TRY(kernel_build(l->forward));
    TRY(plan_stored(l, dnnl, s));
    return copy_new(&l->forward_copy, dnnl, l->stored, kernel_format(l->forward, ROLE_W));
}

static Status plan_data(Linear *l, Dnnl *dnnl, const LinearSpec *s)
{
    KernelSpec k = kernel_spec(s, LINEAR_DATA, l->forward);
    k.role[ROLE_B] = NULL;
    TRY(kernel_plan(&l->data, dnnl, &k));
    TRY(kernel_build(l->data));
    const Format *w = kernel_format(l->data, ROLE_W);
    l->data_shares = l->forward_copy && format_equal(w, kernel_format(l->forward, ROLE_W));
    return l->data_shares ? OK : copy_new(&l->data_copy, dnnl, l->stored, w);
}

/* Plans the weight kernel for the stored order if oneDNN has the same implementation for it as for
 * the order that it prefers. Otherwise, plans it for the preferred order, with a reorder. */
static Status plan_weight(Linear *l, Dnnl *dnnl, const LinearSpec *s)
{
    KernelSpec k = kernel_spec(s, LINEAR_WEIGHT, l->forward);
    TRY(kernel_plan(&l->weight, dnnl, &k));
    if (!format_equal(kernel_format(l->weight, ROLE_W), l->stored)) {
        Kernel *forced = NULL;
        k.role[ROLE_W] = l->stored;
        if (kernel_plan(&forced, dnnl, &k) == OK &&
            strcmp(kernel_name(forced), kernel_name(l->weight)) == 0) {
            kernel_free(&l->weight);
            l->weight = forced;
        } else {
            kernel_free(&forced);
        }
    }
    TRY(kernel_build(l->weight));
    l->dead_taps = s->dead_taps;
    return copy_new(&l->weight_copy, dnnl, kernel_format(l->weight, ROLE_W), l->stored);
}

/* Approximate number of bytes that oneDNN keeps for the reorder that packs a weight; weights of one
 * shape share the reorder. Measured with smaps: two reorders for each of mobilenet_v2's 54 weights
 * took 0.8 MB of heap and 1.2 MB of code. */
enum { PACKING_BYTES = 18 << 10 };

static void plan_sizes(Op *op, Linear *l)
{
    const Kernel *const all[] = {l->forward,      l->data,      l->weight,
                                 l->forward_copy, l->data_copy, l->weight_copy};
    size_t scratch = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
        size_t bytes = all[i] ? align_up(kernel_scratch_bytes(all[i])) : 0;
        if (bytes > scratch) scratch = bytes;
    }
    l->weight_at = scratch;
    op->workspace_bytes = scratch;
    op->packing_bytes = format_equal(l->plain, l->stored) ? 0 : PACKING_BYTES;
    if (l->weight_copy) op->workspace_bytes += format_bytes(kernel_format(l->weight, ROLE_W));
    if (l->forward_copy) l->data_at = align_up(format_bytes(kernel_format(l->forward, ROLE_W)));
    op->cache_bytes = l->data_at;
    if (l->data_copy) op->cache_bytes += format_bytes(kernel_format(l->data, ROLE_W));
    op->w_elements[0] = format_elements(l->stored);
    if (op->spec.w_count > 1) op->w_elements[1] = shape_count(op->spec.w[1]);
    op->needs_x[0] = !op->spec.frozen;
    op->needs_y = op->spec.act == ACT_RELU;
    op->weight_may_wait = true;
}

Status linear_check_act(const Op *op)
{
    if (op->spec.act == ACT_NONE || op->spec.act == ACT_RELU) return OK;
    return fail(ERR_CONFIG, "%s: only relu can be fused: make the activation a layer of its own",
                op->table->name);
}

Status linear_plan(Op *op, const LinearSpec *spec)
{
    Dnnl *dnnl = cpu_dnnl(op->backend);
    TRY(linear_check_act(op));
    Linear *l = op->impl = mem_new(sizeof *l);
    TRY(plan_forward(l, dnnl, spec, &op->spec));
    if (spec->need_data) TRY(plan_data(l, dnnl, spec));
    if (!op->spec.frozen) TRY(plan_weight(l, dnnl, spec));
    plan_sizes(op, l);
    return OK;
}

bool linear_is_reference(const Op *op)
{
    const Linear *l = op->impl;
    const Kernel *const all[] = {l->forward, l->data, l->weight};
    for (int i = 0; i < LINEAR_DIRECTIONS; ++i)
        if (all[i] && strncmp(kernel_name(all[i]), "ref", 3) == 0) return true;
    return false;
}

void linear_refresh(Op *op, const OpRun *run)
{
    Linear *l = op->impl;
    if (l->forward_copy) copy_run(l->forward_copy, run->w[0], run->cache, run->workspace);
    if (l->data_copy)
        copy_run(l->data_copy, run->w[0], (char *)run->cache + l->data_at, run->workspace);
}

/* Casts const away: oneDNN takes only pointers to writable memory, but does not write x and w. */
static void *writable(const void *p)
{
    return (void *)(uintptr_t)p;
}

/* Returns the weight in the data kernel's order. */
static void *data_weight(const Linear *l, const OpRun *run)
{
    if (l->data_shares) return run->cache;
    return l->data_copy ? (char *)run->cache + l->data_at : writable(run->w[0]);
}

void linear_forward(Op *op, const OpRun *run)
{
    Linear *l = op->impl;
    void *const data[ROLES] = {
        [ROLE_X] = writable(run->x[0]),
        [ROLE_W] = l->forward_copy ? run->cache : writable(run->w[0]),
        [ROLE_B] = writable(run->w[1]),
        [ROLE_Y] = run->y,
    };
    kernel_run(l->forward, data, run->workspace);
}

void linear_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_RELU) mask_gradient(ACT_RELU, run->dy, run->y, op->spec.y);
}

void linear_backward_data(Op *op, const OpRun *run)
{
    Linear *l = op->impl;
    if (!l->data || !run->dx[0]) return;
    void *const data[ROLES] = {
        [ROLE_X] = run->dx[0],
        [ROLE_W] = data_weight(l, run),
        [ROLE_Y] = run->dy,
    };
    kernel_run(l->data, data, run->workspace);
}

void linear_backward_weight(Op *op, const OpRun *run)
{
    Linear *l = op->impl;
    void *dw = l->weight_copy ? (char *)run->workspace + l->weight_at : (void *)run->dw[0];
    void *const data[ROLES] = {
        [ROLE_X] = writable(run->x[0]),
        [ROLE_W] = dw,
        [ROLE_B] = run->dw[1],
        [ROLE_Y] = run->dy,
    };
    if (l->dead_taps) {
        memset(dw, 0, format_bytes(kernel_format(l->weight, ROLE_W)));
        memset(run->workspace, 0, kernel_scratch_bytes(l->weight));
    }
    kernel_run(l->weight, data, run->workspace);
    if (l->weight_copy) copy_run(l->weight_copy, dw, run->dw[0], run->workspace);
}

/* Converts a weight from one format to another. *kernel: the reorder; if it is NULL, it is made. */
static void pack_run(Op *op, Kernel **kernel, const Format *from, const Format *to,
                     const float *src, float *dst)
{
    if (!*kernel && copy_new(kernel, cpu_dnnl(op->backend), from, to) != OK)
        die("%s: %s", op->table->name, fail_message());
    if (!*kernel) {
        memcpy(dst, src, format_bytes(to));
        return;
    }
    void *scratch = mem_new(kernel_scratch_bytes(*kernel) + 1);
    copy_run(*kernel, src, dst, scratch);
    mem_free(&scratch);
}

void linear_pack(Op *op, int i, const float *plain, float *stored)
{
    Linear *l = op->impl;
    if (i == 0)
        pack_run(op, &l->pack, l->plain, l->stored, plain, stored);
    else
        memcpy(stored, plain, (size_t)op->w_elements[i] * sizeof(float));
}

bool linear_stored_plain(const Op *op, int i)
{
    const Linear *l = op->impl;
    return i > 0 || format_equal(l->plain, l->stored);
}

void linear_unpack(Op *op, int i, const float *stored, float *plain)
{
    Linear *l = op->impl;
    if (linear_stored_plain(op, i))
        memcpy(plain, stored, (size_t)op->w_elements[i] * sizeof(float));
    else
        format_unpack(l->stored, stored, plain);
}

void linear_free(Op *op)
{
    Linear *l = op->impl;
    if (!l) return;
    Kernel **const all[] = {&l->forward,      &l->data,      &l->weight,     &l->pack,
                            &l->forward_copy, &l->data_copy, &l->weight_copy};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) kernel_free(all[i]);
    format_free(&l->stored);
    format_free(&l->plain);
    mem_free(&op->impl);
}

char *linear_text(const Op *op, char *out)
{
    const Linear *l = op->impl;
    snprintf(out, 256, "%s, %s, %s%s%s%s", kernel_name(l->forward),
             l->data ? kernel_name(l->data) : "-", l->weight ? kernel_name(l->weight) : "-",
             l->forward_copy ? "; copies w" : "", l->data_copy ? "; copies w for dx" : "",
             l->weight_copy ? "; copies dw" : "");
    return out;
}
