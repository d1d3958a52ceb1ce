/* Checks of the operations' rows (OpInfo) and of the backends' tables, made at every start of weft.
 * If a field is missing or two fields contradict each other, the error names the operation and the
 * field. */
#include "tensor.h"
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

/* Checks a backend's functions for an operation, if it has the operation. */
static Status table_check(const BackendTable *backend, OpKind kind)
{
    const OpTable *table = backend->op[kind];
    const char *name = op_info(kind)->name;
    if (!table) return OK;
    const char *problem = !table->name || strcmp(table->name, name)
                              ? ".name is not the name of the operation"
                          : !table->plan                   ? ".plan is not given"
                          : !table->forward                ? ".forward is not given"
                          : !table->pack != !table->unpack ? ".pack and .unpack go together"
                                                           : NULL;
    return problem
               ? fail(ERR_BUG, "operation %s of the %s backend: %s", name, backend->name, problem)
               : OK;
}

Status tensor_check(void)
{
    for (OpKind kind = OP_NONE + 1; kind < OP_KINDS; ++kind) {
        TRY(op_info_check(op_info(kind)));
        TRY(table_check(&backend_cpu, kind));
        TRY(table_check(&backend_cuda, kind));
    }
    return OK;
}
