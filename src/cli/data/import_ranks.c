/* The ranks of an import: agreement, broadcasts, and a progress line. */
#include "import_ranks.h"

#include "parallel.h"
#include "tensor.h"

/* time between two updates of the progress line on a terminal, and between lines elsewhere */
static const double REDRAW_S = 0.1, LINE_S = 10;

/* Progress line of rank 0. Rank 0 knows only its own progress, and assumes that the other ranks
 * have made the same progress. */
typedef struct ImportProgress {
    World *world;
    /* name of what is counted: "pictures"; borrowed */
    const char *things;
    /* true: stdout is a terminal, on which the line is overwritten */
    bool terminal;
    /* true: the last line that was printed is an unfinished progress line */
    bool drawn;
    /* times of the first call and of the last line */
    double begin_s, last_s;
    /* number of this rank's things that an earlier, interrupted import has done; -1: not known
     * yet */
    int64_t before;
} ImportProgress;

/* ImportRanks.agree */
static Status agree(void *user, Status mine)
{
    return status_agree(((ImportProgress *)user)->world, mine);
}

/* ImportRanks.broadcast: sends rank 0's bytes to all ranks */
static void broadcast(void *user, void *bytes, size_t count)
{
    world_bcast(((ImportProgress *)user)->world, bytes, count, 0);
}

/* ImportRanks.progress: prints the progress line if enough time has passed, or at the end. done,
 * total, broken: numbers of things of this rank */
static void print_progress(void *user, int64_t done, int64_t total, int64_t broken)
{
    ImportProgress *p = user;
    double now_s = clock_s(), period_s = p->terminal ? REDRAW_S : LINE_S;
    if (p->world->rank > 0) return;
    if (p->before < 0) {
        p->before = done;
        p->begin_s = p->last_s = now_s;
    }
    bool last = done == total;
    if (now_s - p->last_s < period_s && !last) return;
    /* a short import prints no progress line */
    if (last && !p->drawn && now_s - p->begin_s < LINE_S) return;
    double seconds = now_s - p->begin_s, ranks = (double)p->world->size;
    double rate = seconds > 0 ? (double)(done - p->before) * ranks / seconds : 0;
    double left_s = rate > 0 ? (double)(total - done) * ranks / rate : 0;
    char bad[40] = "", left[32];
    if (broken) snprintf(bad, sizeof bad, "  %.0f broken", (double)broken * ranks);
    printf("%s%.0f/%.0f %s  %.0f/s%s  %s left%s", p->terminal ? "\r" : "", (double)done * ranks,
           (double)total * ranks, p->things, rate, bad, text_seconds(left_s, left),
           p->terminal ? "\033[K" : "\n");
    if (last && p->terminal) putchar('\n');
    fflush(stdout);
    p->drawn = !last;
    p->last_s = now_s;
}

Status import_on_ranks(ImportOnRanks *import, const char *things, bool reads_names, int64_t threads,
                       const void *user)
{
    World world;
    /* hdf5_begin makes a separate process that reads the names; it must be called before MPI
     * starts */
    if (reads_names && launch_rank() == 0) hdf5_begin();
    if (is_launched()) terminal_adapt();
    TRY(world_init(&world, NULL, NULL));
    ImportProgress progress = {
        .world = &world, .things = things, .before = -1, .terminal = log_redraws(stdout)};
    const ImportRanks ranks = {world.rank, world.size, &progress, agree, broadcast, print_progress};
    Status st = import(&ranks, threads > 0 ? (int)threads : threads_share(world.node_size), user);
    world_fini(&world);
    return st;
}
