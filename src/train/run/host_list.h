/* A text with the hosts, cores and GPUs of a run's ranks. */
#ifndef WEFT_TRAIN_HOST_LIST_H
#define WEFT_TRAIN_HOST_LIST_H

#include "../trainer.h"

/* Returns a text such as "4 ranks on 2 hosts: node1 (2 ranks, 16 cores), node2 (2 ranks, 16
 * cores)", with GPUs if the ranks compute on them; NULL on ranks other than 0. Owner: the caller.
 * Collective. */
char *train_host_list(const Trainer *trainer);

#endif
