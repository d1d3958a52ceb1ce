/* weft plan: prints the layers, stages, memory, messages and the schedule of a run on any number of
 * ranks. The output is made from the plan and the schedule that training itself executes. No rank
 * is started, and the run's memory is not allocated. With --input, no data set is opened either. */
#include "../private.h"

#include "plan_choose.h"
#include "plan_view.h"

#include "topo.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* width of the picture of the schedule, in characters, if stdout is not a terminal */
enum { COLUMNS_DEFAULT = 100 };

typedef struct PlanFlags {
    const char *svg, *gpu, *input, *link, *machine;
    /* If a flag is not given, its value is 0, or -1 for `stage`. */
    int64_t ranks, stage, samples, top;
    bool json, choose, any_bits;
} PlanFlags;

static const Flag flags[] = {
    {"--ranks", FLAG_FIELD(PlanFlags, ranks), .value = "N", .lo = 1, .hi = INT32_MAX,
     .help = "plan for N ranks instead of those of grid; grid.dp is computed"},
    {"--stage", FLAG_FIELD(PlanFlags, stage), .value = "S", .hi = INT32_MAX, .excludes = "--choose",
     .help = "also print the memory and chunks of this stage; with --json only this stage"},
    {"--gpu", FLAG_FIELD(PlanFlags, gpu), .value = "NAME",
     .help = "with train.device=cuda: plan for an h100, h200 or a100, also if this machine has "
             "none"},
    {"--input", FLAG_FIELD(PlanFlags, input), .value = INPUT_VALUE,
     .help = "shape of a sample, as 3x224x224, or numbers and fields of ids, as 13+26, so that "
             "no data set is opened; model.classes gives the number of classes, model.vocab that "
             "of tokens"},
    {"--samples", FLAG_FIELD(PlanFlags, samples), .value = "N", .lo = 1, .hi = 1e15,
     .needs = "--input", .help = "samples in an epoch; by default one batch"},
    {"--link", FLAG_FIELD(PlanFlags, link), .value = "US,GBPS", .default_text = PLAN_LINK,
     .help = "network between nodes: microseconds per message, and GB/s; for the estimated time "
             "of sums"},
    {"--machine", FLAG_FIELD(PlanFlags, machine), .value = "FILE",
     .help = "times measured by weft bench machine, from which the time of a step is forecast"},
    {"--choose", FLAG_FIELD(PlanFlags, choose),
     .help =
         "forecast all grids, schedules, zero and recompute of the ranks that fit in memory, and "
         "print the fastest"},
    {"--top", FLAG_FIELD(PlanFlags, top), .value = "N", .lo = 1, .hi = 1000, .needs = "--choose",
     .default_text = "10", .help = "number of plans that --choose prints"},
    {"--any-bits", FLAG_FIELD(PlanFlags, any_bits), .needs = "--choose",
     .help = "also plans whose bits hold on some grids only, each marked"},
    {"--svg", FLAG_FIELD(PlanFlags, svg), .value = "FILE", .writes = true, .excludes = "--choose",
     .help = "write a picture of the schedule"},
    {"--json", FLAG_FIELD(PlanFlags, json), .help = "one JSON object; bytes are those of one rank"},
};

/* ---- ranks ---- */

/* Sets *ranks to the number of ranks: the value of --ranks; if it is not given, the launcher's
 * number of ranks; without a launcher, the number of ranks in the configuration's grid plus the
 * servers. given: value of --ranks; 0: not given. */
static Status count_ranks(const Config *config, const World *world, int64_t given, int *ranks)
{
    const int64_t replicas = config->grid.dp > 0 ? config->grid.dp : 1;
    int64_t count = replicas * config->grid.pp * config->grid.tp + config->grid.servers;
    if (is_launched()) count = world->size;
    if (given > 0) count = given;
    if (count > INT32_MAX)
        return config_fail_key(config, "grid.dp", "%lld ranks are more than MPI can number",
                               (long long)count);
    *ranks = (int)count;
    return OK;
}

/* If the number of ranks comes from --ranks or the launcher, sets grid.dp to 0, so that the number
 * of replicas follows from the number of ranks. ERR_USAGE: the ranks without the servers are no
 * multiple of a replica's ranks. given: value of --ranks; 0: not given. */
static Status fit_replicas(Config *config, int64_t given, int ranks)
{
    int64_t replica = config->grid.pp * config->grid.tp, servers = config->grid.servers;
    int64_t computing = ranks - servers;
    if (given == 0 && !is_launched()) return OK;
    config->grid.dp = 0;
    /* trainer_dry_run refuses a grid of servers only */
    if (computing % replica == 0 || computing < 1) return OK;
    int64_t below = computing / replica * replica;
    char fewer[32] = "", without[48] = "";
    if (below) snprintf(fewer, sizeof fewer, "%lld or ", (long long)(below + servers));
    if (servers)
        snprintf(without, sizeof without, " without grid.servers %lld", (long long)servers);
    return fail(ERR_USAGE,
                "%d ranks%s are no multiple of grid.pp %lld x grid.tp %lld: use --ranks %s%lld",
                ranks, without, (long long)config->grid.pp, (long long)config->grid.tp, fewer,
                (long long)(below + replica + servers));
}

/* ---- the view ---- */

/* Estimates the cost of nodes `first` to `last` - 1. The time of a node that has a backward is
 * divided into forward and backward in proportion to their flops. If the node has weights to train,
 * its backward is divided into two equal halves: one for gradients of data, and one for gradients
 * of weights. */
static TaskCost chunk_cost(const Trainer *t, int first, int last)
{
    TaskCost cost = {0};
    for (int i = first; i < last; ++i) {
        const Node *node = &trainer_graph(t)->node[i];
        double seconds = node_cost(node), forward = node->op->flops_forward,
               backward = node->op->flops_backward;
        /* without known flops, backward is assumed to take twice the time of forward */
        double forward_part = forward + backward > 0 ? forward / (forward + backward) : 1.0 / 3;
        bool trains = op_has_values(&node->spec) && !node->spec.frozen, has_backward = trains;
        for (int k = 0; k < node->spec.x_count; ++k)
            has_backward = has_backward || node->spec.need_dx[k];
        if (!has_backward) forward_part = 1;
        double weight_s = trains ? seconds * (1 - forward_part) / 2 : 0;
        cost.forward += seconds * forward_part;
        cost.backward_data += seconds * (1 - forward_part) - weight_s;
        cost.backward_weight += weight_s;
    }
    return cost;
}

/* Sets all fields about costs, and the largest and the slowest stage. */
static void add_costs(PlanView *v)
{
    const Trainer *t = v->trainer;
    const int *cuts = trainer_cuts(t);
    v->cost = mem_new((size_t)v->chunks * sizeof *v->cost);
    for (int c = 0; c < v->chunks; ++c) {
        v->cost[c] = chunk_cost(t, cuts[c], cuts[c + 1]);
        double seconds = task_cost_passes(&v->cost[c]);
        v->stage_view[view_stage(v, c)].cost_s += seconds;
        v->cost_s += seconds;
    }
    for (int s = 0; s < v->stages; ++s) {
        const StageView *stage = v->stage_view;
        if (stage[s].cost_s > stage[v->slowest].cost_s) v->slowest = s;
        if (stage[s].bytes.all > stage[v->largest].bytes.all) v->largest = s;
    }
}

static Status view_fill(PlanView *v)
{
    const Trainer *t = v->trainer;
    const Schedule *schedule = trainer_schedule(t);
    v->stages = trainer_shape(t).pp;
    v->chunks = v->stages * schedule->shape.chunks_per_stage;
    v->stage_view = mem_new((size_t)v->stages * sizeof *v->stage_view);
    for (int s = 0; s < v->stages; ++s) {
        TRY(train_plan_stage(t, s, &v->stage_view[s].plan));
        v->stage_view[s].bytes = train_bytes(t, v->stage_view[s].plan);
    }
    add_costs(v);
    TRY(schedule_simulate(schedule, NULL, &v->equal));
    return schedule_simulate(schedule, v->cost, &v->real);
}

static void view_fini(PlanView *v)
{
    for (int s = 0; v->stage_view && s < v->stages; ++s) plan_free(&v->stage_view[s].plan);
    schedule_report_fini(&v->equal);
    schedule_report_fini(&v->real);
    mem_free(&v->stage_view);
    mem_free(&v->cost);
    trainer_free(&v->trainer);
}

static int stage_of(const PlanView *v, int node)
{
    int chunk = 0;
    while (node >= trainer_cuts(v->trainer)[chunk + 1]) ++chunk;
    return view_stage(v, chunk);
}

size_t view_tied_bytes(const PlanView *v, int param, int *from, int *to)
{
    const Graph *g = trainer_graph(v->trainer);
    const Param *p = &g->param[param];
    if (p->tied_param < 0) return 0;
    *from = stage_of(v, g->param[p->tied_param].node);
    *to = stage_of(v, p->node);
    return *from == *to ? 0 : (size_t)p->elements * sizeof(float);
}

/* ---- the verb ---- */

static int terminal_columns(void)
{
    struct winsize size;
    bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
}

static Status write_svg(const PlanView *v, const char *path)
{
    FILE *file = file_create_stream(path);
    if (!file) return fail(ERR_IO, "--svg %s: cannot be written: %s", path, file_error(errno));
    schedule_svg(trainer_schedule(v->trainer), &v->real, file);
    return file_close_stream(file, path);
}

static Status show(const PlanView *v, const PlanFlags *o)
{
    if (o->svg) TRY(write_svg(v, o->svg));
    if (o->json)
        plan_view_json(v, stdout);
    else
        plan_view_text(v, terminal_columns(), stdout);
    return OK;
}

/* Describes the samples in *set as --input says. Without --input it leaves *set as it is and checks
 * that data.train is set. */
static Status take_input(const Config *config, const PlanFlags *o, DataSet *set)
{
    Input input;
    if (!o->input) {
        if (config->data.train) return OK;
        return config_fail_key(config, "data.train",
                               "no training data: set data.train to an HDF5 file, or give the "
                               "shape of a sample: --input 3x224x224 or --input tokens");
    }
    TRY(input_parse(o->input, &input));
    return input_describe_set(set, &input, config,
                              o->samples > 0 ? o->samples : config->train.batch);
}

/* The file with the times of the machine for which the plan is made. */
typedef struct MachineFile {
    /* path of the file, borrowed; "": there is none, and `times` is zeroed */
    const char *path;
    /* content of the file; owned */
    Machine times;
} MachineFile;

/* Returns the number of ranks on a node of the machine. ranks: number of all ranks. */
static int ranks_on_node(const Machine *times, int ranks)
{
    return ranks < times->ranks ? ranks : times->ranks;
}

/* Reads the machine's file, if there is one. If train.threads is not set, sets it to the machine's
 * number of threads. If train.memory is not set, sets it to a rank's share of the machine's
 * memory. */
static Status take_machine(Config *config, const PlanFlags *o, int ranks, MachineFile *machine)
{
    machine->path = o->machine ? o->machine : config->run.machine;
    if (!*machine->path) return OK;
    TRY(machine_read(&machine->times, machine->path));
    const Machine *times = &machine->times;
    if (config->train.threads == 0) config->train.threads = times->threads;
    if (config->train.memory == 0)
        config->train.memory = times->memory_bytes / ranks_on_node(times, ranks);
    return OK;
}

static Status choose(const Job *job, const PlanFlags *o, const MachineFile *machine,
                     const DryRun *dry_run)
{
    const Config *config = job->config;
    if (!*machine->path) return fail(ERR_USAGE, "--choose needs times: --machine FILE");
    /* if neither the configuration nor the machine's file gives a limit: a rank's share of the
     * memory of this host */
    double memory = config->train.memory > 0
                        ? config->train.memory
                        : memory_limit("").bytes / ranks_on_node(&machine->times, dry_run->ranks);
    if (config->train.micro_batch == 0)
        return config_fail_key(config, "train.micro_batch",
                               "set it for --choose: it is a part of the results, and each plan "
                               "has the same");
    const ChooseInput from = {.config = config,
                              .world = &job->world,
                              .data = dry_run->data,
                              .machine = &machine->times,
                              .path = machine->path,
                              .memory = memory,
                              .ranks = dry_run->ranks,
                              .batch = config->train.batch,
                              .micro_batches = config->train.batch / config->train.micro_batch,
                              .top = (int)o->top,
                              .any_bits = o->any_bits,
                              .json = o->json};
    return plan_choose(&from, stdout);
}

static Status view_forecast(PlanView *v, const MachineFile *machine)
{
    const Plan **plan = mem_new((size_t)v->stages * sizeof *plan);
    const ForecastMachine by = {&machine->times, machine->path, .median_only = false};
    for (int s = 0; s < v->stages; ++s) plan[s] = v->stage_view[s].plan;
    Status st = train_forecast(v->trainer, plan, &by, &v->forecast);
    if (st == OK) v->files = train_file_forecast(v->trainer, &machine->times);
    mem_free(&plan);
    return st;
}

/* Checks that the file of grid.rank_map, if one is given, fits the number of ranks. */
static Status check_places(const Config *config, int ranks)
{
    const char *path = config->grid.rank_map;
    int *map = NULL;
    if (!*path || strcmp(path, "auto") == 0) return OK;
    TRY(places_read(&map, ranks, path));
    mem_free(&map);
    return OK;
}

static Status plan(const Job *job, const PlanFlags *o, const MachineFile *machine,
                   const DryRun *dry_run)
{
    PlanView v = {.stage = (int)o->stage, .has_forecast = *machine->path};
    TRY(view_parse_link(o->link, &v.link));
    if (v.stage >= job->config->grid.pp)
        return fail(ERR_USAGE, "--stage %d: there are stages 0 to %lld (grid.pp %lld)", v.stage,
                    (long long)job->config->grid.pp - 1, (long long)job->config->grid.pp);
    TRY(check_places(job->config, dry_run->ranks));
    Status status = trainer_dry_run(&v.trainer, job->config, &job->world, dry_run);
    if (status == OK) status = view_fill(&v);
    if (status == OK && v.has_forecast) status = view_forecast(&v, machine);
    if (status == OK && job->world.rank == 0) status = show(&v, o);
    view_fini(&v);
    return status;
}

static Status run_job(const Job *job, const PlanFlags *o)
{
    int ranks = 0;
    DataSet set;
    MachineFile machine = {0};
    TRY(count_ranks(job->config, &job->world, o->ranks, &ranks));
    if (!o->choose) TRY(fit_replicas(job->config, o->ranks, ranks));
    TRY(take_input(job->config, o, &set));
    train_use_widths(job->config, &job->world, NULL);
    if (o->gpu && job->config->train.device != DEVICE_CUDA)
        return fail(ERR_USAGE, "--gpu %s: the plan is for CPUs; for GPUs set train.device=cuda",
                    o->gpu);
    TRY(take_machine(job->config, o, ranks, &machine));
    const DryRun dry_run = {ranks, o->gpu, o->input ? &set : NULL, machine.times.ranks};
    Status status = (o->choose ? choose : plan)(job, o, &machine, &dry_run);
    machine_fini(&machine.times);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, options);
    return job_close(&job, status);
}

const Verb verb_plan = {
    .name = "plan",
    .words = "CONFIG [key=value ...]",
    .help = "prints layers, stages, memory, messages and schedule of a run of any size, without "
            "running it",
    VERB_FLAGS(PlanFlags, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
