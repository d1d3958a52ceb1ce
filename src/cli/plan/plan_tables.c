/* weft plan on sparse tables: prints the tables, the number of owners of their rows, and the
 * messages and bytes of a step and of a sync point, which depend on grid.mode. */
#include "plan_view.h"

enum { CELL = 16 };

/* An estimate of the messages. */
typedef struct Traffic {
    /* input of the estimate; borrows `bag` */
    TableTraffic input;
    /* sizes of the bags; owned */
    TableBagSize *bag;
    /* result: number and bytes of the messages of each kind, [kinds] */
    TableMessages kind[TABLE_MESSAGES];
    int kinds;
} Traffic;

/* Returns the largest number of ids that the bag of a table reads in one step of a rank. */
static int64_t step_ids(const PlanView *v, const SparseTable *table)
{
    const Trainer *t = v->trainer;
    const OpSpec *spec = &trainer_graph(t)->node[table->node].spec;
    const DataSet *set = trainer_train_set(t);
    TrainSizes sizes = trainer_sizes(t);
    bool one_id_per_field = set->ids_per_sample_max == set->fields;
    int64_t ids = one_id_per_field ? spec->bag_fields : set->ids_per_sample_max;
    return sizes.micro_batches_local * sizes.micro_batch * ids;
}

static void print_table(const PlanView *v, int i, FILE *out)
{
    const TrainTable view = train_table(v->trainer, i);
    int owners = train_table_owners(v->trainer);
    char all[CELL], part[CELL];
    double rows = (double)view.table->rows,
           row_bytes = (view.row_bytes_min + view.row_bytes_max) / 2;
    fprintf(out, "  %s: ", view.table->name);
    if (rows > 0)
        fprintf(out, "%.0f rows x %.0f to %.0f bytes: about %s, %s on each owner\n", rows,
                view.row_bytes_min, view.row_bytes_max, text_bytes(rows * row_bytes, all),
                text_bytes(rows * row_bytes / owners, part));
    else
        fprintf(out, "a row of %.0f to %.0f bytes for each new id\n", view.row_bytes_min,
                view.row_bytes_max);
}

/* Returns the largest number of steps between two sync points. */
static int64_t period_steps(const PlanView *v)
{
    int64_t steps = trainer_config(v->trainer)->grid.geo_steps;
    TrainSizes sizes = trainer_sizes(v->trainer);
    return steps < sizes.steps_per_epoch ? steps : sizes.steps_per_epoch;
}

/* Returns the sizes of the bag to which tables `first` to `end` - 1 belong. If all its tables have
 * a known number of rows, their sum also limits how many rows change between two sync points. */
static TableBagSize bag_size(const PlanView *v, int first, int end)
{
    const SparseTable *table = trainer_graph(v->trainer)->table;
    TableBagSize bag = {.tables = end - first, .width = table[first].width};
    uint64_t rows = 0;
    bool known = true;
    for (int i = first; i < end; ++i) {
        known = known && table[i].rows > 0;
        rows += table[i].rows;
    }
    bag.ids = step_ids(v, &table[first]);
    bag.period_ids = period_steps(v) * bag.ids;
    if (known && rows < (uint64_t)bag.period_ids) bag.period_ids = (int64_t)rows;
    return bag;
}

static Traffic traffic_of(const PlanView *v)
{
    const Trainer *t = v->trainer;
    const Config *config = trainer_config(t);
    const Graph *g = trainer_graph(t);
    Traffic traffic = {
        .input = {.mode = view_mode(v),
                  .servers = (int)config->grid.servers,
                  .workers = train_table_workers(t),
                  .clips = config->optim.clip > 0,
                  .runs = deal_runs(trainer_plan(t)->deal, trainer_sizes(t).micro_batches_local)}};
    traffic.input.bag = traffic.bag = mem_new((size_t)g->table_count * sizeof *traffic.bag);
    for (int i = 0, end; i < g->table_count; i = end) {
        for (end = i + 1; end < g->table_count && g->table[end].node == g->table[i].node;) ++end;
        traffic.bag[traffic.input.bags++] = bag_size(v, i, end);
    }
    train_server_dense_floats(t, &traffic.input.dense_values, &traffic.input.dense_states);
    traffic.kinds = tables_messages(&traffic.input, traffic.kind);
    return traffic;
}

/* Prints how many ids and rows the bag of table i reads. */
static void print_bag(const PlanView *v, int i, FILE *out)
{
    const SparseTable *table = &trainer_graph(v->trainer)->table[i];
    fprintf(out,
            "  %s: a rank reads at most %lld ids and as many rows in a step; %.4g %% are on each "
            "owner\n",
            trainer_graph(v->trainer)->node[table->node].name, (long long)step_ids(v, table),
            100.0 / train_table_owners(v->trainer));
}

static void print_mode(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const Config *config = trainer_config(t);
    const int delay = table_staleness(config);
    fprintf(out, "mode %s", update_mode_names[view_mode(v)]);
    if (view_mode(v) == UPDATE_SYNC) fprintf(out, ": owners update at each step");
    if (view_mode(v) == UPDATE_STALE)
        fprintf(
            out,
            ": a step's update is made %d step%s later: ids, rows and gradients of %d steps are in "
            "memory",
            delay, delay == 1 ? "" : "s", table_steps_in_memory(delay));
    if (view_mode(v) == UPDATE_GEO)
        fprintf(out, ": each rank makes its own steps, and changes are added at sync points");
    if (view_mode(v) == UPDATE_ASYNC)
        fprintf(out, ": servers hold all parameters, and apply gradients of ranks as they arrive");
    if (view_mode(v) != UPDATE_SYNC)
        fprintf(out, "; sync points every %lld step%s (grid.geo_steps) and at the end of an epoch",
                (long long)config->grid.geo_steps, config->grid.geo_steps == 1 ? "" : "s");
    fputc('\n', out);
}

static void print_message_kinds(const PlanView *v, FILE *out)
{
    Traffic traffic = traffic_of(v);
    char bytes[CELL];
    if (traffic.kinds > 0)
        fprintf(out,
                "largest number of messages between one of %d ranks that compute and %d owners, if "
                "ids are spread evenly:\n",
                traffic.input.workers,
                traffic.input.servers ? traffic.input.servers : traffic.input.workers - 1);
    for (int i = 0; i < traffic.kinds; ++i) {
        const TableMessages *kind = &traffic.kind[i];
        fprintf(out, "  %-15s %-34s %8lld messages, %s\n",
                kind->at_sync_point ? "at a sync point" : "in a step", kind->what,
                (long long)kind->messages, text_bytes(kind->bytes, bytes));
    }
    mem_free(&traffic.bag);
}

void plan_tables_text(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const Graph *g = trainer_graph(t);
    const int servers = (int)trainer_config(t)->grid.servers, owners = train_table_owners(t);
    char limit[CELL];
    if (g->table_count == 0) return;
    fprintf(out, "\nsparse tables on %d %s%s, %d shards, %d for each", owners,
            servers ? "server" : "rank", owners == 1 ? "" : "s", ROW_SHARDS, ROW_SHARDS / owners);
    fprintf(out, "; there is room for %s of rows on a %s\n",
            text_bytes(train_table_limit(t), limit), servers ? "server" : "rank");
    for (int i = 0; i < g->table_count; ++i) print_table(v, i, out);
    print_mode(v, out);
    for (int i = 0; i < g->table_count; ++i)
        if (i == 0 || g->table[i].node != g->table[i - 1].node) print_bag(v, i, out);
    print_message_kinds(v, out);
}

static void put_message_kinds(const PlanView *v, Json *json)
{
    Traffic traffic = traffic_of(v);
    json_int(json, "table_requests_in_a_step", tables_requests(&traffic.input));
    json_array(json, "table_messages");
    for (int i = 0; i < traffic.kinds; ++i) {
        json_object(json, NULL);
        json_text(json, "what", traffic.kind[i].what);
        json_text(json, "at", traffic.kind[i].at_sync_point ? "sync point" : "step");
        json_int(json, "count", traffic.kind[i].messages);
        json_real(json, "bytes", traffic.kind[i].bytes);
        json_end(json);
    }
    json_end(json);
    mem_free(&traffic.bag);
}

void plan_tables_json(const PlanView *v, Json *json)
{
    const Trainer *t = v->trainer;
    const Graph *g = trainer_graph(t);
    json_text(json, "mode", update_mode_names[view_mode(v)]);
    json_int(json, "sync_point_steps",
             view_mode(v) == UPDATE_SYNC ? 0 : trainer_config(t)->grid.geo_steps);
    json_int(json, "table_owners", train_table_owners(t));
    json_real(json, "table_room_bytes", train_table_limit(t));
    json_int(json, "servers", trainer_config(t)->grid.servers);
    json_int(json, "staleness", table_staleness(trainer_config(t)));
    json_array(json, "tables");
    for (int i = 0; i < g->table_count; ++i) {
        const TrainTable view = train_table(t, i);
        json_object(json, NULL);
        json_text(json, "name", view.table->name);
        json_int(json, "rows", (int64_t)view.table->rows);
        json_int(json, "width", view.width);
        json_int(json, "state", view.state);
        json_text(json, "optimizer", view.rule->word.word);
        json_real(json, "row_bytes_least", view.row_bytes_min);
        json_real(json, "row_bytes_most", view.row_bytes_max);
        json_int(json, "ids_of_a_rank_in_a_step", step_ids(v, view.table));
        json_end(json);
    }
    json_end(json);
    put_message_kinds(v, json);
}
