/* weft train: the whole run. */
#include "private.h"

#include "train.h"

/* What a script that starts runs again wants to know: how far has this one come? */
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

Status verb_train(int argc, char **argv)
{
    Job job;
    bool newest = false;
    const Flag flags[] = {{"--newest", NULL, &newest}};
    TRY(flags_take(&argc, argv, flags, 1));
    if (newest) return print_newest(argc, argv);
    Status status = job_open(&job, argc, argv);
    stop_begin(); /* again: MPI may have handlers of its own */
    if (status == OK) status = train_run(job.config, &job.world);
    return job_close(&job, status);
}
