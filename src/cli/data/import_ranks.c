/* Connects the ranks of an import: agreement on a status, broadcasts, and a progress line. */
#include "import_ranks.h"

#include "parallel.h"
#include "tensor.h"

/* REDRAW_S: time between two updates of the progress line if stdout is a terminal. LINE_S: time
 * between two progress lines if it is not. */
static const double REDRAW_S = 0.1, LINE_S = 10;

/* State of the progress line, which rank 0 prints. Rank 0 knows only its own progress, and assumes
 * that all other ranks have made the same progress. */
typedef struct ImportProgress {
    World *world;
    /* name of the things that are counted, such as "pictures"; borrowed */
    const char *things;
    /* true: stdout is a terminal, on which the line is overwritten */
    bool terminal;
    /* true: a progress line has been printed, and it was not the final one */
    bool drawn;
    /* clock_s at the first call of print_progress */
    double begin_s;
    /* clock_s when the last line was printed */
    double last_s;
    /* number of this rank's things that an earlier, interrupted import has finished; -1: not known
     * yet */
    int64_t done_before;
} ImportProgress;

/* The function ImportRanks.agree. */
static Status agree(void *user, Status mine)
{
    return status_agree(((ImportProgress *)user)->world, mine);
}

/* The function ImportRanks.broadcast: sends rank 0's bytes to all ranks. */
static void broadcast(void *user, void *bytes, size_t count)
{
    world_bcast(((ImportProgress *)user)->world, bytes, count, 0);
}

/* The function ImportRanks.progress: prints the progress line if enough time has passed, or if the
 * import is finished. done: number of this rank's things that are finished; total: number of all
 * its things; broken: number of its things that cannot be used. */
static void print_progress(void *user, int64_t done, int64_t total, int64_t broken)
{
    ImportProgress *p = user;
    double now_s = clock_s(), period_s = p->terminal ? REDRAW_S : LINE_S;
    if (p->world->rank > 0) return;
    if (p->done_before < 0) {
        p->done_before = done;
        p->begin_s = p->last_s = now_s;
    }
    bool is_finished = done == total;
    if (now_s - p->last_s < period_s && !is_finished) return;
    /* a short import prints no progress line */
    if (is_finished && !p->drawn && now_s - p->begin_s < LINE_S) return;
    double seconds = now_s - p->begin_s, ranks = (double)p->world->size;
    double rate = seconds > 0 ? (double)(done - p->done_before) * ranks / seconds : 0;
    double left_s = rate > 0 ? (double)(total - done) * ranks / rate : 0;
    char bad[40] = "", left[32];
    if (broken) snprintf(bad, sizeof bad, "  %.0f broken", (double)broken * ranks);
    printf("%s%.0f/%.0f %s  %.0f/s%s  %s left%s", p->terminal ? "\r" : "", (double)done * ranks,
           (double)total * ranks, p->things, rate, bad, text_seconds(left_s, left),
           p->terminal ? "\033[K" : "\n");
    if (is_finished && p->terminal) putchar('\n');
    fflush(stdout);
    p->drawn = !is_finished;
    p->last_s = now_s;
}

Status import_on_ranks(ImportOnRanks *import, const char *things, bool reads_names, int64_t threads,
                       const void *user)
{
    World world;
    /* hdf5_begin makes a process that reads the names of classes, and must be called before MPI
     * starts */
    if (reads_names && launch_rank() == 0) hdf5_begin();
    if (is_launched()) terminal_adapt();
    TRY(world_init(&world, NULL, NULL));
    ImportProgress progress = {
        .world = &world, .things = things, .done_before = -1, .terminal = log_redraws(stdout)};
    const ImportRanks ranks = {world.rank, world.size, &progress, agree, broadcast, print_progress};
    Status st = import(&ranks, threads > 0 ? (int)threads : threads_share(world.node_size), user);
    world_fini(&world);
    return st;
}
