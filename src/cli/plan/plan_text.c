/* weft plan as text: layers, stages, memory, messages, schedule. A list of many stages, chunks or
 * messages is cut: only the first, the last and the largest are printed. */
#include "plan_view.h"

#include <math.h>

enum {
    /* A list with more than ROWS_MAX rows is cut: END_ROWS rows at each end and the largest row are
     * printed. */
    ROWS_MAX = 16,
    END_ROWS = 4,
    /* largest number of stages for which the schedule is drawn */
    PICTURE_STAGES_MAX = 64,
    /* sizes of texts in bytes: a cell of a table, and the mark of a layer */
    CELL = 16,
    MARK = 32
};

/* Returns whether row i of `count` rows is shown. largest: number of the largest row. */
static bool row_shown(int i, int count, int largest)
{
    return count <= ROWS_MAX || i < END_ROWS || i >= count - END_ROWS || i == largest;
}

/* Returns whether row i is shown. If it is and the row before it is not, prints "...". */
static bool row_begin(int i, int count, int largest, FILE *out)
{
    if (!row_shown(i, count, largest)) return false;
    if (i > 0 && !row_shown(i - 1, count, largest)) fprintf(out, "    ...\n");
    return true;
}

/* ---- layers ---- */

static void print_layers(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const Graph *graph = trainer_graph(t);
    const int *cuts = trainer_cuts(t);
    if (v->stages == 1) {
        graph_print(graph, out);
        return;
    }
    size_t nodes = (size_t)graph->node_count;
    const char **mark = mem_new(nodes * sizeof *mark);
    char(*text)[MARK] = mem_new((size_t)v->chunks * sizeof *text);
    for (int c = 0; c < v->chunks; ++c) {
        if (v->chunks == v->stages)
            snprintf(text[c], sizeof text[c], "%d", c);
        else
            snprintf(text[c], sizeof text[c], "%d, chunk %d", view_stage(v, c), c);
        for (int i = cuts[c]; i < cuts[c + 1]; ++i) mark[i] = text[c];
    }
    graph_print_marked(graph, "stage", mark, out);
    mem_free(&mark);
    mem_free(&text);
}

/* ---- stages ---- */

static double chunk_share(const PlanView *v, int chunk)
{
    return task_cost_passes(&v->cost[chunk]) / v->cost_s;
}

static void print_stages(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    const Graph *graph = trainer_graph(t);
    const int *cuts = trainer_cuts(t);
    int largest = 0;
    for (int c = 1; c < v->chunks; ++c)
        if (chunk_share(v, c) > chunk_share(v, largest)) largest = c;
    if (v->stages == 1) return;
    fprintf(out,
            "\nstages: share of the estimated time; the slowest takes %.1f %% more than the mean\n",
            100 * view_imbalance(v));
    for (int c = 0; c < v->chunks; ++c) {
        if (!row_begin(c, v->chunks, largest, out)) continue;
        fprintf(out, "  stage %-5d ", view_stage(v, c));
        if (v->chunks > v->stages) fprintf(out, "chunk %-5d ", c);
        fprintf(out, "%5.1f %%  %4d layers, %s to %s\n", 100 * chunk_share(v, c),
                cuts[c + 1] - cuts[c], graph->node[cuts[c]].name,
                graph->node[cuts[c + 1] - 1].name);
    }
}

/* ---- memory ---- */

/* columns of the table of memory */
static const struct {
    const char *title;
    /* offset in TrainBytes */
    size_t offset;
} kinds[] = {
    {"parameters", offsetof(TrainBytes, params)},
    {"gradients", offsetof(TrainBytes, gradients)},
    {"optimizer", offsetof(TrainBytes, state)},
    {"EMA", offsetof(TrainBytes, average)},
    {"activations", offsetof(TrainBytes, activations)},
    {"layouts", offsetof(TrainBytes, cache)},
    {"workspace", offsetof(TrainBytes, workspace)},
    {"messages", offsetof(TrainBytes, messages)},
    {"data", offsetof(TrainBytes, data)},
    {"tables", offsetof(TrainBytes, tables)},
    {"checkpoint", offsetof(TrainBytes, checkpoint)},
    {"program", offsetof(TrainBytes, program)},
    {"all", offsetof(TrainBytes, all)},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Returns the field of b that a column shows. */
static size_t kind_bytes(const TrainBytes *b, int kind)
{
    return *(const size_t *)((const char *)b + kinds[kind].offset);
}

/* Returns whether a column is shown. The column of tables is shown only if the model has tables;
 * the column of the EMA only if the run has an EMA. */
static bool kind_shown(const PlanView *v, int kind)
{
    if (kinds[kind].offset == offsetof(TrainBytes, average))
        return trainer_config(v->trainer)->train.ema > 0;
    return kinds[kind].offset != offsetof(TrainBytes, tables) ||
           trainer_graph(v->trainer)->table_count > 0;
}

static void print_memory(const PlanView *v, FILE *out)
{
    char cell[CELL];
    bool gpu = trainer_backend(v->trainer)->table->memory != NULL;
    fprintf(
        out,
        "\nmemory of one rank%s (layouts: weights in other layouts; data: %s;\nprogram: %s)\n%11s",
        gpu ? " on its GPU" : "",
        gpu ? "the current and the next micro-batches" : "batches that the loader has prepared",
        gpu ? "workspace of cuBLASLt" : "layers and oneDNN's code for them, as measured here", "");
    for (int k = 0; k < KINDS; ++k)
        if (kind_shown(v, k)) fprintf(out, " %11s", kinds[k].title);
    fputc('\n', out);
    for (int s = 0; s < v->stages; ++s) {
        if (!row_begin(s, v->stages, v->largest, out)) continue;
        fprintf(out, "  stage %-3d", s);
        for (int k = 0; k < KINDS; ++k)
            if (kind_shown(v, k))
                fprintf(out, " %11s",
                        text_bytes((double)kind_bytes(&v->stage_view[s].bytes, k), cell));
        fprintf(out, "%s\n", v->stages > ROWS_MAX && s == v->largest ? "  the largest" : "");
    }
    if (gpu)
        fprintf(out, "  and %s of the GPU's memory, kept free for %s\n",
                text_bytes((double)v->stage_view[v->largest].bytes.reserved, cell),
                train_reserved_for(v->trainer));
    if (gpu)
        fprintf(out, "  and %s of the host's memory: batches, slices and messages in transfer\n",
                text_bytes((double)v->stage_view[v->largest].bytes.host, cell));
    if (v->stage_view[v->largest].bytes.checkpoint == 0)
        fprintf(out, "  no copy to write checkpoints from: training waits while one is written\n");
}

static void print_algorithms(const PlanView *v, FILE *out)
{
    const char *tune = trainer_config(v->trainer)->train.cuda_tune;
    const AlgorithmRecord *r = train_algorithms(v->trainer);
    if (trainer_backend(v->trainer)->table != &backend_cuda) return;
    fprintf(out, "\nalgorithms of cuBLASLt and cuDNN (train.cuda_tune: %s): ", tune);
    if (!r) {
        fprintf(out, "%s\n",
                strcmp(tune, "time") == 0 ? "timed before the first step"
                                          : "the libraries' own first choice");
        return;
    }
    fprintf(out, "%d, chosen on %s\n  with %s\n", algorithm_record_count(r),
            algorithm_record_gpu(r), algorithm_record_libraries(r));
    for (int i = 0; i < algorithm_record_count(r); ++i) {
        const char *key, *algorithm;
        algorithm_record_entry(r, i, &key, &algorithm);
        fprintf(out, "  %s = %s\n", key, algorithm);
    }
}

/* ---- messages ---- */

static void print_boundary(const PlanView *v, int chunk, FILE *out)
{
    char forward[CELL], backward[CELL];
    const ChunkPlan *from = view_chunk(v, chunk), *to = view_chunk(v, chunk + 1);
    int micro_batches = trainer_sizes(v->trainer).micro_batches_local;
    fprintf(out, "  stage %d to %d", view_stage(v, chunk), view_stage(v, chunk + 1));
    fprintf(out, "  %d x %s, back %d x %s", micro_batches,
            text_bytes((double)from->activations_out.bytes, forward), micro_batches,
            text_bytes((double)to->gradients_out.bytes, backward));
    for (int i = 0; i < from->activations_out.count; ++i)
        fprintf(out, "%s%s", i ? ", " : "  (",
                trainer_graph(v->trainer)->node[from->activations_out.tensor[i].node].name);
    fprintf(out, ")\n");
}

static size_t boundary_bytes(const PlanView *v, int chunk)
{
    return view_chunk(v, chunk)->activations_out.bytes +
           view_chunk(v, chunk + 1)->gradients_out.bytes;
}

static void print_ties(const PlanView *v, FILE *out)
{
    const Graph *g = trainer_graph(v->trainer);
    char bytes[CELL];
    int from, to;
    for (int i = 0; i < g->param_count; ++i) {
        size_t one_way = view_tied_bytes(v, i, &from, &to);
        if (one_way)
            fprintf(out,
                    "  stage %d to %d  %s in each direction, the gradient of %s, once a step\n",
                    from, to, text_bytes((double)one_way, bytes), g->param[i].name);
    }
}

static void print_messages(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    TrainSizes sizes = trainer_sizes(t);
    int boundaries = 0, largest = 0;
    double sum = 0;
    char bytes[CELL];
    if (v->stages == 1) return;
    /* chunk before each boundary, [boundaries] */
    int *before = mem_new((size_t)v->chunks * sizeof *before);
    for (int c = 0; c < v->chunks; ++c) {
        if (!schedule_crosses(trainer_schedule(t), c)) continue;
        sum += (double)boundary_bytes(v, c) * sizes.micro_batches_local;
        before[boundaries] = c;
        if (boundary_bytes(v, c) > boundary_bytes(v, before[largest])) largest = boundaries;
        ++boundaries;
    }
    fprintf(out, "\nmessages of a step in each replica: %lld, %s\n",
            2LL * boundaries * sizes.micro_batches_local, text_bytes(sum, bytes));
    for (int i = 0; i < boundaries; ++i)
        if (row_begin(i, boundaries, largest, out)) print_boundary(v, before[i], out);
    print_ties(v, out);
    mem_free(&before);
}

/* Prints the messages for parameters that are sharded over replicas. For each bucket, a rank
 * receives the shards of all other ranks, and sends its own shard to all other ranks. */
static void print_gathers(const PlanView *v, FILE *out)
{
    int most = 0, dp = trainer_shape(v->trainer).dp;
    char bytes[CELL], ring[CELL];
    for (int s = 1; s < v->stages; ++s)
        if (v->stage_view[s].plan->gather.step_elements >
            v->stage_view[most].plan->gather.step_elements)
            most = s;
    const GatherPlan *gather = &v->stage_view[most].plan->gather;
    if (gather->step_gathers == 0) return;
    double sent_bytes = gather->step_elements * sizeof(float) * (dp - 1) / dp;
    fprintf(out,
            "parameters gathered in buckets: %lld gathers a step, of %d buckets, into a ring "
            "buffer of %s",
            (long long)gather->step_gathers, gather->count,
            text_bytes((double)gather->elements * sizeof(float), ring));
    if (v->stages > 1) fprintf(out, " in stage %d, which gathers most", most);
    fprintf(out, "; each rank sends and receives %s\n", text_bytes(sent_bytes, bytes));
}

/* Returns the bytes that a rank sends in an exchange for one micro-batch. In each of two messages
 * it sends all slices of the tensor except its own. There is one message in forward and one in
 * backward, or both are in the same pass. Partial sums are in fp32, results in train.precision. */
static double exchange_node_bytes(const OpSpec *s)
{
    const bool leaves = s->exchange == EXCHANGE_LEAVE;
    const Slices divided = exchange_slices(s);
    const double elements = (double)(divided.ranges * divided.items * divided.item_elements);
    return elements * (divided.ranks - 1) / divided.ranks *
           (double)(dtype_bytes(s->x[0].dtype) + dtype_bytes((leaves ? s->x[0] : s->y).dtype));
}

/* Returns the bytes of gradients that the operation of node i gathers from all ranks of a
 * tensor-parallel group. If the ranks have slices of the sequence, the gradient of a parameter is a
 * sum over the slices, and each rank has a partial sum. */
static double token_sum_bytes(const Graph *g, int i)
{
    const Node *node = &g->node[i];
    const SumSlices *cut = &node->spec.token_slices;
    double floats = 0;
    if (cut->total == cut->count || node->spec.slices_inputs || node->spec.frozen) return 0;
    for (int k = 0; k < node->spec.w_count; ++k)
        if (!g->param[node->param[k]].partial) floats += (double)shape_count(node->spec.w[k]);
    return floats * sizeof(float) * g->tp_ranks;
}

/* Returns the bytes that ranks gather for a loss whose classes are divided into slices: six floats
 * for each row and slice, and the position of the label for each row and rank. Returns 0 for other
 * losses. */
static double loss_bytes(const Graph *g, const OpSpec *s)
{
    const Shape x = s->x[0].shape;
    const double rows = (double)(shape_count(x) / x.dim[x.ndim - 1]);
    const int slices = s->slices.total > 0 ? s->slices.total : g->tp_ranks;
    return s->slice.ranks > 0 ? rows * (6 * slices + g->tp_ranks) * sizeof(float) : 0;
}

/* Returns the bytes that a rank of the stage sends to its tensor-parallel group for one
 * micro-batch, in forward and backward together. *count: number of layers that exchange tensors. */
static double exchange_bytes(const PlanView *v, int stage, int *count)
{
    const Graph *g = trainer_graph(v->trainer);
    const Plan *plan = v->stage_view[stage].plan;
    double bytes = 0, tp = g->tp_ranks;
    *count = 0;
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int i = plan->chunk[c].first; i < plan->chunk[c].end; ++i) {
            const OpSpec *s = &g->node[i].spec;
            bytes += token_sum_bytes(g, i) * (tp - 1) / tp;
            if (i == g->loss_node) bytes += loss_bytes(g, s) * (tp - 1) / tp;
            if (op_info(s->kind)->communication != COMMUNICATES_ALWAYS) continue;
            bytes += exchange_node_bytes(s);
            ++*count;
        }
    return bytes;
}

static void print_exchanges(const PlanView *v, FILE *out)
{
    int tp = trainer_shape(v->trainer).tp, most = 0, count;
    char bytes[CELL];
    if (tp == 1) return;
    for (int s = 1; s < v->stages; ++s)
        if (exchange_bytes(v, s, &count) > exchange_bytes(v, most, &count)) most = s;
    double sent = exchange_bytes(v, most, &count);
    fprintf(out, "\nlayers divided by %d ranks: %d exchanges a micro-batch, forward and back", tp,
            count);
    if (v->stages > 1) fprintf(out, ", in stage %d, which has most", most);
    fprintf(out, "; each rank sends and receives %s\n", text_bytes(sent, bytes));
}

/* Prints the sums of statistics for synchronized batch norms, for the stage whose sums have most
 * bytes. */
static void print_replica_sums(const PlanView *v, FILE *out)
{
    ReplicaSums most = {0};
    char bytes[CELL];
    int stage = 0;
    for (int s = 0; s < v->stages; ++s) {
        ReplicaSums sums = plan_replica_sums(v->stage_view[s].plan);
        if (sums.bytes <= most.bytes) continue;
        most = sums;
        stage = s;
    }
    if (most.count == 0) return;
    fprintf(out, "\nstatistics summed over %d replicas: %d sums a micro-batch, forward and back",
            trainer_shape(v->trainer).dp, most.count);
    if (v->stages > 1) fprintf(out, ", in stage %d, which has most", stage);
    fprintf(out, "; each rank sends and receives %s, and waits for each sum\n",
            text_bytes((double)most.bytes, bytes));
}

/* ---- schedule ---- */

static void print_schedule(const PlanView *v, int columns, FILE *out)
{
    const Trainer *t = v->trainer;
    TrainSizes sizes = trainer_sizes(t);
    const Schedule *schedule = trainer_schedule(t);
    if (v->stages == 1) return;
    fprintf(
        out,
        "\nschedule %s: %d stages, %d micro-batch%s a replica; idle %.1f %% of the time, %.1f %% "
        "if all tasks took the same time\n",
        schedule->name, v->stages, sizes.micro_batches_local,
        sizes.micro_batches_local == 1 ? "" : "es", 100 * v->real.bubble, 100 * v->equal.bubble);
    if (v->stages <= PICTURE_STAGES_MAX)
        schedule_print(schedule, &v->real, columns, out);
    else
        fprintf(out, "  --svg FILE draws a schedule of this number of stages\n");
}

/* Prints which data the replicas compare, and when, to detect flipped bits. */
static void print_checks(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    long long every = trainer_config(t)->train.check_every;
    const char *why_not, *hashed = trainer_plan(t)->zero ? "parameters" : "parameters and state";
    if (trainer_shape(t).dp == 1) return;
    if (!train_compares(t, &why_not))
        fprintf(out, "replicas are not compared: %s\n", why_not);
    else if (every > 0 && view_mode(v) != UPDATE_SYNC)
        fprintf(
            out,
            "replicas compare hashes of %s at sync points whose step is a multiple of %lld, and "
            "before each save\n",
            hashed, every);
    else if (every > 0)
        fprintf(out, "replicas compare hashes of %s every %lld steps and before each save\n",
                hashed, every);
    else
        fprintf(out, "replicas compare hashes of %s before each save\n", hashed);
}

static void print_step(const PlanView *v, FILE *out)
{
    const Trainer *t = v->trainer;
    TrainSizes sizes = trainer_sizes(t);
    Backend *backend = trainer_backend(t);
    GridShape g = trainer_shape(t);
    long long ranks = (long long)g.dp * g.pp * g.tp;
    int threads = backend->options.threads;
    fprintf(out,
            "\na step: %lld samples in %d micro-batches of %lld, %d in each replica; %lld steps, "
            "%lld per epoch\n"
            "%lld rank%s as %dx%dx%d, zero %d, %d thread%s each on %s\n",
            (long long)sizes.batch, sizes.micro_batches, (long long)sizes.micro_batch,
            sizes.micro_batches_local, (long long)sizes.steps, (long long)sizes.steps_per_epoch,
            ranks, ranks == 1 ? "" : "s", g.dp, g.pp, g.tp, trainer_plan(t)->zero, threads,
            threads == 1 ? "" : "s", backend->table->name);
    if (backend->options.device < 0)
        fprintf(out, "planned for an %s, which was not used; --gpu plans for another\n",
                backend->options.gpu);
    char *padding = train_padding_text(t);
    if (padding) fprintf(out, "%s\n", padding);
    mem_free(&padding);
    char *limit = train_bits_limit(t);
    if (limit) fprintf(out, "%s\n", limit);
    mem_free(&limit);
}

/* Prints the forecast time of a step, and its parts, without parts below 0.05 % of the step. */
static void print_forecast(const PlanView *v, FILE *out)
{
    const Forecast *f = &v->forecast;
    TrainSizes sizes = trainer_sizes(v->trainer);
    if (!v->has_forecast) return;
    fprintf(out, "forecast: %.4g ms a step (%.4g to %.4g), %.4g samples/s:", 1e3 * f->step.median,
            1e3 * f->step.low, 1e3 * f->step.high, (double)sizes.batch / f->step.median);
    const char *comma = " ";
    for (int i = 0; i < FORECAST_LINE_COUNT; ++i) {
        double share = 100 * f->line[i] / f->step.median;
        if (fabs(share) < 0.05) continue;
        fprintf(out, "%s%s %.1f %%", comma, forecast_names[i], share);
        comma = ", ";
    }
    fputc('\n', out);
}

/* Prints the forecast times of reading the training set and of saving a checkpoint. */
static void print_files(const PlanView *v, FILE *out)
{
    const FileForecast *f = &v->files;
    double step_s = v->forecast.step.median;
    char bytes[16];
    if (f->read_bytes > 0) {
        fprintf(out, "files: a node reads %s for a step in %.3g ms, ",
                text_bytes(f->read_bytes, bytes), 1e3 * f->read_s);
        if (f->read_s > step_s)
            fprintf(out, "longer than a step: epochs that read from files wait %.3g ms a step\n",
                    1e3 * (f->read_s - step_s));
        else
            fprintf(out, "hidden behind earlier steps\n");
    }
    if (f->save_bytes > 0)
        fprintf(out, "files: a checkpoint has %s; writing it and reading it back takes %.3g s%s\n",
                text_bytes(f->save_bytes, bytes), f->save_s,
                v->stage_view[v->largest].bytes.checkpoint > 0 ? ", in the background" : "");
}

void plan_view_text(const PlanView *v, int columns, FILE *out)
{
    print_layers(v, out);
    print_stages(v, out);
    plan_update_text(v, out);
    print_memory(v, out);
    print_algorithms(v, out);
    if (v->stages == 1 || v->stage >= 0) {
        fputc('\n', out);
        plan_print(v->stage_view[v->stage < 0 ? 0 : v->stage].plan, out);
    }
    plan_tables_text(v, out);
    print_messages(v, out);
    plan_sums_text(v, out);
    print_gathers(v, out);
    print_checks(v, out);
    print_exchanges(v, out);
    print_replica_sums(v, out);
    print_schedule(v, columns, out);
    print_step(v, out);
    print_forecast(v, out);
    print_files(v, out);
}
