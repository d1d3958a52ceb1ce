/* Tests that the watchdog reports ranks that make no progress. The program starts itself under
 * mpirun once for each case. All jobs run at the same time, because they mostly sleep. Ranks write
 * to a file, because mpirun, which would forward their output, may be stopped.
 * cores: 0.3 */
#include "harness.h"
#include "parallel.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program, *said_path;

/* ---- the ranks ---- */

typedef struct Rank {
    World world;
    Watchdog *watchdog;
} Rank;

static void waits_for(int peer)
{
    beat_mark("a message",
              (BeatMark){.peer = peer, .chunk = BEAT_NONE, .micro = 3, .number = 7, .waits = true});
}

static void computes(void)
{
    beat_mark("backward", (BeatMark){.peer = BEAT_NONE, .chunk = 2, .micro = 3});
}

/* Returns the text of a file, in static memory. */
static char *text_of(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    return text;
}

/* Waits until a rank has reported the text `words`, but at most a minute. */
static void until_said(const char *words)
{
    for (int i = 0; i < 600 && !strstr(text_of(said_path), words); ++i) usleep(100000);
}

static void forever(void)
{
    for (;;) sleep(1);
}

/* Makes normal steps, and then a step that never ends, in which rank `odd` calls `wrong`. */
static void step_into(Rank *r, int odd, void (*wrong)(void))
{
    for (int step = 1; step <= 5; ++step) {
        beat_step_begin(step);
        world_barrier(&r->world);
        beat_step_end();
    }
    beat_step_begin(6);
    computes();
    if (r->world.rank == odd)
        wrong();
    else
        waits_for(odd);
}

static void stops(void)
{
    raise(SIGSTOP);
}

/* Rank 0 has ended; its watchdog watches until the other ranks end, too. */
static void stopped(Rank *r)
{
    step_into(r, 2, stops);
    if (r->world.rank > 0) forever();
}

/* Begins a step, in which rank 2 stops. */
static void step_without_2(const Rank *r)
{
    beat_step_begin(6);
    computes();
    if (r->world.rank == 2) raise(SIGSTOP);
}

/* The other ranks wait in a sum over all ranks, between two phases of a step. */
static void sum(Rank *r)
{
    int64_t one = 1;
    step_without_2(r);
    world_allreduce(&r->world, &one, 1);
}

/* Rank 0 waits for the part of rank 2. */
static void collect(Rank *r)
{
    static const size_t bytes[] = {1, 1, 1};
    char part = 0, all[3];
    step_without_2(r);
    world_collect(&r->world, &part, bytes, 0, all);
    forever();
}

/* The other ranks wait for data of rank 2. */
static void multicast(Rank *r)
{
    static const int member[] = {2, 0, 1}, node[] = {0, 0, 0};
    char data = 0;
    Multicast m;
    step_without_2(r);
    multicast_begin(&m, &r->world, multicast_place(member, 3, node, r->world.rank), &data, 1);
    multicast_wait(&m);
}

/* mpirun is stopped until the watchdog has reported, because mpirun would end the job first. */
static void dies(void)
{
    pid_t launcher = getppid();
    if (fork() == 0) {
        until_said("has been dead");
        kill(launcher, SIGCONT);
        _exit(0);
    }
    kill(launcher, SIGSTOP);
    raise(SIGKILL);
}

static void dead(Rank *r)
{
    step_into(r, 1, dies);
    forever();
}

static void computes_long(void)
{
    until_said("behind");
}

static void behind(Rank *r)
{
    step_into(r, 1, computes_long);
    world_barrier(&r->world);
    beat_step_end();
}

/* Rank 2 is a server: it makes no steps, and receives no request. */
static void served(Rank *r)
{
    if (r->world.rank < 2) {
        behind(r);
        return;
    }
    beat_set_server();
    beat_mark_plain("what ranks ask", false);
    beat_mark_plain("messages of other ranks", true);
    for (int i = 0; i < 6; ++i) world_barrier(&r->world);
}

static void waits(void)
{
    waits_for(0);
}

static void hang(Rank *r)
{
    step_into(r, 1, waits);
    forever();
}

/* Rank 1 computes without end while the others wait for it. */
static void endless(Rank *r)
{
    step_into(r, 1, forever);
    forever();
}

/* Rank 0 saves while the others are in the next step. */
static void between(Rank *r)
{
    beat_step_begin(1);
    if (r->world.rank == 0) {
        beat_step_end();
        sleep(9);
        beat_step_begin(1);
    } else
        waits_for(0);
    world_barrier(&r->world);
    beat_step_end();
}

/* The whole job is suspended, and makes progress again when it is continued. */
static void suspended(Rank *r)
{
    beat_step_begin(1);
    world_barrier(&r->world);
    beat_step_end();
    beat_step_begin(2);
    if (fork() == 0) {
        pid_t rank = getppid();
        kill(rank, SIGSTOP);
        sleep(9);
        kill(rank, SIGCONT);
        _exit(0);
    }
    sleep(2);
    world_barrier(&r->world);
    beat_step_end();
}

/* The rank that watches the others is stopped several times, but never for long. */
static void now_and_then(Rank *r)
{
    if (r->world.rank == 0 && fork() == 0) {
        pid_t rank = getppid();
        for (int i = 0; i < 4; ++i) {
            kill(rank, SIGSTOP);
            usleep(700000);
            kill(rank, SIGCONT);
            usleep(1500000);
        }
        _exit(0);
    }
    for (int step = 1; step <= 2; ++step) {
        beat_step_begin(step);
        if (r->world.rank == 0 && step == 2) sleep(10);
        world_barrier(&r->world);
        beat_step_end();
    }
}

typedef struct Case {
    const char *name;
    void (*run)(Rank *rank);
    int ranks;
    double hang_s;
    int code;
    /* said: texts that the reports must contain; unsaid: text that must not occur */
    const char *said[4], *unsaid;
} Case;

static const Case cases[] = {
    {"stopped",
     stopped,
     3,
     300,
     ERR_IO,
     {"rank 2 on ", "has been stopped by a signal for ",
      "it is at backward of chunk 2, micro-batch 3, step 6",
      "waits for a message (7) of rank 2, micro-batch 3, step 6"},
     "no rank has made progress"},
    {"sum",
     sum,
     3,
     300,
     ERR_IO,
     {"rank 2 on ", "has been stopped by a signal for ", "rank 0 on ",
      "waits for messages of other ranks, step 6"},
     "no rank has made progress"},
    {"collect",
     collect,
     3,
     300,
     ERR_IO,
     {"rank 2 on ", "has been stopped by a signal for ", "rank 0 on ",
      "waits for messages of other ranks, step 6"},
     "no rank has made progress"},
    {"multicast",
     multicast,
     3,
     300,
     ERR_IO,
     {"rank 2 on ", "has been stopped by a signal for ", "rank 0 on ",
      "waits for messages of other ranks, step 6"},
     "no rank has made progress"},
    {"dead",
     dead,
     3,
     300,
     /* mpirun's exit code for a killed rank */
     128 + SIGKILL,
     {"rank 1 on ", "has been dead for ", "a message (7) of rank 1"},
     "stopped"},
    {"behind",
     behind,
     3,
     300,
     0,
     {"step 6 has taken ", "behind is: rank 1 on ", "is at backward of chunk 2", "rank 0 on "},
     "error"},
    {"served",
     served,
     3,
     300,
     0,
     {"step 6 has taken ", "behind is: rank 1 on ", "rank 2 on ", "waits for messages of other"},
     "error"},
    {"hang",
     hang,
     10,
     3,
     ERR_IO,
     /* the number of seconds between the first two texts is 3 on an idle machine, and otherwise
      * more */
     {"no rank has made progress for ", " s (train.hang_s)", "waits for a message (7) of rank 0",
      "; and 2 more"},
     "stopped by"},
    {"endless",
     endless,
     3,
     3,
     ERR_IO,
     {"no rank has made progress for ", "is at backward of chunk 2",
      "waits for a message (7) of rank 1"},
     "stopped by"},
    {"between", between, 3, 3, 0, {""}, "step"},
    {"suspended", suspended, 3, 6, 0, {""}, "weft:"},
    {"now and then", now_and_then, 3, 300, 0, {""}, "stopped"},
};
enum { CASES = sizeof cases / sizeof *cases };

static int rank_main(int argc, char **argv)
{
    const Case *c = &cases[atoi(argv[1])];
    Rank rank;
    said_path = argv[2];
    if (!freopen(said_path, "a", stderr)) return 2;
    if (world_init(&rank.world, &argc, &argv) != OK) return 2;
    WatchdogOptions options = {.hang_s = c->hang_s, .folder = argv[3]};
    rank.watchdog = watchdog_new(&rank.world, &options);
    c->run(&rank);
    watchdog_free(&rank.watchdog);
    world_fini(&rank.world);
    return 0;
}

/* ---- the test ---- */

typedef struct Job {
    pid_t process;
    char said[64], folder[64];
} Job;

static void start(Job *job, int number)
{
    char folder[] = "/tmp/weft-watchdog-XXXXXX", digits[16], why[] = "100", ranks[16];
    snprintf(digits, sizeof digits, "%d", number);
    snprintf(ranks, sizeof ranks, "%d", cases[number].ranks);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(job->folder, sizeof job->folder, "%s", folder);
    snprintf(job->said, sizeof job->said, "%s/said", folder);
    job->process = fork();
    if (job->process != 0) return;
    char *words[] = {"timeout", why,         "mpirun", "--oversubscribe",          "--bind-to",
                     "none",    "-n",        ranks,    (char *)(uintptr_t)program, digits,
                     job->said, job->folder, NULL};
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    execvp(words[0], words);
    _exit(2);
}

static void check(const Job *job, const Case *c)
{
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(job->process, &status, 0), job->process);
    const char *said = text_of(job->said);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == c->code;
    for (int i = 0; i < 4 && c->said[i]; ++i) good = good && strstr(said, c->said[i]);
    good = good && !strstr(said, c->unsaid);
    if (!good)
        fprintf(stderr, "%s: ended with %d and said: %s\n", c->name,
                WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), said);
    CU_ASSERT_TRUE(good);
}

/* If the watchdog has ended the job, checks that its dump has the last actions of the ranks. */
static void check_dump(const Job *job, const Case *c)
{
    char host[64] = "", path[192];
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/hang-%s.txt", job->folder, host);
    CU_ASSERT_EQUAL(access(path, R_OK) == 0, c->code != 0);
    const char *text = text_of(path);
    for (int r = 0; r < 3 && c->code != 0; ++r) {
        char line[32];
        snprintf(line, sizeof line, "rank %d, process ", r);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, line));
    }
    if (c->code != 0) CU_ASSERT_PTR_NOT_NULL(strstr(text, "backward of chunk 2, micro-batch 3"));
    unlink(path);
    unlink(job->said);
    rmdir(job->folder);
}

static void named_or_left_alone(void)
{
    Job job[CASES];
    for (int i = 0; i < CASES; ++i) start(&job[i], i);
    for (int i = 0; i < CASES; ++i) {
        check(&job[i], &cases[i]);
        check_dump(&job[i], &cases[i]);
    }
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"named or left alone", named_or_left_alone}};
    program = argv[0];
    if (argc > 1) return rank_main(argc, argv);
    return harness_run("ranks that do not go on", tests, 1, 0, NULL);
}
