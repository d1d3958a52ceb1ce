/* Starts other programs, and waits for them until a deadline. Each program gets default signals,
 * since this process may block some, and a process group of its own. Only programs of command_shell
 * get input. At the deadline the program is killed together with the processes of its group. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts a program. descriptor: file descriptors of this process that become the program's stdin,
 * stdout and stderr; -1: /dev/null. Returns 0, or the errno. */
static int start(pid_t *child, const int descriptor[3], char *const *words,
                 char *const *environment)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    for (int i = 0; i < 3; ++i)
        if (descriptor[i] >= 0)
            posix_spawn_file_actions_adddup2(&files, descriptor[i], i);
        else
            posix_spawn_file_actions_addopen(&files, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
    int error = posix_spawnp(child, words[0], &files, &how, words, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int command_start(pid_t *child, int output, char *const *arguments)
{
    return start(child, (const int[3]){-1, output, output}, arguments, environ);
}

/* Returns true if a launcher sets this environment variable for its ranks. A program that inherits
 * such a variable would behave as a rank. */
static bool is_launcher_variable(const char *variable)
{
    static const char *const begin[] = {"OMPI_COMM_WORLD_",
                                        "OMPI_MCA_orte_",
                                        "OMPI_MCA_ess",
                                        "OMPI_MCA_pmix",
                                        "PMIX_",
                                        "PMI_",
                                        "PRTE_",
                                        "MPI_LOCAL",
                                        "HYDI_",
                                        "SLURM_STEP_",
                                        "WEFT_LAUNCHER",
                                        "WEFT_LOG_DIR",
                                        LEASE_RUN};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; ++i)
        if (!strncmp(variable, begin[i], strlen(begin[i]))) return true;
    return false;
}

int command_shell(pid_t *child, int input, int output, const char *command)
{
    char *words[] = {"sh", "-c", (char *)command, NULL};
    int count = 0, kept = 0;
    while (environ[count]) ++count;
    char **environment = mem_new(((size_t)count + 1) * sizeof *environment);
    for (int i = 0; i < count; ++i)
        if (!is_launcher_variable(environ[i])) environment[kept++] = environ[i];
    int error = start(child, (const int[3]){input, output, STDERR_FILENO}, words, environment);
    mem_free(&environment);
    return error;
}

/* Ends the children whose code is COMMAND_BUSY, and sets their code to COMMAND_TIMED_OUT. They
 * first get SIGTERM: mpirun and srun then end the processes that they have started on other hosts.
 * Later they get SIGKILL. A process that hangs in a file system may survive even SIGKILL, so it is
 * no longer waited for after all rounds. */
static void end_all(int count, const pid_t *child, int *code)
{
    /* ROUNDS: number of rounds of 50 ms; KILL_ROUND: round in which SIGKILL is sent */
    enum { ROUNDS = 50, KILL_ROUND = 40 };
    for (int round = 0; round < ROUNDS; ++round) {
        bool any = false;
        int state;
        for (int i = 0; i < count; ++i) {
            if (code[i] != COMMAND_BUSY) continue;
            if (round == 0) kill(-child[i], SIGTERM);
            if (round == KILL_ROUND) kill(-child[i], SIGKILL);
            if (waitpid(child[i], &state, WNOHANG) != 0)
                code[i] = COMMAND_TIMED_OUT;
            else
                any = true;
        }
        if (!any) return;
        clock_sleep(0.05);
    }
    for (int i = 0; i < count; ++i)
        if (code[i] == COMMAND_BUSY) code[i] = COMMAND_TIMED_OUT;
}

void command_wait(int count, const pid_t *child, double limit_s, int *code)
{
    double begin_s = clock_s();
    for (;;) {
        bool any = false;
        for (int i = 0; i < count; ++i) {
            int state;
            if (code[i] != COMMAND_BUSY) continue;
            if (waitpid(child[i], &state, WNOHANG) == child[i])
                code[i] = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
            else
                any = true;
        }
        if (!any) return;
        if (clock_s() - begin_s > limit_s) break;
        clock_sleep(0.01);
    }
    end_all(count, child, code);
}

int command_open(pid_t *child, int *answer, char *const *arguments)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    int error = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
    if (!error) error = command_start(child, ends[1], arguments);
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        *answer = ends[0];
    return error;
}

bool command_read(int answer, char *out, size_t room, size_t *length)
{
    char more[256];
    ssize_t got;
    do {
        bool fits = *length + 1 < room;
        got = fits ? read(answer, out + *length, room - 1 - *length)
                   : read(answer, more, sizeof more);
        if (got > 0 && fits) *length += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    out[*length] = 0;
    return got == 0 || errno != EAGAIN;
}

int command_output(char *const *words, double limit_s, char *out, size_t room)
{
    int answer, code = COMMAND_BUSY;
    pid_t child;
    size_t length = 0;
    double end_s = clock_s() + limit_s;
    *out = 0;
    if (command_open(&child, &answer, words) != 0) return COMMAND_NONE;
    while (!command_read(answer, out, room, &length) && clock_s() < end_s) clock_sleep(0.01);
    close(answer);
    double left_s = end_s - clock_s();
    command_wait(1, &child, left_s > 0 ? left_s : 0, &code);
    return code;
}
