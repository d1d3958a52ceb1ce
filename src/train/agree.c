/* Finds differences between ranks that no configuration shows: another library version on one node,
 * an old copy of the data on another. With such differences sums would be meaningless. Rank 0
 * broadcasts a few short texts that describe what it uses, and each rank compares them with its
 * own: one broadcast and one reduction on any number of ranks, in constant memory. */
#include "agree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

enum { TEXT_BYTES = 320 };

/* ---- facts that are compared ---- */

static void describe_instructions(const Trainer *t, char *out)
{
    backend_instructions(t->backend, out, TEXT_BYTES);
}

static void describe_libraries(const Trainer *t, char *out)
{
    backend_libraries(t->backend, out, TEXT_BYTES);
}

static void describe_c_library(const Trainer *t, char *out)
{
    (void)t;
#if defined(__GLIBC__)
    snprintf(out, TEXT_BYTES, "glibc %s", gnu_get_libc_version());
#endif
}

static void describe_threads(const Trainer *t, char *out)
{
    snprintf(out, TEXT_BYTES, "%d", t->backend->options.threads);
}

/* Environment variables by which libraries choose other kernels, in a fixed order. */
static void describe_variables(const Trainer *t, char *out)
{
    static const char *const names[] = {"ONEDNN_MAX_CPU_ISA",
                                        "DNNL_MAX_CPU_ISA",
                                        "ONEDNN_CPU_ISA_HINTS",
                                        "DNNL_CPU_ISA_HINTS",
                                        "ONEDNN_DEFAULT_FPMATH_MODE",
                                        "DNNL_DEFAULT_FPMATH_MODE",
                                        "NVIDIA_TF32_OVERRIDE",
                                        "CUBLAS_WORKSPACE_CONFIG",
                                        "WEFT_ATTENTION_SCRATCH",
                                        "NCCL_ALGO",
                                        "NCCL_PROTO",
                                        "GLIBC_TUNABLES"};
    size_t used = 0;
    (void)t;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const char *value = getenv(names[i]);
        if (!value || used + 1 >= TEXT_BYTES) continue;
        int bytes =
            snprintf(out + used, TEXT_BYTES - used, "%s%s=%s", used ? " " : "", names[i], value);
        used += (size_t)bytes;
    }
    if (used == 0) snprintf(out, TEXT_BYTES, "none");
}

static void describe_schedule(const Trainer *t, char *out)
{
    const char *path = t->config->grid.schedule_path;
    if (path && t->shape.pp > 1) file_describe(path, out, TEXT_BYTES);
}

/* Returns true if this rank reads data files: rank 0, and the stages with the first or the last
 * chunk. */
static bool reads_data(const Trainer *t)
{
    int stage = t->world->rank / t->shape.tp / t->shape.dp;
    int last = t->shape.pp * t->schedule->shape.chunks - 1;
    return t->world->rank == 0 || t->schedule->stage_of[0] == stage ||
           t->schedule->stage_of[last] == stage;
}

/* Describes a set; of several files, their number and a hash of their descriptions. */
static void describe_set(const DataSet *set, char *out)
{
    uint64_t hash = 0;
    if (!set->file_count) file_describe(set->path, out, TEXT_BYTES);
    for (int i = 0; i < set->file_count; ++i) {
        file_describe(set->file[i].path, out, TEXT_BYTES);
        hash = hash_seeded(out, strlen(out), hash);
    }
    if (set->file_count)
        snprintf(out, TEXT_BYTES, "%d files with hash %016llx", set->file_count,
                 (unsigned long long)hash);
}

static void describe_train(const Trainer *t, char *out)
{
    if (reads_data(t)) describe_set(&t->train_set, out);
}

static void describe_test(const Trainer *t, char *out)
{
    if (t->test_set.samples > 0 && reads_data(t)) describe_set(&t->test_set, out);
}

static void describe_processor(const Trainer *t, char *out)
{
    (void)t;
    cpu_model(out);
}

/* One fact. It is compared if neither rank's text is "". */
typedef struct Fact {
    const char *what;
    void (*describe)(const Trainer *t, char *out);
    const char *cure;
    /* a difference is only a warning */
    bool mild;
} Fact;
static const Fact facts[] = {
    {"train.cpu", describe_instructions,
     "name one in train.cpu that all processors have, or run on nodes of one kind", false},
    {"libraries", describe_libraries, "install one version on all nodes", false},
    {"the C library", describe_c_library, "run on nodes with one version", false},
    {"train.threads", describe_threads, "set train.threads", false},
    {"variables", describe_variables, "give all ranks the same environment", false},
    {"grid.pipeline_schedule's file", describe_schedule, "give all ranks the same file", false},
    {"data.train's file", describe_train, "copy one file to all nodes, or name one that all share",
     false},
    {"data.test's file", describe_test, "copy one file to all nodes, or name one that all share",
     false},
    {"a processor", describe_processor, "", true},
};
enum { FACTS = sizeof facts / sizeof *facts };

typedef struct Description {
    char host[HOST_BYTES], text[FACTS][TEXT_BYTES];
} Description;

/* ---- comparing ---- */

static void describe(const Trainer *t, Description *local)
{
    memset(local, 0, sizeof *local);
    host_name(local->host, sizeof local->host);
    for (int i = 0; i < FACTS; ++i) facts[i].describe(t, local->text[i]);
}

/* Returns the first fact, among mild or other ones, that differs; FACTS: none. */
static int first_difference(const Description *mine, const Description *first, bool mild)
{
    int i = 0;
    for (; i < FACTS; ++i)
        if (facts[i].mild == mild && *mine->text[i] && *first->text[i] &&
            strcmp(mine->text[i], first->text[i]) != 0)
            break;
    return i;
}

/* Logs on rank 0 the first rank that has another processor. */
static void warn_of_processors(const World *world, const Description *mine,
                               const Description *first)
{
    Description other;
    int i = first_difference(mine, first, true);
    int rank = world_least(world, i < FACTS ? world->rank : INT_MAX);
    if (rank == INT_MAX) return;
    if (world->rank == rank) other = *mine;
    world_bcast(world, &i, sizeof i, rank);
    world_bcast(world, &other, sizeof other, rank);
    log_warn(
        "rank %d, on %s, has %s of another kind (%s) than rank 0, on %s (%s): the instructions "
        "are the same, but libraries choose by caches, too, so runs on one kind may give other "
        "bits",
        rank, other.host, facts[i].what, other.text[i], first->host, first->text[i]);
}

Status agree_on_bits(const Trainer *t)
{
    const World *world = t->world;
    if (world->size == 1) return OK;
    Description mine, first;
    describe(t, &mine);
    first = mine;
    world_bcast(world, &first, sizeof first, 0);
    int i = first_difference(&mine, &first, false);
    Status st = OK;
    if (i < FACTS)
        st = fail(ERR_CONFIG, "on %s %s: %s; for rank 0, on %s: %s: %s", mine.host, facts[i].what,
                  mine.text[i], first.host, first.text[i], facts[i].cure);
    TRY(status_agree(world, st));
    warn_of_processors(world, &mine, &first);
    return OK;
}

/* ---- the run's folder ---- */

/* Seconds that a slow file system may need until another node sees a file. */
static const double SEE_WAIT_S = 5;

static bool see_lease(const RunDir *dir, const char *id)
{
    double begin_s = clock_s();
    while (!lease_is(dir->path, id)) {
        if (clock_s() - begin_s > SEE_WAIT_S) return false;
        clock_rest(0.05);
    }
    return true;
}

Status agree_on_folder(const World *world, const RunDir *dir)
{
    struct {
        char host[HOST_BYTES], id[LEASE_ID];
    } first = {{0}, {0}};
    char host[HOST_BYTES];
    if (world->size == 1) return OK;
    host_name(host, sizeof host);
    if (world->rank == 0) {
        memcpy(first.host, host, sizeof host);
        snprintf(first.id, sizeof first.id, "%s", lease_id(dir->lease));
    }
    world_bcast(world, &first, sizeof first, 0);
    Status st = OK;
    if (!see_lease(dir, first.id))
        st = fail(ERR_CONFIG,
                  "%s on %s is another folder than rank 0's, on %s: run.dir must be one folder for "
                  "all ranks, on a file system that all nodes share, by the same path",
                  dir->path, host, first.host);
    return status_agree(world, st);
}
