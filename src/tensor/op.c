/* The front of the tensor module: opens backends, and checks and forwards every operation to its backend's typed slots.
 * A NULL slot means "nothing to do", but for plan and forward. */
#include "check.h"

#include <string.h>

static const char *const op_names[OP_KINDS] = {
    [OP_DENSE] = "dense",
    [OP_CONV2D] = "conv2d",
    [OP_BATCH_NORM] = "batch_norm",
    [OP_LAYER_NORM] = "layer_norm",
    [OP_ACTIVATION] = "activation",
    [OP_POOL] = "pool",
    [OP_ADD] = "add",
    [OP_CONCAT] = "concat",
    [OP_FLATTEN] = "flatten",
    [OP_DROPOUT] = "dropout",
    [OP_EMBEDDING] = "embedding",
    [OP_POSITIONS] = "positions",
    [OP_ATTENTION] = "attention",
    [OP_SOFTMAX_LOSS] = "softmax_loss",
    [OP_MSE_LOSS] = "mse_loss",
    [OP_REORDER] = "reorder",
    [OP_EXCHANGE] = "exchange (grid.tp)",
    [OP_RMS_NORM] = "rms_norm",
    [OP_GROUP_NORM] = "group_norm",
    [OP_SWIGLU] = "swiglu",
};

/* What the kind of backend has; its own open may know more. */
static Status check_precision(const BackendTable *table, BackendOptions options)
{
    const char *name = options.tf32 ? "tf32" : options.precision == DTYPE_F16 ? "fp16" : "bf16";
    bool has = options.tf32                      ? table->has_tf32
               : options.precision == DTYPE_F16  ? table->has_f16
               : options.precision == DTYPE_BF16 ? table->has_bf16
                                                 : true;
    if (has) return OK;
    if (options.precision == DTYPE_BF16)
        return fail(ERR_CONFIG,
                    "train.precision: the %s backend has no bf16: "
                    "use train.precision=fp32 or train.device=cpu",
                    table->name);
    return fail(ERR_CONFIG,
                "train.precision: %s is for GPUs, the %s backend does not compute in it: use "
                "train.precision=fp32 (or bf16, on processors that have it), or train.device=cuda",
                name, table->name);
}

Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options)
{
    if (options.threads < 1)
        return fail(ERR_CONFIG, "train.threads is %d: at least 1 is needed", options.threads);
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

Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[OP_INPUTS])
{
    *op = NULL;
    if (spec->kind < 0 || spec->kind >= OP_KINDS)
        return fail(ERR_BUG, "there is no operation number %d", (int)spec->kind);
    const OpTable *table = backend->table->op[spec->kind];
    const char *name = op_names[spec->kind];
    if (!table || !table->plan || !table->forward)
        return fail(ERR_CONFIG, "the %s backend has no operation '%s'; choose another train.device",
                    backend->table->name, name);
    TRY(spec_check(spec, name));
    Op *o = *op = mem_new(sizeof *o);
    o->table = table;
    o->backend = backend;
    o->spec = *spec;
    if (o->spec.y.block == 0) o->spec.y.block = 1;
    memcpy(preferred, spec->x, sizeof(Desc) * OP_INPUTS);
    Status status = table->plan(o, preferred);
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
    if (op->table->backward_weight) op->table->backward_weight(op, run);
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
