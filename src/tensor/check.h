/* What must hold of an operation whatever the backend. */
#ifndef WEFT_TENSOR_CHECK_H
#define WEFT_TENSOR_CHECK_H

#include "tensor.h"

/* ERR_CONFIG, or ERR_BUG for what no configuration asks for; name is the operation's. */
Status spec_check(const OpSpec *spec, const char *name);

#endif
