/* weft plan --json: writes one object with most numbers of the text. --stage limits the list of
 * stages to one stage, but not the lists of layers and messages. Bytes are those of one rank. Bytes
 * at the top level are those of a rank of the stage that needs most memory. */
#include "plan_view.h"

static void put_bytes(Json *json, const TrainBytes *b)
{
    json_int(json, "param_bytes", (int64_t)b->params);
    json_int(json, "gradient_bytes", (int64_t)b->gradients);
    json_int(json, "optim_bytes", (int64_t)b->state);
    json_int(json, "average_bytes", (int64_t)b->average);
    json_int(json, "activation_bytes", (int64_t)b->activations);
    json_int(json, "cache_bytes", (int64_t)b->cache);
    json_int(json, "workspace_bytes", (int64_t)b->workspace);
    json_int(json, "message_bytes", (int64_t)b->messages);
    json_int(json, "data_bytes", (int64_t)b->data);
    json_int(json, "table_bytes", (int64_t)b->tables);
    json_int(json, "program_bytes", (int64_t)b->program);
    json_int(json, "checkpoint_bytes", (int64_t)b->checkpoint);
    json_int(json, "reserved_bytes", (int64_t)b->reserved);
    json_int(json, "host_bytes", (int64_t)b->host);
    json_int(json, "bytes", (int64_t)b->all);
}

static void put_grid(const PlanView *v, Json *json)
{
    const Trainer *t = v->trainer;
    const Schedule *schedule = trainer_schedule(t);
    GridShape g = trainer_shape(t);
    const char *why_not;
    json_int(json, "ranks", (int64_t)g.dp * g.pp * g.tp);
    json_int(json, "dp", g.dp);
    json_int(json, "pp", g.pp);
    json_int(json, "tp", g.tp);
    json_int(json, "zero", trainer_plan(t)->zero);
    json_text(json, "schedule", schedule->name);
    json_int(json, "chunks", schedule->shape.chunks_per_stage);
    json_real(json, "bubble", v->real.bubble);
    json_real(json, "bubble_equal", v->equal.bubble);
    json_real(json, "imbalance", view_imbalance(v));
    json_bool(json, "same_bits_on_every_grid", train_same_bits(t));
    json_bool(json, "replicas_compared", train_compares(t, &why_not));
}

static void put_chunk(const PlanView *v, int chunk, Json *json)
{
    const Trainer *t = v->trainer;
    const Graph *graph = trainer_graph(t);
    const ChunkPlan *p = view_chunk(v, chunk);
    json_object(json, NULL);
    json_int(json, "chunk", chunk);
    json_text(json, "first", graph->node[p->first].name);
    json_text(json, "last", graph->node[p->end - 1].name);
    json_real(json, "cost_share", task_cost_passes(&v->cost[chunk]) / v->cost_s);
    json_int(json, "micro_batches_in_flight", p->slots);
    json_int(json, "activations_out_bytes", (int64_t)p->activations_out.bytes);
    json_int(json, "gradients_out_bytes", (int64_t)p->gradients_out.bytes);
    json_end(json);
}

static void put_stage(const PlanView *v, int stage, Json *json)
{
    const StageView *s = &v->stage_view[stage];
    ReplicaSums sums = plan_replica_sums(s->plan);
    json_object(json, NULL);
    json_int(json, "stage", stage);
    json_real(json, "cost_share", s->cost_s / v->cost_s);
    put_bytes(json, &s->bytes);
    json_real(json, "summed_bytes", view_summed_bytes(v, stage));
    json_real(json, "gathered_param_bytes", s->plan->gather.step_elements * sizeof(float));
    json_real(json, "gather_ring_bytes", (double)s->plan->gather.elements * sizeof(float));
    json_int(json, "replica_sums", sums.count);
    json_int(json, "replica_sum_bytes", (int64_t)sums.bytes);
    plan_sums_json(v, stage, json);
    json_array(json, "chunks");
    for (int k = 0; k < s->plan->chunk_count; ++k) put_chunk(v, s->plan->chunk[k].chunk, json);
    json_end(json);
    json_end(json);
}

/* Writes the messages of one kind that stage `from` sends to stage `to` in a step. count: number of
 * messages; bytes: size of one message; what: name of the kind. */
static void put_message(int from, int to, int count, size_t bytes, const char *what, Json *json)
{
    json_object(json, NULL);
    json_int(json, "from", from);
    json_int(json, "to", to);
    json_int(json, "count", count);
    json_int(json, "bytes", (int64_t)bytes);
    json_text(json, "what", what);
    json_end(json);
}

static void put_messages(const PlanView *v, Json *json)
{
    const Graph *g = trainer_graph(v->trainer);
    int micro_batches = trainer_sizes(v->trainer).micro_batches_local, from, to;
    json_array(json, "messages");
    for (int c = 0; c + 1 < v->chunks; ++c) {
        if (!schedule_crosses(trainer_schedule(v->trainer), c)) continue;
        int a = view_stage(v, c), b = view_stage(v, c + 1);
        put_message(a, b, micro_batches, view_chunk(v, c)->activations_out.bytes, "activations",
                    json);
        put_message(b, a, micro_batches, view_chunk(v, c + 1)->gradients_out.bytes, "gradients",
                    json);
    }
    for (int i = 0; i < g->param_count; ++i) {
        size_t bytes = view_tied_bytes(v, i, &from, &to);
        if (!bytes) continue;
        put_message(from, to, 1, bytes, "tied gradient", json);
        put_message(to, from, 1, bytes, "tied gradient", json);
    }
    json_end(json);
}

static void put_layer(const PlanView *v, int chunk, const Node *node, Json *json)
{
    const Graph *g = trainer_graph(v->trainer);
    int64_t params = 0;
    for (int k = 0; k < node->spec.w_count; ++k) {
        const Param *p = &g->param[node->param[k]];
        if (!p->info.is_statistic && p->tied_param < 0) params += shape_count(p->shape);
    }
    json_object(json, NULL);
    json_text(json, "name", node->name);
    json_text(json, "kind", node->kind ? node->kind->name : "reorder");
    json_array(json, "shape");
    for (int d = 0; d < node->spec.y.shape.ndim; ++d)
        json_int(json, NULL, node->spec.y.shape.dim[d]);
    json_end(json);
    json_int(json, "parameters", params);
    json_bool(json, "trained", node_is_trained(g, node));
    json_real(json, "flops_forward", node->op->flops_forward);
    json_real(json, "flops_backward", node->op->flops_backward);
    json_int(json, "stage", view_stage(v, chunk));
    json_int(json, "chunk", chunk);
    json_end(json);
}

static void put_algorithms(const PlanView *v, Json *json)
{
    const AlgorithmRecord *r = train_algorithms(v->trainer);
    if (!r) return;
    json_text(json, "algorithms_gpu", algorithm_record_gpu(r));
    json_text(json, "algorithms_libraries", algorithm_record_libraries(r));
    json_object(json, "algorithms");
    for (int i = 0; i < algorithm_record_count(r); ++i) {
        const char *key, *algorithm;
        algorithm_record_entry(r, i, &key, &algorithm);
        json_text(json, key, algorithm);
    }
    json_end(json);
}

static void put_layers(const PlanView *v, Json *json)
{
    const Trainer *t = v->trainer;
    const int *cuts = trainer_cuts(t);
    json_array(json, "layer");
    for (int c = 0; c < v->chunks; ++c)
        for (int i = cuts[c]; i < cuts[c + 1]; ++i)
            put_layer(v, c, &trainer_graph(t)->node[i], json);
    json_end(json);
}

static void put_stages(const PlanView *v, Json *json)
{
    json_array(json, "stages");
    for (int s = 0; s < v->stages; ++s)
        if (v->stage < 0 || s == v->stage) put_stage(v, s, json);
    json_end(json);
}

static void put_forecast(const PlanView *v, Json *json)
{
    const Forecast *f = &v->forecast;
    if (!v->has_forecast) return;
    json_object(json, "forecast");
    json_real(json, "step_s", f->step.median);
    json_real(json, "low_s", f->step.low);
    json_real(json, "high_s", f->step.high);
    for (int i = 0; i < FORECAST_LINE_COUNT; ++i) {
        char key[32];
        snprintf(key, sizeof key, "%s_s", forecast_names[i]);
        json_real(json, key, f->line[i]);
    }
    if (v->files.read_bytes > 0) {
        json_real(json, "read_bytes", v->files.read_bytes);
        json_real(json, "read_s", v->files.read_s);
    }
    if (v->files.save_bytes > 0) {
        json_real(json, "save_bytes", v->files.save_bytes);
        json_real(json, "save_s", v->files.save_s);
    }
    json_end(json);
}

void plan_view_json(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    TrainSizes sizes = trainer_sizes(t);
    Backend *backend = trainer_backend(t);
    const Graph *graph = trainer_graph(t);
    const Config *config = trainer_config(t);
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_text(&json, "model", *config->model.name ? config->model.name : "layers");
    json_int(&json, "layers", graph->node_count);
    json_int(&json, "parameters", graph_param_elements(graph));
    json_int(&json, "parameters_trained", graph_trained_elements(graph));
    json_int(&json, "parameters_frozen",
             graph_param_elements(graph) - graph_trained_elements(graph));
    json_real(&json, "forward_macs", graph_sample_macs(graph));
    json_int(&json, "classes", graph->classes);
    json_int(&json, "batch", sizes.batch);
    json_int(&json, "micro_batch", sizes.micro_batch);
    json_int(&json, "micro_batches", sizes.micro_batches);
    json_int(&json, "micro_batches_a_replica", sizes.micro_batches_local);
    json_int(&json, "micro_batches_of_padding",
             (int64_t)sizes.micro_batches_local * trainer_shape(t).dp - sizes.micro_batches);
    json_int(&json, "steps_per_epoch", sizes.steps_per_epoch);
    json_int(&json, "steps", sizes.steps);
    json_int(&json, "threads", backend->options.threads);
    json_text(&json, "device", backend->table->name);
    put_grid(v, &json);
    json_int(&json, "largest_stage", v->largest);
    put_bytes(&json, &v->stage_view[v->largest].bytes);
    put_stages(v, &json);
    put_messages(v, &json);
    plan_update_json(v, &json);
    if (graph->table_count > 0) plan_tables_json(v, &json);
    put_algorithms(v, &json);
    put_layers(v, &json);
    put_forecast(v, &json);
    json_end(&json);
}
