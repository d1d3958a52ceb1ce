/* What `weft plan` says of sparse tables: rows, who owns them, messages of a step. */
#include "plan_view.h"

enum { CELL = 16 };

/* Ids of a step's samples of a rank, at most, that a bag reads. */
static int64_t step_ids(const PlanView *v, const SparseTable *table)
{
    const Trainer *t = v->trainer;
    const OpSpec *spec = &trainer_graph(t)->node[table->node].spec;
    const DataSet *set = trainer_train_set(t);
    TrainSizes sizes = trainer_sizes(t);
    bool one = set->id_most == set->fields;
    int64_t ids = one ? spec->bag_fields : set->id_most;
    return sizes.micros_local * sizes.micro_batch * ids;
}

static void print_table(const PlanView *v, int i, FILE *out)
{
    const TrainTable view = train_table(v->trainer, i);
    int owners = train_table_owners(v->trainer);
    char all[CELL], part[CELL];
    double rows = (double)view.table->rows, row = (view.row_least + view.row_most) / 2;
    fprintf(out, "  %s: ", view.table->name);
    if (rows > 0)
        fprintf(out, "%.0f rows x %.0f to %.0f bytes: about %s, %s on each owner\n", rows,
                view.row_least, view.row_most, text_bytes(rows * row, all),
                text_bytes(rows * row / owners, part));
    else
        fprintf(out, "rows as ids come, x %.0f to %.0f bytes\n", view.row_least, view.row_most);
}

/* Bags and not tables have messages. */
static void print_bag(const PlanView *v, int i, FILE *out)
{
    const TrainTable view = train_table(v->trainer, i);
    int64_t ids = step_ids(v, view.table);
    char names[CELL], rows[CELL];
    const char *layer = trainer_graph(v->trainer)->node[view.table->node].name;
    fprintf(out,
            "  %s: of a rank in a step at most %lld ids, %s, and as many rows, %s, back and as "
            "gradients; %.4g %% go to each owner\n",
            layer, (long long)ids, text_bytes((double)ids * sizeof(uint64_t), names),
            text_bytes((double)ids * view.width * sizeof(float), rows),
            100.0 / train_table_owners(v->trainer));
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
    if (servers == 0)
        fprintf(out, "; there is room for %s of rows on a rank",
                text_bytes(train_table_limit(t), limit));
    fputc('\n', out);
    for (int i = 0; i < g->table_count; ++i) print_table(v, i, out);
    fprintf(
        out,
        "messages of a step, each between one of %d that ask and one of %d owners of whose rows "
        "it has ids: ids, rows, gradients\n",
        train_table_askers(t), owners);
    const int late = table_staleness(trainer_config(t));
    if (late > 0)
        fprintf(out,
                "a step's update is made %d step%s later: of %d steps ids, rows and gradients are "
                "there at a time\n",
                late, late == 1 ? "" : "s", table_flights(late));
    for (int i = 0; i < g->table_count; ++i)
        if (i == 0 || g->table[i].node != g->table[i - 1].node) print_bag(v, i, out);
}

void plan_tables_json(const PlanView *v, Json *json)
{
    const Trainer *t = v->trainer;
    const Graph *g = trainer_graph(t);
    json_int(json, "table_owners", train_table_owners(t));
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
        json_real(json, "row_bytes_least", view.row_least);
        json_real(json, "row_bytes_most", view.row_most);
        json_int(json, "ids_of_a_rank_in_a_step", step_ids(v, view.table));
        json_end(json);
    }
    json_end(json);
}
