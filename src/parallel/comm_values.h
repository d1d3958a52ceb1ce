/* Values (comm_values_new) that are each rank's own memory, for the transports that do not share them. */
#ifndef WEFT_PARALLEL_COMM_VALUES_H
#define WEFT_PARALLEL_COMM_VALUES_H

#include "parallel.h"

Status comm_values_own(Comm *comm, size_t bytes);
void comm_values_release(Comm *comm); /* nothing where there are none */

#endif
