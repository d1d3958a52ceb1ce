/* The state of weft run. Parses the command after "--", finds the hosts, waits for lost hosts, and
 * chooses the number of ranks of each start. The number of ranks is the first of the following
 * numbers that is known: -n, --nnodes times --nproc-per-node, the size of the configured grid, the
 * capacity of the hosts, --nproc-per-node, one replica. If hosts are lost and no spare hosts are
 * left, the next start has fewer replicas. It has the largest number of replicas for which the plan
 * has no padding micro-batches, because padding wastes time. */
#include "supervisor.h"

#include "train.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const Verb verb_train;
/* longest wait for lost hosts, in seconds */
static const double HOSTS_WAIT_S = 600;

/* ---- the command ---- */

/* Returns the path of this program if `word` is "weft". Any other word is a path, or the name of a
 * program in PATH, and is returned unchanged. The caller owns the result. */
static char *program_of(const char *word)
{
    char path[4096];
    return mem_text(!strcmp(word, "weft") && program_path(path, sizeof path) ? path : word);
}

/* Builds s->command. dp: value of grid.dp in the command; 0: as given by the user. */
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
        return fail(ERR_USAGE, "expected -- weft train CONFIG [key=value ...]; see --help");
    for (int i = 2; i < argc; ++i)
        if (argv[i][0] == '-')
            return fail(ERR_USAGE,
                        "%s: after -- only `weft train CONFIG [key=value ...]` is allowed; put -n "
                        "before it",
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

/* Places as many ranks as possible on the first hosts_max hosts that are not lost (0: on all of
 * them). Returns the number of ranks. */
static int rank_capacity(Hosts *hosts, int hosts_max)
{
    return hosts_place_ranks(hosts, INT32_MAX, hosts_max);
}

/* Returns the number of ranks of a run with this number of replicas, including the servers. */
static int64_t ranks_of(const Supervisor *s, int64_t replicas)
{
    return replicas * s->ranks_per_replica + s->servers;
}

/* Returns the number of complete replicas of a run on `ranks` ranks, which include the servers. */
static int replicas_in(const Supervisor *s, int ranks)
{
    return (ranks - s->servers) / s->ranks_per_replica;
}

/* Checks that there are as many hosts as --nnodes says, and that they have room for s->ranks_wanted
 * ranks. */
static Status check_ranks(Supervisor *s)
{
    const RunFlags *f = s->flags;
    if (s->hosts.count == 0 && f->nodes > 1)
        return fail(ERR_USAGE,
                    "--nnodes %lld: this is no batch job on several hosts; give --hostfile",
                    (long long)f->nodes);
    if (s->hosts.count == 0) return OK;
    if (f->nodes > s->hosts.count)
        return fail(ERR_USAGE, "--nnodes %lld, but %s has %d host%s", (long long)f->nodes,
                    s->hosts.source, s->hosts.count, s->hosts.count == 1 ? "" : "s");
    int capacity = rank_capacity(&s->hosts, (int)f->nodes);
    if (s->ranks_wanted <= capacity) return OK;
    return fail(ERR_USAGE,
                "%d ranks, but the hosts of %s have room for %d; to start more on each, give "
                "--nproc-per-node",
                s->ranks_wanted, s->hosts.source, capacity);
}

/* Sets s->ranks_wanted, the number of ranks if all hosts answer. */
static Status count_ranks(Supervisor *s)
{
    const RunFlags *f = s->flags;
    int64_t ranks = f->ranks;
    if (f->nodes > 0 && f->per_node > 0 && ranks > f->nodes * f->per_node)
        return fail(ERR_USAGE, "-n %lld is more than --nnodes %lld times --nproc-per-node %lld",
                    (long long)ranks, (long long)f->nodes, (long long)f->per_node);
    if (ranks == 0 && f->nodes > 0 && f->per_node > 0) ranks = f->nodes * f->per_node;
    if (ranks == 0 && s->config->grid.dp > 0) ranks = ranks_of(s, s->config->grid.dp);
    if (ranks == 0 && s->hosts.count > 0) ranks = rank_capacity(&s->hosts, (int)f->nodes);
    if (ranks == 0) ranks = f->per_node > 0 ? f->per_node : ranks_of(s, 1);
    if (ranks > RANKS_MAX)
        return fail(ERR_USAGE, "%lld ranks exceed the limit of %d ranks", (long long)ranks,
                    RANKS_MAX);
    s->ranks_wanted = (int)ranks;
    return check_ranks(s);
}

static Status find_hosts(Supervisor *s)
{
    const RunFlags *f = s->flags;
    int64_t per_node = f->per_node;
    if (per_node == 0 && f->ranks > 0 && f->nodes > 0)
        per_node = (f->ranks + f->nodes - 1) / f->nodes;
    TRY(hosts_init(&s->hosts, f->hostfile, (int)per_node));
    if (f->starter >= 0) s->hosts.starter = (Starter)f->starter;
    if (s->hosts.starter == STARTER_SRUN && s->hosts.count == 0)
        return fail(ERR_USAGE,
                    "--launcher srun: this is no batch job; start it with salloc or sbatch, "
                    "give --hostfile, or use --launcher mpirun");
    return OK;
}

/* Makes Open MPI kill the remaining ranks at once when a rank is lost. By default they run for two
 * more seconds, which are useless. */
static void set_mpi_kill_timeout(void)
{
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
    setenv("PRTE_MCA_odls_base_sigkill_timeout", "0", 0);
}

Status supervisor_init(Supervisor *s, int argc, char **argv)
{
    TRY(read_command(s, argc, argv));
    const Config *c = s->config;
    int64_t ranks = c->grid.pp * c->grid.tp;
    if (ranks > RANKS_MAX)
        return config_fail_key(c, "grid.pp", "%lld ranks per replica exceed the limit of %d ranks",
                               (long long)ranks, RANKS_MAX);
    s->ranks_per_replica = (int)ranks;
    s->servers = (int)c->grid.servers;
    s->folder = mem_format("%s/%s", c->run.dir, c->run.name);
    s->checkpoints = mem_format("%s/checkpoints", s->folder);
    s->known_checkpoints = known_files_new();
    random_id(s->id);
    TRY(find_hosts(s));
    TRY(count_ranks(s));
    s->ranks = s->ranks_wanted;
    set_mpi_kill_timeout();
    if (s->hosts.count > 0)
        hosts_set_launcher_env(&s->hosts);
    else if (s->ranks > 1)
        launch_prepare(s->ranks, (int)c->train.threads);
    return OK;
}

void supervisor_fini(Supervisor *s)
{
    words_free(s->command);
    hosts_fini(&s->hosts);
    config_free(&s->config);
    mem_free(&s->folder);
    mem_free(&s->checkpoints);
    known_files_free(&s->known_checkpoints);
}

/* ---- fewer replicas ---- */

/* The result of planning with fewer replicas. */
typedef struct FewerReplicas {
    /* number of replicas; 0: no number of replicas can be planned without padding, and the last
     * message has been logged */
    int dp;
    /* status of the last plan that was tried */
    Status status;
    /* true: same_bits is valid, because the run with all replicas could be planned, too */
    bool compared;
    /* true: results are bit-identical to those with all replicas */
    bool same_bits;
} FewerReplicas;

/* Makes the plan for dp replicas in a dry run. *same_bits: the result of train_same_bits. *padded:
 * whether there would be padding micro-batches. Leaves grid.dp unchanged. */
static Status try_plan(const Supervisor *s, int dp, bool *same_bits, bool *padded)
{
    const World alone = world_alone();
    const DryRun dry_run = {.ranks = (int)ranks_of(s, dp)};
    const int64_t configured_dp = s->config->grid.dp;
    Trainer *t = NULL;
    s->config->grid.dp = dp;
    Status status = trainer_dry_run(&t, s->config, &alone, &dry_run);
    char *padding = status == OK ? train_padding_text(t) : NULL;
    *padded = padding != NULL;
    *same_bits = status == OK && train_same_bits(t);
    mem_free(&padding);
    trainer_free(&t);
    s->config->grid.dp = configured_dp;
    return status;
}

/* If this failure is the first, that is, if *why is NULL, writes its message to *why. */
static void keep_first_failure(char **why, int dp)
{
    if (!*why) *why = mem_format("%d replicas cannot be planned: %s", dp, fail_message());
}

/* Finds the largest number of replicas, up to dp_max, that can be planned without padding. If it
 * finds one, it warns with the first failure, if any. If it finds none, it logs the last failure as
 * an error. */
static FewerReplicas find_fewer(const Supervisor *s, int dp_max)
{
    bool all_same_bits, same_bits, padded;
    const int all = replicas_in(s, s->ranks_wanted);
    char *why = NULL;
    FewerReplicas found = {.compared = try_plan(s, all, &all_same_bits, &padded) == OK};
    if (!found.compared) keep_first_failure(&why, all);
    for (int dp = dp_max; dp > 0 && found.dp == 0; --dp) {
        found.status = try_plan(s, dp, &same_bits, &padded);
        if (found.status != OK) keep_first_failure(&why, dp);
        if (found.status != OK || padded) continue;
        found.dp = dp;
        found.same_bits = same_bits && all_same_bits;
    }
    if (found.dp == 0)
        log_error("weft run: %s", fail_message());
    else if (why)
        log_warn("weft run: %s", why);
    mem_free(&why);
    return found;
}

/* Runs find_fewer in a separate process, because planning needs memory and binds threads to cores.
 * The ranks would inherit that binding. */
static Status plan_fewer(const Supervisor *s, int dp_max, FewerReplicas *fewer_replicas)
{
    int pipe_fds[2], state;
    *fewer_replicas = (FewerReplicas){0};
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) return fail(ERR_IO, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        log_init(false);
        FewerReplicas found = find_fewer(s, dp_max);
        _exit(write(pipe_fds[1], &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
    }
    close(pipe_fds[1]);
    bool good = child > 0 && read(pipe_fds[0], fewer_replicas, sizeof *fewer_replicas) ==
                                 (ssize_t)sizeof *fewer_replicas;
    close(pipe_fds[0]);
    if (child > 0) waitpid(child, &state, 0);
    return good ? OK : fail(ERR_BUG, "weft run: no plan could be made for fewer ranks");
}

/* Reports whether results stay bit-identical to those with all replicas. */
static void log_bits(const Supervisor *s, const FewerReplicas *fewer_replicas)
{
    const int all = replicas_in(s, s->ranks_wanted);
    if (s->config->train.reproducible != REPRODUCIBLE_ANY_GRID)
        log_warn("weft run: results may no longer be bit-identical to %d replicas: "
                 "train.reproducible guarantees bit-identical results on one grid only",
                 all);
    else if (!fewer_replicas->compared)
        log_warn("weft run: results may no longer be bit-identical to %d replicas: that number "
                 "cannot be planned, so it was not compared",
                 all);
    else if (!fewer_replicas->same_bits)
        log_warn("weft run: results will no longer be bit-identical to %d replicas: %s depends on "
                 "the number of replicas",
                 all, s->config->train.sync_batch_norm ? "train.sync_batch_norm" : "grid.mode");
    else
        log_info("weft run: results stay bit-identical to %d replicas", all);
}

/* Reduces the number of replicas for a start on `capacity` ranks, which are fewer than
 * s->ranks_wanted. */
static Status reduce_replicas(Supervisor *s, int capacity)
{
    FewerReplicas fewer_replicas;
    TRY(plan_fewer(s, replicas_in(s, capacity), &fewer_replicas));
    if (fewer_replicas.dp == 0)
        return fail(fewer_replicas.status,
                    "weft run: no grid fits in the %d rank%s on the remaining hosts, for the "
                    "reason above",
                    capacity, capacity == 1 ? "" : "s");
    int before = s->ranks;
    s->ranks = (int)ranks_of(s, fewer_replicas.dp);
    hosts_place_ranks(&s->hosts, s->ranks, (int)s->flags->nodes);
    set_command(s, s->config->grid.dp > 0 ? fewer_replicas.dp : 0);
    if (s->ranks == before) return OK;
    log_warn("weft run: on the remaining hosts: %d of %d ranks, grid.dp=%d", s->ranks,
             s->ranks_wanted, fewer_replicas.dp);
    log_bits(s, &fewer_replicas);
    return OK;
}

Status supervisor_backoff(Supervisor *s, int n)
{
    enum { WAIT_MAX_S = 60, DOUBLINGS = 6 };
    int seconds = n > DOUBLINGS ? WAIT_MAX_S : 1 << (n - 1);
    if (!runner_pause(&s->runner, seconds)) return OK;
    return fail(ERR_STOPPED,
                "weft run: stopped as requested, between two starts: start the same command "
                "again%s to continue",
                train_continue_hint(s->config));
}

static void log_lost_hosts(const Supervisor *s)
{
    char *lost = hosts_lost_text(&s->hosts);
    if (*lost) log_warn("weft run: no answer from %s", lost);
    mem_free(&lost);
}

Status supervisor_choose_ranks(Supervisor *s, bool again)
{
    double begin_s = clock_s();
    const int ranks_min = (int)ranks_of(s, 1);
    if (s->hosts.count == 0) return OK;
    for (int n = 1;; ++n) {
        if (again) hosts_probe(&s->hosts);
        int capacity = hosts_place_ranks(&s->hosts, s->ranks_wanted, (int)s->flags->nodes);
        if (n == 1) log_lost_hosts(s);
        if (capacity == s->ranks_wanted) {
            if (s->ranks < capacity) log_info("weft run: all %d ranks have hosts again", capacity);
            s->ranks = capacity;
            set_command(s, 0);
            return OK;
        }
        if (capacity >= ranks_min) return reduce_replicas(s, capacity);
        if (clock_s() - begin_s > HOSTS_WAIT_S)
            return fail(ERR_IO,
                        "weft run: too few hosts answer for %d rank%s; stopped waiting after %.0f "
                        "minutes",
                        ranks_min, ranks_min == 1 ? "" : "s", HOSTS_WAIT_S / 60);
        if (n == 1) log_info("weft run: too few hosts answer: waiting for them");
        TRY(supervisor_backoff(s, n));
    }
}
