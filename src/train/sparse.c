/* Sparse tables of a run: the replicas of a stage share out the rows of the tables that it has. */
#include "sparse.h"

#include "tensors.h"

Status sparse_check(const Trainer *t)
{
    const Config *c = t->config;
    const Graph *g = graph_whole(t->graph);
    if (g->table_count == 0) return OK;
    if (t->train_set.fields == 0)
        return fail(ERR_DATA,
                    "%s: has no ids (/sparse), which layer %s reads; `weft data import csv` writes "
                    "them",
                    t->train_set.path, g->node[g->table[0].node].name);
    if (c->grid.zero >= ZERO_GRADIENTS)
        return config_fail_key(c, "grid.zero",
                               "sparse tables are shared out over the replicas as it is; for the "
                               "other parameters 0 and 1 are possible");
    if (c->train.sync_batch_norm)
        return config_fail_key(c, "train.sync_batch_norm",
                               "it is not there for models with sparse tables");
    return OK;
}

int sparse_held(const Trainer *t, const Plan *plan)
{
    bool here = plan->reads_data && t->graph->table_count > 0;
    return here ? tables_held(&(TablesPlan){.micros = t->micros_local}) : 0;
}

/* Does this rank's stage have a table? */
static bool find_here(const Trainer *t, bool *here)
{
    const Graph *g = t->graph;
    const Plan *plan = t->plan;
    bool any = false;
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int i = plan->chunk[c].first; i < plan->chunk[c].last; ++i) here[i] = true;
    for (int i = 0; i < g->table_count; ++i) any = any || here[g->table[i].node];
    return any;
}

/* Of one stage: the ranks that have to do with servers are one world. */
static Status one_stage(const Trainer *t)
{
    const Graph *g = t->graph;
    for (int i = 1; i < g->table_count; ++i)
        if (tensors_stage(t, g->table[i].node) != tensors_stage(t, g->table[0].node))
            return config_fail_key(t->config, "grid.servers",
                                   "layers %s and %s, which have sparse tables, are in different "
                                   "stages: make a cut that leaves them in one (grid.cuts)",
                                   g->node[g->table[0].node].name, g->node[g->table[i].node].name);
    return OK;
}

Status sparse_check_servers(const Trainer *t)
{
    if (t->servers == 0) return OK;
    if (t->graph->table_count == 0)
        return config_fail_key(t->config, "grid.servers",
                               "the model has no sparse table, which servers would hold");
    return one_stage(t);
}

void sparse_make(Trainer *t)
{
    const Graph *g = t->graph;
    if (g->table_count == 0) return;
    size_t tables = (size_t)g->table_count;
    bool *here = mem_new((size_t)g->node_count * sizeof *here);
    OptimRule *rule = mem_new(tables * sizeof *rule);
    bool any = find_here(t, here);
    for (int i = 0; i < g->table_count; ++i) rule[i] = optim_rule(t->config, t->table_rule[i]);
    if (t->servers > 0) sparse_split(&t->table_world, t->job, any);
    TablesPlan of = {.graph = g,
                     .here = here,
                     .world = t->servers > 0 ? &t->table_world : &t->grid.dp_world,
                     .servers = t->servers,
                     .mode = sparse_mode(t),
                     .rule = rule,
                     .rule_number = t->table_rule,
                     .seed = (uint64_t)t->config->run.seed,
                     .micros = t->micros_local,
                     .micro_batch = t->micro_batch,
                     .id_most = t->train_set.id_most,
                     .fields = t->train_set.fields};
    t->tables = tables_new(&of);
    mem_free(&here);
    mem_free(&rule);
}

void sparse_free(Trainer *t)
{
    tables_free(&t->tables);
    /* made, where there are servers */
    if (t->table_world.size > 0) world_part_fini(&t->table_world);
}

/* ---- servers ---- */

TableMode sparse_mode(const Trainer *t)
{
    return t->servers > 0 ? (TableMode)t->config->grid.mode : TABLE_SYNC;
}

void sparse_split(World *part, const World *job, bool has_tables)
{
    if (world_split(part, job, has_tables ? 0 : 1) != OK) die("%s", fail_message());
}

Status sparse_no_workers(const Config *config, int ranks)
{
    return config_fail_key(config, "grid.servers",
                           "%lld of %d rank%s as servers leave%s nobody to compute: start more ranks",
                           (long long)config->grid.servers, ranks, ranks == 1 ? "" : "s",
                           config->grid.servers == 1 ? "s" : "");
}

Status sparse_serve(const Config *config, const World *job)
{
    World world;
    ServerPlan plan = {.config = config, .world = &world, .servers = (int)config->grid.servers};
    TRY(status_agree(job, OK));
    sparse_split(&world, job, true);
    tables_serve(&plan);
    world_part_fini(&world);
    return OK;
}

BatchSource sparse_source(Trainer *t)
{
    BatchSource loader = loader_source(t->loader);
    return t->tables ? tables_source(t->tables, &loader) : loader;
}

void sparse_close_loader(Trainer *t)
{
    if (t->tables) tables_forget(t->tables);
    loader_free(&t->loader);
}

/* A stage has the sums of its own tables, and zeros for the others'. */
double sparse_grad_squares(Trainer *t)
{
    int tables = t->graph->table_count, stages = t->shape.pp;
    double sum = 0;
    if (tables == 0) return 0;
    size_t bytes = (size_t)tables * sizeof(double);
    double *mine = mem_new(bytes), *all = mem_new((size_t)stages * bytes);
    if (t->tables) tables_grad_squares(t->tables, mine);
    world_gather(&t->grid.pp_world, mine, bytes, all);
    for (int i = 0; i < tables; ++i)
        for (int s = 0; s < stages; ++s) sum += all[s * tables + i];
    mem_free(&mine);
    mem_free(&all);
    return sum;
}
