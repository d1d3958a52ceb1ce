/* weft data stats: measures the mean and deviation of the variables of a set of fields, on any
 * number of ranks, and writes them to a file, which the key data.stats names. */
#include "../private.h"

#include "train.h"

typedef struct StatsOptions {
    const char *out;
    int64_t ranks, threads;
    bool force;
} StatsOptions;

static const Flag flags[] = {
    FLAG_OUT(StatsOptions, out, "the file to write, for data.stats"),
    {"--threads", FLAG_FIELD(StatsOptions, threads), .value = "T", .lo = 1, .hi = 4096,
     .help = "threads that read, on each rank; by default the rank's share of the cores"},
    FLAG_RANKS(StatsOptions),
    FLAG_FORCE(StatsOptions, force),
};

/* Checks the output file and the configuration, and opens the training set. Called on rank 0
 * only. */
static Status open_fields(const StatsOptions *o, int argc, char **argv, DataSet *set)
{
    Config *config;
    DataWords words;
    TRY(data_words_read(argc, argv, 1, &words, &config));
    Status st = file_check_writable(o->out, o->force);
    if (st == OK && config->data.variables.count == 0)
        st = config_fail_key(config, "data.variables",
                             "names no variables: statistics are of fields");
    if (st == OK && words.is_test[0])
        st = config_fail_key(config, "data.train",
                             "names no data: statistics are of the training set");
    if (st == OK) st = data_words_open(&words, 0, config, set);
    config_free(&config);
    return st;
}

static Status measure(const World *world, const StatsOptions *o, int argc, char **argv)
{
    const int threads = o->threads ? (int)o->threads : threads_share(world->node_size);
    const double begun = clock_s();
    DataSet *set = mem_new(sizeof *set);
    FieldStats *stats = mem_new(sizeof *stats);
    Status st = status_agree(world, world->rank == 0 ? open_fields(o, argc, argv, set) : OK);
    if (st == OK) {
        train_bcast_set(world, set);
        st = train_measure_fields(world, set, stats, threads);
    }
    if (st == OK)
        st =
            status_agree(world, world->rank == 0 ? data_fields_stats_save(set, stats, o->out) : OK);
    if (st == OK && world->rank == 0)
        printf("%s: mean and deviation of %d variables, measured in %.1f s\n", o->out,
               data_fields_measured(set), clock_s() - begun);
    mem_free(&stats);
    data_set_fini(set);
    mem_free(&set);
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    World world;
    /* hdf5_begin makes a process that reads the metadata of the files, and must be called before
     * MPI starts */
    if (launch_rank() == 0) hdf5_begin();
    if (is_launched()) terminal_adapt();
    TRY(world_init(&world, NULL, NULL));
    Status st = measure(&world, options, argc, argv);
    world_fini(&world);
    return st;
}

const Verb verb_data_stats = {
    .name = "data stats",
    .words = "CONFIG.yaml|FILE [key=value ...]",
    .words_min = 1,
    .expects = "a configuration or a data file, and -o OUT",
    .help = "measures mean and deviation of fields, for data.stats",
    .more = "Reads all frames of data.train once. OUT has a line for each variable and level, and "
            "for each change that data.predict asks for. Under mpirun or srun all ranks read. OUT "
            "has the same bytes for any number of ranks and threads.",
    VERB_FLAGS(StatsOptions, flags),
    .traits = VERB_LONG_RUNNING,
    .run = run,
};
