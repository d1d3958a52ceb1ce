/* Starts and ends a job: reads the configuration, and then starts MPI. For verbs that do not train,
 * this file also adapts the configuration, finds the checkpoint that the verb reads, and checks its
 * output files. */
#include "private.h"
#include "schedules.def"

#include "checkpoint.h"
#include "model.h"
#include "table.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static Status load_config(Config **config, int argc, char **argv)
{
    *config = NULL;
    if (argc == 0) return fail(ERR_USAGE, "missing configuration file; see --help");
    if (strchr(argv[0], '=') && access(argv[0], F_OK) != 0)
        return fail(ERR_USAGE, "%s: the configuration file comes first, then key=value", argv[0]);
    return config_load(config, argv[0], argc - 1, argv + 1);
}

Status job_check(Config **config, const Verb *verb, int argc, char **argv)
{
    TRY(load_config(config, argc, argv));
    const Config *c = *config;
    Status status =
        c->model.layer_count || *c->model.name
            ? zoo_check(c)
            : config_fail_key(c, "model.name", "no model: set model.name, or model.layers");
    if (status == OK && verb->traits & VERB_DATA && !c->data.train)
        status =
            config_fail_key(c, "data.train", "no training data: set data.train to an HDF5 file");
    if (status != OK) config_free(config);
    return status;
}

Status job_share_error(Status mine)
{
    if (!is_launched()) return mine;
    Job job = {0};
    char *message = mem_text(fail_message());
    terminal_adapt();
    Status status = world_init(&job.world, NULL, NULL);
    if (status == OK) status = status_agree(&job.world, fail(mine, "%s", message));
    mem_free(&message);
    return job_close(&job, status);
}

Status job_open(Job *job, int argc, char **argv)
{
    *job = (Job){.world = {.size = 1, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL}};
    Status status = load_config(&job->config, argc, argv);
    if (status != OK) return job_share_error(status);
    terminal_adapt();
    TRY(world_init(&job->world, NULL, NULL));
    TRY(status_agree(&job->world, OK));
    return job_check_same(job);
}

/* Does the work of job_find_checkpoint. Called on rank 0 only. */
static Status find_checkpoint(const Config *config, const char *given, char **path)
{
    char *dir = mem_format("%s/%s/checkpoints", config->run.dir, config->run.name);
    *path = given ? mem_text(given) : mem_format("%s/best.h5", dir);
    Status status = OK;
    if (!given && access(*path, F_OK) != 0 && errno == ENOENT) {
        mem_free(path);
        status = checkpoint_newest(dir, NULL, path);
        if (status == OK && !*path)
            status = fail(ERR_NOINPUT,
                          "%s: no checkpoint; train first, or name one with --checkpoint", dir);
    } else if (!given) {
        status = checkpoint_check_best(dir, *path);
    }
    if (status != OK) mem_free(path);
    mem_free(&dir);
    return status;
}

Status job_find_checkpoint(const Job *job, const char *given, char **path)
{
    *path = NULL;
    Status status = job->world.rank == 0 ? find_checkpoint(job->config, given, path) : OK;
    TRY(status_agree(&job->world, status));
    *path = world_bcast_text(&job->world, *path);
    return OK;
}

Status job_check_output(const Config *config, const char *out)
{
    const char *const named[] = {config->data.train, config->data.test, config->model.init_from,
                                 config->checkpoint.resume_path};
    Status status = OK;
    for (size_t i = 0; i < sizeof named / sizeof *named; ++i) {
        /* data.train and data.test are lists with one path per line */
        char *list = mem_text(named[i] ? named[i] : ""), *rest = list;
        for (const char *path; status == OK && (path = strsep(&rest, "\n"));)
            if (*path) status = file_check_not_input(out, &path, 1);
        mem_free(&list);
    }
    return status;
}

void job_drop_servers(Config *config)
{
    config->grid.servers = 0;
    config->grid.mode = UPDATE_SYNC;
    config->train.ema = 0;
    config->run.order_log[0] = config->run.replay[0] = 0;
}

void job_use_one_rank(Config *config, int64_t samples)
{
    config->grid.dp = 0;
    config->grid.pp = config->grid.tp = config->grid.chunks = 1;
    config->grid.pipeline_schedule = SCHEDULE_1F1B;
    config->grid.cuts[0] = 0;
    job_drop_servers(config);
    config->train.batch = config->train.micro_batch = samples;
    optim_use_stateless(config);
}

Status job_close(Job *job, Status status)
{
    status = status_agree(&job->world, status);
    world_fini(&job->world);
    config_free(&job->config);
    return status;
}
