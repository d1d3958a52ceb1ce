/* Runs the commands of run.hook. A command reads its input line from an unnamed file (memfd),
 * because a pipe could fill up. It writes its answer to a pipe, which is read between steps. Each
 * command has its own process group, which is killed when the command has ended, has run too long
 * or has written too much. A command that hangs in a file system may survive SIGKILL: the run does
 * not wait for its end, but starts no other command until it has ended. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* an answer of this number of bytes or more is refused */
enum { ANSWER_BYTES = 65536 };
/* longest time that hook_wait waits for a killed command */
static const double KILL_WAIT_S = 2;

/* A notification that is queued while another command runs. */
typedef struct Queued {
    /* input of the command; NULL: nothing is queued; owned */
    char *line;
    /* step of the notification, for messages */
    int64_t step;
    /* number of the notification, counted over all events */
    int64_t number;
} Queued;

struct Hook {
    /* shell command of run.hook; borrowed */
    const char *command;
    /* time limit of a command, in seconds */
    double limit_s;
    /* newest queued notification of each event */
    Queued queued[HOOK_EVENTS];
    /* number of notifications so far */
    int64_t notifications;
    /* process id of the running command; 0: no command runs */
    pid_t child;
    /* read end of the pipe for the answer; -1: closed */
    int answer;
    /* true: the running command has been killed, but has not ended yet */
    bool killed;
    /* time (clock_s) at which the running command was started */
    double began_s;
    /* time (clock_s) at which it was killed */
    double killed_s;
    /* event of the running command */
    HookEvent event;
    /* step of the running command */
    int64_t step;
    /* the running command's answer so far */
    char output[ANSWER_BYTES + 1];
    /* length of this answer */
    size_t length;
    /* requests that have not been taken yet */
    HookRequest request;
};

Hook *hook_new(const char *command, double limit_s)
{
    Hook *h = mem_new(sizeof *h);
    h->command = command;
    h->limit_s = limit_s;
    h->answer = -1;
    return h;
}

static void warn(const Hook *h, const char *why)
{
    log_warn("run.hook (%s, step %lld): %s; training goes on", hook_event_word((int)h->event),
             (long long)h->step, why);
}

/* ---- starting ---- */

/* Returns a descriptor of an unnamed file that contains the line; -1, with errno set, after an
 * error. */
static int line_file(const char *line)
{
    size_t bytes = strlen(line);
    int file = memfd_create("weft-hook", MFD_CLOEXEC);
    if (file < 0) return -1;
    if (write(file, line, bytes) == (ssize_t)bytes && lseek(file, 0, SEEK_SET) == 0) return file;
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

/* Starts the command with the line as its input. Returns 0 or errno. */
static int open_child(Hook *h, const char *line)
{
    int ends[2], input = line_file(line);
    if (input < 0) return errno;
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (!error) {
        error = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
        if (!error) error = command_shell(&h->child, input, ends[1], h->command);
        close(ends[1]);
        if (error)
            close(ends[0]);
        else
            h->answer = ends[0];
    }
    close(input);
    return error;
}

/* Starts the command for the oldest queued notification, if there is one. */
static void start_next(Hook *h)
{
    int next = -1;
    for (int e = 0; e < HOOK_EVENTS; ++e)
        if (h->queued[e].line && (next < 0 || h->queued[e].number < h->queued[next].number))
            next = e;
    if (next < 0 || h->child) return;
    Queued *q = &h->queued[next];
    h->event = (HookEvent)next;
    h->step = q->step;
    h->length = 0;
    h->killed = false;
    h->began_s = clock_s();
    int error = open_child(h, q->line);
    mem_free(&q->line);
    if (!error) return;
    h->child = 0;
    warn(h, strerror(error));
}

void hook_notify(Hook *h, HookEvent event, int64_t step, const char *line)
{
    Queued *q = &h->queued[event];
    mem_free(&q->line);
    *q = (Queued){.line = mem_text(line), .step = step, .number = h->notifications++};
    hook_poll(h);
}

/* ---- ending ---- */

static void kill_group(Hook *h)
{
    if (h->answer >= 0) close(h->answer);
    h->answer = -1;
    h->killed = true;
    h->killed_s = clock_s();
    kill(-h->child, SIGKILL);
}

/* Reads all that the command has written so far. Returns false if the answer has reached
 * ANSWER_BYTES bytes, which is too long. */
static bool read_answer(Hook *h)
{
    ssize_t got;
    do {
        got = read(h->answer, h->output + h->length, ANSWER_BYTES - h->length);
        if (got > 0) h->length += (size_t)got;
    } while ((got > 0 && h->length < ANSWER_BYTES) || (got < 0 && errno == EINTR));
    h->output[h->length] = 0;
    return h->length < ANSWER_BYTES;
}

/* Handles the exit state and the complete answer of a command that has ended by itself. Its process
 * group is killed before waitpid, because the group's number may be used again afterwards. */
static void handle_end(Hook *h)
{
    char why[96];
    int state = 0;
    kill_group(h);
    h->killed = false;
    (void)waitpid(h->child, &state, 0);
    h->child = 0;
    HookRequest request;
    if (WIFSIGNALED(state)) {
        snprintf(why, sizeof why, "it was ended by signal %d", WTERMSIG(state));
        warn(h, why);
    } else if (WEXITSTATUS(state) != 0) {
        snprintf(why, sizeof why, "it ended with exit code %d", WEXITSTATUS(state));
        warn(h, why);
    } else if (strlen(h->output) != h->length) {
        warn(h, "it prints a byte of value 0, which no text contains");
    } else if (hook_request_parse(&request, h->output) != OK) {
        warn(h, fail_message());
    } else {
        hook_request_merge(&h->request, &request);
    }
}

static void kill_and_warn(Hook *h, const char *why)
{
    kill_group(h);
    warn(h, why);
}

/* Checks whether the running command has ended, has written too much or has run too long, and reads
 * its answer. Looks for its end before the answer is read, so the answer of an ended command is
 * complete. */
static void check_child(Hook *h)
{
    char why[96];
    siginfo_t info = {0};
    bool ended =
        waitid(P_PID, (id_t)h->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
    if (h->killed) {
        if (waitpid(h->child, NULL, WNOHANG) != 0) h->child = 0;
    } else if (!read_answer(h)) {
        snprintf(why, sizeof why, "it prints more than %d bytes, so it was ended", ANSWER_BYTES);
        kill_and_warn(h, why);
    } else if (ended) {
        handle_end(h);
    } else if (clock_s() - h->began_s > h->limit_s) {
        snprintf(why, sizeof why, "it has not ended after %.3g s (run.hook_s), so it was ended",
                 h->limit_s);
        kill_and_warn(h, why);
    }
}

void hook_poll(Hook *h)
{
    if (h->child) check_child(h);
    if (!h->child) start_next(h);
}

static void drop_queued(Hook *h)
{
    for (int e = 0; e < HOOK_EVENTS; ++e) {
        if (!h->queued[e].line) continue;
        log_warn("run.hook (%s, step %lld): not run, because the command before it did not end",
                 hook_event_word(e), (long long)h->queued[e].step);
        mem_free(&h->queued[e].line);
    }
}

void hook_wait(Hook *h)
{
    while (hook_busy(h)) {
        hook_poll(h);
        if (h->killed) drop_queued(h);
        if (h->killed && clock_s() - h->killed_s > KILL_WAIT_S) return;
        if (h->child) clock_sleep(0.002);
    }
}

void hook_free(Hook **hook)
{
    Hook *h = *hook;
    if (!h) return;
    if (h->child) kill_group(h);
    if (h->child) (void)waitpid(h->child, NULL, WNOHANG);
    for (int e = 0; e < HOOK_EVENTS; ++e) mem_free(&h->queued[e].line);
    mem_free(hook);
}

/* ---- answers ---- */

bool hook_take_request(Hook *h, HookRequest *request)
{
    *request = h->request;
    h->request = (HookRequest){0};
    return hook_request_is_set(request);
}

bool hook_busy(const Hook *h)
{
    for (int e = 0; e < HOOK_EVENTS; ++e)
        if (h->queued[e].line) return true;
    return h->child != 0;
}

bool hook_has_request(const Hook *h)
{
    return hook_request_is_set(&h->request);
}
