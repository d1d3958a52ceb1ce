/* Messages of the program, all on stderr, so that stdout holds results only; and die(), for faults
 * that cannot be handled. Every line is one write, so the lines of several ranks do not mix. */
#include "base.h"
#include "base/escape.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* size of a line: a message of status.c and its prefix */
enum { LINE_BYTES = 4608 };

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

static void say(const char *prefix, const char *colour, const char *fmt, va_list args)
    BASE_PRINTF(3, 0);

static void say(const char *prefix, const char *colour, const char *fmt, va_list args)
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
    char line[2 * LINE_BYTES + 32];
    snprintf(line, sizeof line, "%s%s\n", prefix, text);
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
    say("weft: error: ", "\033[31m", fmt, args);
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
    char text[LINE_BYTES];
    vsnprintf(text, sizeof text, fmt, args);
    if (*context)
        log_error("%s: %s", context, text);
    else
        log_error("%s", text);
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
