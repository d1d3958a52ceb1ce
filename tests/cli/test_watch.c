/* Ranks on other hosts report to the launcher by TCP: what a child process of this test does, for
 * which the launcher's local socket has another name.
 * cores: 0.1 */
#include "base/lease.h"
#include "cli/launch/start_watch.h"
#include "harness.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static Watch watch;

/* Starts rank `number` in a process that does not find the local socket; `where` replaces the
 * token. It reports MPI_Init, and then beats until it is killed. */
static pid_t start_rank(int number, const char *token)
{
    char *value = mem_text(getenv(WATCH_VARIABLE));
    memcpy(value, token, strlen(token));
    setenv(WATCH_VARIABLE, value, 1);
    mem_free(&value);
    pid_t child = fork();
    if (child > 0) return child;
    watch_connect(number);
    watch_report_stage(START_MPI);
    for (;;) {
        watch_send_beat();
        clock_sleep(0.05);
    }
}

/* Looks at the connections for so long, or until `met` ranks have reported MPI_Init. */
static void look(double seconds, int met)
{
    int in_mpi = 0;
    for (double end_s = clock_s() + seconds; clock_s() < end_s && (met == 0 || in_mpi < met);) {
        watch_wait(&watch, 50);
        in_mpi = 0;
        for (int i = 0; i < watch.connected; ++i) in_mpi += watch.rank[i].stage == START_MPI;
    }
}

static void begin(int ranks)
{
    watch_init(&watch, ranks, -1, true);
    /* frees the name of the local socket */
    close(watch.listener);
    watch.listener = -1;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
}

static void test_silent(void)
{
    begin(2);
    if (watch.tcp_listener < 0 || !strchr(strchr(getenv(WATCH_VARIABLE), '/') + 1, '/')) {
        watch_fini(&watch);
        TEST_SKIP("this machine has no network interface but lo");
    }
    char host[HOST_BYTES], named[256];
    host_name(host, sizeof host);
    pid_t first = start_rank(0, ""), second = start_rank(1, "");
    look(20, 2);
    CU_ASSERT_EQUAL(watch.connected, 2);
    StartWatch starting = {0};
    start_watch_init(&starting, 300, "while ranks start");
    starting.checked_s -= 1;
    CU_ASSERT_PTR_NULL(start_watch_check(&starting, &watch, getpid()));
    kill(second, SIGSTOP);
    char *why = NULL;
    double begin_s = clock_s();
    while (!why && clock_s() - begin_s < 60) {
        watch_wait(&watch, 100);
        why = start_watch_check(&starting, &watch, getpid());
    }
    CU_ASSERT(clock_s() - begin_s > 8 && clock_s() - begin_s < 30);
    CU_ASSERT_PTR_NOT_NULL_FATAL(why);
    snprintf(named, sizeof named, "while ranks start: rank 1 on %s (process %d) is stopped", host,
             (int)second);
    if (!strstr(why, named) || !strstr(why, "it is in MPI_Init")) printf("  %s\n", why);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, named));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "it is in MPI_Init"));
    CU_ASSERT_PTR_NULL(strstr(why, "rank 0"));
    mem_free(&why);
    end(second);
    /* its connection ends, which mpirun explains, and the other one has the time of train.hang_s */
    look(1, 0);
    CU_ASSERT_PTR_NULL(watch_lost_rank(&watch));
    starting.hang_s = 3;
    Host hosts[] = {{.name = "n1", .ranks = 1}, {.name = "n2", .ranks = 1}};
    Hosts on = {.count = 2, .host = hosts};
    starting.hosts = &on;
    kill(first, SIGSTOP);
    begin_s = clock_s();
    while (!why && clock_s() - begin_s < 60) {
        watch_wait(&watch, 100);
        why = start_watch_check(&starting, &watch, getpid());
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(why);
    if (!strstr(why, "rank 1 on n2 has not reported")) printf("  %s\n", why);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "while ranks start none has made progress for "));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "rank 1 on n2 has not reported"));
    mem_free(&why);
    end(first);
    start_watch_fini(&starting);
    watch_fini(&watch);
}

/* A process without the token is refused. */
static void test_stranger(void)
{
    begin(2);
    pid_t stranger = start_rank(0, "0000000000000000");
    look(3, 0);
    CU_ASSERT_EQUAL(watch.connected, 0);
    end(stranger);
    watch_fini(&watch);
}

/* Where no rank can report, the time of train.hang_s ends a start of which nothing is seen, but
 * not one whose rank owns the run's folder. */
static void test_nobody(void)
{
    char folder[] = "/tmp/weft-watch-XXXXXX", id[RANDOM_ID_BYTES];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    StartWatch starting = {0};
    Lease *lease = NULL;
    random_id(id);
    begin(1);
    start_watch_set_id(&starting, folder, id, 1);
    start_watch_init(&starting, 1, "while ranks start");
    CU_ASSERT_EQUAL_FATAL(lease_take(&lease, folder, 1), OK);
    clock_sleep(2);
    CU_ASSERT_PTR_NULL(start_watch_check(&starting, &watch, getpid()));
    lease_end(&lease);
    start_watch_set_id(&starting, folder, id, 2);
    clock_sleep(1);
    char *why = start_watch_check(&starting, &watch, getpid());
    CU_ASSERT_PTR_NOT_NULL_FATAL(why);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "no rank has reported"));
    mem_free(&why);
    unsetenv(LEASE_RUN);
    start_watch_fini(&starting);
    watch_fini(&watch);
    char owner[sizeof folder + 16];
    snprintf(owner, sizeof owner, "%s/owner-1", folder);
    unlink(owner);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

/* Without a free descriptor the launcher does not spin: a wait lasts until its limit. */
static void test_no_descriptors(void)
{
    struct rlimit before, none;
    watch_init(&watch, 2, -1, false);
    pid_t child = fork();
    if (child == 0) {
        watch_connect(0);
        for (;;) pause();
    }
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    watch_wait(&watch, 20000);
    double begin_s = clock_s();
    watch_wait(&watch, 300);
    CU_ASSERT(clock_s() - begin_s > 0.25);
    CU_ASSERT_EQUAL(watch.connected, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    end(child);
    watch_fini(&watch);
}

TEST_MAIN("watch", {"a silent rank on another host", test_silent}, {"a stranger", test_stranger},
          {"nobody reports", test_nobody}, {"no free descriptor", test_no_descriptors})
