/* Finds differences between the ranks' environments that would make their sums meaningless: for
 * example another version of a library on one node, or an old copy of the data on another. Also
 * checks that all ranks have the same run folder. Rank 0 broadcasts short texts that describe its
 * environment, and each rank compares them with its own texts. This needs a constant number of
 * broadcasts and reductions, and constant memory, for any number of ranks. */
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

/* bytes of the text of one fact, with its final zero */
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

/* Lists the environment variables that make weft or its libraries choose other kernels, in a fixed
 * order. */
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

/* Returns true if this rank reads data files: if it is rank 0 or its stage has the first or the
 * last chunk. */
static bool reads_data(const Trainer *t)
{
    int stage = t->world->rank / t->shape.tp / t->shape.dp;
    int last = t->shape.pp * t->schedule->shape.chunks_per_stage - 1;
    return t->world->rank == 0 || t->schedule->stage_of[0] == stage ||
           t->schedule->stage_of[last] == stage;
}

static void describe_train(const Trainer *t, char *out)
{
    if (reads_data(t)) data_set_describe(&t->train_set, out, TEXT_BYTES);
}

static void describe_test(const Trainer *t, char *out)
{
    if (t->test_set.samples > 0 && reads_data(t)) data_set_describe(&t->test_set, out, TEXT_BYTES);
}

static void describe_processor(const Trainer *t, char *out)
{
    (void)t;
    if (!cpu_portable()) cpu_model(out);
}

/* A fact about a rank's environment. */
typedef struct Fact {
    /* beginning of the message */
    const char *name;
    /* Writes the fact as text. "": this rank does not use the fact, so it is not compared. */
    void (*describe)(const Trainer *t, char *out);
    /* end of the message */
    const char *advice;
    /* true: a difference is only logged, as a warning */
    bool warn_only;
} Fact;
static const Fact facts[] = {
    {.name = "train.cpu",
     .describe = describe_instructions,
     .advice = "name a set in train.cpu that all processors have, or run on nodes of one kind"},
    {.name = "libraries",
     .describe = describe_libraries,
     .advice = "install one version on all nodes"},
    {.name = "the C library",
     .describe = describe_c_library,
     .advice = "run on nodes with one version"},
    {.name = "environment variables",
     .describe = describe_variables,
     .advice = "give all ranks the same environment"},
    {.name = "grid.pipeline_schedule's file",
     .describe = describe_schedule,
     .advice = "give all ranks the same file"},
    {.name = "data.train's file",
     .describe = describe_train,
     .advice = "copy one file to all nodes, or name one that all share"},
    {.name = "data.test's file",
     .describe = describe_test,
     .advice = "copy one file to all nodes, or name one that all share"},
    {.name = "processor", .describe = describe_processor, .warn_only = true},
};
enum { FACTS = sizeof facts / sizeof *facts };

typedef struct Description {
    char host[HOST_BYTES], text[FACTS][TEXT_BYTES];
} Description;

/* ---- comparison ---- */

static void describe(const Trainer *t, Description *local)
{
    memset(local, 0, sizeof *local);
    host_name(local->host, sizeof local->host);
    for (int i = 0; i < FACTS; ++i) facts[i].describe(t, local->text[i]);
}

/* Returns the index of the first fact that differs between two ranks; FACTS if none does. Considers
 * only facts with this value of warn_only that both ranks use. */
static int first_difference(const Description *mine, const Description *first, bool warn_only)
{
    int i = 0;
    for (; i < FACTS; ++i)
        if (facts[i].warn_only == warn_only && *mine->text[i] && *first->text[i] &&
            strcmp(mine->text[i], first->text[i]) != 0)
            break;
    return i;
}

/* If ranks have another processor than rank 0, names the first such rank in a warning on rank 0.
 * Collective. */
static void warn_of_processors(const World *world, const Description *mine,
                               const Description *first)
{
    Description other;
    int i = first_difference(mine, first, true);
    int rank = world_min(world, i < FACTS ? world->rank : INT_MAX);
    if (rank == INT_MAX) return;
    if (world->rank == rank) other = *mine;
    world_bcast(world, &i, sizeof i, rank);
    world_bcast(world, &other, sizeof other, rank);
    log_warn(
        "rank %d on %s has another %s (%s) than rank 0 on %s (%s): the instructions are the same, "
        "but libraries also choose kernels by the sizes of caches, so a run on nodes of one kind "
        "may give other bits",
        rank, other.host, facts[i].name, other.text[i], first->host, first->text[i]);
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
        st = fail(ERR_CONFIG, "%s on %s: %s; on %s (rank 0): %s; %s", facts[i].name, mine.host,
                  mine.text[i], first.host, first.text[i], facts[i].advice);
    TRY(status_agree(world, st));
    warn_of_processors(world, &mine, &first);
    return OK;
}

/* ---- the run's folder ---- */

/* longest time that a slow file system may need until another node sees a new file */
static const double LEASE_VISIBLE_S = 5;

/* Waits until the folder contains rank 0's lease, whose id is `id`. Returns false after
 * LEASE_VISIBLE_S. */
static bool wait_for_lease(const RunDir *dir, const char *id)
{
    double begin_s = clock_s();
    while (!lease_owner_is(dir->path, id)) {
        if (clock_s() - begin_s > LEASE_VISIBLE_S) return false;
        clock_sleep(0.05);
    }
    return true;
}

Status agree_on_folder(const World *world, const RunDir *dir)
{
    struct {
        char host[HOST_BYTES], id[RANDOM_ID_BYTES];
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
    if (!wait_for_lease(dir, first.id))
        st = fail(ERR_CONFIG,
                  "%s on %s is another folder than rank 0's, on %s: run.dir must be one folder for "
                  "all ranks, with the same path, on a file system that all nodes share",
                  dir->path, host, first.host);
    return status_agree(world, st);
}
