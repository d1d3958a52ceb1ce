/* weft data make shallow-water, burgers and kolmogorov: make sets of fields, which solvers compute
 * on any number of ranks. This file has only the verbs; the solvers are in the data module. */
#include "import_ranks.h"

#include "data/flow.h"

/* Options of the three kinds of flow. Each kind has flags only for the options that it uses; all
 * other options keep their defaults. */
typedef struct FlowOptions {
    const char *out, *size;
    int64_t members, first, steps, seed, threads, ranks, waves;
    double interval, spin_up, viscosity, depth, orography, drag;
    bool labels, force;
} FlowOptions;

/* The flags that all kinds have. The defaults of --size, --interval and --spin-up, and the unit of
 * time, depend on the kind. */
#define FLAGS(size_text, interval_text, spin_up_text, unit)                                        \
    FLAG_OUT(FlowOptions, out, "folder for the files member-000.nc, member-001.nc, ..."),          \
        {"--size", FLAG_FIELD(FlowOptions, size), .value = "HxW", .default_text = size_text,       \
         .help = "rows (along y) and columns (along x) of the grid"},                              \
        {"--members",                                                                              \
         FLAG_FIELD(FlowOptions, members),                                                         \
         .value = "M",                                                                             \
         .lo = 1,                                                                                  \
         .hi = 1e6,                                                                                \
         .default_text = "10",                                                                     \
         .help = "number of trajectories, each from its own initial state, in a file each"},       \
        {"--first",                                                                                \
         FLAG_FIELD(FlowOptions, first),                                                           \
         .value = "N",                                                                             \
         .hi = 1e9,                                                                                \
         .default_text = "0",                                                                      \
         .help = "number of the first member; a test set has other members of the same seed"},     \
        {"--steps",                                                                                \
         FLAG_FIELD(FlowOptions, steps),                                                           \
         .value = "T",                                                                             \
         .lo = 1,                                                                                  \
         .hi = 1e7,                                                                                \
         .default_text = "100",                                                                    \
         .help = "number of saved frames of a trajectory"},                                        \
        {"--interval",                                                                             \
         FLAG_FIELD(FlowOptions, interval),                                                        \
         .value = unit,                                                                            \
         .lo_open = true,                                                                          \
         .hi = 1e6,                                                                                \
         .default_text = interval_text,                                                            \
         .help = "time between two saved frames; the solver takes shorter steps"},                 \
        {"--spin-up",                                                                              \
         FLAG_FIELD(FlowOptions, spin_up),                                                         \
         .value = unit,                                                                            \
         .hi = 1e6,                                                                                \
         .default_text = spin_up_text,                                                             \
         .help = "time from the initial state to the first saved frame"},                          \
        {"--labels", FLAG_FIELD(FlowOptions, labels),                                              \
         .help = "also write the regime of each cell as a label: background, vortex or strain"},   \
        {"--seed",                                                                                 \
         FLAG_FIELD(FlowOptions, seed),                                                            \
         .value = "S",                                                                             \
         .hi = FLAG_WHOLE_MAX,                                                                     \
         .default_text = "0",                                                                      \
         .help = "seed of the initial states"},                                                    \
        {"--threads",                                                                              \
         FLAG_FIELD(FlowOptions, threads),                                                         \
         .value = "T",                                                                             \
         .lo = 1,                                                                                  \
         .hi = 1024,                                                                               \
         .help = "threads of each rank, each for a member at a time; by default its share of the " \
                 "cores"},                                                                         \
        FLAG_RANKS(FlowOptions), FLAG_FORCE(FlowOptions, force)

static const Flag shallow_water_flags[] = {
    FLAGS("64x128", "3", "0", "HOURS"),
    {"--viscosity", FLAG_FIELD(FlowOptions, viscosity), .value = "NU", .hi = 1e30,
     .help = "hyperviscosity in m^4/s; by default such that the shortest waves fall to 1/e in 4 "
             "hours"},
    {"--depth", FLAG_FIELD(FlowOptions, depth), .value = "METRES", .lo = 100, .hi = 1e5,
     .default_text = "2000", .help = "mean height of the surface"},
    {"--orography", FLAG_FIELD(FlowOptions, orography), .value = "METRES", .hi = 1e5,
     .default_text = "0",
     .help = "largest height of five mountains, which are the same for all members; 0: flat"},
};
static const Flag burgers_flags[] = {
    FLAGS("64x64", "0.05", "0", "SECONDS"),
    {"--viscosity", FLAG_FIELD(FlowOptions, viscosity), .value = "NU", .hi = 1e6,
     .help = "viscosity; by default half of a cell's side, so that fronts are some cells wide"},
};
static const Flag kolmogorov_flags[] = {
    FLAGS("64x64", "0.1", "20", "SECONDS"),
    {"--viscosity", FLAG_FIELD(FlowOptions, viscosity), .value = "NU", .hi = 1e6,
     .help = "viscosity; by default the area of a cell"},
    {"--drag", FLAG_FIELD(FlowOptions, drag), .value = "D", .hi = 1e3, .default_text = "0.1",
     .help = "friction: the share of the velocity that is lost in a second"},
    {"--waves", FLAG_FIELD(FlowOptions, waves), .value = "K", .lo = 1, .hi = 1000,
     .default_text = "4", .help = "waves of the forcing sin(K y) from south to north"},
};

static Status make_set(const ImportRanks *ranks, int threads, const void *user)
{
    FlowMake make = *(const FlowMake *)user;
    make.threads = threads;
    return data_make_flow(&make, ranks);
}

static Status run(const FlowKind *kind, int argc, char **argv, const FlowOptions *o)
{
    int64_t size[2];
    if (argc > 0) return fail(ERR_USAGE, "%s: this command takes flags only", argv[0]);
    if (!sizes_read(o->size, 2, size))
        return fail(ERR_USAGE, "--size %s: expected rows and columns, such as 64x128", o->size);
    const FlowMake make = {
        .kind = kind,
        .out = o->out,
        .height = size[0],
        .width = size[1],
        .members = o->members,
        .first_member = o->first,
        .frames = o->steps,
        .interval = o->interval,
        .spin_up = o->spin_up,
        .viscosity = o->viscosity,
        .depth = o->depth,
        .orography = o->orography,
        .drag = o->drag,
        .waves = o->waves,
        .seed = (uint64_t)o->seed,
        .labels = o->labels,
        .force = o->force,
    };
    return import_on_ranks(make_set, "frames", false, o->threads, &make);
}

static Status run_shallow_water(int argc, char **argv, const void *options)
{
    return run(&flow_shallow_water, argc, argv, options);
}

static Status run_burgers(int argc, char **argv, const void *options)
{
    return run(&flow_burgers, argc, argv, options);
}

static Status run_kolmogorov(int argc, char **argv, const void *options)
{
    return run(&flow_kolmogorov, argc, argv, options);
}

#define SAME_BYTES                                                                                 \
    " Under mpirun or srun all ranks work. A member's file depends on the options and its number " \
    "only, not on ranks and threads. docs/flow-data.md has the equations."

const Verb verb_data_make_shallow_water = {
    .name = "data make shallow-water",
    .help = "solves shallow water in a rotating channel: thickness and velocity",
    .more = "The channel is 6400 km wide, periodic along x, with walls in the south and in the "
            "north, on a beta plane at 45 degrees. Jets disturbed by vortices become unstable." //
    SAME_BYTES,
    VERB_FLAGS(FlowOptions, shallow_water_flags),
    .traits = VERB_NO_TRAITS,
    .run = run_shallow_water,
};

const Verb verb_data_make_burgers = {
    .name = "data make burgers",
    .help = "solves Burgers' equation in two dimensions: velocity with steep fronts",
    .more = "The box is periodic along both sides; its height is 2 pi. Initial states are random "
            "waves with a root mean square of 1; the flow decays." //
    SAME_BYTES,
    VERB_FLAGS(FlowOptions, burgers_flags),
    .traits = VERB_NO_TRAITS,
    .run = run_burgers,
};

const Verb verb_data_make_kolmogorov = {
    .name = "data make kolmogorov",
    .help = "solves turbulence in two dimensions under a steady forcing: vorticity and velocity",
    .more = "The box is periodic along both sides; its height is 2 pi. Members begin with random "
            "vorticity, which --spin-up lets them forget." //
    SAME_BYTES,
    VERB_FLAGS(FlowOptions, kolmogorov_flags),
    .traits = VERB_NO_TRAITS,
    .run = run_kolmogorov,
};
