/* Sparse tables of a trainer: set-up, memory, servers and report. The rows of a table are divided
 * among the servers or, if there are none, among the replicas of the table's stage. */
#include "sparse.h"

#include "../state/resume.h"
#include "../state/tensors.h"
#include "step_mode.h"

Status sparse_check(const Trainer *t)
{
    const Config *c = t->config;
    const Graph *g = graph_undivided(t->graph);
    if (g->table_count == 0) return OK;
    if (t->train_set.fields == 0)
        return fail(ERR_DATA,
                    "%s: has no ids (/sparse), which layer %s reads; `weft data import csv` writes "
                    "them",
                    t->train_set.path, g->node[g->table[0].node].name);
    if (c->grid.zero >= ZERO_GRADIENTS)
        return config_fail_key(c, "grid.zero",
                               "sparse tables are always divided among the replicas; for the other "
                               "parameters 0 and 1 are possible");
    if (c->train.sync_batch_norm)
        return config_fail_key(c, "train.sync_batch_norm",
                               "is not supported for models with sparse tables");
    return OK;
}

int sparse_batches_out(const Trainer *t, const Plan *plan)
{
    bool here = plan->reads_data && t->graph->table_count > 0;
    TablesPlan tables = {.micro_batches = t->micro_batches_local,
                         .staleness = table_staleness(t->config)};
    return here ? tables_micro_batches_out(&tables) : 0;
}

/* Returns true if the node belongs to the plan's stage. */
static bool plan_has(const Plan *plan, int node)
{
    for (int c = 0; c < plan->chunk_count; ++c)
        if (node >= plan->chunk[c].first && node < plan->chunk[c].end) return true;
    return false;
}

/* Checks that all tables are in one stage, because the ranks that communicate with servers form a
 * single world. */
static Status check_one_stage(const Trainer *t)
{
    const Graph *g = t->graph;
    for (int i = 1; i < g->table_count; ++i)
        if (tensors_stage(t, g->table[i].node) != tensors_stage(t, g->table[0].node))
            return config_fail_key(t->config, "grid.servers",
                                   "layers %s and %s, which have sparse tables, are in different "
                                   "stages: set grid.cuts so that one stage has both",
                                   g->node[g->table[0].node].name, g->node[g->table[i].node].name);
    return OK;
}

Status sparse_check_servers(const Trainer *t)
{
    if (t->servers == 0) return OK;
    if (t->graph->table_count == 0)
        return config_fail_key(t->config, "grid.servers",
                               "the model has no sparse table that servers could store: set 0");
    return check_one_stage(t);
}

/* Lists the parameters that servers store: in mode async all trained ones, in the order of the
 * optimizer's ranges; in other modes none. Owner: the caller. */
static TableDense *list_dense(const Trainer *t, int *count)
{
    const Graph *g = t->graph;
    TableDense *dense = mem_new((size_t)(g->param_count + 1) * sizeof *dense);
    *count = 0;
    for (int i = 0; i < g->param_count && sparse_mode(t) == UPDATE_ASYNC; ++i) {
        const Param *p = &g->param[i];
        if (p->info.is_statistic || p->frozen || p->tied_param >= 0) continue;
        dense[(*count)++] = (TableDense){.offset = t->plan->param_offset[i],
                                         .gradient = t->plan->gradient_offset[i],
                                         .elements = p->elements,
                                         .rule_number = t->rule[i],
                                         .lr_scale = t->lr_scale[i],
                                         .decay = p->info.decay};
    }
    return dense;
}

void train_server_dense_floats(const Trainer *t, int64_t *values, int64_t *states)
{
    int count;
    TableDense *dense = list_dense(t, &count);
    tables_dense_sizes(dense, count, t->config, train_table_owners(t), values, states);
    mem_free(&dense);
}

void sparse_make(Trainer *t)
{
    const Graph *g = t->graph;
    if (g->table_count == 0) return;
    size_t tables = (size_t)g->table_count;
    bool *here = mem_new((size_t)g->node_count * sizeof *here);
    OptimRule *rule = mem_new(tables * sizeof *rule);
    bool any = false;
    for (int i = 0; i < g->node_count; ++i) here[i] = plan_has(t->plan, i);
    for (int i = 0; i < g->table_count; ++i) any = any || here[g->table[i].node];
    for (int i = 0; i < g->table_count; ++i) rule[i] = optim_rule(t->config, t->table_rule[i]);
    if (t->servers > 0) sparse_split(&t->table_world, t->job, any);
    int dense_count;
    TableDense *dense = list_dense(t, &dense_count);
    TablesPlan plan = {.config = t->config,
                       .graph = g,
                       .dense = dense,
                       .dense_count = dense_count,
                       .uses_node = here,
                       .world = t->servers > 0 ? &t->table_world : &t->grid.dp_world,
                       .servers = t->servers,
                       .mode = sparse_mode(t),
                       .staleness = table_staleness(t->config),
                       .rule = rule,
                       .rule_number = t->table_rule,
                       .seed = (uint64_t)t->config->run.seed,
                       .deal = t->plan->deal,
                       .micro_batches = t->micro_batches_local,
                       .micro_batch = t->micro_batch,
                       .id_most = t->train_set.ids_per_sample_max,
                       .fields = t->train_set.fields,
                       .limit_bytes = (size_t)t->table_limit};
    tables_new(&t->tables, &plan);
    mem_free(&dense);
    mem_free(&here);
    mem_free(&rule);
}

void sparse_free(Trainer *t)
{
    tables_free(&t->tables);
    /* this world is made only if there are servers */
    if (t->table_world.size > 0) world_part_fini(&t->table_world);
}

/* ---- planning ---- */

RowState sparse_state(const Trainer *t, int table)
{
    OptimRule rule = optim_rule(t->config, t->table_rule[table]);
    return rule.table->row_state(rule.constants, t->graph->table[table].width);
}

TrainTable train_table(const Trainer *t, int table)
{
    const SparseTable *sparse = &t->graph->table[table];
    OptimRule rule = optim_rule(t->config, t->table_rule[table]);
    RowState state = sparse_state(t, table);
    TrainTable view = {.table = sparse, .rule = rule.table, .width = sparse->width};
    for (int i = 0; i < state.slots; ++i) view.state += state.floats[i];
    /* An estimate: 12 bytes for each entry of the index, which is 35 to 70 % full. In row_store.c
     * an entry has 8 bytes, and 8 bytes of id are stored with each row. */
    double row = (double)(view.width + view.state) * sizeof(float);
    view.row_bytes_min = row + 12 / 0.7;
    view.row_bytes_max = row + 12 / 0.35;
    return view;
}

int train_table_owners(const Trainer *t)
{
    return t->config->grid.servers > 0 ? (int)t->config->grid.servers : t->shape.dp;
}

int train_table_workers(const Trainer *t)
{
    return t->shape.dp;
}

double train_table_limit(const Trainer *t)
{
    return t->table_limit;
}

size_t sparse_buffer_bytes(const Trainer *t, const Plan *plan)
{
    const Graph *g = t->graph;
    size_t bytes = 0;
    for (int i = 0; i < g->table_count; ++i) {
        const SparseTable *table = &g->table[i];
        /* tables of one layer share their buffers */
        bool first_of_layer = i == 0 || g->table[i - 1].node != table->node;
        if (first_of_layer && plan_has(plan, table->node))
            bytes += tables_buffer_bytes(
                table->width,
                t->micro_batches_local * t->micro_batch * t->train_set.ids_per_sample_max,
                table_staleness(t->config), deal_runs(plan->deal, t->micro_batches_local));
    }
    return bytes;
}

size_t sparse_row_bytes(const Trainer *t, const Plan *plan)
{
    const Graph *g = t->graph;
    size_t bytes = 0;
    if (t->config->grid.servers > 0) return 0;
    for (int i = 0; i < g->table_count; ++i) {
        if (!plan_has(plan, g->table[i].node)) continue;
        TrainTable view = train_table(t, i);
        int64_t rows = (int64_t)(g->table[i].rows / (uint64_t)t->shape.dp);
        bytes += row_store_peak_bytes(rows, view.width + view.state);
    }
    return bytes;
}

/* ---- report at the end of a run ---- */

void sparse_report(Trainer *t)
{
    OwnerReport *report;
    char bytes[16];
    int64_t rows = 0, requests = 0, rows_requested = 0, busiest = 0;
    double slept = 0, up = 0;
    if (!t->tables) return;
    int owners = tables_report(t->tables, &report), fullest = 0;
    for (int o = 0; o < owners; ++o) {
        rows += report[o].rows;
        requests += report[o].requests;
        rows_requested += report[o].rows_requested;
        slept += report[o].slept_s;
        up += report[o].up_s;
        if (report[o].rows > report[fullest].rows) fullest = o;
        if (report[o].rows_requested > busiest) busiest = report[o].rows_requested;
    }
    const char *owner = t->servers > 0 ? "server" : "rank";
    log_info(
        "tables: %lld rows on %d %s%s (the fullest has %lld, %s); %lld requests for %lld rows, "
        "the busiest answered %.1f %%",
        (long long)rows, owners, owner, owners == 1 ? "" : "s", (long long)report[fullest].rows,
        text_bytes((double)report[fullest].bytes, bytes), (long long)requests,
        (long long)rows_requested,
        rows_requested > 0 ? 100 * (double)busiest / (double)rows_requested : 0);
    if (t->servers > 0 && up > 0) log_info("servers slept %.1f %% of the time", 100 * slept / up);
    mem_free(&report);
}

/* ---- servers ---- */

UpdateMode sparse_mode(const Trainer *t)
{
    return (UpdateMode)t->config->grid.mode;
}

void sparse_split(World *world, const World *job, bool has_tables)
{
    if (world_split(world, job, has_tables ? 0 : 1) != OK) die("%s", fail_message());
}

Status sparse_no_workers(const Config *config, int ranks)
{
    return config_fail_key(
        config, "grid.servers",
        "%lld of %d rank%s as servers leave%s nobody to compute: start more ranks",
        (long long)config->grid.servers, ranks, ranks == 1 ? "" : "s",
        config->grid.servers == 1 ? "s" : "");
}

/* Returns the folder to which the order of requests is written or from which it is replayed; NULL
 * if neither is configured. */
static const char *order_folder(const Config *config)
{
    if (config->grid.mode != UPDATE_ASYNC) return NULL;
    if (*config->run.replay) return config->run.replay;
    return *config->run.order_log ? config->run.order_log : NULL;
}

Status sparse_begin(Trainer *t)
{
    const float *params = executor_params(t->executor);
    uint64_t hash = 0;
    if (!order_folder(t->config)) return OK;
    for (int i = 0; i < t->optim->range_count; ++i) {
        const OptimRange *range = &t->optim->range[i];
        const size_t bytes = (size_t)range->elements * sizeof *params;
        const uint64_t pair[] = {hash, hash_bytes(params + range->offset, bytes)};
        hash = hash_bytes(pair, sizeof pair);
    }
    char *run = t->world->rank == 0 ? resume_identity(t) : NULL;
    Status st = tables_begin(t->tables, t->step, hash, run);
    mem_free(&run);
    return st;
}

double sparse_server_limit(const Config *config, double share_bytes)
{
    double limit = config->train.memory;
    return limit > 0 && limit < share_bytes ? limit : share_bytes;
}

Status sparse_serve(const Config *config, const World *job)
{
    World world;
    double share = memory_limit("").bytes / job->node_size;
    ServerPlan plan = {.config = config,
                       .world = &world,
                       .job = job,
                       .servers = (int)config->grid.servers,
                       .order = order_folder(config),
                       .replay = *config->run.replay != 0,
                       .limit_bytes = (size_t)sparse_server_limit(config, share)};
    TRY(status_agree(job, OK));
    sparse_split(&world, job, true);
    Status st = tables_serve(&plan);
    world_part_fini(&world);
    return st;
}

/* Lets the servers call watchdog_new or watchdog_free, which are collective on all ranks of the
 * job. The barrier ensures that no worker still waits for a server when the servers enter the
 * call. */
static void announce_watchdog(Trainer *t)
{
    if (t->servers == 0) return;
    world_barrier(t->world);
    if (t->tables) tables_toggle_watchdog(t->tables);
}

Watchdog *sparse_watch(Trainer *t, const WatchdogOptions *options)
{
    announce_watchdog(t);
    return watchdog_new(t->servers > 0 ? t->job : t->world, options);
}

void sparse_watch_end(Trainer *t, Watchdog **watchdog)
{
    announce_watchdog(t);
    watchdog_free(watchdog);
}

StepBatch sparse_forward_backward(Trainer *t, int64_t samples)
{
    const StepBatch batch = step_forward_backward(t, samples);
    if (t->tables) tables_reduce(t->tables);
    return batch;
}

StepBatch sparse_forward_backward_batch(Trainer *t)
{
    return sparse_forward_backward(t, position_batch_samples(t, t->step));
}

/* A stage contributes the sums of its own tables, and zeros for the tables of other stages. The
 * ranks of a stage already have the same sums. */
double sparse_grad_squares(Trainer *t)
{
    int tables = t->graph->table_count, stages = t->shape.pp;
    double sum = 0;
    size_t bytes = (size_t)tables * sizeof(double);
    double *mine = mem_new(bytes), *all = mem_new((size_t)stages * bytes);
    if (t->tables) tables_grad_squares(t->tables, mine);
    world_allgather(&t->grid.pp_world, mine, bytes, all);
    for (int i = 0; i < tables; ++i)
        for (int s = 0; s < stages; ++s) sum += all[s * tables + i];
    mem_free(&mine);
    mem_free(&all);
    return sum;
}
