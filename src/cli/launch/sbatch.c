/* weft sbatch: writes a job script that needs no editing. If the numbers of ranks and nodes are not
 * given, they are computed from the configuration's grid. Without --mem, the memory per node is
 * computed from the plan of the node's ranks. Refuses a grid that cannot be distributed over the
 * nodes and a run that the planner refuses. Without --force, it also refuses to replace a file. */
#include "../private.h"

#include "sbatch.h"
#include "train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const Verb verb_sbatch;
enum {
    NODES_MAX = 65536,
    TASKS_MAX = 4096,
    CPUS_MAX = 4096,
    GPUS_MAX = 64,
    LINKS_MAX = 1000,
    SBATCH_RANKS_MAX = 1 << 20
};
/* default number of cores of a rank with a GPU: for its main thread, its loader, and the threads of
 * NCCL and CUDA */
enum { GPU_CPUS = 4 };

static const Flag flags[] = {
    {"--nodes", FLAG_FIELD(SbatchOptions, nodes), .value = "N", .lo = 1, .hi = NODES_MAX,
     .help = "number of nodes; by default the fewest that the ranks of the grid need"},
    {"--ntasks-per-node", FLAG_FIELD(SbatchOptions, tasks), .value = "N", .lo = 1, .hi = TASKS_MAX,
     .help = "ranks on each node; by default the ranks of the grid, divided by the nodes"},
    {"--cpus-per-task", FLAG_FIELD(SbatchOptions, cpus), .value = "N", .lo = 1, .hi = CPUS_MAX,
     .help = "cores of each rank; by default train.threads, else 1; with --gpus 4"},
    {"--gpus", FLAG_FIELD(SbatchOptions, gpus), .value = "N", .lo = 1, .hi = GPUS_MAX,
     .help = "GPUs of each node; one rank for each, with train.device=cuda"},
    {"--time", FLAG_FIELD(SbatchOptions, time), .value = "TIME", .default_text = "4h",
     .help = "time limit of a job; 12h, 90m, 12:00:00, 1-12:00:00. The run may need several jobs"},
    {"--mem", FLAG_FIELD(SbatchOptions, memory), .value = "SIZE",
     .help = "memory of a node, as in sbatch; by default what the plan needs, and a margin"},
    {"--partition", FLAG_FIELD(SbatchOptions, partition), .value = "NAME", .help = "as in sbatch"},
    {"--account", FLAG_FIELD(SbatchOptions, account), .value = "NAME", .help = "as in sbatch"},
    {"--mpi", FLAG_FIELD(SbatchOptions, mpi), .value = "TYPE", .default_text = "pmix",
     .help = "as in srun"},
    {"--more", FLAG_FIELD(SbatchOptions, more), .value = "OPTIONS",
     .help = "other options for sbatch; \"--qos=long --constraint=ib\""},
    {"--array", FLAG_FIELD(SbatchOptions, array), .value = "LIST",
     .help = "one run for each number of a list; 1-8%2. The number is the run's seed and part of "
             "its name"},
    {"--chain", FLAG_FIELD(SbatchOptions, chain), .value = "N", .lo = 1, .hi = LINKS_MAX,
     .help = "N jobs, one after the other, instead of one that is requeued"},
    {"--hosts", FLAG_FIELD(SbatchOptions, hosts), .value = "FILE",
     .help = "for hosts without Slurm; the script uses mpirun on the hosts of this file"},
    {"--any-config", FLAG_FIELD(SbatchOptions, any_config),
     .help = "the script accepts CONFIG and key=value as its arguments, after FILE with --hosts; "
             "no memory is planned"},
    {"-o", FLAG_FIELD(SbatchOptions, out), .value = "FILE", .writes = true,
     .help = "file for the script; by default standard output"},
    FLAG_FORCE(SbatchOptions, force),
};

/* ---- options ---- */

/* Refuses options that contradict each other, and --chain without -o. */
static Status check_together(const SbatchOptions *o)
{
    if (o->array && o->chain)
        return fail(ERR_USAGE, "--array and --chain cannot be combined: each task of an array is "
                               "requeued until its run is complete");
    if (o->chain && !o->out)
        return fail(ERR_USAGE, "--chain needs -o FILE: that file submits the chain's jobs");
    if (o->hosts && (o->array || o->chain || o->partition || o->account || o->more || o->memory))
        return fail(ERR_USAGE, "--hosts is for hosts without Slurm: leave --array, --chain, "
                               "--partition, --account, --mem and --more out");
    if (o->gpus && o->tasks && o->tasks != o->gpus)
        return fail(ERR_USAGE,
                    "--ntasks-per-node %lld, --gpus %lld: a rank has one GPU, so leave "
                    "--ntasks-per-node out",
                    (long long)o->tasks, (long long)o->gpus);
    return OK;
}

/* ---- ranks and nodes ---- */

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Chooses the number of nodes, and the number of ranks per node, unless they are given. If grid.dp
 * is set, all nodes together have the ranks of the grid. Otherwise they have the smallest possible
 * number of complete replicas. */
static Status choose_nodes(const Config *config, Script *s)
{
    int64_t dp = config->grid.dp, replica = config->grid.pp * config->grid.tp, all = dp * replica;
    if (config->grid.servers > 0)
        return config_fail_key(config, "grid.servers",
                               "weft sbatch plans no servers: jobs/slurm-servers.sh starts them, "
                               "on nodes of their own");
    if (all > SBATCH_RANKS_MAX || replica > SBATCH_RANKS_MAX)
        return config_fail_key(config, "grid.dp", "%lld ranks are more than weft starts",
                               (long long)(all ? all : replica));
    if (!s->nodes && !s->tasks) s->nodes = 1;
    if (!s->tasks)
        s->tasks = all ? all / s->nodes : replica / greatest_common_divisor(replica, s->nodes);
    if (!s->nodes)
        s->nodes = all ? all / s->tasks : replica / greatest_common_divisor(replica, s->tasks);
    int64_t ranks = s->nodes * s->tasks;
    if (all && ranks != all)
        return config_fail_key(config, "grid.dp",
                               "the grid has %lld ranks (dp %lld x pp %lld x tp %lld), and %lld "
                               "nodes x %lld ranks are %lld: choose --nodes and --ntasks-per-node "
                               "that make %lld, or leave grid.dp out",
                               (long long)all, (long long)dp, (long long)config->grid.pp,
                               (long long)config->grid.tp, (long long)s->nodes, (long long)s->tasks,
                               (long long)ranks, (long long)all);
    if (ranks % replica != 0)
        return fail(ERR_USAGE,
                    "%lld nodes x %lld ranks are no multiple of grid.pp %lld x grid.tp %lld",
                    (long long)s->nodes, (long long)s->tasks, (long long)config->grid.pp,
                    (long long)config->grid.tp);
    if (ranks > SBATCH_RANKS_MAX)
        return fail(ERR_USAGE, "%lld ranks are more than weft starts", (long long)ranks);
    return OK;
}

static Status choose_cores(const Config *config, const SbatchOptions *o, Script *s)
{
    int64_t threads = config->train.threads;
    s->cpus = o->cpus ? o->cpus : threads ? threads : o->gpus ? GPU_CPUS : 1;
    if (threads <= s->cpus) return OK;
    return fail(ERR_USAGE, "--cpus-per-task %lld: train.threads is %lld; each thread needs a core",
                (long long)s->cpus, (long long)threads);
}

static Status check_device(const Config *config, const SbatchOptions *o)
{
    if (o->gpus && config->train.device == DEVICE_CPU)
        return config_fail_key(config, "train.device", "cpu, but --gpus requests GPUs");
    if (!o->gpus && config->train.device == DEVICE_CUDA && !o->hosts)
        return config_fail_key(config, "train.device",
                               "cuda: give the number of GPUs per node by --gpus");
    return OK;
}

/* ---- arguments of the run ---- */

/* Adds CONFIG and the key=value words to w: those of the command line, and those that the options
 * imply. Tasks of an array get their own names and seeds, so run.name is left out. Without --gpus,
 * train.threads is added if the configuration does not set it, so that results do not depend on the
 * node's number of cores. */
static Status make_words(const Config *config, const SbatchOptions *o, const Script *s, int argc,
                         char **argv, Words *w)
{
    for (int i = 0; i < argc; ++i) {
        if (i > 0 && o->array && !strncmp(argv[i], "run.seed=", strlen("run.seed=")))
            return fail(ERR_USAGE,
                        "%s: each task of an array has its number as its seed: leave "
                        "run.seed out",
                        argv[i]);
        if (i == 0 || !o->array || strncmp(argv[i], "run.name=", strlen("run.name=")) != 0)
            words_add(w, mem_text(argv[i]));
    }
    if (o->gpus && config->train.device != DEVICE_CUDA) words_add(w, mem_text("train.device=cuda"));
    if (!o->gpus && !config->train.threads)
        words_add(w, mem_format("train.threads=%lld", (long long)s->cpus));
    return OK;
}

/* ---- memory ---- */

/* Computes the planned host memory of each node's ranks. *most: memory of the node that needs most,
 * in bytes; must be 0 before the call. */
static Status plan_node_bytes(const Trainer *t, const Script *s, double *most)
{
    GridShape shape = trainer_shape(t);
    bool gpu = trainer_backend(t)->table->memory != NULL;
    double *stage = mem_new((size_t)shape.pp * sizeof *stage);
    Status status = OK;
    for (int i = 0; status == OK && i < shape.pp; ++i) {
        Plan *plan = NULL;
        status = train_plan_stage(t, i, &plan);
        if (status != OK) break;
        TrainBytes bytes = train_bytes(t, plan);
        stage[i] = (double)(gpu ? bytes.host : bytes.all);
        plan_free(&plan);
    }
    int64_t rank = 0, replicas = (int64_t)shape.dp * shape.tp;
    for (int64_t node = 0; status == OK && node < s->nodes; ++node) {
        double sum = 0;
        for (int64_t end = rank + s->tasks; rank < end; ++rank) sum += stage[rank / replicas];
        *most = fmax(*most, sum);
    }
    mem_free(&stage);
    return status;
}

static Status plan_memory(const Words *w, Script *s)
{
    Job job;
    Trainer *trainer = NULL;
    Status status = job_open(&job, w->count, w->word);
    if (status == OK) {
        const DryRun dry_run = {.ranks = (int)(s->nodes * s->tasks), .node_ranks = (int)s->tasks};
        status = trainer_dry_run(&trainer, job.config, &job.world, &dry_run);
    }
    if (status == OK) status = plan_node_bytes(trainer, s, &s->planned_bytes);
    trainer_free(&trainer);
    status = job_close(&job, status);
    double rank_bytes = 1e6 * (s->gpus ? SCRIPT_GPU_RANK_MB : SCRIPT_RANK_MB);
    double bytes = s->planned_bytes * (1 + SCRIPT_MARGIN) + (double)s->tasks * rank_bytes +
                   1e6 * SCRIPT_NODE_MB;
    s->memory_mib = (int64_t)ceil(bytes / (1 << 20));
    return status;
}

/* ---- the file ---- */

static Status check_file(const char *path, bool force)
{
    struct stat file;
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? OK : fail(ERR_IO, "-o %s: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return fail(ERR_USAGE, "-o %s: is a %s, not a regular file; choose another name", path,
                    S_ISLNK(file.st_mode) ? "symbolic link" : "folder or device");
    if (!force)
        return fail(ERR_USAGE,
                    "-o %s: this file is already there; choose another name, or replace it with "
                    "--force",
                    path);
    return OK;
}

static Status write_all(int fd, const char *text, size_t bytes, const char *path)
{
    bool good = true;
    for (size_t done = 0; good && done < bytes;) {
        ssize_t written = write(fd, text + done, bytes - done);
        good = written > 0 || (written < 0 && errno == EINTR);
        if (written > 0) done += (size_t)written;
    }
    int error = errno;
    if (close(fd) == 0 && good) return OK;
    return fail(ERR_IO, "-o %s: writing failed: %s", path, strerror(good ? errno : error));
}

/* Writes a temporary file and then gives it the name `path`. With `force` it renames the file;
 * without `force` it makes a hard link, which never replaces another file. */
static Status write_file(const char *path, bool force, const char *text, size_t bytes)
{
    TRY(check_file(path, force));
    char *temporary = mem_format("%s.%ld.part", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0777);
    Status status = fd < 0 ? fail(ERR_IO, "-o %s: cannot be written: %s", path, strerror(errno))
                           : write_all(fd, text, bytes, path);
    if (status == OK && (force ? rename(temporary, path) : link(temporary, path)) != 0)
        status = fail(ERR_IO, "-o %s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0) unlink(temporary);
    mem_free(&temporary);
    return status;
}

/* Writes the script to -o FILE or to stdout. */
static Status output_script(const Script *script, const SbatchOptions *o)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory) die_as(ERR_MEMORY, "out of memory");
    script_print(script, memory);
    if (fclose(memory) != 0) die_as(ERR_MEMORY, "out of memory");
    Status status = OK;
    if (o->out)
        status = write_file(o->out, o->force, text, bytes);
    else
        fwrite(text, 1, bytes, stdout);
    free(text);
    return status;
}

/* ---- the verb ---- */

/* Returns the path of this program or, if the program is in a bundle, of the script that starts it
 * with its libraries. The caller owns the text. */
static char *weft_path(void)
{
    char path[4096];
    program_path(path, sizeof path);
    char *libexec = strstr(path, "/libexec/weft");
    if (libexec && !strcmp(libexec, "/libexec/weft")) {
        char *starter = mem_format("%.*s/bin/weft", (int)(libexec - path), path);
        if (access(starter, X_OK) == 0) return starter;
        mem_free(&starter);
    }
    return mem_text(*path ? path : "weft");
}

/* Returns the run's name with "_" in place of characters that need quotes or that Slurm takes for
 * patterns. The caller owns the text. */
static char *job_name(const char *run)
{
    char *name = mem_text(run);
    for (char *c = name; *c; ++c)
        if (!strchr(sbatch_letters, *c) && !strchr("_.+-", *c)) *c = '_';
    if (*name == '-') *name = '_';
    return name;
}

/* Fills the fields of the script that depend on the configuration. w: receives CONFIG and the
 * key=value words, which the script borrows. */
static Status fill_script(const Config *config, const SbatchOptions *o, int argc, char **argv,
                          Script *s, Words *w)
{
    TRY(sbatch_read_minutes(o->time, &s->minutes));
    TRY(check_device(config, o));
    TRY(choose_nodes(config, s));
    TRY(choose_cores(config, o, s));
    TRY(make_words(config, o, s, argc, argv, w));
    if (!o->any_config && !o->hosts && strpbrk(s->folder, "\n\r\\%"))
        return fail(ERR_USAGE,
                    "%s: Slurm does not accept a folder with a backslash, a percent sign or a "
                    "line break in its name",
                    s->folder);
    if (config->grid.dp || o->nodes || o->tasks || o->gpus) s->ranks = s->nodes * s->tasks;
    s->config = w->word[0];
    s->word = (const char *const *)w->word + 1;
    s->words = w->count - 1;
    if (o->hosts || o->memory || o->any_config) return OK;
    return plan_memory(w, s);
}

/* Checks that the host file can be read if it exists. The file may be written later. */
static Status check_host_file(const SbatchOptions *o)
{
    if (!o->hosts || o->any_config) return OK;
    int fd = file_open(o->hosts, O_RDONLY);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (!error || error == ENOENT) return OK;
    return fail(ERR_NOINPUT, "--hosts %s: cannot be read: %s", o->hosts, file_error(error));
}

static Status write_script(const Config *config, const SbatchOptions *o, int argc, char **argv)
{
    Words words = {0};
    char *weft = weft_path(), *folder = getcwd(NULL, 0);
    char *name = o->any_config ? mem_text("weft") : job_name(config->run.name);
    Script s = {.job = name,
                .run = config->run.name,
                .any_config = o->any_config,
                .weft = weft,
                .folder = folder,
                .file = o->out ? o->out : "job.sh",
                .nodes = o->nodes,
                .tasks = o->gpus ? o->gpus : o->tasks,
                .gpus = o->gpus,
                .links = o->chain,
                .memory = o->memory,
                .array = o->array,
                .partition = o->partition,
                .account = o->account,
                .mpi = o->mpi,
                .more = o->more,
                .hosts = o->hosts && o->any_config ? "" : o->hosts};
    Status status =
        folder ? OK
               : fail(ERR_IO, "the path of the current folder cannot be read: %s", strerror(errno));
    if (status == OK) status = fill_script(config, o, argc, argv, &s, &words);
    if (status == OK) status = output_script(&s, o);
    words_free(words.word);
    mem_free(&name);
    mem_free(&weft);
    free(folder);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    const SbatchOptions *o = options;
    Config *config = NULL;
    if (is_launched())
        return fail(ERR_USAGE, "weft sbatch starts no ranks: run it without mpirun or srun");
    TRY(check_together(o));
    TRY(check_host_file(o));
    TRY(sbatch_check_texts(o));
    if (o->out) TRY(check_file(o->out, o->force));
    TRY(job_check(&config, &verb_sbatch, argc, argv));
    Status status = write_script(config, o, argc, argv);
    config_free(&config);
    return status;
}

const Verb verb_sbatch = {
    .name = "sbatch",
    .words = "CONFIG [key=value ...]",
    .help = "writes a job script for Slurm, or for hosts without Slurm, that needs no editing",
    .more = "`weft sbatch CONFIG | sbatch` submits it at once. A job stops before its time "
            "limit, is requeued, and resumes; so does a job that lost a rank or a node. After "
            "three consecutive starts without a newer checkpoint it is not started again.",
    VERB_FLAGS(SbatchOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS | VERB_DATA,
    .run = run,
};
