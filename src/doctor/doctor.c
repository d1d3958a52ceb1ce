/* The table of checks, and the loop over its rows. For each row, all ranks measure, and rank 0
 * collects the measurements, judges them and prints the result. Each measurement has a deadline. If
 * a rank is blocked in MPI or by a disk, a second thread of this rank prints the name of the check
 * at the deadline and ends the job. Without this thread all other ranks would wait for ever. */
#include "private.h"

#include "tensor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off: one check a line, in the order in which checks are printed */
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
        const char *fault = !c->threshold_meaning  ? ".threshold_meaning is not given"
                            : !c->judge            ? ".judge is not given"
                            : !c->measure && i > 0 ? NULL
                            : !c->measure || c->bytes == 0 || c->limit_s <= 0
                                ? ".measure, .bytes and .limit_s go together"
                                : NULL;
        TRY(row_check("check", c->name, c->name ? fault : ".name is not given"));
    }
    return OK;
}

const char *doctor_check_name(int i, const char **threshold_meaning)
{
    if (i >= check_count()) return NULL;
    *threshold_meaning = checks[i]->threshold_meaning;
    return checks[i]->name;
}

/* ---- the deadline ---- */

/* START_LIMIT_S: time limit of the start of MPI, and also of its end. ALL_LIMIT_S: time limit of
 * doctor_run. */
static const double START_LIMIT_S = 10, ALL_LIMIT_S = 30;
/* additional time before the deadline on ranks that only wait for other ranks, so that the rank at
 * fault reports first */
static const double WAIT_EXTRA_S = 2;

/* The thread that ends the job if a check takes too long. */
typedef struct Deadline {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    /* true: the thread was started */
    bool started;
    /* true: the thread must end */
    bool stop;
    /* true: this rank has measured and waits for the other ranks */
    bool waiting;
    /* name of the check that is running, or "the start of MPI", or "the end of MPI"; borrowed */
    const char *phase;
    /* deadline of the phase, a value of clock_s */
    double phase_end_s;
    /* deadline of doctor_run, a value of clock_s */
    double all_end_s;
} Deadline;

static void *end_job_at_deadline(void *arg)
{
    Deadline *d = arg;
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        double end_s = d->phase_end_s < d->all_end_s ? d->phase_end_s : d->all_end_s;
        double left_s = end_s + (d->waiting ? WAIT_EXTRA_S : 0) - clock_s();
        if (left_s <= 0)
            die_as(ERR_CONFIG,
                   d->waiting ? "doctor: %s: another rank has not finished it"
                              : "doctor: %s: no answer",
                   d->phase);
        cond_wait_for(&d->cond, &d->lock, left_s);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void deadline_set(Deadline *d, const char *phase, double limit_s, bool waiting)
{
    pthread_mutex_lock(&d->lock);
    d->phase = phase;
    d->phase_end_s = clock_s() + limit_s;
    d->waiting = waiting;
    pthread_cond_signal(&d->cond);
    pthread_mutex_unlock(&d->lock);
}

static void deadline_begin(Deadline *d, const char *phase, double limit_s)
{
    double now_s = clock_s();
    *d = (Deadline){
        .phase = phase, .phase_end_s = now_s + limit_s, .all_end_s = now_s + ALL_LIMIT_S};
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->cond);
    d->started = thread_begin(&d->thread, end_job_at_deadline, d) == 0;
}

static void deadline_end(Deadline *d)
{
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_signal(&d->cond);
    pthread_mutex_unlock(&d->lock);
    if (d->started) pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->cond);
    pthread_mutex_destroy(&d->lock);
}

/* ---- the loop over the rows ---- */

/* The structs that ranks have filled for the last check with a function `measure`. The fields are
 * owned. */
typedef struct Measured {
    /* this rank's struct */
    char *mine;
    /* the structs of all ranks on rank 0; NULL on other ranks */
    char *all;
    /* size of each rank's struct, [world size]; all sizes are equal */
    size_t *bytes;
} Measured;

static void measure(Doctor *d, const Check *check, Deadline *deadline, Measured *m)
{
    const World *world = &d->world;
    bool is_first = world->rank == 0;
    m->mine = mem_resize(m->mine, check->bytes);
    memset(m->mine, 0, check->bytes);
    deadline_set(deadline, check->name, check->limit_s, false);
    check->measure(d, m->mine);
    deadline_set(deadline, check->name, check->limit_s, true);
    for (int r = 0; r < world->size; ++r) m->bytes[r] = check->bytes;
    if (is_first) m->all = mem_resize(m->all, (size_t)world->size * check->bytes);
    world_collect(world, m->mine, m->bytes, 0, m->all);
    world_barrier(world);
}

/* Finds the leader of this rank's node and sets d->is_leader. places: receives the places of all
 * ranks, on every rank. Collective. */
static void find_places(Doctor *d, Place *places)
{
    Place mine = {.node_size = d->world.node_size};
    World node_world = d->world;
    node_world.comm = d->world.node;
    node_world.rank = d->world.node_rank;
    node_world.size = d->world.node_size;
    mine.leader = world_min(&node_world, d->world.rank);
    host_name(mine.host, HOST_BYTES);
    d->is_leader = mine.leader == d->world.rank;
    world_allgather(&d->world, &mine, sizeof mine, places);
}

static void print_totals(const Report *reports, double begin_s)
{
    int rows = check_count(), count[] = {[SEVERITY_FATAL] = 0};
    for (int i = 0; i < rows; ++i) ++count[report_worst(&reports[i])];
    printf("%d checks in %.1f s: %d ok, %d warn, %d fatal", rows, clock_s() - begin_s,
           count[SEVERITY_OK], count[SEVERITY_WARN], count[SEVERITY_FATAL]);
    if (count[SEVERITY_SKIP]) printf(", %d skipped", count[SEVERITY_SKIP]);
    puts("");
}

/* Prints one JSON object with the reports on the first `rows` checks. */
static void print_json(const Doctor *d, const Allocation *a, const Report *reports, int rows)
{
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "weft", WEFT_VERSION);
    json_int(&json, "ranks", a->ranks);
    json_int(&json, "nodes", a->nodes);
    json_fixed(&json, "seconds", 2, clock_s() - d->begin_s);
    json_array_by_line(&json, "checks");
    for (int i = 0; i < rows; ++i) report_json(&json, checks[i]->name, a, &reports[i]);
    json_end(&json);
    json_end(&json);
}

/* Fails with the names of the checks that have a fatal finding. Returns OK on ranks other than rank
 * 0, whose reports are empty. */
static Status check_fatal(const Report *reports)
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
    TRY(world_split(&d->leaders, world, d->is_leader));
    Allocation a = {
        .ranks = world->size, .checkpoint_bytes = d->options->checkpoint_bytes, .place = places};
    for (int r = 0; r < a.ranks; ++r) a.nodes += is_node_leader(&a, r);
    d->throttled_s = threads_limits(d->options->root, NULL).waited_s;
    for (int i = 0; i < check_count(); ++i) {
        if (checks[i]->measure) measure(d, checks[i], deadline, &m);
        if (world->rank > 0) continue;
        checks[i]->judge(checks[i], &a, m.all, &reports[i]);
        if (!d->options->json) report_print(stdout, checks[i]->name, &a, &reports[i]);
    }
    if (world->rank == 0 && d->options->json) print_json(d, &a, reports, check_count());
    if (world->rank == 0 && !d->options->json) print_totals(reports, d->begin_s);
    Status status = check_fatal(reports);
    for (int i = 0; i < check_count(); ++i) report_fini(&reports[i]);
    mem_free(&m.mine);
    mem_free(&m.all);
    mem_free(&m.bytes);
    mem_free(&reports);
    mem_free(&places);
    world_part_fini(&d->leaders);
    return status_agree(world, status);
}

/* Reports that MPI did not start, most likely because it does not work with the launcher. Ranks
 * cannot communicate then, so only the launcher's first task prints the finding
 * (DoctorOptions.is_first_task). Fails on all ranks. */
static Status report_mpi_failure(const Doctor *d)
{
    Report report = {0};
    Place place = {.node_size = 1};
    Allocation a = {.ranks = 1, .nodes = 1, .place = &place};
    host_name(place.host, HOST_BYTES);
    report_add_host(&report, SEVERITY_FATAL, 0, "srun --mpi=list; srun --mpi=pmix, or mpirun", "%s",
                    fail_message());
    if (d->options->is_first_task && d->options->json) print_json(d, &a, &report, 1);
    if (d->options->is_first_task && !d->options->json)
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
