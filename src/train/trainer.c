/* Sets up a trainer in the order data set -> model -> plan -> memory -> parameters, and frees it.
 * train_step.c makes the steps. Set-up finds errors in the configuration and in the data sets, and
 * reports them to all ranks before any rank writes a file. Samples that cannot be read are only
 * found later. */
#include "agree.h"
#include "algorithms.h"
#include "average.h"
#include "eval/eval_pictures.h"
#include "eval/field_scores.h"
#include "memory_fit.h"
#include "step/grad_noise.h"
#include "step/step_loader.h"
#include "mode/step_mode.h"
#include "schedules.def"
#include "step/loss_scale.h"
#include "optimizer.h"
#include "step/position.h"
#include "state/save_copy.h"
#include "mode/sparse.h"
#include "transport.h"

#include <math.h>

/* Returns the largest divisor of the batch up to `limit` that gives at least `micro_batches`
 * micro-batches; 0: there is none. */
static int64_t divisor_of_batch(int64_t batch, int64_t limit, int64_t micro_batches)
{
    for (int64_t d = limit < batch ? limit : batch; d > 0; --d)
        if (batch % d == 0 && batch / d >= micro_batches) return d;
    return 0;
}

int64_t train_default_micro_batch(const Trainer *t)
{
    int replicas = step_mode_is_local(t->mode) ? t->shape.dp : 1;
    int64_t best = divisor_of_batch(t->batch, 32, replicas);
    return best > 0 ? best : 1;
}

int64_t train_fitting_micro_batch(const Trainer *t)
{
    return divisor_of_batch(t->batch, t->batch, t->shape.dp);
}

static void set_batch_sizes(Trainer *t)
{
    const Config *c = t->config;
    t->batch = c->train.batch;
    t->micro_batch = c->train.micro_batch ? c->train.micro_batch : train_default_micro_batch(t);
    t->micro_batches = (int)(t->batch / t->micro_batch);
    t->micro_batches_local = micro_batches_a_replica(t->micro_batches, t->shape.dp);
}

/* Limits all ranks to the best instruction set that all of them support, because sums must not
 * depend on which rank adds. A rank may have a limit of its own, from train.cpu or WEFT_CPU. If
 * such a limit is portable, all ranks are limited to portable. If no rank has a limit and all
 * processors have the same features, no limit is set. */
static Status agree_on_cpu_set(const Trainer *t)
{
    InstructionSet set = CPU_AUTO;
    TRY(status_agree(t->world, cpu_choose((InstructionSet)t->config->train.cpu, &set)));
    if (world_min(t->world, set != CPU_PORTABLE) == 0) {
        TRY(status_agree(t->world, cpu_choose(CPU_PORTABLE, &set)));
        if (t->config->train.device == DEVICE_CUDA)
            return fail(ERR_CONFIG, "train.cpu: portable gives equal bits on CPUs only: use "
                                    "train.device=cpu, or another value of train.cpu");
        cpu_set_limit(CPU_PORTABLE);
        return OK;
    }
    InstructionSet best_here = set == CPU_AUTO ? cpu_best() : set;
    InstructionSet best_everywhere = (InstructionSet)world_min(t->world, (int)best_here);
    /* 31 bits of a hash of the processor's instructions; made negative on a rank with a limit, so
     * that it differs from the hash of every rank without one */
    int features = (int)(cpu_features() >> 1);
    if (set != CPU_AUTO) features = -1 - features;
    bool all_equal = world_min(t->world, features) == -world_min(t->world, -features);
    cpu_set_limit(all_equal && set == CPU_AUTO ? CPU_AUTO : best_everywhere);
    return OK;
}

static Status open_backend(Trainer *t, const DryRun *only)
{
    const Config *c = t->config;
    BackendOptions options = {
        .threads = (int)c->train.threads,
        .same_threads = c->train.reproducible == REPRODUCIBLE_SAME_GRID,
        .device = t->world->node_rank,
        .dry_run = only != NULL,
        .gpu = only ? only->gpu : NULL,
        .precision = c->train.precision == PRECISION_BF16   ? DTYPE_BF16
                     : c->train.precision == PRECISION_FP16 ? DTYPE_F16
                                                            : DTYPE_F32,
        .tf32 = c->train.precision == PRECISION_TF32,
        .replay = c->train.cuda_graphs == GRAPHS_AUTO,
    };
    if (options.threads == 0)
        options.threads = world_min(t->world, threads_share(t->world->node_size));
    threads_bind(t->world->node_rank, t->world->node_size, options.threads);
    TRY(agree_on_cpu_set(t));
    const BackendTable *table = c->train.device == DEVICE_CUDA ? &backend_cuda : &backend_cpu;
    if (!table->host_memory && data_mixes_images(c))
        return config_fail_key(
            c, c->data.mixup > 0 ? "data.mixup" : "data.cutmix",
            "the softmax loss of mixed labels is not supported on %s: remove it, or "
            "set train.device: cpu",
            table->name);
    return backend_open(&t->backend, table, options);
}

static Status make_graph(Trainer *t)
{
    const Config *c = t->config;
    TRY(train_build_graph(&t->graph, c, &t->train_set, &t->test_set, t->micro_batch));
    const int tp = t->shape.tp, slices = train_sum_slices(t);
    if (tp > 1 || slices > 0) TRY(graph_split(&t->graph, c, t->world->rank % tp, tp, slices));
    if (c->train.sync_batch_norm) TRY(graph_sync_statistics(t->graph, c, t->shape.dp));
    return graph_fuse(t->graph, t->backend->table);
}

static Status build_graph(Trainer *t)
{
    TRY(status_agree(t->world, make_graph(t)));
    TRY(algorithms_plan(t));
    int64_t rows = shape_count(t->graph->node[t->graph->loss_node].spec.y.shape) / LOSS_COLUMNS;
    t->rows_per_sample = rows / t->micro_batch;
    t->counted_per_sample = data_has_label_fields(&t->train_set) ? 1 : t->rows_per_sample;
    return OK;
}

/* ---- stages ---- */

/* Adds the key, and the file if there is one, to the message about a schedule that cannot work. */
static Status fail_schedule(const Trainer *t, Status status)
{
    if (status != ERR_CONFIG) return status;
    char *why = mem_text(fail_message());
    const char *path = t->config->grid.schedule_path;
    status = config_fail_key(t->config, "grid.pipeline_schedule", "%s%s%s", path ? path : "",
                             path ? ": " : "", why);
    mem_free(&why);
    return status;
}

/* Makes the pipeline schedule and simulates it. With one stage there is one chunk, because more
 * chunks would have no use. */
static Status make_schedule(Trainer *t)
{
    const Config *c = t->config;
    ScheduleReport report;
    ScheduleShape shape = {.stages = t->shape.pp,
                           .chunks_per_stage = t->shape.pp > 1 ? (int)c->grid.chunks : 1,
                           .micro_batches = t->micro_batches_local};
    int kind = t->shape.pp > 1 || c->grid.chunks == 1 ? c->grid.pipeline_schedule : SCHEDULE_1F1B;
    /* checked first, because the schedule's length grows with the square of the stages */
    if (kind != SCHEDULE_FILE)
        TRY(graph_check_cut(t->graph, c, shape.stages * shape.chunks_per_stage));
    Status st = schedule_new(&t->schedule, kind, c->grid.schedule_path, shape);
    /* the message about a schedule file already names the file and line */
    if (st != OK && kind == SCHEDULE_FILE) return st;
    if (st == OK) st = schedule_simulate(t->schedule, NULL, &report);
    if (st != OK) return fail_schedule(t, st);
    t->channel_depth = report.channel_depth;
    schedule_report_fini(&report);
    return OK;
}

static Status cut_graph(Trainer *t)
{
    int chunks = t->shape.pp * t->schedule->shape.chunks_per_stage;
    t->chunk_begin = mem_new((size_t)(chunks + 1) * sizeof *t->chunk_begin);
    TRY(graph_partition(t->graph, t->config, chunks, t->chunk_begin));
    t->block = graph_blocks(t->graph, t->chunk_begin, chunks);
    return OK;
}

/* Chooses the order in which the gradients of micro-batches are added over the replicas.
 * DEAL_BLOCKS needs one sum over the replicas in a step. DEAL_SUBTREES needs up to
 * log2(micro-batches of a replica + 1) sums, but makes results independent of the number of
 * replicas. If each replica makes steps alone, or with train.sync_batch_norm, results depend on
 * that number with both deals, so the cheaper DEAL_BLOCKS is chosen. */
static Deal choose_deal(const Trainer *t)
{
    const Config *c = t->config;
    bool any_dp = c->train.reproducible == REPRODUCIBLE_ANY_GRID && !c->train.sync_batch_norm;
    return any_dp && !step_mode_is_local(t->mode) ? DEAL_SUBTREES : DEAL_BLOCKS;
}

Status train_plan_stage(const Trainer *t, int stage, Plan **plan)
{
    PlanOptions options = {.shape = t->shape,
                           .stage = stage,
                           .schedule = t->schedule,
                           .channel_depth = t->channel_depth,
                           .chunk_begin = t->chunk_begin,
                           .bucket_bytes = (size_t)(t->config->grid.bucket_mb * 1e6),
                           .state_slots = optim_slot_count(t->config),
                           .state_scratch = optim_needs_scratch(t->config),
                           .updates = optim_state_is_packed(t->config) ? t->updates : NULL,
                           .averages = t->config->train.ema > 0,
                           .zero = t->config->grid.zero,
                           .deal = choose_deal(t),
                           .gpus_joined = train_gpus_joined(t),
                           .param_sharers = transport_param_sharers(t),
                           .block = t->recompute ? t->block : NULL};
    return plan_new(plan, t->graph, &options);
}

/* ---- parameters of this rank ---- */

const char *train_captures(const Trainer *t)
{
    if (t->config->train.cuda_graphs == GRAPHS_OFF) return "off, as train.cuda_graphs says";
    if (t->plan->gathers) return "off: grid.zero=3 gathers parameters";
    return t->plan->zero ? "full micro-batches' work" : "full micro-batches' work and the update";
}

bool train_owns(const Trainer *t, int param)
{
    int tied = t->graph->param[param].tied_param;
    int64_t at = t->plan->param_offset[param];
    return at >= 0 && (tied < 0 || t->plan->param_offset[tied] != at);
}

bool train_sets_params(const Trainer *t)
{
    return !t->comm->params_shared || t->grid.dp_rank == 0;
}

/* Sets initial values. A parameter that is tied to a parameter of another stage gets the value of
 * that parameter. */
static void fill_params(Trainer *t)
{
    const Graph *g = t->graph;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!train_owns(t, i)) continue;
        float *plain = mem_new((size_t)shape_count(p->shape) * sizeof *plain);
        float *stored = mem_new((size_t)p->elements * sizeof *stored);
        param_init(g, p->tied_param >= 0 ? p->tied_param : i, (uint64_t)t->config->run.seed, plain);
        op_pack(g->node[p->node].op, p->slot, plain, stored);
        executor_set_param(t->executor, i, stored);
        mem_free(&plain);
        mem_free(&stored);
    }
}

void train_draw_params(Trainer *t)
{
    if (train_sets_params(t)) fill_params(t);
    executor_params_changed(t->executor);
    optim_average_begin(t->optim, executor_params(t->executor));
}

void train_forget_end(Trainer *t)
{
    t->early = early_stop();
    t->hook_stop = t->evaluation_due = false;
}

void train_restart(Trainer *t)
{
    const BackendTable *table = t->backend->table;
    executor_release_batches(t->executor);
    step_loader_close(t);
    world_barrier(t->world);
    for (int s = 0; s < t->optim->slots; ++s)
        if (t->optim->state[s])
            table->flat->fill(table->stream(t->backend), t->optim->state[s], 0.0f,
                              t->optim->slot_elements[s]);
    if (t->tables) tables_clear(t->tables);
    t->step = t->stats_step = t->skipped = t->optim->step = 0;
    position_init(t);
    t->best_metric = NAN;
    t->evaluations = 0;
    t->lr = lr_state_initial();
    train_forget_end(t);
    loss_scale_init(&t->loss_scale, t->config);
    loss_window_init(&t->losses, NULL, 0);
}

/* Checks that batch norms average over more than one number in each channel. With one number the
 * output is the bias, whatever the input is, so that no layer before the batch norm is trained.
 * Only in the short micro-batch at the end of an epoch may a channel have one number. */
static Status check_batch_norms(const Trainer *t)
{
    const Config *c = t->config;
    const Graph *g = t->graph;
    int64_t n = t->train_set.samples, rows = n > 0 && n < t->micro_batch ? n : t->micro_batch;
    for (int i = 0; i < g->node_count; ++i) {
        const OpSpec *s = &g->node[i].spec;
        const Shape x = s->x[0].shape;
        if (op_info(s->kind)->communication != COMMUNICATES_IF_SYNCED || s->fixed_stats || rows > 1)
            continue;
        if (shape_count(x) > x.dim[0] * x.dim[1] || (s->synced && t->shape.dp > 1)) continue;
        const char *why = "it normalises each channel over one number, so its output does not "
                          "depend on its input, and nothing in front of it is trained";
        if (t->micro_batch > 1)
            return config_fail_key(c, "data.train", "%s has one sample, too few for layer %s: %s",
                                   t->train_set.path, g->node[i].name, why);
        if (t->batch == 1)
            return config_fail_key(c, "train.batch",
                                   "is 1, too few samples for layer %s: %s; set train.batch and "
                                   "train.micro_batch to 2 or more, or use layer_norm",
                                   g->node[i].name, why);
        const int64_t usual = train_default_micro_batch(t);
        return config_fail_key(c, "train.micro_batch",
                               "is 1, too few samples for layer %s: %s; set it to %lld, or use "
                               "layer_norm",
                               g->node[i].name, why, (long long)(usual > 1 ? usual : t->batch));
    }
    return OK;
}

/* Makes the decisions of set-up that need no arenas, for `ranks` ranks; memory_fit decides on
 * recomputation later. only: arguments of the dry run; NULL: this is no dry run. */
static Status setup_without_memory(Trainer *t, int ranks, const DryRun *only)
{
    t->bytes_before = memory_use().own_bytes;
    TRY(grid_shape(&t->shape, t->config, ranks));
    set_batch_sizes(t);
    TRY(trainer_open_data(t, only));
    TRY(status_agree(t->world, open_backend(t, only)));
    TRY(algorithms_find(t, only));
    TRY(status_agree(t->world, transport_check(t)));
    TRY(build_graph(t));
    t->mode = step_mode(t->config, t->graph->table_count > 0);
    if (t->trains) TRY(check_batch_norms(t));
    TRY(sparse_check(t));
    TRY(average_check(t));
    TRY(train_assign_rules(t));
    TRY(make_schedule(t));
    TRY(cut_graph(t));
    TRY(sparse_check_servers(t));
    TRY(step_mode_check(t));
    TRY(grad_noise_check(t));
    position_init(t);
    double grown = memory_use().own_bytes - t->bytes_before;
    if (t->backend->table->memory) t->backend->table->memory(t->backend, &grown, &t->device_free);
    t->program_bytes = grown > 0 ? (size_t)grown : 0;
    return OK;
}

/* Makes decisions of set-up the same on all ranks, because ranks with different slices or on
 * different machines might decide differently. The cut and the blocks are those of rank 0. All
 * ranks recompute if one rank needs to. All ranks copy checkpoints only if each of them has memory
 * for the copy. Collective. */
static Status agree_on_plan(Trainer *t)
{
    const World *world = t->world;
    int chunks = t->shape.pp * t->schedule->shape.chunks_per_stage;
    world_bcast(world, t->chunk_begin, (size_t)(chunks + 1) * sizeof *t->chunk_begin, 0);
    world_bcast(world, t->block, (size_t)t->graph->node_count * sizeof *t->block, 0);
    TRY(status_agree(world, memory_fit(t)));
    int64_t ranks[] = {t->recompute, t->saves_in_background};
    world_allreduce(world, ranks, 2);
    t->recompute = ranks[0] > 0;
    t->saves_in_background = ranks[1] == world->size;
    return OK;
}

/* Sets up this rank. The ranks agree on the Status after everything that can fail on one rank,
 * before the next collective call. */
static Status setup_ranks(Trainer *t)
{
    const Config *c = t->config;
    TRY(status_agree(t->world, setup_without_memory(t, t->world->size, NULL)));
    TRY(agree_on_bits(t));
    TRY(agree_on_plan(t));
    TRY(grid_init(&t->grid, t->world, t->shape));
    t->grid_ready = true;
    TRY(grid_join_gpus(&t->grid, t->backend, (int)c->grid.transport, c->train.reproducible));
    TRY(status_agree(t->world, train_plan_stage(t, t->grid.pp_rank, &t->plan)));
    t->alone = world_alone();
    comm_set_sum_algorithm((SumAlgorithm)c->grid.sums);
    Status st = comm_new(&t->comm, step_mode_is_local(t->mode) ? &t->alone : &t->grid.dp_world,
                         t->backend, c->grid.transport, t->plan->micro_grad_elements);
    TRY(status_agree(t->world, st));
    ExecutorOptions options = {.seed = (uint64_t)c->run.seed, .transport = c->grid.transport};
    TRY(executor_new(&t->executor, t->plan, &t->grid, t->backend, t->comm, options));
    grad_noise_start(t);
    TRY(status_agree(t->world, train_make_optimizer(t)));
    return status_agree(t->world, t->mode->make ? t->mode->make(t) : OK);
}

static Trainer *trainer_begin(const Config *config, const World *world, bool trains)
{
    Trainer *t = mem_new(sizeof *t);
    t->trains = trains;
    t->config = config;
    t->world = world;
    /* preliminary; set again when the graph shows whether the model has sparse tables */
    t->mode = step_mode(config, false);
    t->best_metric = NAN;
    t->lr = lr_state_initial();
    t->early = early_stop();
    t->waits_for_loss = config->train.on_bad != ON_BAD_STOP;
    t->checks_gradients = config->train.on_bad == ON_BAD_SKIP;
    loss_scale_init(&t->loss_scale, config);
    return t;
}

static Status trainer_make(Trainer **out, Trainer *t)
{
    Status st = setup_ranks(t);
    /* sends the result of set-up to the servers, which wait for it */
    if (t->servers > 0) st = status_agree(t->job, st);
    if (st == OK) sparse_make(t);
    t->substitute_set = NULL;
    t->earlier = NULL;
    if (st != OK) trainer_free(&t);
    *out = t;
    return st;
}

Status trainer_new(Trainer **out, const Config *config, const World *world)
{
    Trainer *t = trainer_begin(config, world, true);
    t->tunes = true;
    TRY(trainer_make(out, t));
    train_draw_params(*out);
    return OK;
}

Status trainer_new_to_load(Trainer **out, const Config *config, const World *world,
                           const DataSet *samples, const char *checkpoint)
{
    Trainer *t = trainer_begin(config, world, false);
    t->substitute_set = samples;
    t->checkpoint = checkpoint;
    return trainer_make(out, t);
}

Status trainer_new_with(Trainer **out, const Config *config, const World *world, const World *job,
                        const char *earlier)
{
    Trainer *t = trainer_begin(config, world, true);
    t->earlier = earlier;
    t->tunes = true;
    t->job = job;
    t->servers = job ? job->size - world->size : 0;
    return trainer_make(out, t);
}

Status trainer_dry_run(Trainer **out, const Config *config, const World *world,
                       const DryRun *dry_run)
{
    Trainer *t = trainer_begin(config, world, true);
    t->servers = (int)config->grid.servers;
    t->node_ranks = dry_run->node_ranks;
    Status st = dry_run->ranks > t->servers ? OK : sparse_no_workers(config, dry_run->ranks);
    if (st == OK) st = setup_without_memory(t, dry_run->ranks - t->servers, dry_run);
    if (st == OK) st = memory_fit(t);
    if (st == OK) st = train_plan_stage(t, 0, &t->plan);
    if (st != OK) trainer_free(&t);
    *out = t;
    return st;
}

void trainer_free(Trainer **trainer)
{
    Trainer *t = *trainer;
    if (!t) return;
    if (t->executor) executor_release_batches(t->executor);
    if (t->backend) capture_drop(&t->update, t->backend);
    step_loader_close(t);
    sparse_free(t);
    if (t->mode->free) t->mode->free(t);
    mem_free(&t->classes);
    field_scoring_free(&t->field_scoring);
    eval_pictures_free(&t->eval_pictures);
    mem_free(&t->label_metrics);
    train_free_optimizer(t);
    save_copy_free(&t->copy);
    executor_free(&t->executor);
    comm_free(&t->comm);
    plan_free(&t->plan);
    if (t->schedule) schedule_free(&t->schedule);
    graph_free(&t->graph);
    if (t->grid_ready) grid_fini(&t->grid);
    if (t->backend) backend_close(&t->backend);
    algorithm_record_free(&t->algorithms);
    data_ranges_fini(&t->ranges);
    data_set_fini(&t->train_set);
    data_set_fini(&t->test_set);
    mem_free(&t->data_files);
    mem_free(&t->chunk_begin);
    mem_free(&t->block);
    mem_free(&t->micro_number);
    mem_free(trainer);
}
