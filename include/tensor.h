/* tensor: shapes and what lies in memory, operations, and the backends that hold memory and
 * compute. An operation is named in OpInfo, asked for by an OpSpec, planned once by a backend as an
 * Op, and then run with pointers only. Buffers own, everything else points. The operations'
 * constants (OP_DENSE) are in tensor/op_list.h: only tensor and layers name them, all others ask
 * OpInfo's flags. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "tensor/shape.h"
#include "tensor/op_spec.h"
#include "tensor/op_info.h"
#include "tensor/op.h"
#include "tensor/flat.h"
#include "tensor/backend.h"
#include "tensor/rows.h"
#include "tensor/words.h"

#endif
