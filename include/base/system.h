/* Clock, timed waits, files, signals, libraries bound at run time. Not collective. */
#ifndef WEFT_BASE_SYSTEM_H
#define WEFT_BASE_SYSTEM_H

#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* monotonic, seconds */
double clock_s(void);
/* The clock when this was first called, which main does in its first line. */
double clock_begin_s(void);
/* Sleeps; a signal ends it early. */
void clock_rest(double seconds);
/* The middle one of count values, at least 1, which it sorts. */
double median(double *values, int count);
/* A condition variable for cond_wait_for. Release with pthread_cond_destroy. */
void cond_init(pthread_cond_t *cond);
/* Sleeps, with the lock held before and after, until cond is signalled (or for no reason), or for
 * limit_s by the monotonic clock; false: for limit_s. There is no other timed wait in the program:
 * one by the wall clock lasts as long as that is set back. */
bool cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double limit_s);

/* A thread that no signal comes to but for its own faults: the others are for the thread that looks
 * for them. 0, or errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of);

/* This host's name, cut to fit, the rest of it zeros; "?" where it has none. */
enum { HOST_BYTES = 64 };
void host_name(char *name, size_t room);
/* The file of this program; false, and an empty path: the system does not say. */
bool program_path(char *path, size_t room);
/* A process of this host: 'R', 'S', 'D', 'T' (stopped), 't' (by a debugger) as /proc has it; gone
 * where it has ended, a zombie, too. */
enum { PROCESS_GONE = 0, PROCESS_UNKNOWN = '?' };
char process_state(pid_t process);
/* When it began, in ticks since the boot; 0: it has ended; -1: the system does not say. */
int64_t process_began(pid_t process);
/* Bytes in the lines "key number kB" of a file of /proc, together; -1: it has no such line. keys:
 * each with its colon, "VmSwap:" or "Pss_Anon:Pss_Shmem:". */
double proc_bytes(const char *path, const char *keys);
/* Bytes of it that are swapped out; 0 where the system does not say. */
double process_swapped(pid_t process);

/* After path was created or renamed: brings its name to the disk. 0, or errno. Nothing to do where
 * a file system cannot sync a folder (EINVAL) and orders renames itself, nor where a folder may be
 * written but not read (EACCES). */
int file_sync_entry(const char *path);
/* Opens a file that anybody may have made, and never waits for the other end of a pipe. flags:
 * O_RDONLY, O_WRONLY or O_RDWR, and O_NOFOLLOW. -1 and errno; EISDIR: it is a folder; ENXIO: a
 * pipe, a socket or a device. file_error has words for all of them. */
int file_open(const char *path, int flags);
/* A stream to read a file, or a pipe without a name (which a shell gives by /dev/stdin or
 * <(command)), from its beginning to its end; NULL and errno. */
FILE *file_open_stream(const char *path);
/* Opens a file to write it, made with mode 0666 where it is not there; a symbolic link of that name
 * is not followed: ELOOP. flags: O_WRONLY and the like. A character device (/dev/null) is taken; a
 * pipe, a socket or a disk is not: ENXIO. -1 and errno. */
int file_create(const char *path, int flags);
/* file_create after removing what has that name (of a link: the link); refuses a name that is still
 * taken then. */
int file_create_new(const char *path, int flags);
/* A stream to write a file from its beginning; NULL and errno. */
FILE *file_create_stream(const char *path);
/* strerror's words, or plainer ones: what a link, a folder or a pipe is, and what to do. */
const char *file_error(int error);
/* Renames path to path.1, or the next number that is free; *to: that name, owned by the caller.
 * NULL where there is no such file, or an empty one, which stays. ERR_IO. */
Status file_move_aside(const char *path, char **to);
/* A folder and those above it, as mkdir -p; path: not empty. ERR_IO. */
Status file_make_folders(const char *path);
/* May a verb write a file of this name? ERR_USAGE: it is there already and not force, or it is, or
 * leads to, something other than a file, which nothing replaces. */
Status file_free_place(const char *path, bool force);
/* All of a file (file_open_stream), and a zero byte; *text: owned by the caller. ERR_NOINPUT: it
 * cannot be opened; ERR_IO: it cannot be read; ERR_DATA: it has more than `most` bytes, and more
 * are not taken from it, for a pipe may have no end. */
Status file_text(const char *path, size_t most, char **text, size_t *bytes);
/* What a file holds, to compare it with another host's of that name: "7840 bytes with hash
 * 0123456789abcdef". Of one above 4 MB 64 pieces of 4 KB are hashed, spread evenly. "no file to
 * read (why)" is an answer, too. */
void file_describe(const char *path, char *out, size_t room);

/* From stop_begin on SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU end nothing: they are
 * remembered for stop_wanted. Those that are ignored at that time stay ignored (nohup). SIGPIPE is
 * ignored, too: output that nobody reads is no reason to stop; and SIGXFSZ: a limit on a file's
 * size is an error of its write. Call it first on the only thread, and again once a library may
 * have set handlers of its own. Without it stop_wanted is false. */
void stop_begin(void);
/* has any of them come? Not to be called on two threads */
bool stop_wanted(void);
/* As before stop_begin; what was asked for is forgotten. */
void stop_end(void);
/* Which signals these are, for a caller that waits for them itself. */
void stop_signals(sigset_t *set);

/* Other programs, with signals as by default and a process group of their own. Codes are exit codes
 * as a shell gives them, or one of these. */
enum { COMMAND_NONE = -1, COMMAND_SILENT = -2, COMMAND_BUSY = -3 };
/* Starts one, its words in PATH; output: where it writes, -1: nowhere. 0, or errno. */
int command_start(pid_t *child, int output, char *const *words);
/* Starts `sh -c command` between two files; what it writes as errors goes where this process's go.
 * Of what a launcher (mpirun, srun) tells this rank it knows nothing. 0, or errno. */
int command_shell(pid_t *child, int input, int output, const char *command);
/* Starts one whose words command_read gives; *answer: to be closed. 0; or errno: nothing runs. */
int command_open(pid_t *child, int *answer, char *const *words);
/* Adds what it has said since, as far as it fits; true at its end. */
bool command_read(int answer, char *out, size_t room, size_t *length);
/* Waits for those whose code is COMMAND_BUSY. What has not ended after limit_s is ended:
 * COMMAND_SILENT. */
void command_wait(int count, const pid_t *child, double limit_s, int *code);
/* Starts one and reads what it says, as far as it fits. COMMAND_NONE: it cannot be started. */
int command_ask(char *const *words, double limit_s, char *out, size_t room);

/* A library that is bound when it is needed, not linked. It stays bound until the process ends. */
enum { LIBRARY_SYMBOLS = 32 };
typedef struct LibrarySymbol {
    const char *name;
    /* where in a table its address goes */
    size_t slot;
} LibrarySymbol;
typedef struct Library {
    /* "libcudnn.so.9", "cuDNN" */
    const char *file, *name;
    /* for messages: what needs it, and what does without */
    const char *user, *cure;
    /* at most LIBRARY_SYMBOLS; ends with a name NULL */
    const LibrarySymbol *symbol;
} Library;
/* Fills table's slots, or none of them: ERR_CONFIG says what is missing and where to look. */
Status library_bind(const Library *library, void *table);

#endif
