/* Messages of the program, all on stderr, so that stdout holds results only; and die(), for faults
 * that cannot be handled. Every line is one write, so the lines of several ranks do not mix. */
#include "base.h"
#include "base/escape.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LINE_BYTES: size of a line: a message of status.c and its prefix. COPIED_LINE_BYTES: size of its
 * copy, in which characters are escaped. */
enum { LINE_BYTES = 4608, COPIED_LINE_BYTES = 2 * LINE_BYTES + 32 };

#define ERROR_PREFIX "weft: error: "
/* red on a terminal */
#define ERROR_COLOUR "\033[31m"

/* largest number of bytes of messages that are kept until log_copy_to names a receiver */
enum { COPY_BYTES = 64 << 10 };

/* The messages that are kept since log_copy_begin, or the receiver that log_copy_to has set. */
static struct {
    pthread_mutex_t lock;
    /* true: messages are kept until log_copy_to names a receiver */
    bool keeps;
    /* kept messages, `bytes` bytes without a zero byte; owned */
    char *text;
    size_t bytes;
    /* the receiver, and its first argument; take NULL: there is none */
    void (*take)(void *user, const char *text, size_t bytes);
    void *user;
} copies = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* true: this rank prints information and warnings */
static bool speaking = true;
/* arguments of die_context */
static char context[256];
static void (*abort_job)(int code);
/* longest time for the copy of a process's last message */
static const double LAST_COPY_S = 1;
/* exit code of die_lost */
static Status lost_code = ERR_IO;

void log_init(bool speak)
{
    speaking = speak;
}

bool log_colour(FILE *stream)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    if (no_color && *no_color) return false;
    return term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(stream));
}

bool log_redraws(FILE *stream)
{
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && !(term && strcmp(term, "dumb") == 0);
}

void log_copy(const char *text)
{
    size_t bytes = strlen(text);
    pthread_mutex_lock(&copies.lock);
    /* a message is kept if there is room for all of it */
    if (copies.take) {
        copies.take(copies.user, text, bytes);
    } else if (copies.keeps && copies.bytes + bytes <= COPY_BYTES) {
        copies.text = mem_resize(copies.text, copies.bytes + bytes + 1);
        memcpy(copies.text + copies.bytes, text, bytes);
        copies.bytes += bytes;
    }
    pthread_mutex_unlock(&copies.lock);
}

/* Sets the receiver of messages, and whether messages are kept until there is one. */
static void copy_to(void (*take)(void *user, const char *text, size_t bytes), void *user,
                    bool keeps)
{
    pthread_mutex_lock(&copies.lock);
    copies.keeps = keeps;
    copies.take = take;
    copies.user = user;
    if (take && copies.bytes > 0) take(user, copies.text, copies.bytes);
    mem_free(&copies.text);
    copies.bytes = 0;
    pthread_mutex_unlock(&copies.lock);
}

void log_copy_begin(void)
{
    copy_to(NULL, NULL, true);
}

void log_copy_to(void (*take)(void *user, const char *text, size_t bytes), void *user)
{
    copy_to(take, user, false);
}

static void print(char *line, const char *prefix, const char *colour, const char *fmt, va_list args)
    BASE_PRINTF(4, 0);

/* Prints a message on stderr, and writes it to `line` without colour. line: COPIED_LINE_BYTES. */
static void print(char *line, const char *prefix, const char *colour, const char *fmt, va_list args)
{
    char raw[LINE_BYTES], text[2 * LINE_BYTES];
    vsnprintf(raw, sizeof raw, fmt, args);
    text_escape_to(text, sizeof text, raw);
    fflush(stdout);
    if (*colour && log_colour(stderr))
        fprintf(stderr, "%s%s\033[0m%s\n", colour, prefix, text);
    else
        fprintf(stderr, "%s%s\n", prefix, text);
    fflush(stderr);
    snprintf(line, COPIED_LINE_BYTES, "%s%s\n", prefix, text);
}

static void say(const char *prefix, const char *colour, const char *fmt, va_list args)
    BASE_PRINTF(3, 0);

static void say(const char *prefix, const char *colour, const char *fmt, va_list args)
{
    char line[COPIED_LINE_BYTES];
    print(line, prefix, colour, fmt, args);
    log_copy(line);
}

void log_info(const char *fmt, ...)
{
    if (!speaking) return;
    va_list args;
    va_start(args, fmt);
    say("", "", fmt, args);
    va_end(args);
}

void log_warn(const char *fmt, ...)
{
    if (!speaking) return;
    va_list args;
    va_start(args, fmt);
    say("weft: warning: ", "\033[33m", fmt, args);
    va_end(args);
}

void log_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(ERROR_PREFIX, ERROR_COLOUR, fmt, args);
    va_end(args);
}

/* ---- the last message ---- */

/* The last message of a process. */
typedef struct LastMessage {
    char line[COPIED_LINE_BYTES];
    /* guards `copied` */
    pthread_mutex_t lock;
    /* signalled when `copied` has been set */
    pthread_cond_t done;
    bool copied;
} LastMessage;

static void *copy_run(void *user)
{
    LastMessage *m = user;
    log_copy(m->line);
    pthread_mutex_lock(&m->lock);
    m->copied = true;
    pthread_cond_signal(&m->done);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* Copies the message on a separate thread, and waits for it at most LAST_COPY_S: the file system
 * may hang, or this thread may die while it copies a message. Without memory for a thread, the
 * message is only on stderr. */
static void copy_last(LastMessage *m)
{
    pthread_t thread;
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->done);
    if (thread_begin(&thread, copy_run, m) != 0) return;
    double end_s = clock_s() + LAST_COPY_S;
    pthread_mutex_lock(&m->lock);
    while (!m->copied && clock_s() < end_s) cond_wait_for(&m->done, &m->lock, LAST_COPY_S);
    pthread_mutex_unlock(&m->lock);
}

static void print_error(char *line, const char *fmt, ...) BASE_PRINTF(2, 3);

static void print_error(char *line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print(line, ERROR_PREFIX, ERROR_COLOUR, fmt, args);
    va_end(args);
}

void die_context(const char *where, void (*abort_hook)(int code))
{
    snprintf(context, sizeof context, "%s", where);
    abort_job = abort_hook;
}

static _Noreturn void die_args(Status code, const char *fmt, va_list args) BASE_PRINTF(2, 0);

static _Noreturn void die_args(Status code, const char *fmt, va_list args)
{
    /* the thread of copy_last may outlive that function, but not this one, which does not return */
    LastMessage message = {.copied = false};
    char text[LINE_BYTES];
    vsnprintf(text, sizeof text, fmt, args);
    print_error(message.line, "%s%s%s", context, *context ? ": " : "", text);
    copy_last(&message);
    if (abort_job) abort_job(code);
    _Exit(code);
}

_Noreturn void die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    die_args(ERR_BUG, fmt, args);
}

_Noreturn void die_lost(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    die_args(lost_code, fmt, args);
}

void die_lost_set_code(Status code)
{
    lost_code = code;
}

int die_lost_code(void)
{
    return lost_code;
}

_Noreturn void die_as(Status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    die_args(code, fmt, args);
}
