/* Status and messages, die, log. Not collective. */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include <stdbool.h>
#include <stdio.h>

/* The result of a function. The value is the exit code of a program that ends because of it
 * (sysexits.h). A function that can fail for several reasons returns a Status and sets a message
 * (fail). */
typedef enum Status {
    OK = 0,
    /* the command line is wrong */
    ERR_USAGE = 64,
    /* the content of a file is wrong */
    ERR_DATA = 65,
    /* a file does not exist or cannot be opened */
    ERR_NOINPUT = 66,
    /* a fault of weft itself */
    ERR_BUG = 70,
    /* out of memory */
    ERR_MEMORY = 71,
    /* reading or writing an open file failed (disk full, ...), or a rank or the connection to a
     * rank is lost */
    ERR_IO = 74,
    /* the run was stopped early; the same command continues it */
    ERR_STOPPED = 75,
    /* the configuration is wrong */
    ERR_CONFIG = 78,
} Status;

/* Evaluates `call`; if its Status is not OK, returns it from the function. */
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

/* Records the message of this thread and returns `code`. The message says what is wrong, where, and
 * what to do. A later call replaces the message. Nothing is printed. Example: `return
 * fail(ERR_NOINPUT, "%s: no such file; run `make data` first", path);` */
Status fail(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Turns the result of a check of a row into a Status. A row is a constant struct with the functions
 * and facts of one rule, layer kind, model or the like. table: kind of the row, for the message,
 * for example "layer kind". row: name of the row; NULL: it has no name. fault: text that says what
 * is wrong with the row; NULL: nothing is wrong. Returns OK if fault is NULL, else ERR_BUG with the
 * message "TABLE ROW: FAULT". */
Status row_check(const char *table, const char *row, const char *fault);
/* A slot (field) of a row that slots_check checks. */
typedef struct RowSlot {
    /* ".forward" */
    const char *name;
    /* true: the slot is neither 0 nor NULL */
    bool given;
    /* true: the row must give the slot; false: the row must not give it */
    bool needed;
} RowSlot;
/* Entries of a RowSlot array. ROW_SLOT: the row must give the slot. ROW_SLOT_IF: it must give the
 * slot if `condition` is true, and must not give it otherwise. row: pointer to the row. */
#define ROW_SLOT(row, slot)                                                                        \
    {                                                                                              \
        "." #slot, (row)->slot != 0, true                                                          \
    }
#define ROW_SLOT_IF(row, slot, condition)                                                          \
    {                                                                                              \
        "." #slot, (row)->slot != 0, (condition)                                                   \
    }
/* Checks `count` slots of a row of a table. Fails as row_check does, with the name of the first
 * slot that is missing, or that is given but must not be. */
Status slots_check(const char *table, const char *row, const RowSlot *slot, int count);
/* Calls slots_check for the whole array `slots`. */
#define ROW_SLOTS_CHECK(table, row, slots)                                                         \
    slots_check((table), (row), (slots), (int)(sizeof(slots) / sizeof *(slots)))
/* Returns the message of the last fail() on this thread; "" if there was none. Borrowed until the
 * next fail(). */
const char *fail_message(void);

/* The first of several errors, kept with its message until it is reported; all zeros: there is
 * none. */
typedef struct KeptError {
    Status status;
    /* owned */
    char *message;
} KeptError;
/* Keeps a failure and the message of the last fail() on this thread. Does nothing if status is OK,
 * or if an error is kept already. */
void error_keep(KeptError *error, Status status);
/* Fails with the kept error and its message; returns OK if there is none. *error becomes all
 * zeros. */
Status error_report(KeptError *error);

/* Ends the job after a fault that cannot be handled. Prints the text that die_context has set (rank
 * and host) and the message, then calls the function that die_context has set (MPI_Abort). The exit
 * code is ERR_BUG. */
_Noreturn void die(const char *fmt, ...) BASE_PRINTF(1, 2);
/* Does what die does, with the exit code `code`; for a failure that is no fault of weft itself,
 * mostly lack of memory, or a wrong input that is found during a run. */
_Noreturn void die_as(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* die_lost does what die does; call it after a rank or a connection is lost. Its exit code is
 * ERR_IO, or the code that die_lost_set_code has set. die_lost_set_code ends nothing; a run calls
 * it with ERR_STOPPED once it has a checkpoint from which it can continue. die_lost_code returns
 * the code. */
_Noreturn void die_lost(const char *fmt, ...) BASE_PRINTF(1, 2);
void die_lost_set_code(Status code);
int die_lost_code(void);
/* Sets the text that die prints first, "rank 3 of 8 (dp 1, pp 0, tp 1) on node07" (copied), and the
 * function that die calls last, which may be NULL. */
void die_context(const char *where, void (*abort_job)(int code));

/* log_info, log_warn and log_error print a line on stderr. log_warn begins the line with "weft:
 * warning: ", log_error with "weft: error: ". Colour is used if stderr is a terminal, TERM has a
 * value other than "dumb", and NO_COLOR is empty or not set. All ranks except rank 0 call
 * log_init(false); after that, log_info and log_warn print nothing. */
void log_init(bool speak);
void log_info(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_warn(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_error(const char *fmt, ...) BASE_PRINTF(1, 2);
/* log_copy_begin and log_copy_to pass a copy of every message to a receiver, such as the log file
 * of a run. log_copy_begin starts to keep messages, up to 64 KiB; a message that does not fit is
 * not kept. log_copy_to passes the kept messages to `take`, and then every new message. `take` gets
 * complete lines, without colour, with their line breaks. Any thread may call `take`, but never two
 * at the same time. `take` must not log anything itself. take NULL: messages are not copied from
 * then on. */
void log_copy_begin(void);
void log_copy_to(void (*take)(void *user, const char *text, size_t bytes), void *user);
/* Passes a text to the receiver of log_copy_to, or keeps it, without printing it; for text that the
 * caller prints on stdout itself. */
void log_copy(const char *text);
/* Returns true if colour may be printed on a stream. */
bool log_colour(FILE *stream);
/* Returns true if a line may be redrawn with '\r': on a terminal, unless TERM is "dumb". */
bool log_redraws(FILE *stream);

#endif
