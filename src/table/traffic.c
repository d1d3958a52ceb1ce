/* Counts the messages of one worker in a step and at a sync point for `weft plan`, without sending
 * any. The counts must agree with the messages that stream.c, geo.c and async.c send. The receipts
 * and the barrier of a sparse exchange (WorldSparse) are not counted. */
#include "tables.h"

typedef struct Count {
    /* kinds of messages so far, [count]; borrowed */
    TableMessages *out;
    int count;
    const TableTraffic *traffic;
    /* number of owners that are other ranks */
    double others;
    /* fraction of ids whose owner is another rank, if all owners have equally many ids */
    double share;
    /* number of tables of all bags */
    int64_t tables;
} Count;

static void add(Count *c, const char *what, bool sync_point, int64_t messages, double bytes)
{
    if (messages > 0)
        c->out[c->count++] = (TableMessages){
            .what = what, .at_sync_point = sync_point, .messages = messages, .bytes = bytes};
}

/* Returns the bytes of one worker's rows, over all bags, that other ranks own. period: true for the
 * rows between two sync points, false for the rows of a step. */
static double row_bytes(const Count *c, bool period)
{
    double floats = 0;
    for (int b = 0; b < c->traffic->bags; ++b) {
        const TableBagSize *bag = &c->traffic->bag[b];
        floats += (double)(period ? bag->period_ids : bag->ids) * bag->width;
    }
    return c->share * floats * (double)sizeof(float);
}

static double id_bytes(const Count *c, bool period)
{
    double ids = 0;
    for (int b = 0; b < c->traffic->bags; ++b)
        ids += (double)(period ? c->traffic->bag[b].period_ids : c->traffic->bag[b].ids);
    return c->share * ids * (double)sizeof(uint64_t);
}

static double count_bytes(const Count *c)
{
    return c->others * (double)c->tables * (double)sizeof(int32_t);
}

/* Adds the messages of modes sync and stale: the exchanges between workers and owners, and rank 0's
 * commands to servers (IDS, ROWS, GRADIENTS, UPDATE, and with optim.clip SQUARES). */
static void add_stream(Count *c)
{
    int64_t others = (int64_t)c->others, exchanges = others * c->traffic->bags;
    if (c->traffic->servers) {
        int64_t commands = (c->traffic->clips ? 5 : 4) * others;
        add(c, "commands of rank 0", false, commands, (double)commands * (double)sizeof(Command));
    }
    add(c, "ids", false, others, count_bytes(c) + id_bytes(c, false));
    add(c, "rows to ranks", false, exchanges, row_bytes(c, false));
    add(c, "gradients of rows", false, exchanges, c->traffic->runs * row_bytes(c, false));
}

/* Adds the messages of send_ids_command to all owners, for each bag: command, numbers of ids, ids.
 * more_bytes: bytes of the messages that follow as a fourth, all together; 0: there is no fourth
 * message. */
static void add_ids_command(Count *c, const char *what, bool sync_point, double more_bytes)
{
    int64_t each = (int64_t)c->others * c->traffic->bags;
    add(c, what, sync_point, (more_bytes > 0 ? 4 : 3) * each,
        (double)each * (double)sizeof(Command) + count_bytes(c) + id_bytes(c, sync_point) +
            more_bytes);
}

static void add_geo(Count *c)
{
    int64_t others = (int64_t)c->others;
    add_ids_command(c, "ids new since the sync point", false, 0);
    add(c, "rows to ranks", false, others * c->traffic->bags, row_bytes(c, false));
    add_ids_command(c, "changes of rows, with ids", true, row_bytes(c, true));
    add(c, "answers", true, others, c->others);
}

static void add_async(Count *c)
{
    int64_t others = (int64_t)c->others;
    const double commands = c->others * (double)sizeof(Command);
    const double values = (double)c->traffic->dense_values * sizeof(float),
                 states = (double)c->traffic->dense_states * sizeof(float);
    add(c, "requests for parameters", false, others, commands);
    add(c, "parameters to ranks", false, others, values);
    add_ids_command(c, "ids", false, 0);
    add(c, "rows to ranks", false, others * c->traffic->bags, row_bytes(c, false));
    add_ids_command(c, "gradients of rows, with ids", false, row_bytes(c, false));
    add(c, "gradients of parameters", false, 2 * others, commands + values);
    add(c, "synchronisation, requests", true, 3 * others, 3 * commands);
    add(c, "answers, parameters and state", true, 3 * others, c->others + values + states);
}

int tables_messages(const TableTraffic *traffic, TableMessages out[TABLE_MESSAGES])
{
    const int owners = traffic->servers ? traffic->servers : traffic->workers,
              others = traffic->servers ? owners : owners - 1;
    Count c = {.out = out, .traffic = traffic, .others = others, .share = (double)others / owners};
    for (int b = 0; b < traffic->bags; ++b) c.tables += traffic->bag[b].tables;
    if (traffic->mode == UPDATE_GEO)
        add_geo(&c);
    else if (traffic->mode == UPDATE_ASYNC)
        add_async(&c);
    else
        add_stream(&c);
    return c.count;
}

int64_t tables_requests(const TableTraffic *traffic)
{
    return (int64_t)traffic->workers * (traffic->servers ? traffic->servers : traffic->workers) *
           traffic->bags;
}
