/* The tables of functions of all transports are complete, and a table that lacks a function is
 * refused by name. */
#include "harness.h"
#include "parallel/shm/channel_shm.h"
#include "parallel/transport/comm_table.h"

#define COMM_LACKS(slot)                                                                           \
    do {                                                                                           \
        CommTable row = comm_shm;                                                                  \
        row.slot = 0;                                                                              \
        CHECK_FAILS(comm_table_check(&row), ERR_BUG, "transport shm: ." #slot " is not given");    \
    } while (0)

static void communicators(void)
{
    CHECK_OK(parallel_rows_check());
    CommTable table = comm_shm;
    table.name = NULL;
    CHECK_FAILS(comm_table_check(&table), ERR_BUG, "transport without a name: .name is not given");
    COMM_LACKS(open);
    COMM_LACKS(close);
    COMM_LACKS(sum_begin);
    COMM_LACKS(shards);
    COMM_LACKS(params_open);
    COMM_LACKS(reduce_begin);
    COMM_LACKS(gather_begin);
    COMM_LACKS(gather_poll);
    COMM_LACKS(push_begin);
    COMM_LACKS(push_poll);
    table = comm_shm, table.progress = NULL, table.wait = NULL;
    CHECK_FAILS(comm_table_check(&table), ERR_BUG,
                "transport shm: neither .progress nor .wait is given");
    table = comm_shm, table.shards = SHARDS_NEVER;
    CHECK_FAILS(comm_table_check(&table), ERR_BUG,
                "transport shm: .params_open is given, but must not be");
    table = comm_shm, table.absent = true;
    CHECK_FAILS(comm_table_check(&table), ERR_BUG,
                "transport shm: .close is given, but must not be");
}

#define CHANNEL_LACKS(slot_name)                                                                   \
    do {                                                                                           \
        ChannelTable row = channel_pipe;                                                           \
        row.slot_name = NULL;                                                                      \
        CHECK_FAILS(channel_table_check("shm", &row), ERR_BUG,                                     \
                    "channels shm: ." #slot_name " is not given");                                 \
    } while (0)

static void channels(void)
{
    CHANNEL_LACKS(slot);
    CHANNEL_LACKS(send);
    CHANNEL_LACKS(message);
    CHANNEL_LACKS(release);
    CHANNEL_LACKS(close);
    ChannelTable table = channel_pipe;
    table.absent = true;
    CHECK_FAILS(channel_table_check("shm", &table), ERR_BUG,
                "channels shm: .slot is given, but must not be");
}

TEST_MAIN("rows of parallel", {"communicators", communicators}, {"channels", channels})
