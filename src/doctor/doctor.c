/* The table of checks, and the loop over it:
 *     all ranks: measure | rank 0: collect, judge, print | all ranks: the next row
 * Each measurement has a deadline. A rank that waits for ever, in MPI or for a disk, would make all
 * others wait, so it says at which check it is and ends the job. */
#include "private.h"

#include "tensor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off: one a line, in the order in which they are printed */
#define CHECKS(_)                                                                                  \
    _(launcher)                                                                                    \
    _(cores)                                                                                       \
    _(memory)                                                                                      \
    _(shm)                                                                                         \
    _(stale)                                                                                       \
    _(limits)                                                                                      \
    _(versions)                                                                                    \
    _(libraries)                                                                                   \
    _(processors)                                                                                  \
    _(gpus)                                                                                        \
    _(clocks)                                                                                      \
    _(core_speed)                                                                                  \
    _(quota)                                                                                       \
    _(triad)                                                                                       \
    _(latency)                                                                                     \
    _(rate)                                                                                        \
    _(card)                                                                                        \
    _(files)                                                                                       \
    _(space)                                                                                       \
    _(inodes)                                                                                      \
    _(locks)                                                                                       \
    _(sync)                                                                                        \
    _(write)                                                                                       \
    _(read)                                                                                        \
    _(shared)
/* clang-format on */
#define DECLARE(name) extern const Check check_##name;
#define ENTRY(name)   &check_##name,
CHECKS(DECLARE)
static const Check *const checks[] = {CHECKS(ENTRY)};

int check_count(void)
{
    return sizeof checks / sizeof *checks;
}

const Check *check_at(int i)
{
    return checks[i];
}

Status doctor_rows_check(void)
{
    for (int i = 0; i < check_count(); ++i) {
        const Check *c = checks[i];
        const char *lacks = !c->what               ? ".what is not given"
                            : !c->judge            ? ".judge is not given"
                            : !c->measure && i > 0 ? NULL
                            : !c->measure || c->bytes == 0 || c->limit_s <= 0
                                ? ".measure, .bytes and .limit_s go together"
                                : NULL;
        TRY(row_check("check", c->name, c->name ? lacks : ".name is not given"));
    }
    return OK;
}

const char *doctor_check_name(int i, const char **what)
{
    if (i >= check_count()) return NULL;
    *what = checks[i]->what;
    return checks[i]->name;
}

/* ---- the deadline ---- */

static const double START_LIMIT_S = 10, ALL_LIMIT_S = 30;
/* The deadline of ranks that only wait for others is later, so that the rank at fault reports
 * first. */
static const double WAIT_EXTRA_S = 2;

/* The thread that ends the job if a check takes too long. */
typedef struct Deadline {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    /* the thread was started; it is to end; this rank has measured and waits for the others */
    bool running, over, waits;
    /* the check, or the phase of MPI, that is under way */
    const char *at;
    /* clock_s by which that check, and all checks, must have ended */
    double at_s, all_s;
} Deadline;

static void *watch(void *arg)
{
    Deadline *d = arg;
    pthread_mutex_lock(&d->lock);
    while (!d->over) {
        double left_s = (d->at_s < d->all_s ? d->at_s : d->all_s) - clock_s();
        if (d->waits) left_s += WAIT_EXTRA_S;
        if (left_s <= 0)
            die_as(ERR_CONFIG,
                   d->waits ? "doctor: %s: another rank has not finished it"
                            : "doctor: %s: no answer",
                   d->at);
        cond_wait_for(&d->cond, &d->lock, left_s);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void deadline_set(Deadline *d, const char *at, double limit_s, bool waits)
{
    pthread_mutex_lock(&d->lock);
    d->at = at;
    d->at_s = clock_s() + limit_s;
    d->waits = waits;
    pthread_cond_signal(&d->cond);
    pthread_mutex_unlock(&d->lock);
}

static void deadline_begin(Deadline *d, const char *at, double limit_s)
{
    double now_s = clock_s();
    *d = (Deadline){.at = at, .at_s = now_s + limit_s, .all_s = now_s + ALL_LIMIT_S};
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->cond);
    d->running = thread_begin(&d->thread, watch, d) == 0;
}

static void deadline_end(Deadline *d)
{
    pthread_mutex_lock(&d->lock);
    d->over = true;
    pthread_cond_signal(&d->cond);
    pthread_mutex_unlock(&d->lock);
    if (d->running) pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->cond);
    pthread_mutex_destroy(&d->lock);
}

/* ---- the loop over the rows ---- */

/* This rank's struct, its size for each rank, and on rank 0 the structs of all ranks. */
typedef struct Measured {
    char *mine, *all;
    size_t *bytes;
} Measured;

static void measure(Doctor *d, const Check *check, Deadline *deadline, Measured *m)
{
    const World *world = &d->world;
    bool first = world->rank == 0;
    m->mine = mem_resize(m->mine, check->bytes);
    memset(m->mine, 0, check->bytes);
    deadline_set(deadline, check->name, check->limit_s, false);
    check->measure(d, m->mine);
    deadline_set(deadline, check->name, check->limit_s, true);
    for (int r = 0; r < world->size; ++r) m->bytes[r] = check->bytes;
    if (first) m->all = mem_resize(m->all, (size_t)world->size * check->bytes);
    world_collect(world, m->mine, m->bytes, 0, m->all);
    world_barrier(world);
}

/* Finds the first rank of this rank's node. places: filled on rank 0 with all ranks' places. */
static void find_places(Doctor *d, Place *places)
{
    Place mine = {.node_size = d->world.node_size};
    World near = d->world;
    near.comm = d->world.node;
    near.rank = d->world.node_rank;
    near.size = d->world.node_size;
    mine.first = world_least(&near, d->world.rank);
    doctor_host(mine.host);
    d->leads = mine.first == d->world.rank;
    world_gather(&d->world, &mine, sizeof mine, places);
}

static void print_totals(const Report *reports, double begin_s)
{
    int rows = check_count(), with[] = {[SEVERITY_FATAL] = 0};
    for (int i = 0; i < rows; ++i) ++with[report_worst(&reports[i])];
    printf("%d checks in %.1f s: %d ok, %d warn, %d fatal", rows, clock_s() - begin_s,
           with[SEVERITY_OK], with[SEVERITY_WARN], with[SEVERITY_FATAL]);
    if (with[SEVERITY_SKIP]) printf(", %d skipped", with[SEVERITY_SKIP]);
    puts("");
}

/* Prints the first `rows` checks. */
static void print_json(const Doctor *d, const Allocation *a, const Report *reports, int rows)
{
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "weft", WEFT_VERSION);
    json_int(&json, "ranks", a->ranks);
    json_int(&json, "nodes", a->nodes);
    json_fixed(&json, "seconds", 2, clock_s() - d->begin_s);
    json_lines(&json, "checks");
    for (int i = 0; i < rows; ++i) report_json(&json, checks[i]->name, a, &reports[i]);
    json_end(&json);
    json_end(&json);
}

static Status fatal_status(const Report *reports)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < check_count(); ++i)
        if (report_worst(&reports[i]) == SEVERITY_FATAL && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     checks[i]->name);
    return used ? fail(ERR_CONFIG, "doctor: a run could not work here: %s", names) : OK;
}

static Status run_checks(Doctor *d, Deadline *deadline)
{
    const World *world = &d->world;
    Place *places = mem_new((size_t)world->size * sizeof *places);
    Report *reports = mem_new((size_t)check_count() * sizeof *reports);
    Measured m = {.bytes = mem_new((size_t)world->size * sizeof *m.bytes)};
    find_places(d, places);
    TRY(world_split(&d->leaders, world, d->leads));
    Allocation a = {
        .ranks = world->size, .checkpoint_bytes = d->options->checkpoint_bytes, .place = places};
    for (int r = 0; r < a.ranks; ++r) a.nodes += place_leads(&a, r);
    d->throttled_s = threads_limits(d->options->root, NULL).waited_s;
    for (int i = 0; i < check_count(); ++i) {
        if (checks[i]->measure) measure(d, checks[i], deadline, &m);
        if (world->rank > 0) continue;
        checks[i]->judge(checks[i], &a, m.all, &reports[i]);
        if (!d->options->json) report_print(stdout, checks[i]->name, &a, &reports[i]);
    }
    if (world->rank == 0 && d->options->json) print_json(d, &a, reports, check_count());
    if (world->rank == 0 && !d->options->json) print_totals(reports, d->begin_s);
    Status status = fatal_status(reports);
    for (int i = 0; i < check_count(); ++i) report_fini(&reports[i]);
    mem_free(&m.mine);
    mem_free(&m.all);
    mem_free(&m.bytes);
    mem_free(&reports);
    mem_free(&places);
    world_part_fini(&d->leaders);
    return status_agree(world, status);
}

/* Reports that MPI did not start: launcher and MPI do not fit together. There are no ranks yet. */
static Status report_mpi_failure(const Doctor *d)
{
    Report report = {0};
    Place place = {.node_size = 1};
    Allocation a = {.ranks = 1, .nodes = 1, .place = &place};
    doctor_host(place.host);
    report_host(&report, SEVERITY_FATAL, 0, "srun --mpi=list; srun --mpi=pmix, or mpirun", "%s",
                fail_message());
    if (d->options->first && d->options->json) print_json(d, &a, &report, 1);
    if (d->options->first && !d->options->json)
        report_print(stdout, check_launcher.name, &a, &report);
    report_fini(&report);
    return fail(ERR_CONFIG, "doctor: a run could not work here: launcher");
}

Status doctor_run(const DoctorOptions *options)
{
    Doctor d = {.options = options, .begin_s = clock_s()};
    Deadline deadline;
    deadline_begin(&deadline, "the start of MPI", START_LIMIT_S);
    Status status = world_init(&d.world, NULL, NULL);
    if (status == OK)
        status = run_checks(&d, &deadline);
    else
        status = report_mpi_failure(&d);
    deadline_set(&deadline, "the end of MPI", START_LIMIT_S, false);
    world_fini(&d.world);
    deadline_end(&deadline);
    return status;
}
