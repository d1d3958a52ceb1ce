/* The functions of op.h and backend.h that open a backend, check and plan an OpSpec, and forward
 * calls on an Op to the functions in the backend's table. A NULL function means "nothing to do",
 * except for plan and forward, which are required. If pack and unpack are NULL, parameters are
 * copied. */
#include "op_check.h"

#include <string.h>

/* Fails if no device of this backend computes in the precision. Whether the chosen device does is
 * checked by BackendTable.open. */
static Status check_precision(const BackendTable *table, BackendOptions options)
{
    const char *name = options.tf32 ? "tf32" : options.precision == DTYPE_F16 ? "fp16" : "bf16";
    const Support support = options.tf32                      ? table->tf32
                            : options.precision == DTYPE_F16  ? table->f16
                            : options.precision == DTYPE_BF16 ? table->bf16
                                                              : SUPPORTED;
    if (support == SUPPORTED) return OK;
    if (options.precision == DTYPE_BF16)
        return fail(ERR_CONFIG,
                    "train.precision: the %s backend has no bf16: "
                    "use train.precision=fp32 or train.device=cpu",
                    table->name);
    return fail(ERR_CONFIG,
                "train.precision: %s needs a GPU, the %s backend does not have it: use "
                "train.precision=fp32 (or bf16, on processors that have it), or train.device=cuda",
                name, table->name);
}

Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options)
{
    if (options.threads < 1)
        return fail(ERR_CONFIG, "train.threads is %d, but must be at least 1", options.threads);
    TRY(check_precision(table, options));
    Backend *b = *backend = mem_new(sizeof *b);
    b->table = table;
    b->options = options;
    Status status = table->open(b, options);
    if (status != OK) mem_free(backend);
    return status;
}

void backend_close(Backend **backend)
{
    if (!*backend) return;
    (*backend)->table->close(*backend);
    mem_free(backend);
}

/* Checks what every operation requires: possible numbers of inputs and parameters, shapes that are
 * not empty, and a residual of y's shape. */
static Status tensors_check(const OpSpec *spec, const char *name)
{
    char text[64];
    if (spec->x_count < 1 || spec->x_count > SPEC_INPUTS || spec->w_count < 0 ||
        spec->w_count > SPEC_PARAMS)
        return fail(ERR_BUG, "%s: no operation may have %d inputs and %d parameters", name,
                    spec->x_count, spec->w_count);
    for (int i = 0; i <= spec->x_count; ++i) {
        const Desc *d = i < spec->x_count ? &spec->x[i] : &spec->y;
        if (d->shape.ndim < 1 || d->shape.ndim > SHAPE_DIMS || shape_count(d->shape) < 1)
            return fail(ERR_CONFIG, "%s: a tensor of shape '%s' is empty", name,
                        shape_text(d->shape, text));
    }
    bool fits = spec->x_count > 1 && shape_equal(spec->x[1].shape, spec->y.shape);
    if (spec->residual && !fits)
        return fail(ERR_BUG, "%s: its residual and its output have different shapes", name);
    return OK;
}

Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[SPEC_INPUTS])
{
    *op = NULL;
    const OpInfo *info = op_info(spec->kind);
    if (!info) return fail(ERR_BUG, "there is no operation number %d", spec->kind);
    const OpTable *table = backend->table->op[spec->kind];
    if (table && !(table->plan && table->forward))
        return fail(ERR_BUG, "the %s backend's operation '%s' has no %s", backend->table->name,
                    info->name, table->plan ? "forward" : "plan");
    if (!table)
        return fail(ERR_CONFIG, "the %s backend has no operation '%s'; choose another train.device",
                    backend->table->name, info->name);
    TRY(tensors_check(spec, info->name));
    if (info->check) TRY(info->check(spec));
    Op *o = *op = mem_new(sizeof *o);
    o->table = table;
    o->backend = backend;
    o->spec = *spec;
    if (o->spec.y.block == 0) o->spec.y.block = 1;
    memcpy(preferred, spec->x, sizeof(Desc) * SPEC_INPUTS);
    Status status = table->plan(o, preferred);
    /* plan may choose other functions, which tensor_check has not seen */
    if (status == OK && o->table != table)
        status = op_table_check(backend->table, spec->kind, o->table);
    if (status != OK) op_free(op);
    return status;
}

void op_free(Op **op)
{
    if (!*op) return;
    if ((*op)->table->free) (*op)->table->free(*op);
    mem_free(op);
}

void op_refresh(Op *op, const OpRun *run)
{
    if (op->table->refresh) op->table->refresh(op, run);
}

void op_forward(Op *op, const OpRun *run)
{
    op->table->forward(op, run);
}

void op_backward_begin(Op *op, const OpRun *run)
{
    if (op->table->backward_begin) op->table->backward_begin(op, run);
}

void op_backward_data(Op *op, const OpRun *run)
{
    if (op->table->backward_data) op->table->backward_data(op, run);
}

void op_backward_weight(Op *op, const OpRun *run)
{
    if (op->table->backward_weight && !op->spec.frozen) op->table->backward_weight(op, run);
}

void op_pack(Op *op, int i, const float *plain, float *stored)
{
    if (op->table->pack)
        op->table->pack(op, i, plain, stored);
    else
        memcpy(stored, plain, (size_t)shape_count(op->spec.w[i]) * sizeof(float));
}

void op_unpack(Op *op, int i, const float *stored, float *plain)
{
    if (op->table->unpack)
        op->table->unpack(op, i, stored, plain);
    else
        memcpy(plain, stored, (size_t)shape_count(op->spec.w[i]) * sizeof(float));
}

bool op_stored_plain(const Op *op, int i)
{
    return !op->table->unpack || (op->table->stored_plain && op->table->stored_plain(op, i));
}
