/* SGD with momentum, as in PyTorch. */
#include "rules.h"

static int slots_used(const OptimConfig *constants)
{
    return constants->momentum == 0 ? 0 : 1;
}

static void update_pieces(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count)
{
    const SgdArgs args = {
        .lr = optim_lr_of(optim, rule),
        .momentum = rule->momentum,
        .grad_scale = optim->scale,
        .average_rate = optim->average_rate,
        .copy_type = optim->copy_type,
        .nesterov = rule->constants->nesterov,
        .m_is_empty = optim->is_first_update,
        .numbers = optim_numbers_of(optim, rule),
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, piece, count);
}

/* Refuses momentum for sparse tables, since it would move rows whose ids do not occur in the
 * step. */
static Status check_tensor(const OptimConfig *constants, const OptimTensor *tensor)
{
    if (tensor->role != PARAM_SPARSE_TABLE || constants->momentum == 0) return OK;
    return fail(ERR_CONFIG,
                "sgd updates the rows of a sparse table, and %s is one, without momentum only: "
                "leave optim.momentum out, or give tables a group of their own, as {roles: table, "
                "name: adagrad_row, lr: 0.01}",
                tensor->name);
}

static RowState row_state(const OptimConfig *constants, int width)
{
    (void)constants, (void)width;
    return (RowState){0};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    (void)rule;
    const SgdArgs args = {.lr = a->lr, .grad_scale = a->grad_scale};
    const UpdatePiece row = {.w = a->w, .g = a->g, .n = a->width, .weight_decay = a->decay};
    backend_cpu.flat->sgd(NULL, &args, &row, 1);
}

const OptimTable optim_sgd = {
    .word = {.word = "sgd", .help = "gradient descent with momentum", .uses = "momentum nesterov"},
    .slots = 1,
    .slot_name = {"momentum"},
    .slots_used = slots_used,
    .momentum_offset = offsetof(OptimConfig, momentum),
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_ALL,
    .check_tensor = check_tensor,
    .update_pieces = update_pieces,
    .row_state = row_state,
    .row_update = row_update,
};
