/* The watchdog's thread. On each node the first rank that is neither stopped nor dead watches all
 * ranks of the node. Rank 0's thread also receives the states of the ranks of all nodes, and finds
 * late steps and hangs of the job. The thread calls MPI only for the abort that ends the job. */
#include "node_links.h"
#include "node_ranks.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest time between two checks, in seconds, if this process runs. If more time has passed, the
 * process was suspended in between. */
static const double ASLEEP_S = 3;
/* Seconds for which a rank has been stopped (STOPPED_S) or dead (DEAD_S) when the job ends. The
 * delay for a dead rank gives a rank that notices the death elsewhere the time to print the
 * reason. */
static const double STOPPED_S = 4, DEAD_S = 2;
/* A node that has been silent for at least SILENT_S seconds and SILENT_PERIODS sending periods is
 * named in a warning. When it has been silent for SILENT_END_S seconds and SILENT_END_PERIODS
 * periods, the job ends. */
static const double SILENT_S = 5, SILENT_PERIODS = 3, SILENT_END_S = 20, SILENT_END_PERIODS = 6;
/* A step is late when it has taken LATE_STEPS times as long as a usual step, and at least LATE_S
 * seconds. If the usual time is unknown, it is late after LATE_UNKNOWN_S seconds. */
static const double LATE_STEPS = 3, LATE_S = 5, LATE_UNKNOWN_S = 30;
/* longest time, in seconds, for which the watchdog waits until the last marks are written */
static const double DUMP_S = 2;
/* OTHERS_S: seconds that the watchdog that ends the job waits before its abort. In this time the
 * watchdogs of other nodes write the last marks of their ranks. ABORT_S: seconds that the watchdogs
 * of other nodes wait for this abort, before they abort the job themselves. */
enum { OTHERS_S = 2, ABORT_S = 7 };

/* WORDS: size of the buffer for a message, in chars. NAMED: largest number of ranks that a message
 * describes; it gives only the number of further ranks. */
enum { WORDS = 2048, NAMED = 8 };

struct Watchdog {
    WatchdogOptions options;
    /* borrowed */
    const World *world;
    /* the ranks of this node */
    NodeRanks node;
    /* the connections to other nodes */
    NodeLinks links;
    /* last known state of each rank, indexed by its number in the job, [world->size]; owned */
    RankState *states;
    /* node of each rank, indexed by its number in the job, [world->size]; owned */
    int *node_of;
    /* host name of each node, [nodes]; owned */
    char (*host)[HOST_BYTES];
    /* path of the run's folder; owned */
    char *folder;
    /* id of the lease that the folder must have when `dump` is written; "": no lease is needed;
     * owned */
    char *owner;
    /* path of the file to which the last marks of this node's ranks are written; owned */
    char *dump;
    /* time (clock_s) of the last check */
    double looked_s;
    /* number of the step that was last reported as late; BEAT_NONE: none */
    int64_t late_step;
    /* time (clock_s) of the next report of late_step */
    double next_report_s;
    /* seconds between the next report of late_step and the report after it */
    double pause_s;
    /* for each node: true if it is silent and this has been reported; [nodes]; owned */
    bool *silence_reported;
    /* guards `stop`; the thread holds it except while it waits */
    pthread_mutex_t lock;
    /* signalled when `stop` has been set */
    pthread_cond_t wake;
    pthread_t thread;
    /* true: the thread has been started */
    bool running;
    /* true: the thread must end */
    bool stop;
};

/* ---- messages ---- */

/* Appends a part to the message `words`; "; " separates the parts. */
static void add_part(char *words, const char *text)
{
    size_t used = strlen(words);
    snprintf(words + used, WORDS - used, "%s%s", used ? "; " : "", text);
}

static void add_state(const Watchdog *w, char *words, const RankState *state)
{
    char what[RANK_TEXT], text[RANK_TEXT + HOST_BYTES + 64];
    snprintf(text, sizeof text, "rank %d on %s %s", state->rank, w->host[w->node_of[state->rank]],
             rank_state_text(state, what));
    add_part(words, text);
}

/* Adds the states of ranks that wait (waits = true) or do not wait (waits = false) to a message.
 * Considers only ranks that are in a step or are servers. Describes at most NAMED ranks and adds
 * the number of further ranks. all: states of ranks, [count]. Returns the number of ranks found. */
static int add_states(const Watchdog *w, char *words, const RankState *all, int count, bool waits)
{
    int found = 0;
    char more[32];
    for (int r = 0; r < count; ++r) {
        if (all[r].newest.waits != waits || !(all[r].stepping || all[r].serves)) continue;
        if (++found <= NAMED) add_state(w, words, &all[r]);
    }
    snprintf(more, sizeof more, "and %d more", found - NAMED);
    if (found > NAMED) add_part(words, more);
    return found;
}

/* Adds the states of the node's ranks except rank `local` to a message. Includes ranks that are
 * between two steps, because they may be in a save, which waits for all ranks. */
static void add_others(const Watchdog *w, char *words, int local)
{
    char more[32];
    int others = 0;
    for (int r = 0; r < w->node.count; ++r)
        if (r != local && ++others <= NAMED) add_state(w, words, &w->node.state[r]);
    snprintf(more, sizeof more, "and %d more", others - NAMED);
    if (others > NAMED) add_part(words, more);
}

/* ---- the end ---- */

/* Arguments and state of the thread that writes the last marks. */
typedef struct Dump {
    /* guards `over` */
    pthread_mutex_t lock;
    /* signalled when `over` has been set */
    pthread_cond_t done;
    /* borrowed */
    const Watchdog *watchdog;
    /* true: the file has been written, or could not be written */
    bool over;
} Dump;

static void *dump_run(void *user)
{
    Dump *dump = user;
    const Watchdog *w = dump->watchdog;
    bool owned = !*w->owner || lease_owner_is(w->folder, w->owner);
    Status st = owned
                    ? node_ranks_write(&w->node, w->dump)
                    : fail(ERR_IO, "%s: not written: the folder is no longer this run's", w->dump);
    if (st != OK) log_error("%s", fail_message());
    pthread_mutex_lock(&dump->lock);
    dump->over = true;
    pthread_cond_signal(&dump->done);
    pthread_mutex_unlock(&dump->lock);
    return NULL;
}

/* Writes the last marks of this node's ranks in a separate thread, and waits for it at most DUMP_S
 * seconds: the cause of the hang may be the file system. */
static void write_dump(const Watchdog *w)
{
    static Dump dump;
    pthread_t thread;
    dump = (Dump){.watchdog = w};
    pthread_mutex_init(&dump.lock, NULL);
    cond_init(&dump.done);
    if (thread_begin(&thread, dump_run, &dump) != 0) return;
    double limit_s = clock_s() + DUMP_S;
    pthread_mutex_lock(&dump.lock);
    while (!dump.over && clock_s() < limit_s) cond_wait_for(&dump.done, &dump.lock, DUMP_S);
    pthread_mutex_unlock(&dump.lock);
}

/* Writes the last marks. Makes world_abort kill the other ranks of this node if MPI_Abort hangs. */
static void prepare_end(Watchdog *w)
{
    write_dump(w);
    for (int r = 0; r < w->node.count; ++r)
        if (r != w->node.mine) world_abort_also_kill((pid_t)w->node.state[r].process);
}

/* Writes the last marks, prints why the job ends, and ends it. */
static _Noreturn void end_job(Watchdog *w, const char *why)
{
    prepare_end(w);
    node_links_end(&w->links, die_lost_code());
    /* the other watchdogs write their files before the abort ends them */
    if (w->links.nodes > 1) clock_sleep(OTHERS_S);
    die_lost("%s; what each rank did last is in %s", why, w->dump);
}

/* Ends the job after the watchdog of another node has announced the end and the exit code. On the
 * first node, first passes the announcement on to all nodes. Prints no reason: the watchdog that
 * announced the end prints it. */
static _Noreturn void end_with_others(Watchdog *w)
{
    int code = w->links.end_code;
    prepare_end(w);
    if (w->links.node == 0) node_links_end(&w->links, code);
    clock_sleep(ABORT_S);
    world_abort(code);
    _exit(code);
}

/* ---- checks ---- */

/* Returns whether a condition has lasted for limit_s seconds while this process watched. since_s:
 * time at which it began; 0: it does not hold. awake_s: NodeRanks.awake_s. */
static bool has_lasted(double since_s, double awake_s, double now_s, double limit_s)
{
    if (since_s == 0) return false;
    return now_s - (since_s > awake_s ? since_s : awake_s) >= limit_s;
}

static _Noreturn void end_for_rank(Watchdog *w, int local, const char *what, double since_s)
{
    char words[WORDS] = "", text[RANK_TEXT], why[WORDS + RANK_TEXT + 128];
    const RankState *state = &w->node.state[local];
    add_others(w, words, local);
    snprintf(why, sizeof why, "rank %d on %s (process %d)%s %s for %.0f s: it %s%s%s", state->rank,
             w->host[w->links.node], state->process, state->serves ? ", a server," : "", what,
             clock_s() - since_s, mark_text(&state->newest, text), *words ? "; " : "", words);
    end_job(w, why);
}

static void check_processes(Watchdog *w, double now_s)
{
    double awake_s = w->node.awake_s;
    for (int r = 0; r < w->node.count; ++r) {
        const RankTimes *times = &w->node.times[r];
        if (has_lasted(times->stopped_s, awake_s, now_s, STOPPED_S))
            end_for_rank(w, r, "has been stopped by a signal", times->stopped_s);
        if (!has_lasted(times->dead_s, awake_s, now_s, DEAD_S)) continue;
        int code = (int)shm_segments_exit_code(&w->node.shared, r);
        /* the rank printed the reason before it set the code */
        if (code != 0) {
            prepare_end(w);
            world_abort(code);
            _exit(code);
        }
        end_for_rank(w, r, "has been dead", times->dead_s);
    }
}

/* Warns of silent nodes, and ends the job when a node has been silent for too long. Ignores nodes
 * from which no datagram has arrived since the start: the network may block all datagrams. */
static void check_nodes(Watchdog *w, double now_s)
{
    NodeLinks *links = &w->links;
    double period_s = node_links_period_s(links->nodes);
    double named_s = fmax(SILENT_S, SILENT_PERIODS * period_s);
    double end_s = fmax(SILENT_END_S, SILENT_END_PERIODS * period_s);
    for (int i = 0; links->link && i < links->nodes; ++i) {
        const NodeLink *link = &links->link[i];
        double since_s = link->received_s > w->node.awake_s ? link->received_s : w->node.awake_s;
        double silent_s = now_s - since_s;
        bool reported = w->silence_reported[i];
        char why[256];
        w->silence_reported[i] = link->length > 0 && silent_s >= named_s;
        if (!w->silence_reported[i]) continue;
        snprintf(
            why, sizeof why,
            "no message has arrived from %s for %.0f s: the host is dead, or its network is cut",
            w->host[i], silent_s);
        if (silent_s >= end_s) end_job(w, why);
        if (!reported) log_warn("%s", why);
    }
}

/* Summary of several ranks: of all ranks on the first node if it receives datagrams, otherwise of
 * the ranks of this node. */
typedef struct Overview {
    /* number of ranks */
    int count;
    /* number of ranks that are in a step */
    int stepping;
    /* number of servers */
    int serving;
    /* states of the ranks, [count]; borrowed */
    const RankState *state;
    /* state of the rank that has been in its step for the longest time; borrowed */
    const RankState *latest;
    /* largest usual_s of any rank */
    double usual_s;
    /* seconds since the newest mark of any rank */
    double still_s;
} Overview;

static Overview overview(const Watchdog *w)
{
    bool all = w->links.node == 0 && w->links.socket >= 0;
    Overview o = {.count = all ? w->world->size : w->node.count,
                  .state = all ? w->states : w->node.state,
                  .still_s = INFINITY};
    for (int r = 0; r < o.count; ++r) {
        const RankState *s = &o.state[r];
        o.stepping += s->stepping;
        o.serving += s->serves;
        if (!o.latest || s->step_elapsed_s > o.latest->step_elapsed_s) o.latest = s;
        if (s->usual_s > o.usual_s) o.usual_s = s->usual_s;
        if (s->still_s < o.still_s) o.still_s = s->still_s;
    }
    return o;
}

static void report_late(const Watchdog *w, const Overview *o)
{
    char behind[WORDS] = "", waiting[WORDS] = "", usual[48] = "";
    int computing = add_states(w, behind, o->state, o->count, false);
    add_states(w, waiting, o->state, o->count, true);
    if (o->usual_s > 0) snprintf(usual, sizeof usual, " instead of %.2f", o->usual_s);
    if (computing == 0)
        log_warn("step %lld has taken %.0f s%s, and every rank waits: %s",
                 (long long)o->latest->newest.step, o->latest->step_elapsed_s, usual, waiting);
    else
        log_warn("step %lld has taken %.0f s%s: behind %s: %s%s%s",
                 (long long)o->latest->newest.step, o->latest->step_elapsed_s, usual,
                 computing > 1 ? "are" : "is", behind, *waiting ? "; " : "", waiting);
}

static _Noreturn void end_hang(Watchdog *w, const Overview *o)
{
    char words[WORDS] = "", why[WORDS + 128];
    add_states(w, words, o->state, o->count, false);
    add_states(w, words, o->state, o->count, true);
    snprintf(why, sizeof why, "no rank has made progress for %.0f s (train.hang_s): %s", o->still_s,
             words);
    end_job(w, why);
}

/* Reports late steps, and ends the job after a hang. Does nothing unless all ranks are in a step or
 * are servers: between two steps a rank that saves or evaluates may make all other ranks wait. */
static void check_steps(Watchdog *w, double now_s)
{
    Overview o = overview(w);
    /* if only servers remain, no step can be late */
    if (o.stepping == 0 || o.stepping + o.serving < o.count) return;
    if (w->options.hang_s > 0 && o.still_s >= w->options.hang_s) end_hang(w, &o);
    double limit_s = o.usual_s == 0                    ? LATE_UNKNOWN_S
                     : LATE_STEPS * o.usual_s > LATE_S ? LATE_STEPS * o.usual_s
                                                       : LATE_S;
    if (o.latest->step_elapsed_s < limit_s) return;
    if (w->late_step != o.latest->newest.step) {
        w->late_step = o.latest->newest.step;
        w->next_report_s = now_s;
        w->pause_s = limit_s;
    }
    if (now_s < w->next_report_s) return;
    report_late(w, &o);
    w->next_report_s = now_s + w->pause_s;
    w->pause_s *= 2;
}

/* ---- the thread ---- */

static void check_all(Watchdog *w)
{
    double now_s = clock_s();
    if (now_s - w->looked_s > ASLEEP_S) w->node.awake_s = now_s;
    w->looked_s = now_s;
    if (node_ranks_first(&w->node) != w->node.mine) {
        /* another rank watches the node, so the times that this rank has measured are out of
         * date */
        w->node.awake_s = now_s;
        return;
    }
    node_ranks_update(&w->node, now_s);
    node_links_send(&w->links, now_s, w->node.state, w->node.count);
    for (int r = 0; r < w->node.count; ++r) w->states[w->node.state[r].rank] = w->node.state[r];
    node_links_receive(&w->links, w->states, w->world->size);
    if (w->links.end_code != 0) end_with_others(w);
    check_processes(w, now_s);
    check_nodes(w, now_s);
    if (w->links.node == 0 || w->links.socket < 0) check_steps(w, now_s);
}

/* Sleeps for `seconds` or until w->stop is set. On the first node, reads datagrams of other nodes
 * meanwhile. */
static void rest(Watchdog *w, double seconds)
{
    bool receives = w->links.node == 0 && w->links.socket >= 0;
    double pause_s = receives ? node_links_pause_s(w->links.nodes) : CHECK_S,
           end_s = clock_s() + seconds;
    for (double left_s = seconds; left_s > 0 && !w->stop; left_s = end_s - clock_s()) {
        cond_wait_for(&w->wake, &w->lock, fmin(left_s, pause_s));
        if (receives) node_links_receive(&w->links, w->states, w->world->size);
    }
}

/* Runs the thread. The threads of all ranks start at the same time and first wait for
 * node_links_phase_s, so that nodes check and send one after the other. */
static void *watch_run(void *user)
{
    Watchdog *w = user;
    pthread_mutex_lock(&w->lock);
    rest(w, node_links_phase_s(w->links.node, w->links.nodes));
    while (!w->stop) {
        rest(w, CHECK_S);
        if (!w->stop) check_all(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void start(Watchdog *w)
{
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->wake);
    w->looked_s = clock_s();
    w->running = thread_begin(&w->thread, watch_run, w) == 0;
    if (!w->running)
        log_warn("the watchdog's thread could not be started: ranks that hang will not "
                 "be noticed");
}

/* ---- set-up ---- */

/* Sets w->node_of, where nodes are numbered in the order of their first ranks. job: number in the
 * job of each rank of w->world, which differs from the rank's number in w->world if grid.rank_map
 * is set. Returns the number of nodes. */
static int count_nodes(Watchdog *w, const int *job)
{
    int *first = world_node_leaders(w->world), nodes = 0;
    for (int r = 0; r < w->world->size; ++r)
        w->node_of[job[r]] = first[r] == r ? nodes++ : w->node_of[job[first[r]]];
    mem_free(&first);
    return nodes;
}

static void gather_hosts(Watchdog *w, const int *job, int nodes)
{
    size_t ranks = (size_t)w->world->size;
    char mine[HOST_BYTES], (*all)[HOST_BYTES] = mem_new(ranks * sizeof *all);
    host_name(mine, sizeof mine);
    world_allgather(w->world, mine, sizeof mine, all);
    w->host = mem_new((size_t)nodes * sizeof *w->host);
    for (size_t r = 0; r < ranks; ++r) memcpy(w->host[w->node_of[job[r]]], all[r], HOST_BYTES);
    mem_free(&all);
}

Watchdog *watchdog_new(const World *world, const WatchdogOptions *options)
{
    size_t ranks = (size_t)world->size;
    Watchdog *w = mem_new(sizeof *w);
    *w = (Watchdog){.options = *options, .world = world, .late_step = BEAT_NONE};
    w->states = mem_new(ranks * sizeof *w->states);
    w->node_of = mem_new(ranks * sizeof *w->node_of);
    int *job = world_job_ranks(world), nodes = count_nodes(w, job);
    const int number = job[world->rank], mine = w->node_of[number];
    gather_hosts(w, job, nodes);
    mem_free(&job);
    w->silence_reported = mem_new((size_t)nodes * sizeof *w->silence_reported);
    bool first = world->rank == 0;
    w->folder = world_bcast_text(world, first ? mem_text(options->folder) : NULL);
    w->owner =
        world_bcast_text(world, first ? mem_text(options->owner ? options->owner : "") : NULL);
    w->dump = mem_format("%s/hang-%s.txt", w->folder, w->host[mine]);
    bool shared = node_ranks_init(&w->node, world, mine, number);
    if (status_agree(world, shared ? OK : ERR_CONFIG) != OK)
        log_warn("the watchdog cannot watch the other ranks of a node: %s", fail_message());
    bool speaks = world->node_rank == 0;
    node_links_init(&w->links, world, speaks, mine, nodes);
    world_barrier(world);
    start(w);
    return w;
}

void watchdog_free(Watchdog **watchdog)
{
    Watchdog *w = *watchdog;
    if (!w) return;
    world_barrier(w->world);
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    /* After this barrier no rank reads the memory of another rank, so the segments can be
     * released. */
    world_barrier(w->world);
    node_ranks_fini(&w->node);
    node_links_fini(&w->links);
    mem_free(&w->states);
    mem_free(&w->node_of);
    mem_free(&w->host);
    mem_free(&w->silence_reported);
    mem_free(&w->folder);
    mem_free(&w->owner);
    mem_free(&w->dump);
    mem_free(watchdog);
}
