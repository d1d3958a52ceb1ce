/* Counts the messages of one worker in a step and at a sync point, for `weft plan`, without sending
 * any. It mirrors what stream.c, geo.c and async.c send. */
#include "tables.h"

typedef struct Count {
    TableMessages *out;
    int count;
    const TableTraffic *of;
    /* others: number of owners that are other ranks, each of which gets equally many ids; share:
     * fraction of all ids that they get */
    double others, share;
    /* number of tables of all bags */
    int64_t tables;
} Count;

static void add(Count *c, const char *what, bool sync_point, int64_t messages, double bytes)
{
    if (messages > 0)
        c->out[c->count++] = (TableMessages){
            .what = what, .at_sync_point = sync_point, .messages = messages, .bytes = bytes};
}

/* Bytes of rows of all bags: of those between two sync points if `period` is set, else of a
 * step's. */
static double row_bytes(const Count *c, bool period)
{
    double floats = 0;
    for (int b = 0; b < c->of->bags; ++b) {
        const TableBagSize *bag = &c->of->bag[b];
        floats += (double)(period ? bag->period_ids : bag->ids) * bag->width;
    }
    return c->share * floats * (double)sizeof(float);
}

static double id_bytes(const Count *c, bool period)
{
    double ids = 0;
    for (int b = 0; b < c->of->bags; ++b)
        ids += (double)(period ? c->of->bag[b].period_ids : c->of->bag[b].ids);
    return c->share * ids * (double)sizeof(uint64_t);
}

static double count_bytes(const Count *c)
{
    return c->others * (double)c->tables * (double)sizeof(int32_t);
}

/* Modes sync and stale: swaps between all workers and owners, and rank 0's commands to servers:
 * IDS, ROWS, GRADIENTS, SQUARES (if clips is set), UPDATE. */
static void add_stream(Count *c)
{
    int64_t others = (int64_t)c->others, swaps = others * c->of->bags;
    if (c->of->servers) {
        int64_t says = (c->of->clips ? 5 : 4) * others;
        add(c, "commands of rank 0", false, says, (double)says * (double)sizeof(Command));
    }
    add(c, "ids", false, others, count_bytes(c) + id_bytes(c, false));
    add(c, "rows to ranks", false, swaps, row_bytes(c, false));
    add(c, "gradients of rows", false, swaps, row_bytes(c, false));
}

/* A command, counts and ids, like send_ids_command. */
static void add_ids_command(Count *c, const char *what, bool sync_point, double more)
{
    int64_t each = (int64_t)c->others * c->of->bags;
    add(c, what, sync_point, (more > 0 ? 4 : 3) * each,
        (double)each * (double)sizeof(Command) + count_bytes(c) + id_bytes(c, sync_point) + more);
}

static void add_geo(Count *c)
{
    int64_t others = (int64_t)c->others;
    add_ids_command(c, "ids new since the sync point", false, 0);
    add(c, "rows to ranks", false, others * c->of->bags, row_bytes(c, false));
    add_ids_command(c, "changes of rows, with ids", true, row_bytes(c, true));
    add(c, "answers", true, others, c->others);
}

static void add_async(Count *c)
{
    int64_t others = (int64_t)c->others;
    const double says = c->others * (double)sizeof(Command);
    const double values = (double)c->of->values * sizeof(float),
                 states = (double)c->of->states * sizeof(float);
    add(c, "requests for parameters", false, others, says);
    add(c, "parameters to ranks", false, others, values);
    add_ids_command(c, "ids", false, 0);
    add(c, "rows to ranks", false, others * c->of->bags, row_bytes(c, false));
    add_ids_command(c, "gradients of rows, with ids", false, row_bytes(c, false));
    add(c, "gradients of parameters", false, 2 * others, says + values);
    add(c, "synchronisation, requests", true, 3 * others, 3 * says);
    add(c, "answers, parameters and state", true, 3 * others, c->others + values + states);
}

int tables_messages(const TableTraffic *of, TableMessages out[TABLE_MESSAGES])
{
    const int owners = of->servers ? of->servers : of->workers,
              others = of->servers ? owners : owners - 1;
    Count c = {.out = out, .of = of, .others = others, .share = (double)others / owners};
    for (int b = 0; b < of->bags; ++b) c.tables += of->bag[b].tables;
    if (of->mode == TABLE_GEO)
        add_geo(&c);
    else if (of->mode == TABLE_ASYNC)
        add_async(&c);
    else
        add_stream(&c);
    return c.count;
}

int64_t tables_requests(const TableTraffic *of)
{
    return (int64_t)of->workers * (of->servers ? of->servers : of->workers) * of->bags;
}
