/* Status and messages, die, log. Not collective. */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include <stdbool.h>
#include <stdio.h>

/* The result of a function. Its value is the exit code of a program that ends because of it
 * (sysexits.h). Functions that can fail for several reasons return a Status with a message
 * (fail). */
typedef enum Status {
    OK = 0,
    /* wrong command line */
    ERR_USAGE = 64,
    /* a file's content is wrong */
    ERR_DATA = 65,
    /* a file does not exist or cannot be read */
    ERR_NOINPUT = 66,
    /* a fault of weft itself */
    ERR_BUG = 70,
    /* out of memory */
    ERR_MEMORY = 71,
    /* reading or writing failed (disk full, ...), or a rank, or the link to a rank, is lost */
    ERR_IO = 74,
    /* stopped early; the same command continues the run */
    ERR_STOPPED = 75,
    /* wrong configuration */
    ERR_CONFIG = 78,
} Status;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        Status st_ = (call);                                                                       \
        if (st_ != OK) return st_;                                                                 \
    } while (0)

#if defined(__GNUC__)
#define BASE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define BASE_PRINTF(fmt, args)
#endif

/* Records a message (what, where, what to do) for this thread and returns code. A later call
 * replaces it; nothing is printed. `return fail(ERR_NOINPUT, "%s: no such file; run `make data`
 * first", path);` */
Status fail(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* For checks of tables: fails with ERR_BUG and "TABLE ROW: LACKS", or returns OK if lacks is NULL.
 * row NULL: a row without a name. */
Status row_check(const char *table, const char *row, const char *lacks);
/* Returns the message of the last fail() on this thread; "" if there was none. Borrowed, valid
 * until the next fail(). */
const char *fail_message(void);

/* Ends the job on a fault inside a step, which cannot be handled: prints where this process is
 * (die_context) and the message, then calls the abort function (MPI_Abort once MPI is up). Exit
 * code: ERR_BUG, with and without a launcher. */
_Noreturn void die(const char *fmt, ...) BASE_PRINTF(1, 2);
/* Like die, with exit code `code`: for an input that turns out to be wrong in the middle of a
 * run. */
_Noreturn void die_as(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Like die, for a lost peer or a lost link to a peer, which is no fault of this process. Exit code:
 * ERR_IO, or the code that die_lost_as has set: ERR_STOPPED if there is a checkpoint to continue
 * from. */
_Noreturn void die_lost(const char *fmt, ...) BASE_PRINTF(1, 2);
void die_lost_as(Status code);
int die_lost_code(void);
/* Sets what die prints and calls. where: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07", copied.
 * abort_job may be NULL. */
void die_context(const char *where, void (*abort_job)(int code));

/* log_info and log_warn print nothing after log_init with speak = false, as on all ranks but rank
 * 0. log_error always prints, as "weft: error: ...", on stderr. Colour is used only on a terminal,
 * if NO_COLOR is not set, and TERM is set and is not "dumb". */
void log_init(bool speak);
void log_info(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_warn(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_error(const char *fmt, ...) BASE_PRINTF(1, 2);
/* A copy of all messages: log_copy_begin keeps up to 64 KiB of them until log_copy_to names their
 * receiver, which gets them first; messages beyond that are not copied. take: called with whole
 * lines, without colour, with their line breaks, by any thread, one at a time; it must not log
 * anything itself. take NULL: messages are not copied from then on. */
void log_copy_begin(void);
void log_copy_to(void (*take)(void *user, const char *text, size_t bytes), void *user);
/* Copies text as log_copy_begin and log_copy_to copy messages, but prints nothing; for text that
 * the caller prints on stdout itself. */
void log_copy(const char *text);
/* Returns whether to print colour on a stream. */
bool log_colour(FILE *stream);
/* Returns whether a line may be redrawn with '\r': on a terminal, unless TERM is "dumb". */
bool log_redraws(FILE *stream);

#endif
