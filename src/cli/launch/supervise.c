/* Chooses the ranks of weft run's starts. Their number is -n, or hosts times ranks per host, or the
 * size of the configured grid, or the number that the hosts have room for. If hosts are lost and
 * none is spare, the next start has fewer replicas: the largest number that the planner accepts
 * without padding micro-batches, because then results more often stay the same to the bit. */
#include "supervise.h"

#include "train.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const Verb verb_train;
/* longest wait for lost hosts */
static const double WAIT_S = 600;

/* ---- the command ---- */

/* Returns the path of this program for "weft"; any other word is kept, and is a path or found in
 * PATH. */
static char *program_of(const char *word)
{
    char path[4096];
    return mem_text(!strcmp(word, "weft") && program_path(path, sizeof path) ? path : word);
}

/* Builds the command with grid.dp set to dp; 0: as given by the user. */
static void set_command(Supervisor *s, int dp)
{
    Words w = {0};
    words_add(&w, mem_text(s->command[0]));
    words_add(&w, mem_text("train"));
    for (int i = 0; i < s->argc; ++i)
        if (dp == 0 || strncmp(s->argv[i], "grid.dp=", 8) != 0) words_add(&w, mem_text(s->argv[i]));
    if (dp > 0) words_add(&w, mem_format("grid.dp=%d", dp));
    words_free(s->command);
    s->command = w.word;
}

static Status read_command(Supervisor *s, int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "train") != 0)
        return fail(ERR_USAGE, "expected -- weft train CONFIG [key=value ...]; --help says more");
    for (int i = 2; i < argc; ++i)
        if (argv[i][0] == '-')
            return fail(ERR_USAGE,
                        "%s behind --: only CONFIG [key=value ...] stand behind `weft "
                        "train` there; -n belongs before the --",
                        argv[i]);
    s->argc = argc - 2;
    s->argv = argv + 2;
    Words program = {0};
    words_add(&program, program_of(argv[0]));
    s->command = program.word;
    set_command(s, 0);
    return job_check(&s->config, &verb_train, s->argc, s->argv);
}

/* ---- number of ranks ---- */

static int room(Hosts *hosts, int most)
{
    return hosts_share(hosts, INT32_MAX, most);
}

static int64_t ranks_of(const Supervisor *s, int64_t replicas)
{
    return replicas * s->replica + s->servers;
}

/* number of complete replicas that fit into `ranks` ranks */
static int replicas_of(const Supervisor *s, int ranks)
{
    return (ranks - s->servers) / s->replica;
}

/* Number of ranks in the configuration's grid; 0: grid.dp is not set. */
static int64_t ranks_of_grid(const Supervisor *s)
{
    int64_t dp = s->config->grid.dp;
    return dp > 0 ? ranks_of(s, dp) : 0;
}

static Status count_ranks(Supervisor *s)
{
    const RunFlags *f = s->flags;
    int64_t ranks = f->ranks;
    if (f->nodes > 0 && f->each > 0 && ranks > f->nodes * f->each)
        return fail(ERR_USAGE, "-n %lld is more than --nnodes %lld times --nproc-per-node %lld",
                    (long long)ranks, (long long)f->nodes, (long long)f->each);
    if (ranks == 0 && f->nodes > 0 && f->each > 0) ranks = f->nodes * f->each;
    if (ranks == 0) ranks = ranks_of_grid(s);
    if (ranks == 0 && s->hosts.count > 0) ranks = room(&s->hosts, (int)f->nodes);
    if (ranks == 0) ranks = f->each > 0 ? f->each : ranks_of(s, 1);
    if (ranks > RANKS_MAX)
        return fail(ERR_USAGE, "%lld ranks are more than weft starts", (long long)ranks);
    s->wanted = (int)ranks;
    if (s->hosts.count == 0 && f->nodes > 1)
        return fail(ERR_USAGE,
                    "--nnodes %lld: this is no batch job on several hosts: --hostfile "
                    "names them",
                    (long long)f->nodes);
    if (s->hosts.count == 0) return OK;
    if (f->nodes > s->hosts.count)
        return fail(ERR_USAGE, "--nnodes %lld, but %s has %d host%s", (long long)f->nodes,
                    s->hosts.source, s->hosts.count, s->hosts.count == 1 ? "" : "s");
    int most = room(&s->hosts, (int)f->nodes);
    if (s->wanted <= most) return OK;
    return fail(ERR_USAGE,
                "%d ranks, but the hosts of %s have room for %d: --nproc-per-node says "
                "how many each may have",
                s->wanted, s->hosts.source, most);
}

static Status find_hosts(Supervisor *s)
{
    const RunFlags *f = s->flags;
    int64_t each = f->each;
    if (each == 0 && f->ranks > 0 && f->nodes > 0) each = (f->ranks + f->nodes - 1) / f->nodes;
    TRY(hosts_init(&s->hosts, f->hostfile, (int)each));
    if (f->starter >= 0) s->hosts.starter = (Starter)f->starter;
    if (s->hosts.starter == STARTER_SRUN && s->hosts.count == 0)
        return fail(ERR_USAGE, "--launcher srun: this is no batch job, and there is no --hostfile: "
                               "srun needs hosts to start ranks on (salloc, sbatch), mpirun does "
                               "not");
    return OK;
}

/* Makes Open MPI kill the other ranks at once after a loss. By default it lets them run for two
 * more seconds, in which they can do nothing useful. */
static void end_ranks_at_once(void)
{
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
    setenv("PRTE_MCA_odls_base_sigkill_timeout", "0", 0);
}

Status supervise_init(Supervisor *s, int argc, char **argv)
{
    TRY(read_command(s, argc, argv));
    const Config *c = s->config;
    int64_t replica = c->grid.pp * c->grid.tp;
    if (replica > RANKS_MAX)
        return config_fail_key(c, "grid.pp", "%lld ranks a replica are more than weft starts",
                               (long long)replica);
    s->replica = (int)replica;
    s->servers = (int)c->grid.servers;
    s->folder = mem_format("%s/%s", c->run.dir, c->run.name);
    s->checkpoints = mem_format("%s/checkpoints", s->folder);
    s->seen = known_files_new();
    lease_new_id(s->id);
    TRY(find_hosts(s));
    TRY(count_ranks(s));
    s->ranks = s->wanted;
    end_ranks_at_once();
    if (s->hosts.count > 0)
        hosts_settle(&s->hosts);
    else if (s->ranks > 1)
        launch_prepare(s->ranks, (int)c->train.threads);
    return OK;
}

void supervise_fini(Supervisor *s)
{
    words_free(s->command);
    hosts_fini(&s->hosts);
    config_free(&s->config);
    mem_free(&s->folder);
    mem_free(&s->checkpoints);
    known_files_free(&s->seen);
}

/* ---- fewer replicas ---- */

/* Result of the planner for fewer replicas. */
typedef struct Fewer {
    /* number of replicas; 0: none is possible, because of `status` and a message that was logged */
    int dp;
    Status status;
    /* a plan of all replicas can still be made, so that same_bits is known */
    bool compared;
    /* results are the same to the bit as with all replicas */
    bool same_bits;
} Fewer;

static Status plan(const Supervisor *s, int dp, bool *bits, bool *padded)
{
    const World alone = {.size = 1, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    const DryRun design = {.ranks = (int)ranks_of(s, dp)};
    Trainer *t = NULL;
    s->config->grid.dp = dp;
    Status status = trainer_dry_run(&t, s->config, &alone, &design);
    char *padding = status == OK ? train_padding(t) : NULL;
    *padded = padding != NULL;
    *bits = status == OK && train_same_bits(t);
    mem_free(&padding);
    trainer_free(&t);
    return status;
}

/* Logs the largest number of replicas of which no plan can be made, and the reason, unless none can
 * be made at all: then it logs the last reason as an error. */
static Fewer find_fewer(const Supervisor *s, int most)
{
    bool all_bits, bits, padded;
    const int all = replicas_of(s, s->wanted);
    char *why = NULL;
    Fewer found = {.compared = plan(s, all, &all_bits, &padded) == OK};
    if (!found.compared)
        why = mem_format("no plan of %d replicas can be made: %s", all, fail_message());
    for (int dp = most; dp > 0 && found.dp == 0; --dp) {
        found.status = plan(s, dp, &bits, &padded);
        if (found.status != OK && !why)
            why = mem_format("no plan of %d replicas can be made: %s", dp, fail_message());
        if (found.status != OK || padded) continue;
        found.dp = dp;
        found.same_bits = bits && all_bits;
    }
    if (found.dp == 0)
        log_error("weft run: %s", fail_message());
    else if (why)
        log_warn("weft run: %s", why);
    mem_free(&why);
    return found;
}

/* Runs find_fewer in a separate process: a plan binds threads to cores, which ranks would inherit,
 * and takes memory. */
static Status plan_fewer(const Supervisor *s, int most, Fewer *fewer)
{
    int ends[2], state;
    *fewer = (Fewer){0};
    if (pipe2(ends, O_CLOEXEC) != 0) return fail(ERR_IO, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        log_init(false);
        Fewer found = find_fewer(s, most);
        _exit(write(ends[1], &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
    }
    close(ends[1]);
    bool good = child > 0 && read(ends[0], fewer, sizeof *fewer) == (ssize_t)sizeof *fewer;
    close(ends[0]);
    if (child > 0) waitpid(child, &state, 0);
    return good ? OK : fail(ERR_BUG, "weft run: no plan could be made for fewer ranks");
}

static void say_bits(const Supervisor *s, const Fewer *fewer)
{
    if (s->config->train.reproducible != REPRODUCIBLE_ANY_GRID)
        log_warn("weft run: train.reproducible promises bits for one grid only: they may differ "
                 "from now on");
    else if (!fewer->compared)
        log_warn("weft run: bits may differ from now on from those of %d replicas, with which they "
                 "cannot be compared",
                 replicas_of(s, s->wanted));
    else if (!fewer->same_bits && s->config->train.sync_batch_norm)
        log_warn("weft run: bits differ from now on from those of %d replicas, over whose "
                 "micro-batches train.sync_batch_norm took statistics",
                 replicas_of(s, s->wanted));
    else if (!fewer->same_bits)
        log_warn("weft run: bits differ from now on from those of %d replicas: not in both cases "
                 "does each replica have a power of two of micro-batches",
                 replicas_of(s, s->wanted));
    else if (s->config->train.threads == 0)
        log_info("weft run: the bits stay those of %d replicas if each rank has as many threads as "
                 "before, which train.threads would say",
                 replicas_of(s, s->wanted));
    else
        log_info("weft run: the bits stay those of %d replicas", replicas_of(s, s->wanted));
}

/* Reduces the replicas: the hosts have room for `have` ranks, fewer than wanted. */
static Status shrink(Supervisor *s, int have)
{
    Fewer fewer;
    TRY(plan_fewer(s, replicas_of(s, have), &fewer));
    if (fewer.dp == 0)
        return fail(fewer.status,
                    "weft run: the %d ranks that the hosts left have room for make no grid of "
                    "this run, for the reason above",
                    have);
    int before = s->ranks;
    s->ranks = (int)ranks_of(s, fewer.dp);
    hosts_share(&s->hosts, s->ranks, (int)s->flags->nodes);
    set_command(s, s->config->grid.dp > 0 ? fewer.dp : 0);
    if (s->ranks == before) return OK;
    log_warn("weft run: with the hosts that are left: %d of %d ranks, grid.dp=%d", s->ranks,
             s->wanted, fewer.dp);
    say_bits(s, &fewer);
    return OK;
}

Status supervise_rest(Supervisor *s, int n)
{
    enum { MOST_S = 60, DOUBLINGS = 6 };
    int seconds = n > DOUBLINGS ? MOST_S : 1 << (n - 1);
    if (!attend_rest(&s->attend, seconds)) return OK;
    return fail(ERR_STOPPED,
                "weft run: stopped as requested, between two starts: start the same command "
                "again%s to continue",
                train_leave_out(s->config));
}

static void say_lost(const Supervisor *s)
{
    char *lost = hosts_lost_text(&s->hosts);
    if (*lost) log_warn("weft run: no answer from %s", lost);
    mem_free(&lost);
}

Status supervise_gather(Supervisor *s, bool again)
{
    double begin_s = clock_s();
    const int least = (int)ranks_of(s, 1);
    if (s->hosts.count == 0) return OK;
    for (int n = 1;; ++n) {
        if (again) hosts_probe(&s->hosts);
        int have = hosts_share(&s->hosts, s->wanted, (int)s->flags->nodes);
        if (n == 1) say_lost(s);
        if (have == s->wanted) {
            if (s->ranks < have) log_info("weft run: all %d ranks have hosts again", have);
            s->ranks = have;
            set_command(s, 0);
            return OK;
        }
        if (have >= least) return shrink(s, have);
        if (clock_s() - begin_s > WAIT_S)
            return fail(ERR_IO,
                        "weft run: too few hosts answer for %d rank%s: given up after %.0f "
                        "minutes",
                        least, least == 1 ? "" : "s", WAIT_S / 60);
        if (n == 1) log_info("weft run: too few hosts answer: waiting for them");
        TRY(supervise_rest(s, n));
    }
}
