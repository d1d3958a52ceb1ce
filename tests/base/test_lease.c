/* Ownership of a folder: one of several processes gets it, never two; a dead owner is replaced at
 * once where its state can be queried, otherwise after four missed heartbeats; a living
 * one is not replaced.
 * cores: 0.1 */
#include "base.h"
#include "harness.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[] = "/tmp/weft-lease-XXXXXX";
static const double BEAT_S = 0.1, LONG_S = 600;

static char *newest_path(void)
{
    static char path[256];
    for (int n = 200; n > 0; --n) {
        snprintf(path, sizeof path, "%s/owner-%d", folder, n);
        if (access(path, F_OK) == 0) return path;
    }
    return NULL;
}

static void empty_folder(void)
{
    for (const char *path; (path = newest_path());) unlink(path);
}

/* Starts a process that takes the folder and holds it until it is killed, or ends with the status
 * of its failure. *good: it has the folder. */
static pid_t owner(double beat_s, bool *good)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        Lease *lease;
        Status status = lease_take(&lease, folder, beat_s);
        if (write(ready[1], status == OK ? "y" : "n", 1) != 1) _exit(1);
        while (status == OK) pause();
        _exit((int)status);
    }
    close(ready[1]);
    *good = read(ready[0], &byte, 1) == 1 && byte == 'y';
    close(ready[0]);
    return child;
}

static int ended(pid_t child)
{
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static void kill_owner(pid_t child)
{
    kill(child, SIGKILL);
    CU_ASSERT_EQUAL(ended(child), 128 + SIGKILL);
}

/* Changes the first letter of a word in the newest owner's file, as if the owner were on another
 * host, ... */
static void alter(const char *key, char letter)
{
    char text[2048] = "", name[32];
    int file = open(newest_path(), O_RDWR);
    ssize_t got = pread(file, text, sizeof text - 1, 0);
    snprintf(name, sizeof name, "\"%s\":\"", key);
    char *at = strstr(text, name);
    CU_ASSERT(got > 0 && at != NULL);
    if (at) at[strlen(name)] = letter;
    CU_ASSERT_EQUAL(pwrite(file, text, (size_t)got, 0), got);
    close(file);
}

/* Returns the seconds that this process takes to get the folder, which it releases again; -1: it
 * fails. */
static double take_s(void)
{
    Lease *lease;
    double begin_s = clock_s();
    if (lease_take(&lease, folder, BEAT_S) != OK) return -1;
    double took_s = clock_s() - begin_s;
    CU_ASSERT(lease_owner_is(folder, lease_id(lease)));
    lease_require(lease);
    lease_end(&lease);
    return took_s;
}

static void test_same_host(void)
{
    bool good;
    empty_folder();
    pid_t first = owner(LONG_S, &good), second;
    CU_ASSERT(good);
    CU_ASSERT(take_s() < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "another run is using this folder"));
    char owner_text[32];
    snprintf(owner_text, sizeof owner_text, "process %d on ", (int)first);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), owner_text));
    second = owner(LONG_S, &good);
    CU_ASSERT_FALSE(good);
    CU_ASSERT_EQUAL(ended(second), ERR_CONFIG);
    kill_owner(first);
    /* waiting for four beats of that owner would take forty minutes */
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT(take_s() >= 0);
}

/* A zombie, whose parent has not waited for it, is not an owner. */
static void test_zombie(void)
{
    bool good;
    siginfo_t info;
    empty_folder();
    pid_t child = owner(LONG_S, &good);
    kill(child, SIGKILL);
    CU_ASSERT_EQUAL(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT_EQUAL(ended(child), 128 + SIGKILL);
}

static void test_other_host(void)
{
    bool good;
    empty_folder();
    pid_t child = owner(BEAT_S, &good);
    kill_owner(child);
    alter("place", '!');
    CU_ASSERT(take_s() >= 4 * BEAT_S);
}

/* A real owner's next beat would restore its altered place, so a process that only changes the text
 * stands for it. */
static void test_other_host_alive(void)
{
    char path[256], text[1024];
    bool good;
    empty_folder();
    pid_t child = owner(LONG_S, &good);
    kill_owner(child);
    alter("place", '!');
    snprintf(path, sizeof path, "%s", newest_path());
    pid_t beats = fork();
    if (beats == 0) {
        int file = open(path, O_RDWR);
        if (pread(file, text, sizeof text, 0) != (ssize_t)sizeof text) _exit(1);
        /* changing the padding behind the text serves as a beat */
        for (int i = 0;; ++i) {
            if (pwrite(file, i % 2 ? "." : " ", 1, (off_t)sizeof text - 8) != 1) _exit(1);
            usleep(20000);
        }
    }
    CU_ASSERT(take_s() < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "another run is using this folder"));
    kill_owner(beats);
}

/* The owner died before it wrote its facts. */
static void test_empty(void)
{
    char path[256];
    empty_folder();
    snprintf(path, sizeof path, "%s/owner-7", folder);
    close(open(path, O_WRONLY | O_CREAT, 0666));
    CU_ASSERT(take_s() >= 4 * BEAT_S);
    CU_ASSERT_STRING_EQUAL(newest_path() + strlen(folder), "/owner-8");
}

/* Files that no owner has made are neither waited for nor taken for a dead owner. */
static void test_not_files(void)
{
    static const char *const odd[] = {"owner-99999999999999999999999", "owner-9223372036854775807",
                                      "owner-007", "owner-5 ", "owner-"};
    char path[256];
    Lease *lease;
    empty_folder();
    snprintf(path, sizeof path, "%s/owner-3", folder);
    CU_ASSERT_EQUAL(mkfifo(path, 0666), 0);
    CHECK_FAILS(lease_take(&lease, folder, BEAT_S), ERR_IO, "owner-3: cannot be read");
    unlink(path);
    CU_ASSERT_EQUAL(mkdir(path, 0777), 0);
    CHECK_FAILS(lease_take(&lease, folder, BEAT_S), ERR_IO, "it is a folder");
    rmdir(path);
    CU_ASSERT_EQUAL(symlink("/dev/null", path), 0);
    CHECK_FAILS(lease_take(&lease, folder, BEAT_S), ERR_IO, "owner-3: cannot be read");
    unlink(path);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, odd[i]);
        close(open(path, O_WRONLY | O_CREAT, 0666));
    }
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT_STRING_EQUAL(newest_path() + strlen(folder), "/owner-1");
}

/* Another user's lease that this process may not read gives no information, so its owner is not
 * replaced. */
static void test_no_permission(void)
{
    bool good;
    empty_folder();
    chmod(folder, 0777);
    pid_t first = owner(LONG_S, &good);
    CU_ASSERT(good);
    chmod(newest_path(), 0);
    pid_t second = fork();
    if (second == 0) {
        Lease *lease;
        if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
        _exit((int)lease_take(&lease, folder, BEAT_S));
    }
    CU_ASSERT_EQUAL(ended(second), ERR_IO);
    kill_owner(first);
}

/* A process that /proc hides, because it is another user's, is not taken for ended. */
static void test_hidden(void)
{
    enum { HIDDEN = 0, SEEN_AS_ENDED, NO_MOUNT };
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    ended(dead);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("proc", "/proc", "proc", 0, "hidepid=2") != 0 || setgroups(0, NULL) != 0 ||
            setgid(65534) != 0 || setuid(65534) != 0)
            _exit(NO_MOUNT);
        bool good = process_began(getppid()) == -1 && process_began(dead) == 0;
        _exit(good ? HIDDEN : SEEN_AS_ENDED);
    }
    int how = ended(child);
    if (how == NO_MOUNT)
        printf("skipped: hidden processes: not root, or no mounts here\n");
    else
        CU_ASSERT_EQUAL(how, HIDDEN);
}

/* One of several processes that want to replace a dead owner succeeds. */
static void test_one_follows(void)
{
    enum { ROUNDS = 10, WANT = 4 };
    empty_folder();
    for (int round = 0; round < ROUNDS; ++round) {
        pid_t child[WANT];
        int have = 0, ready[2];
        bool good;
        kill_owner(owner(round % 2 ? BEAT_S : LONG_S, &good));
        if (round % 2) alter("place", '!');
        if (pipe(ready) != 0) break;
        for (int i = 0; i < WANT; ++i) {
            child[i] = fork();
            if (child[i] != 0) continue;
            Lease *lease;
            Status status = lease_take(&lease, folder, LONG_S);
            if (write(ready[1], status == OK ? "y" : "n", 1) != 1) _exit(1);
            while (status == OK) pause();
            _exit((int)status);
        }
        char byte;
        for (int i = 0; i < WANT; ++i) have += read(ready[0], &byte, 1) == 1 && byte == 'y';
        CU_ASSERT_EQUAL(have, 1);
        close(ready[0]);
        close(ready[1]);
        for (int i = 0; i < WANT; ++i) {
            kill(child[i], SIGKILL);
            ended(child[i]);
        }
    }
}

/* An owner that has been replaced, rightly or not, ends, and its file does not reappear. */
static void test_taken_over(void)
{
    char path[256], mine[256];
    bool good;
    empty_folder();
    pid_t child = owner(BEAT_S, &good);
    CU_ASSERT(good);
    snprintf(path, sizeof path, "%s/owner-2", folder);
    close(open(path, O_WRONLY | O_CREAT, 0666));
    CU_ASSERT_EQUAL(ended(child), ERR_CONFIG);
    empty_folder();
    child = owner(BEAT_S, &good);
    snprintf(mine, sizeof mine, "%s/owner-1", folder);
    unlink(mine);
    CU_ASSERT_EQUAL(ended(child), ERR_CONFIG);
    CU_ASSERT(access(mine, F_OK) != 0);
}

/* A later start of the same weft run takes over at once, whichever host the earlier one was on. */
static void test_starts(void)
{
    bool good;
    empty_folder();
    setenv(LEASE_RUN, "0123456789abcdef:3", 1);
    kill_owner(owner(LONG_S, &good));
    CU_ASSERT_EQUAL(lease_start_state(folder, "0123456789abcdef", 3), LEASE_START_IS_OWNER);
    alter("place", '!');
    setenv(LEASE_RUN, "0123456789abcdef:4", 1);
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT_EQUAL(lease_start_state(folder, "0123456789abcdef", 4), LEASE_START_ENDED);
    CU_ASSERT_EQUAL(lease_start_state(folder, "0123456789abcdef", 3), LEASE_START_NOT_OWNER);
    CU_ASSERT_EQUAL(lease_start_state(folder, "0123456789abcdee", 4), LEASE_START_NOT_OWNER);
    CU_ASSERT_EQUAL(lease_start_state("/proc/self/nowhere", "0123456789abcdef", 4),
                    LEASE_START_NOT_OWNER);
    CU_ASSERT_EQUAL(lease_start_state("/proc/self/stat", "0123456789abcdef", 4),
                    LEASE_START_UNREADABLE);
    unsetenv(LEASE_RUN);
}

/* Ranks may outlive their mpirun: a later start waits for the end of an earlier one. */
static void test_start_outlived(void)
{
    bool good;
    siginfo_t info = {0};
    empty_folder();
    setenv(LEASE_RUN, "0123456789abcdef:3", 1);
    pid_t first = owner(LONG_S, &good), killer = fork();
    if (killer == 0) {
        clock_sleep(0.5);
        kill(first, SIGKILL);
        _exit(0);
    }
    setenv(LEASE_RUN, "0123456789abcdef:4", 1);
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT_EQUAL(waitid(P_PID, (id_t)first, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    CU_ASSERT_EQUAL(info.si_pid, first);
    unsetenv(LEASE_RUN);
    CU_ASSERT_EQUAL(ended(killer), 0);
    CU_ASSERT_EQUAL(ended(first), 128 + SIGKILL);
}

/* Takes the folder as start number `start` of a weft run. Returns whether it follows an earlier
 * start that has begun. begins: whether this start begins, too. */
static bool follows(int start, bool begins)
{
    char text[32];
    Lease *lease;
    snprintf(text, sizeof text, "0123456789abcdef:%d", start);
    setenv(LEASE_RUN, text, 1);
    CU_ASSERT_EQUAL(lease_take(&lease, folder, LONG_S), OK);
    bool result = lease_follows_same_run(lease);
    if (begins) lease_begun(lease);
    lease_end(&lease);
    unsetenv(LEASE_RUN);
    return result;
}

/* A start that was lost before it had chosen its beginning leaves the choice to the next one. */
static void test_begun(void)
{
    empty_folder();
    CU_ASSERT_FALSE(follows(1, false));
    CU_ASSERT_FALSE(follows(2, true));
    CU_ASSERT(follows(3, false));
    CU_ASSERT(follows(4, false));
    CU_ASSERT(take_s() >= 0);
    CU_ASSERT_FALSE(follows(5, false));
}

/* Installs a squeue that prints the content of the file `said`. */
static void test_slurm(void)
{
    char command[512], path[4096];
    bool good;
    empty_folder();
    snprintf(command, sizeof command,
             "printf '#!/bin/sh\\ncat %s/said\\n' >%s/squeue && chmod +x %s/squeue && : >%s/said",
             folder, folder, folder, folder);
    CU_ASSERT_EQUAL(system(command), 0);
    snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("SLURM_JOB_ID", "17", 1);
    kill_owner(owner(LONG_S, &good));
    alter("place", '!');
    setenv("SLURM_JOB_ID", "18", 1);
    CU_ASSERT(take_s() >= 0);
    setenv("SLURM_JOB_ID", "17", 1);
    kill_owner(owner(BEAT_S, &good));
    alter("place", '!');
    setenv("SLURM_JOB_ID", "18", 1);
    snprintf(command, sizeof command, "echo '17 RUNNING' >%s/said", folder);
    CU_ASSERT_EQUAL(system(command), 0);
    CU_ASSERT(take_s() >= 4 * BEAT_S);
    /* the same job after a requeue */
    kill_owner(owner(LONG_S, &good));
    alter("place", '!');
    setenv("SLURM_RESTART_COUNT", "1", 1);
    CU_ASSERT(take_s() >= 0);
    unsetenv("SLURM_RESTART_COUNT");
    unsetenv("SLURM_JOB_ID");
}

static char *file_content(const char *path)
{
    static char text[2048];
    memset(text, 0, sizeof text);
    int file = open(path, O_RDONLY);
    CU_ASSERT(read(file, text, sizeof text - 1) > 0);
    close(file);
    return text;
}

/* An owner whose folder is renamed, or whose file is replaced by one of the same number, ends and
 * does not change the other file. */
static void test_same_number(bool renamed)
{
    char aside[400], path[300], before[2048];
    bool good;
    empty_folder();
    pid_t child = owner(BEAT_S, &good);
    CU_ASSERT(good);
    snprintf(path, sizeof path, "%s", newest_path());
    snprintf(aside, sizeof aside, "%s.aside", renamed ? folder : path);
    /* lies between two of its beats */
    kill(child, SIGSTOP);
    CU_ASSERT_EQUAL(rename(renamed ? folder : path, aside), 0);
    if (renamed) CU_ASSERT_EQUAL(mkdir(folder, 0777), 0);
    pid_t other = owner(LONG_S, &good);
    CU_ASSERT(good);
    CU_ASSERT_STRING_EQUAL(newest_path(), path);
    snprintf(before, sizeof before, "%s", file_content(path));
    kill(child, SIGCONT);
    CU_ASSERT_EQUAL(ended(child), renamed ? ERR_IO : ERR_CONFIG);
    CU_ASSERT_STRING_EQUAL(file_content(path), before);
    kill_owner(other);
    char command[700];
    snprintf(command, sizeof command, "rm -r %s", aside);
    CU_ASSERT_EQUAL(system(command), 0);
}

static void test_renamed(void)
{
    test_same_number(true);
    test_same_number(false);
}

static void test_cannot(void)
{
    Lease *lease;
    CHECK_FAILS(lease_take(&lease, "/tmp/weft-lease-nowhere", BEAT_S), ERR_IO, "cannot be listed");
    lease_end(&lease);
}

static void test_clean(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

static void test_folder(void)
{
    CU_ASSERT_PTR_NOT_NULL(mkdtemp(folder));
    log_init(false);
}

TEST_MAIN("lease", {"its folder", test_folder}, {"owners of this host", test_same_host},
          {"an owner that nobody has buried", test_zombie},
          {"an owner elsewhere that is gone", test_other_host},
          {"an owner elsewhere that lives", test_other_host_alive},
          {"an owner that said nothing", test_empty}, {"what is no lease", test_not_files},
          {"a lease of another user", test_no_permission}, {"hidden processes", test_hidden},
          {"one of several follows", test_one_follows}, {"who is followed ends", test_taken_over},
          {"starts of weft run", test_starts}, {"starts that begin", test_begun},
          {"a start that is outlived", test_start_outlived},
          {"a job that Slurm has no more", test_slurm},
          {"another lease of the same number", test_renamed}, {"no folder", test_cannot},
          {"all goes", test_clean})
