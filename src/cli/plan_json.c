/* `weft plan --json`: one object with all that the text shows, of all stages or of the one asked for. Bytes are of one rank;
 * those at the top are of the stage that has most. */
#include "plan_view.h"

static void put(FILE *out, const char *key, double value)
{
    fprintf(out, ", \"%s\": ", key);
    json_number(out, value);
}

static void put_text(FILE *out, const char *key, const char *value)
{
    fprintf(out, ", \"%s\": ", key);
    json_text(out, value);
}

static void put_bytes(FILE *out, const TrainBytes *b)
{
    put(out, "param_bytes", (double)b->params);
    put(out, "gradient_bytes", (double)b->gradients);
    put(out, "optim_bytes", (double)b->state);
    put(out, "activation_bytes", (double)b->activations);
    put(out, "cache_bytes", (double)b->cache);
    put(out, "workspace_bytes", (double)b->workspace);
    put(out, "message_bytes", (double)b->messages);
    put(out, "data_bytes", (double)b->data);
    put(out, "program_bytes", (double)b->program);
    put(out, "host_bytes", (double)b->host);
    put(out, "bytes", (double)b->all);
}

static void put_grid(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const GridShape *g = &t->shape;
    put(out, "ranks", (double)g->dp * g->pp * g->tp);
    put(out, "dp", g->dp);
    put(out, "pp", g->pp);
    put(out, "tp", g->tp);
    put(out, "zero", t->plan->zero);
    put_text(out, "schedule", t->schedule->name);
    put(out, "chunks", t->schedule->shape.chunks);
    put(out, "bubble", v->real.bubble);
    put(out, "bubble_equal", v->equal.bubble);
    put(out, "imbalance", v->stage_view[v->costliest].cost_s * v->stages / v->cost_s - 1);
    fprintf(out, ", \"same_bits_on_every_grid\": %s", train_bits_hold(t) ? "true" : "false");
}

static void put_chunk(const PlanView *v, int chunk, FILE *out)
{
    const Trainer *t = v->trainer;
    const ChunkPlan *p = view_chunk(v, chunk);
    TaskCost c = v->cost[chunk];
    fprintf(out, "{\"chunk\": %d", chunk);
    put_text(out, "first", t->graph->node[p->first].name);
    put_text(out, "last", t->graph->node[p->last - 1].name);
    put(out, "cost_share", (c.forward + c.backward_data + c.backward_weight) / v->cost_s);
    put(out, "micro_batches_in_flight", p->slots);
    put(out, "values_out_bytes", (double)p->values_out.bytes);
    put(out, "gradients_out_bytes", (double)p->gradients_out.bytes);
    fputc('}', out);
}

static void put_stage(const PlanView *v, int stage, FILE *out)
{
    const StageView *s = &v->stage_view[stage];
    fprintf(out, "{\"stage\": %d", stage);
    put(out, "cost_share", s->cost_s / v->cost_s);
    put_bytes(out, &s->bytes);
    put(out, "summed_bytes", v->trainer->shape.dp > 1 ? (double)s->plan->gradient_bytes : 0);
    put(out, "fetched_bytes", s->plan->fetch.step_elements * sizeof(float));
    put(out, "fetch_ring_bytes", (double)s->plan->fetch.elements * sizeof(float));
    fprintf(out, ", \"chunks\": [");
    for (int k = 0; k < s->plan->chunk_count; ++k) {
        if (k) fprintf(out, ", ");
        put_chunk(v, k * v->stages + stage, out);
    }
    fprintf(out, "]}");
}

/* A step's messages over one boundary in one direction. */
static void put_message(int from, int to, int count, size_t bytes, const char *what, FILE *out)
{
    fprintf(out, "{\"from\": %d, \"to\": %d, \"count\": %d, \"bytes\": %zu, \"what\": \"%s\"}",
            from, to, count, bytes, what);
}

static void put_messages(const PlanView *v, FILE *out)
{
    const Graph *g = v->trainer->graph;
    int micros = v->trainer->micros_local, from, to;
    const char *comma = "";
    fprintf(out, ", \"messages\": [");
    for (int c = 0; v->stages > 1 && c + 1 < v->chunks; ++c, comma = ", ") {
        int a = c % v->stages, b = (c + 1) % v->stages;
        fputs(comma, out);
        put_message(a, b, micros, view_chunk(v, c)->values_out.bytes, "values", out);
        fputs(", ", out);
        put_message(b, a, micros, view_chunk(v, c + 1)->gradients_out.bytes, "gradients", out);
    }
    for (int i = 0; i < g->param_count; ++i) {
        size_t bytes = view_tie(v, i, &from, &to);
        if (!bytes) continue;
        fputs(comma, out);
        put_message(from, to, 1, bytes, "tied gradient", out);
        fputs(", ", out);
        put_message(to, from, 1, bytes, "tied gradient", out);
        comma = ", ";
    }
    fprintf(out, "]");
}

static void put_layer(const PlanView *v, int chunk, const Node *node, FILE *out)
{
    const Graph *g = v->trainer->graph;
    int64_t params = 0;
    for (int k = 0; k < node->spec.w_count; ++k) {
        const Param *p = &g->param[node->param[k]];
        if (!p->info.buffer && p->tied < 0) params += shape_count(p->shape);
    }
    fprintf(out, "{\"name\": ");
    json_text(out, node->name);
    put_text(out, "kind", node->kind ? node->kind->name : "reorder");
    fprintf(out, ", \"shape\": [");
    for (int d = 0; d < node->spec.y.shape.ndim; ++d)
        fprintf(out, "%s%lld", d ? ", " : "", (long long)node->spec.y.shape.dim[d]);
    fprintf(out, "]");
    put(out, "parameters", (double)params);
    put(out, "flops_forward", node->op->flops_forward);
    put(out, "flops_backward", node->op->flops_backward);
    put(out, "stage", chunk % v->stages);
    put(out, "chunk", chunk);
    fputc('}', out);
}

static void put_layers(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    fprintf(out, ", \"layer\": [");
    for (int c = 0; c < v->chunks; ++c)
        for (int i = t->first[c]; i < t->first[c + 1]; ++i) {
            if (i) fprintf(out, ", ");
            put_layer(v, c, &t->graph->node[i], out);
        }
    fprintf(out, "]");
}

static void put_stages(const PlanView *v, FILE *out)
{
    fprintf(out, ", \"stages\": [");
    for (int s = 0; s < v->stages; ++s) {
        if (v->stage >= 0 && s != v->stage) continue;
        if (s && v->stage < 0) fprintf(out, ", ");
        put_stage(v, s, out);
    }
    fprintf(out, "]");
}

void plan_view_json(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    fputs("{\"model\": ", out);
    json_text(out, *t->config->model.name ? t->config->model.name : "layers");
    put(out, "layers", t->graph->node_count);
    put(out, "parameters", (double)graph_param_count(t->graph));
    put(out, "forward_macs", graph_forward_macs(t->graph));
    put(out, "classes", (double)t->graph->classes);
    put(out, "batch", (double)t->batch);
    put(out, "micro_batch", (double)t->micro_batch);
    put(out, "micro_batches", t->micros);
    put(out, "micro_batches_a_replica", t->micros_local);
    put(out, "micro_batches_of_padding", (double)t->micros_local * t->shape.dp - t->micros);
    put(out, "steps_per_epoch", (double)t->steps_per_epoch);
    put(out, "steps", (double)t->steps);
    put(out, "threads", t->backend->options.threads);
    put_text(out, "device", t->backend->table->name);
    put_grid(v, out);
    put(out, "largest_stage", v->heaviest);
    put_bytes(out, &v->stage_view[v->heaviest].bytes);
    put_stages(v, out);
    put_messages(v, out);
    plan_update_json(v, out);
    put_layers(v, out);
    fputs("}\n", out);
}
