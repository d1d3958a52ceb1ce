/* The check of a backend's table of functions for one operation. */
#ifndef WEFT_TENSOR_OP_CHECK_H
#define WEFT_TENSOR_OP_CHECK_H

#include "tensor.h"

/* Returns ERR_BUG, naming the operation, the backend and the member, if the table lacks a function
 * that an operation of this kind needs, or contradicts its OpInfo. */
Status op_table_check(const BackendTable *backend, OpKind kind, const OpTable *table);

#endif
