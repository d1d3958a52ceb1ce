/* Checks of the operations' rows (OpInfo) and of the backends' tables, made at every start of weft.
 * If a field is missing or two fields contradict each other, the error names the operation and the
 * field. */
#include "op_check.h"

#include "tensor/op_list.h"

#include <string.h>

Status op_info_check(const OpInfo *info)
{
    const char *problem =
        !info->split                     ? ".split is not given"
        : !info->fuse                    ? ".fuse is not given"
        : !info->residual                ? ".residual is not given"
        : !info->communication           ? ".communication is not given"
        : !info->tokens                  ? ".tokens is not given"
        : !info->params                  ? ".params is not given"
        : !info->reads                   ? ".reads is not given"
        : !info->traffic                 ? ".traffic is not given"
        : !info->dx                      ? ".dx is not given"
        : !info->acts                    ? ".acts is not given"
        : info->macs_note && !info->macs ? ".macs_note is given without .macs"
        : (info->reads == READS_IDS) != (info->params == PARAMS_SPARSE_ROWS)
            ? "READS_IDS and PARAMS_SPARSE_ROWS go together"
        : (info->split == SPLIT_CLASSES) != (info->communication == COMMUNICATES_IF_SLICED)
            ? "SPLIT_CLASSES and COMMUNICATES_IF_SLICED go together"
        : (info->layer_inputs > 0) != (info->layer_help != NULL)
            ? ".layer_inputs and .layer_help go together"
        : info->layer_inputs > 0 && info->params != PARAMS_NONE
            ? ".layer_inputs is given, but an operation with parameters needs a LayerKind"
        : info->tokens == TOKENS_SEPARATE && info->params != PARAMS_NONE
            ? ".tokens is TOKENS_SEPARATE, but it has parameters, whose gradients are sums over "
              "tokens: TOKENS_SUMMED if it adds them by token_sums.h, else TOKENS_TOGETHER"
        : info->tokens == TOKENS_SUMMED && info->params == PARAMS_NONE
            ? ".tokens is TOKENS_SUMMED, but it has no parameters"
            : NULL;
    return row_check("operation", info->name, info->name ? problem : ".name is not given");
}

Status op_table_check(const BackendTable *backend, OpKind kind, const OpTable *table)
{
    const OpInfo *info = op_info(kind);
    const bool writes_dx = info->dx == DX_WRITTEN;
    const char *problem =
        !table->name || strcmp(table->name, info->name) ? ".name is not the name of the operation"
        : !table->plan                                  ? ".plan is not given"
        : !table->forward                               ? ".forward is not given"
        : !table->pack != !table->unpack                ? ".pack and .unpack go together"
        : writes_dx && !table->backward_data
            ? ".backward_data is not given, but .dx of the operation is DX_WRITTEN"
        : !writes_dx && table->backward_data
            ? ".backward_data is given, but .dx of the operation is not DX_WRITTEN"
        : info->params != PARAMS_NONE && !table->backward_weight
            ? ".backward_weight is not given, but the operation has parameters"
            : NULL;
    return problem ? fail(ERR_BUG, "operation %s of the %s backend: %s", info->name, backend->name,
                          problem)
                   : OK;
}

static Status flat_check(const BackendTable *t)
{
    const FlatTable *f = t->flat;
    const bool host = t->host_memory;
    const RowSlot slots[] = {
        ROW_SLOT(f, fill),
        ROW_SLOT(f, add),
        ROW_SLOT_IF(f, add_bf16, t->bf16 == SUPPORTED),
        ROW_SLOT_IF(f, add_f16, t->f16 == SUPPORTED),
        ROW_SLOT(f, find_not_finite),
        ROW_SLOT_IF(f, find_and_copy, host),
        ROW_SLOT(f, scale_add),
        ROW_SLOT_IF(f, add_slices, !host),
        ROW_SLOT(f, squares),
        ROW_SLOT(f, chunk_squares),
        ROW_SLOT(f, exact_squares),
        ROW_SLOT(f, exact_chunk_squares),
        ROW_SLOT(f, join_squares),
        ROW_SLOT(f, sgd),
        ROW_SLOT(f, adam),
        ROW_SLOT(f, adam_direction),
        ROW_SLOT(f, average),
        ROW_SLOT(f, swap),
        ROW_SLOT(f, put),
        ROW_SLOT(f, loss_sums),
        ROW_SLOT(f, range_sums),
        ROW_SLOT_IF(f, clip, !host),
        ROW_SLOT_IF(f, run_elements, host),
        ROW_SLOT_IF(f, matrix_product, host),
    };
    return ROW_SLOTS_CHECK("flat table of backend", t->name, slots);
}

static Status slots_of_backend_check(const BackendTable *t)
{
    const bool here = !t->absent, device = here && !t->host_memory;
    const RowSlot slots[] = {
        ROW_SLOT(t, name),
        ROW_SLOT(t, open),
        ROW_SLOT_IF(t, close, here),
        ROW_SLOT_IF(t, alloc, here),
        ROW_SLOT_IF(t, release, here),
        ROW_SLOT_IF(t, memory, device),
        ROW_SLOT_IF(t, memory_text, device),
        ROW_SLOT_IF(t, stream, here),
        ROW_SLOT_IF(t, stream_new, device),
        ROW_SLOT_IF(t, stream_free, device),
        ROW_SLOT_IF(t, stream_handle, device),
        ROW_SLOT_IF(t, copy, here),
        ROW_SLOT_IF(t, copy_rows, device),
        ROW_SLOT_IF(t, sync, here),
        ROW_SLOT_IF(t, event_new, here),
        ROW_SLOT_IF(t, event_record, here),
        ROW_SLOT_IF(t, event_wait, here),
        ROW_SLOT_IF(t, event_free, here),
        ROW_SLOT_IF(t, host_alloc, device),
        ROW_SLOT_IF(t, host_release, device),
        ROW_SLOT_IF(t, event_sync, device),
        ROW_SLOT_IF(t, record_begin, device),
        ROW_SLOT_IF(t, record_end, device),
        ROW_SLOT_IF(t, replay, device),
        ROW_SLOT_IF(t, recording_free, device),
        ROW_SLOT_IF(t, timer_new, here),
        ROW_SLOT_IF(t, event_s, here),
        ROW_SLOT_IF(t, flat, here),
        ROW_SLOT(t, bf16),
        ROW_SLOT(t, f16),
        ROW_SLOT(t, tf32),
        ROW_SLOT_IF(t, dense_gelu, here),
        ROW_SLOT_IF(t, batch_norm_silu, here),
        ROW_SLOT_IF(t, dense_residual, here),
    };
    return ROW_SLOTS_CHECK("backend", t->name, slots);
}

Status backend_check(const BackendTable *table)
{
    TRY(slots_of_backend_check(table));
    if (table->absent) return OK;
    TRY(flat_check(table));
    for (OpKind kind = OP_NONE + 1; kind < OP_KINDS; ++kind)
        if (table->op[kind]) TRY(op_table_check(table, kind, table->op[kind]));
    return OK;
}

Status tensor_check(void)
{
    for (OpKind kind = OP_NONE + 1; kind < OP_KINDS; ++kind) TRY(op_info_check(op_info(kind)));
    TRY(backend_check(&backend_cpu));
    return backend_check(&backend_cuda);
}
