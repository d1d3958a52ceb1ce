/* A whole run: folder, resume, first lines of the log, steps, summary. All ranks get every decision
 * that one rank makes: results of reading files are broadcast, and requests of a rank during the
 * run are summed with the metrics of the step. A rank may request to stop after a signal or at a
 * time limit, to save by the clock, or to carry out the hook's request. */
#include "run.h"

#include "../agree.h"
#include "../chunk_share.h"
#include "host_list.h"
#include "../mode/sparse.h"

#include "base/start.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Returns ERR_STOPPED if a rank received a stop request before the first step. Collective. */
static Status stop_before_steps(const World *world)
{
    Status st = status_agree(world, stop_wanted() ? ERR_STOPPED : OK);
    if (st != ERR_STOPPED) return st;
    return fail(ERR_STOPPED, "stopped before the first step, so nothing is lost: start the same "
                             "command again to continue");
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* Logs the first lines of a run: model, data, hosts, grid, memory; and warnings about them. */
static void log_description(const Run *r)
{
    const Trainer *t = r->trainer;
    const GridShape *g = &t->shape;
    int threads = t->backend->options.threads;
    bool tokens = data_has_tokens(&t->train_set);
    const bool numbers = t->train_set.target_width > 0;
    char bytes[32], grid[96] = "", length[48] = "", set[32] = "";
    bool cpu = t->backend->table == &backend_cpu;
    if (cpu && cpu_limit() != CPU_AUTO) snprintf(set, sizeof set, " (%s)", cpu_name(cpu_limit()));
    if (tokens) snprintf(length, sizeof length, " of %lld tokens", (long long)t->train_set.context);
    if (g->pp > 1 || g->tp > 1)
        snprintf(grid, sizeof grid, " as %dx%dx%d (%s, %d micro-batches)", g->dp, g->pp, g->tp,
                 t->schedule->name, t->micro_batches_local);
    int64_t params = graph_param_elements(t->graph), trained = graph_trained_elements(t->graph);
    const int64_t loss_classes = loss_info(t->config)->classes;
    const int64_t outputs = loss_classes ? loss_classes : t->graph->classes;
    const int tables = t->graph->table_count;
    bool trains_tables = false;
    for (int i = 0; i < tables; ++i) trains_tables = trains_tables || !t->graph->table[i].frozen;
    char trained_text[48] = "", tables_text[48] = "";
    if (tables)
        snprintf(tables_text, sizeof tables_text, " and %d sparse table%s", tables, plural(tables));
    if (trained < params)
        snprintf(trained_text, sizeof trained_text, " (%lld trained)", (long long)trained);
    log_info("%s: %lld parameters%s%s, %lld %s; %lld samples%s, batch %lld in micro-batches of "
             "%lld",
             t->config->model.name && t->config->model.name[0] ? t->config->model.name : "layers",
             (long long)params, trained_text, tables_text, (long long)outputs,
             tokens                    ? "different tokens"
             : numbers && outputs == 1 ? "output"
             : numbers                 ? "outputs"
                                       : "classes",
             (long long)t->train_set.samples, length, (long long)t->batch,
             (long long)t->micro_batch);
    char *hosts = train_host_list(t);
    if (hosts) log_info("%s", hosts);
    mem_free(&hosts);
    if (t->backend->table->record_begin) log_info("CUDA graphs: %s", train_captures(t));
    log_info("%d rank%s%s x %d thread%s on %s%s, allreduce: %s; planned memory per rank: %s; %lld "
             "steps, %lld per epoch",
             r->world->size, plural(r->world->size), grid, threads, plural(threads),
             t->backend->table->name, set, comm_name(t->comm),
             text_bytes((double)train_bytes(t, t->plan).all, bytes), (long long)t->steps,
             (long long)t->steps_per_epoch);
    if (t->config->checkpoint.background && !t->saves_in_background)
        log_info("training waits while checkpoints are written: %s",
                 t->graph->table_count ? "sparse tables are saved without a copy"
                                       : "there is no memory for a copy");
    if (t->config->train.ema > 0)
        log_info("evaluations use the EMA of the parameters (train.ema: %g)", t->config->train.ema);
    char *padding = train_padding_text(t);
    if (padding) log_warn("%s", padding);
    mem_free(&padding);
    if (trained == 0 && !trains_tables)
        log_warn("model.freeze names all parameters: nothing is trained");
    char *limit = train_bits_limit(t);
    if (limit && t->config->train.reproducible == REPRODUCIBLE_ANY_GRID) log_warn("%s", limit);
    mem_free(&limit);
}

/* Resumes, opens the logs and makes all steps. A run that was already complete is only evaluated
 * again, to print its result. */
static Status run_all(Run *r)
{
    Trainer *t = r->trainer;
    r->data_watch = t->data_watch = data_watch_new(t, r->dir.checkpoints);
    TRY(run_refresh_begin(r));
    TRY(run_resume(r));
    bool done = run_complete(r);
    if (!done) TRY(stop_before_steps(r->world));
    if (!done) TRY(sparse_begin(t));
    bool is_rank_0 = r->world->rank == 0;
    /* checked before the first step, because the trace is written only after the last step */
    Status st = is_rank_0 && r->config->run.trace ? trace_check(r->dir.trace) : OK;
    if (st == OK && is_rank_0) st = ledger_file_check(r->dir.path);
    if (is_rank_0) r->earlier = metrics_read_end(r->dir.path);
    if (st == OK && is_rank_0)
        st = observer_new(&r->observer, r->dir.path, r->dir.lease, t->step, r->newest_by_this_run);
    if (st == OK && is_rank_0) st = log_file_open(r->dir.path, r->dir.lease, t->step);
    if (st == OK && is_rank_0) st = run_dir_write_config(&r->dir, r->config);
    if (st == OK && is_rank_0 && r->topo.ranks > 0) st = run_dir_write_topology(&r->dir, &r->topo);
    if (st == OK && is_rank_0 && t->algorithms)
        st = run_dir_write_algorithms(&r->dir, t->algorithms);
    TRY(status_agree(r->world, st));
    if (r->config->run.trace) trace_start(1 << 20);
    log_description(r);
    if (r->config->run.map) train_log_ranks(t);
    r->start_s = r->saved_s = clock_s();
    if (done)
        log_info("this run is complete: %lld steps are done%s%s", (long long)t->step,
                 r->ended ? "" : "; it goes on with a higher train.",
                 r->ended                 ? ""
                 : r->config->train.steps ? "steps"
                                          : "epochs");
    if (done) {
        start_end(true);
        return run_evaluate_again(r);
    }
    train_make_save_copy(t);
    run_bad_begin(r);
    WatchdogOptions watch = {.hang_s = r->config->train.hang_s,
                             .folder = r->dir.path,
                             .owner = is_rank_0 ? lease_id(r->dir.lease) : NULL};
    Watchdog *watchdog = sparse_watch(t, &watch);
    start_end(true);
    run_ledger_begin(r);
    r->tick_s = clock_s();
    while (st == OK && !r->stopped && !r->ended && (t->evaluation_due || t->step < t->steps))
        st = t->evaluation_due ? run_evaluate_again(r) : run_step(r);
    sparse_watch_end(t, &watchdog);
    if (st == OK) run_ledger_end(r);
    return st;
}

/* Sets the memory in the summary to that of one rank: the rank whose memory has grown most since
 * before its trainer was made or, on devices, the rank that has allocated most of its device's
 * memory. Call it while the trainer's memory is still allocated. Without a device, a run without
 * steps is not measured, because it has not touched its memory. Collective. */
static void measure_memory(Run *r)
{
    struct {
        double planned, measured, peak;
    } mine, *all = mem_new((size_t)r->world->size * sizeof *all);
    MemoryUse use = memory_use();
    const double before = r->trainer->bytes_before;
    bool known = use.own_bytes >= 0 && before >= 0 && r->trainer->loader;
    mine.planned = (double)train_bytes(r->trainer, r->trainer->plan).all;
    mine.measured = known ? use.own_bytes - before : 0;
    Backend *backend = r->trainer->backend;
    double left;
    if (backend->table->memory) backend->table->memory(backend, &mine.measured, &left);
    mine.peak = use.peak_bytes;
    world_allgather(r->world, &mine, sizeof mine, all);
    for (int i = 0; i < r->world->size; ++i) {
        if (all[i].measured <= r->summary.measured_bytes) continue;
        r->summary.memory_rank = i;
        r->summary.planned_bytes = all[i].planned;
        r->summary.measured_bytes = all[i].measured;
        r->summary.peak_bytes = all[i].peak;
    }
    mem_free(&all);
}

/* Writes the last lines of the logs. Tries for a while if the disk is full, because there is no
 * later attempt. */
static Status flush_lines(const Run *r)
{
    static const double WAIT_S = 10;
    double end_s = clock_s() + WAIT_S;
    Status st = observer_flush(r->observer);
    if (st != OK) log_warn("%s; trying again for %.0f s", fail_message(), WAIT_S);
    while (st != OK && clock_s() < end_s) {
        clock_sleep(0.5);
        st = observer_flush(r->observer);
    }
    return st;
}

/* Ends a run. st: the status of its steps. Waits for the running save. If there was no error, also
 * waits for the logs and the hook, and prints the summary. */
static Status finish(Run *r, Status st)
{
    char *why = mem_text(st == OK ? "" : fail_message());
    Status saved = run_save_wait(r);
    st = st == OK ? saved : fail(st, "%s", why);
    mem_free(&why);
    observer_end_line(r->observer);
    st = status_agree(r->world, st == OK ? flush_lines(r) : st);
    if (st == OK) run_hook_end(r);
    if (st == OK) measure_memory(r);
    if (st == OK && r->trainer->loader) sparse_report(r->trainer);
    if (st == OK && r->trainer->loader) chunk_share_report(r->trainer);
    lease_require(r->dir.lease);
    if (st == OK && r->world->rank == 0) run_ledger_write(r);
    if (st == OK && r->config->run.trace && r->world->rank == 0) st = trace_write(r->dir.trace, 0);
    if (st != OK || r->world->rank != 0) return st;
    r->summary.dir = r->dir.path;
    r->summary.newest_path = r->newest_path;
    r->summary.best_path = access(r->dir.best, R_OK) == 0 ? r->dir.best : NULL;
    r->summary.seconds = clock_s() - r->start_s;
    r->summary.samples_per_s = r->steady_s > 0 ? r->steady_rows / r->steady_s : r->rate;
    r->summary.counts_tokens = data_has_tokens(&r->trainer->train_set);
    r->summary.stopped = r->stopped;
    r->summary.ended = r->ended;
    r->summary.fresh = r->config->run.fresh;
    observer_summary(&r->summary, stdout);
    return OK;
}

/* Describes the nodes and the ranks in r->topo if there are at most TOPO_RANKS_MAX ranks. Call it
 * before threads are bound to cores. Collective. */
static void describe_nodes(Run *r)
{
    if (r->world->size > TOPO_RANKS_MAX) return;
    topo_describe(&r->topo, r->world);
    bool gpus = r->config->train.device == DEVICE_CUDA;
    if (topo_describe_hardware(&r->topo, r->world, gpus) != OK && r->world->rank == 0)
        log_warn("topo.json does not describe the nodes: %s", fail_message());
}

/* Makes the trainer. For a set of fields, passes the checkpoint from which the run will continue or
 * begin (Trainer.earlier). */
static Status new_trainer(Run *r, const World *job)
{
    const Config *c = r->config;
    char *earlier = NULL;
    const bool resumes = c->checkpoint.resume != RESUME_NO && !c->run.fresh;
    if (r->world->rank == 0 && resumes && c->data.variables.count > 0) {
        earlier = checkpoint_newest_unverified(r->dir.checkpoints);
        if (!earlier && c->checkpoint.resume == RESUME_FILE)
            earlier = mem_text(c->checkpoint.resume_path);
    }
    Status st = trainer_new_with(&r->trainer, c, r->world, job, earlier);
    mem_free(&earlier);
    return st;
}

/* Executes the run on a rank that trains. world: the ranks that train. job: all ranks including
 * servers; NULL: there are no servers. */
static Status run_ranks(const Config *config, const World *world, const World *job)
{
    Run r = {.config = config, .world = world, .lr = NAN};
    if (world->rank == 0) log_copy_begin();
    run_dir_init(&r.dir, config);
    run_time_init(&r);
    Status st = stop_before_steps(world);
    if (st == OK) describe_nodes(&r);
    /* the same result on all ranks, because they run the same program */
    if (st == OK && config->run.nvtx) st = nvtx_start();
    if (world->rank == 0) r.verified = known_files_new();
    if (st == OK)
        st = new_trainer(&r, job);
    else if (job)
        st = status_agree(job, st);
    if (st == OK) st = run_evaluations_check(&r);
    /* checked before the run's folder is made, so that a refused run leaves no folder */
    if (st == OK) st = status_agree(world, world->rank == 0 ? run_forecast(&r) : OK);
    if (st == OK) st = stop_before_steps(world);
    if (st == OK)
        st = status_agree(world,
                          world->rank == 0 ? run_dir_open(&r.dir, config->run.heartbeat_s) : OK);
    if (st == OK) st = agree_on_folder(world, &r.dir);
    if (st == OK) run_hook_begin(&r);
    if (st == OK) st = finish(&r, run_all(&r));
    hook_free(&r.hook);
    run_time_fini(&r);
    run_bad_end(&r);
    observer_free(&r.observer);
    data_watch_free(&r.data_watch);
    data_left_out_free(&r.left_out);
    train_save_free(&r.save);
    trainer_free(&r.trainer);
    log_file_pin();
    run_dir_fini(&r.dir);
    topo_fini(&r.topo);
    known_files_free(&r.verified);
    mem_free(&r.newest_path);
    mem_free(&r.saving_path);
    mem_free(&r.ended);
    ledger_fini(&r.summary.ledger);
    if (st == OK && r.stopped)
        st = fail(ERR_STOPPED,
                  "stopped early with a checkpoint: start the same command again%s to continue",
                  train_continue_hint(config));
    return st;
}

const char *train_continue_hint(const Config *config)
{
    return config->run.fresh                        ? ", but without run.fresh,"
           : config->checkpoint.resume == RESUME_NO ? ", but without checkpoint.resume=no,"
                                                    : "";
}

static Status run_without_servers(const Config *config, const World *world, void *unused)
{
    (void)unused;
    return run_ranks(config, world, NULL);
}

Status train_run(const Config *config, const World *world)
{
    int servers = (int)config->grid.servers;
    World part;
    /* train_with_rank_map refuses servers with grid.rank_map */
    if (servers == 0 || *config->grid.rank_map)
        return train_with_rank_map(config, world, run_without_servers, NULL);
    if (servers >= world->size) return sparse_no_workers(config, world->size);
    bool serves = world->rank >= world->size - servers;
    TRY(world_split(&part, world, serves));
    Status st = serves ? sparse_serve(config, world) : run_ranks(config, &part, world);
    world_part_fini(&part);
    return st;
}
