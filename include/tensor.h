/* tensor: shapes and memory layouts, operations, and the backends that hold memory and compute.
 * Each operation has a constant row of facts (OpInfo). An OpSpec describes one operation of a model
 * with fixed shapes. A backend plans it once, as an Op; each run of the Op gets only pointers and
 * numbers (OpRun). The memory consists of arenas (BackendTable.alloc); operations get pointers into
 * them. The operations' constants (OP_DENSE) are in tensor/op_list.h, which only tensor and layers
 * include; other modules read the flags of OpInfo. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "tensor/shape.h"
#include "tensor/op_spec.h"
#include "tensor/op_info.h"
#include "tensor/op.h"
#include "tensor/flat.h"
#include "tensor/backend.h"
#include "tensor/row_store.h"
#include "tensor/config_words.h"

#endif
