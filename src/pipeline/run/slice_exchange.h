/* Exchanges slices between the ranks of a tensor-parallel group: slices in host memory directly,
 * and slices in GPU memory through host memory. */
#ifndef WEFT_PIPELINE_SLICE_EXCHANGE_H
#define WEFT_PIPELINE_SLICE_EXCHANGE_H

#include "context.h"

/* Exchange in host memory, with channels between every two ranks of the group. */
typedef struct HostExchange HostExchange;
/* Opens the channels. world: the ranks of the group; borrowed. Owner: the caller, also on an error.
 * Collective on world. */
Status host_exchange_new(HostExchange **exchange, const Context *context, const World *world);
/* Does nothing for NULL. Collective. */
void host_exchange_free(HostExchange **exchange);
const Exchange *host_exchange_interface(const HostExchange *exchange);
/* Returns the exchange's channels; borrowed. */
Channels *host_exchange_channels(const HostExchange *exchange);

/* Exchange of slices in GPU memory, through host memory. */
typedef struct StagedExchange StagedExchange;
/* host: the exchange in host memory; borrowed. most: bytes of the largest tensor. Owner: the
 * caller. */
StagedExchange *staged_exchange_new(const Context *context, const Exchange *host, size_t most);
/* Does nothing for NULL. */
void staged_exchange_free(StagedExchange **exchange);
const Exchange *staged_exchange_interface(const StagedExchange *exchange);

#endif
