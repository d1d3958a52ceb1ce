/* weft train: trains a model to the end, from the beginning or from the run's newest checkpoint. */
#include "private.h"
#include "launch/watch.h"

#include "train.h"

#include "base/start.h"

#include <unistd.h>

/* Handles --newest, which is for scripts that start a run again: prints the path of the run's
 * newest checkpoint on rank 0, or nothing if there is none. */
static Status print_newest(int argc, char **argv)
{
    Config *config = NULL;
    char *path = NULL;
    TRY(config_load(&config, argv[0], argc - 1, argv + 1));
    char *dir = mem_format("%s/%s/checkpoints", config->run.dir, config->run.name);
    Status status = checkpoint_newest(dir, NULL, &path);
    if (status == OK && path && launch_rank() == 0) puts(path);
    if (fflush(stdout) != 0) status = fail(ERR_IO, "standard output cannot be written");
    mem_free(&path);
    mem_free(&dir);
    config_free(&config);
    return status;
}

typedef struct TrainOptions {
    int64_t ranks;
    bool newest, map;
    const char *replay;
} TrainOptions;

static const Flag flags[] = {
    FLAG_RANKS(TrainOptions),
    FLAG_MAP(TrainOptions),
    {"--replay", FLAG_FIELD(TrainOptions, replay), .value = "DIR",
     .help = "repeats a run of grid.mode=async to the bit, in the order of requests in DIR "
             "(run.order_log)"},
    {"--newest", FLAG_FIELD(TrainOptions, newest),
     .help = "prints the path of the run's newest checkpoint, if it has one, and does not train"},
};

/* Ends this rank because of a stop request before the first step. If the launcher does not inform
 * the user, rank 0 prints a message. mpirun kills a job as soon as one process has failed.
 * Therefore all other ranks then wait for one second, so that rank 0 can print. */
static void stop_at_once(void)
{
    bool launcher_informs_user = watch_report_stop();
    if (!launcher_informs_user && launch_rank() > 0) sleep(1);
    if (!launcher_informs_user && launch_rank() == 0) log_info("%s", STOPPED_BEFORE_STEPS);
    _exit(ERR_STOPPED);
}

static Status run(int argc, char **argv, const void *options)
{
    static const StartCalls start = {
        .reach = watch_report_stage, .stop = stop_at_once, .check = watch_send_beat};
    const TrainOptions *o = options;
    Job job;
    if (o->newest) return print_newest(argc, argv);
    start_begin(&start);
    Words words = {0};
    for (int i = 0; i < argc; ++i) words_add(&words, mem_text(argv[i]));
    if (o->replay) words_add(&words, mem_format("run.replay=%s", o->replay));
    Status status = job_open(&job, words.count, words.word);
    words_free(words.word);
    if (status == OK && o->map) job.config->run.map = true;
    /* called again, because MPI_Init may have replaced the signal handlers */
    stop_begin();
    if (status == OK) train_use_widths(job.config, &job.world, NULL);
    if (status == OK) status = train_run(job.config, &job.world);
    start_end(false);
    return job_close(&job, status);
}

const Verb verb_train = {
    .name = "train",
    .words = "CONFIG [key=value ...]",
    .help = "trains a model, or resumes a run that has stopped",
    VERB_FLAGS(TrainOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS | VERB_DATA | VERB_LONG_RUNNING,
    .run = run,
};
