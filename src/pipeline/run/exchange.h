/* Slices between the ranks of a tensor group in host memory, and the same for a GPU's memory by way
 * of the host's. */
#ifndef WEFT_PIPELINE_EXCHANGE_H
#define WEFT_PIPELINE_EXCHANGE_H

#include "context.h"

/* Through channels between every two ranks of the group. */
typedef struct HostExchange HostExchange;
/* Owner: the caller. Collective on world. */
Status host_exchange_new(HostExchange **exchange, const Context *context, const World *world);
/* Collective. NULL: nothing */
void host_exchange_free(HostExchange **exchange);
const Exchange *host_exchange_face(const HostExchange *exchange);
/* borrowed */
Channels *host_exchange_channels(const HostExchange *exchange);

typedef struct StagedExchange StagedExchange;
/* most: bytes of the largest tensor. host is borrowed. Owner: the caller. */
StagedExchange *staged_exchange_new(const Context *context, const Exchange *host, size_t most);
/* NULL: nothing */
void staged_exchange_free(StagedExchange **exchange);
const Exchange *staged_exchange_face(const StagedExchange *exchange);

#endif
