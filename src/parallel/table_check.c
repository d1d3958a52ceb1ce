/* Checks the tables of functions of all transports, at every start of the program. */
#include "mpi/channel_mpi.h"
#include "nccl/channel_nccl.h"
#include "shm/channel_shm.h"
#include "transport/comm_table.h"

Status comm_table_check(const CommTable *t)
{
    const bool here = !t->absent, shards = t->shards == SHARDS_ALWAYS;
    const RowSlot slots[] = {
        ROW_SLOT(t, name),
        ROW_SLOT(t, open),
        ROW_SLOT_IF(t, close, here),
        ROW_SLOT_IF(t, sum_begin, here),
        ROW_SLOT_IF(t, shards, here),
        ROW_SLOT_IF(t, params_open, shards),
        ROW_SLOT_IF(t, reduce_begin, shards),
        ROW_SLOT_IF(t, gather_begin, shards),
        ROW_SLOT_IF(t, gather_poll, shards),
        ROW_SLOT_IF(t, push_begin, here),
        ROW_SLOT_IF(t, push_poll, here),
    };
    TRY(ROW_SLOTS_CHECK("transport", t->name, slots));
    const bool ends = t->progress || t->wait;
    return row_check("transport", t->name,
                     here == ends ? NULL
                     : here       ? "neither .progress nor .wait is given"
                                  : ".progress or .wait is given, but must not be");
}

Status channel_table_check(const char *name, const ChannelTable *t)
{
    const bool here = !t->absent;
    const RowSlot slots[] = {
        ROW_SLOT_IF(t, slot, here),    ROW_SLOT_IF(t, send, here),  ROW_SLOT_IF(t, message, here),
        ROW_SLOT_IF(t, release, here), ROW_SLOT_IF(t, close, here),
    };
    return ROW_SLOTS_CHECK("channels", name, slots);
}

Status parallel_rows_check(void)
{
    static const CommTable *const comm[] = {&comm_self,  &comm_shm,  &comm_mpi,
                                            &comm_nodes, &comm_nccl, &comm_staged};
    for (size_t i = 0; i < sizeof comm / sizeof *comm; ++i) TRY(comm_table_check(comm[i]));
    TRY(channel_table_check("shm", &channel_pipe));
    TRY(channel_table_check("mpi", &channel_mpi));
    return channel_table_check("nccl", &channel_nccl);
}
