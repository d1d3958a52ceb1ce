/* Does work on untrusted input in separate processes with limits. isolated_run_many:
 *   caller --request--> maker --fork--> workers (limits set) --answers--> maker --> caller
 *
 * isolated_begin forks the maker before MPI and threads are started; the public header calls the
 * maker the helper process. The maker forks a worker for each input of a request, collects the
 * workers' answers, and kills workers whose time is over. Without a maker the caller forks the
 * workers itself. A job's function and texts are passed as addresses, which are the same in all
 * these processes. The maker ends when its caller ends, because the end of the caller closes the
 * socket between the two. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

/* Exit codes of a worker whose job has returned. DONE: its answer is complete; WRITE_FAILED: its
 * answer could not be written. */
enum { DONE = 0, WRITE_FAILED = 1 };

/* How a worker ended, and the length of its answer. */
typedef struct Outcome {
    /* status from waitpid */
    int state;
    /* errno if the worker could not be made or its answer could not be read, else 0 */
    int error;
    /* late: true if the worker exceeded IsolatedJob.clock_s; too_long: true if its answer exceeded
     * answer_bytes */
    bool late, too_long;
    /* number of bytes of the answer */
    size_t bytes;
} Outcome;

/* A request to the maker. The inputs follow it on the socket. */
typedef struct Request {
    IsolatedJob job;
    /* number of inputs */
    int count;
    /* number of bytes of each input */
    size_t bytes[ISOLATED_MOST];
} Request;

/* A worker that is running. */
typedef struct Running {
    pid_t child;
    /* file descriptor to read the answer from; -1: the answer has ended */
    int in;
    /* answer so far (o.bytes bytes), in memory of `room` bytes; owned */
    char *text;
    size_t room;
    Outcome o;
} Running;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* socket to the maker; -1: there is no maker */
static int maker = -1;

/* ---- the worker ---- */

/* Lowers a limit of this process to `most`; a limit that is lower already does not change. slack:
 * hard limit minus soft limit. A process gets a signal at the soft limit of processor time, and is
 * killed at the hard limit. */
static void limit(int resource, rlim_t most, rlim_t slack)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return;
    if (now.rlim_max > most + slack) now.rlim_max = most + slack;
    now.rlim_cur = now.rlim_max < most ? now.rlim_max : most;
    setrlimit(resource, &now);
}

/* Returns the bytes of address space that this process uses. */
static size_t addresses(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%lu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void default_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    /* A terminal or a batch system sends the first five signals to the caller, too, and the caller
     * decides whether the worker ends. SIGPIPE is ignored, because a write to a closed pipe also
     * returns an error. */
    static const int others[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) signal(others[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Connects stdin, stdout and stderr to /dev/null. */
static void silence(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int file = STDIN_FILENO; nothing >= 0 && file <= STDERR_FILENO; ++file)
        dup2(nothing, file);
    if (nothing > STDERR_FILENO) close(nothing);
}

/* Does the work of a job in the worker, and ends the process. out: file descriptor for the
 * answer. */
static _Noreturn void worker(const IsolatedJob *job, const void *input, size_t bytes, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    default_signals();
    silence();
    die_context("", NULL);
    FILE *answer = fdopen(out, "w");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, (rlim_t)job->busy_s, 1);
    limit(RLIMIT_FSIZE, job->file_bytes, 0);
    if (!SANITIZED) limit(RLIMIT_AS, addresses() + job->memory_bytes, 0);
    if (answer) job->work(input, bytes, answer);
    _exit(answer && fflush(answer) == 0 && !ferror(answer) ? DONE : WRITE_FAILED);
}

/* ---- running a worker ---- */

/* Forks a worker for one input. r->o.error: errno if that fails. */
static void start(const IsolatedJob *job, const void *input, size_t bytes, Running *r)
{
    int ends[2];
    *r = (Running){.child = -1, .in = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        r->o.error = errno;
        return;
    }
    r->child = fork();
    if (r->child < 0) r->o.error = errno;
    if (r->child == 0) {
        close(ends[0]);
        worker(job, input, bytes, ends[1]);
    }
    close(ends[1]);
    if (r->child > 0)
        r->in = ends[0];
    else
        close(ends[0]);
}

/* Appends bytes of an answer that have arrived to r->text. Closes the pipe at the end of the
 * answer, if the answer is too long, or after an error. */
static void read_some(const IsolatedJob *job, Running *r)
{
    if (r->o.bytes + 1 >= r->room) r->text = mem_resize(r->text, r->room = 2 * r->room + 65536);
    const ssize_t got = read(r->in, r->text + r->o.bytes, r->room - r->o.bytes - 1);
    if (got < 0 && errno == EINTR) return;
    if (got < 0) r->o.error = errno;
    if (got > 0) r->o.bytes += (size_t)got;
    r->o.too_long = r->o.bytes > job->answer_bytes;
    if (got > 0 && !r->o.too_long) return;
    close(r->in);
    r->in = -1;
}

/* Reads all answers until they end or the time limit is exceeded. Sets `late` for the workers whose
 * answer has not ended by then. */
static void gather(const IsolatedJob *job, Running *all, int count)
{
    const double end_s = clock_s() + job->clock_s;
    struct pollfd ready[ISOLATED_MOST];
    for (int open = 1; open > 0;) {
        const double left_s = end_s - clock_s();
        open = 0;
        for (int i = 0; i < count; ++i) {
            ready[i] = (struct pollfd){.fd = all[i].in, .events = POLLIN};
            if (all[i].in < 0) continue;
            ++open;
            all[i].o.late = left_s <= 0;
        }
        if (open == 0 || left_s <= 0) return;
        if (poll(ready, (nfds_t)count, left_s > 1 ? 1000 : (int)(left_s * 1000) + 1) <= 0) continue;
        for (int i = 0; i < count; ++i)
            if (all[i].in >= 0 && ready[i].revents) read_some(job, &all[i]);
    }
}

/* Runs a worker for each input, all at the same time, and waits until all have ended. */
static void run_workers(const IsolatedJob *job, int count, const void *const *input,
                        const size_t *bytes, Running *all)
{
    for (int i = 0; i < count; ++i) start(job, input[i], bytes[i], &all[i]);
    gather(job, all, count);
    for (int i = 0; i < count; ++i) {
        Running *r = &all[i];
        if (r->in >= 0) close(r->in);
        if (r->child <= 0) continue;
        if (r->o.late || r->o.too_long || r->o.error) kill(r->child, SIGKILL);
        while (waitpid(r->child, &r->o.state, 0) < 0 && errno == EINTR) continue;
    }
}

/* ---- the maker ---- */

/* Receives `bytes` bytes into `to`. If `to` is NULL, sends `bytes` bytes from `from` instead.
 * Returns false if the other end of the socket is closed. */
static bool transfer(int socket, void *to, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = to ? recv(socket, (char *)to + done, bytes - done, 0)
                       : send(socket, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* Sets the name that ps and pgrep show for the maker: with the caller's arguments it would look
 * like another rank. The kernel reads a process's arguments from the process's memory, so they are
 * overwritten there if they are contiguous and short enough. */
static void take_name(void)
{
    static const char name[] = "weft: reads files for another process";
    char words[4096], *at = program_invocation_name;
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t bytes = file ? fread(words, 1, sizeof words, file) : 0;
    if (file) fclose(file);
    prctl(PR_SET_NAME, "weft-reader");
    if (bytes == 0 || words[bytes - 1] != 0 || strcmp(at, words) != 0) return;
    if (memcmp(at, words, bytes) != 0) return;
    memset(at, 0, bytes);
    memcpy(at, name, bytes - 1 < strlen(name) ? bytes - 1 : strlen(name));
}

/* Serves one request in the maker. Returns false if the caller has ended. */
static bool serve(int socket)
{
    Request request;
    Running all[ISOLATED_MOST];
    char *input[ISOLATED_MOST];
    if (!transfer(socket, &request, NULL, sizeof request)) return false;
    for (int i = 0; i < request.count; ++i) {
        input[i] = mem_new(request.bytes[i]);
        if (!transfer(socket, input[i], NULL, request.bytes[i])) return false;
    }
    run_workers(&request.job, request.count, (const void *const *)input, request.bytes, all);
    for (int i = 0; i < request.count; ++i) {
        if (!transfer(socket, NULL, &all[i].o, sizeof all[i].o) ||
            !transfer(socket, NULL, all[i].text, all[i].o.bytes))
            return false;
        mem_free(&all[i].text);
        mem_free(&input[i]);
    }
    return true;
}

/* Serves requests in the maker until the caller ends. */
static _Noreturn void run_maker(int socket)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    default_signals();
    silence();
    take_name();
    while (serve(socket)) {
    }
    _exit(0);
}

void isolated_begin(void)
{
    int ends[2];
    if (maker >= 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_maker(ends[1]);
    }
    close(ends[1]);
    if (child > 0)
        maker = ends[0];
    else
        close(ends[0]);
}

void isolated_end(void)
{
    if (maker >= 0) close(maker);
    maker = -1;
}

/* Sends a request to the maker, and receives the answers. Returns false if the maker has died. */
static bool delegate(const IsolatedJob *job, int count, const void *const *input,
                     const size_t *bytes, Running *all)
{
    Request request = {.job = *job, .count = count};
    memcpy(request.bytes, bytes, (size_t)count * sizeof *bytes);
    if (!transfer(maker, NULL, &request, sizeof request)) return false;
    for (int i = 0; i < count; ++i)
        if (!transfer(maker, NULL, input[i], bytes[i])) return false;
    for (int i = 0; i < count; ++i) {
        if (!transfer(maker, &all[i].o, NULL, sizeof all[i].o)) return false;
        all[i].text = mem_new(all[i].o.bytes + 1);
        if (!transfer(maker, all[i].text, NULL, all[i].o.bytes)) return false;
    }
    return true;
}

/* Returns OK if a worker has completed its answer, else the error of isolated_run. */
static Status judge(const IsolatedJob *job, const char *path, const Outcome *o)
{
    char memory[16], how[160];
    int number = WIFSIGNALED(o->state) ? WTERMSIG(o->state) : 0;
    text_bytes((double)job->memory_bytes, memory);
    if (o->error)
        return fail(ERR_IO, "%s: the process to read it cannot be started or asked: %s", path,
                    strerror(o->error));
    if (o->late)
        snprintf(how, sizeof how, "took more than %d s", job->clock_s);
    else if (o->too_long)
        snprintf(how, sizeof how, "answered with more than %zu bytes", job->answer_bytes);
    else if (number == SIGXCPU)
        snprintf(how, sizeof how, "was busy for more than %d s", job->busy_s);
    else if (number)
        snprintf(how, sizeof how, "crashed (%s)", strsignal(number));
    else if (WEXITSTATUS(o->state) == ERR_MEMORY)
        snprintf(how, sizeof how, "needed more than %s of memory", memory);
    else if (WEXITSTATUS(o->state) != DONE)
        snprintf(how, sizeof how, "gave up (exit %d)", WEXITSTATUS(o->state));
    else
        return OK;
    return fail(ERR_DATA,
                "%s: %s %s: the file is damaged or malicious; nothing else was harmed. Get it "
                "again from a source that you trust",
                path, job->subject, how);
}

Status isolated_run_many(const IsolatedJob *job, int count, const void *const *input,
                         const size_t *input_bytes, const char *const *path, char **answer,
                         size_t *answer_bytes, int *good)
{
    Running all[ISOLATED_MOST] = {0};
    Status status = OK;
    *good = 0;
    if (count > ISOLATED_MOST)
        return fail(ERR_BUG, "isolated_run_many: %d inputs, at most %d are possible", count,
                    ISOLATED_MOST);
    pthread_mutex_lock(&lock);
    bool alive = true;
    if (maker >= 0)
        alive = delegate(job, count, input, input_bytes, all);
    else
        run_workers(job, count, input, input_bytes, all);
    pthread_mutex_unlock(&lock);
    if (!alive)
        status =
            fail(ERR_IO, "%s: the process that reads files has been killed: start again", path[0]);
    for (; status == OK && *good < count; *good += status == OK)
        status = judge(job, path[*good], &all[*good].o);
    for (int i = 0; i < count; ++i) {
        answer[i] = NULL;
        if (i >= *good) {
            mem_free(&all[i].text);
            continue;
        }
        answer[i] = all[i].text ? all[i].text : mem_new(1);
        answer_bytes[i] = all[i].o.bytes;
        answer[i][answer_bytes[i]] = 0;
    }
    return status;
}

Status isolated_run(const IsolatedJob *job, const char *path, const void *input, size_t input_bytes,
                    char **answer, size_t *answer_bytes)
{
    int good;
    return isolated_run_many(job, 1, &input, &input_bytes, &path, answer, answer_bytes, &good);
}
