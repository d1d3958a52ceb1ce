/* Sparse tables of a run: the replicas of a stage share out the rows of the tables that it has. */
#include "sparse.h"

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

void sparse_make(Trainer *t)
{
    const Graph *g = t->graph;
    const Plan *plan = t->plan;
    if (g->table_count == 0) return;
    bool *here = mem_new((size_t)g->node_count * sizeof *here);
    OptimRule *rule = mem_new((size_t)g->table_count * sizeof *rule);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int i = plan->chunk[c].first; i < plan->chunk[c].last; ++i) here[i] = true;
    for (int i = 0; i < g->table_count; ++i) rule[i] = optim_rule(t->config, t->table_rule[i]);
    TablesPlan of = {.graph = g,
                     .here = here,
                     .world = &t->grid.dp_world,
                     .rule = rule,
                     .seed = (uint64_t)t->config->run.seed,
                     .micros = t->micros_local,
                     .micro_batch = t->micro_batch,
                     .id_most = t->train_set.id_most,
                     .fields = t->train_set.fields};
    t->tables = tables_new(&of);
    mem_free(&here);
    mem_free(&rule);
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
