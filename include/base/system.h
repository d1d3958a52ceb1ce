/* Clock, timed waits, threads, processes, files, signals, other programs, and libraries bound at
 * run time. Not collective. */
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

/* Returns the time of the monotonic clock in seconds. */
double clock_s(void);
/* Returns the time of clock_s at the first call of this function, which cli_main makes at its
 * beginning. */
double clock_begin_s(void);
/* Sleeps for this number of seconds, or until a signal arrives. */
void clock_sleep(double seconds);
/* Sorts the values and returns their median; if their number is even, the greater of the two middle
 * values. count: at least 1. */
double median(double *values, int count);
/* Initializes a condition variable for cond_wait_for. Release with pthread_cond_destroy. */
void cond_init(pthread_cond_t *cond);
/* Waits until cond is signalled (or woken spuriously), or for limit_s seconds of the monotonic
 * clock; returns false on a timeout. The lock is held before and after. The program waits for
 * conditions with a timeout only by this function, because a wait by the wall clock lasts longer if
 * that clock is set back. */
bool cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double limit_s);

/* Starts a thread that calls run(argument). The thread receives no signals except those of its own
 * faults; other signals go to the thread that checks for them. Returns 0, or the errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *argument);
/* Calls `run` in `count` threads, one for each element of the array `elements`, whose elements have
 * `bytes` bytes, and waits until all have ended. An element whose thread cannot be started is not
 * processed. */
void threads_run(void *(*run)(void *of), void *elements, size_t bytes, int count);

/* Writes this host's name to name[0 .. room - 1], truncated to room - 1 bytes and padded with
 * zeros; "?" if the name cannot be read. */
enum { HOST_BYTES = 64 };
void host_name(char *name, size_t room);
/* Writes a random id: 16 hexadecimal digits and a zero byte. */
enum { RANDOM_ID_BYTES = 17 };
void random_id(char *id);
/* Writes the path of this program to path[0 .. room - 1]. Returns false and writes "" if the system
 * does not provide the path. */
bool program_path(char *path, size_t room);
/* Returns the state of a process on this host as in /proc: 'R', 'S', 'D', 'T' (stopped), 't'
 * (stopped by a debugger); PROCESS_ENDED: it has ended, or is a zombie; PROCESS_UNKNOWN: the state
 * cannot be read. */
enum { PROCESS_ENDED = 0, PROCESS_UNKNOWN = '?' };
char process_state(pid_t process);
/* Returns the time at which a process on this host began, in ticks since the boot; 0: it has ended;
 * -1: the time is not known. */
int64_t process_began(pid_t process);
/* Returns the sum, in bytes, of the numbers in lines "KEY NUMBER kB" of a file of /proc; -1: there
 * is no such line, or the file cannot be read. keys: the keys, each with its colon: "VmSwap:" or
 * "Pss_Anon:Pss_Shmem:". */
double proc_bytes(const char *path, const char *keys);

/* proc_read_word reads the first word of a file, cut to 127 bytes, to out[0 .. bytes - 1]; if the
 * file cannot be read or has no word, it returns false and writes "". proc_read_number returns the
 * number at the beginning of a file; -1 if the file cannot be read or does not begin with a number.
 * path: begins with '/'. root: "", or the path of a folder that is used in place of /. */
bool proc_read_word(const char *root, const char *path, char *out, size_t bytes);
double proc_read_number(const char *root, const char *path);
/* Calls visit for each name in the folder `path` below root (proc_read_word), except hidden names;
 * makes no call if the folder cannot be read. visit gets root and user unchanged, and the name
 * without its folder. */
void proc_each_name(const char *root, const char *path,
                    void (*visit)(const char *root, const char *name, void *user), void *user);
/* Returns the number of names for which proc_each_name calls visit. */
int proc_count_names(const char *root, const char *path);

/* Syncs the entry of path in its folder, after path was created or renamed. Returns 0, or the
 * errno. File systems that cannot sync a folder (EINVAL) order renames themselves, and folders that
 * may be written but not read (EACCES) cannot be synced: both return 0. */
int file_sync_entry(const char *path);
/* Opens an existing regular file that is untrusted, without waiting for the other end of a pipe.
 * flags: O_RDONLY, O_WRONLY or O_RDWR, with or without O_NOFOLLOW. On failure returns -1 and sets
 * errno, which file_error describes: EISDIR if path is a folder, ENXIO if it is a pipe, a socket or
 * a device. */
int file_open(const char *path, int flags);
/* Opens a stream to read a file from its beginning to its end. The file may also be an unnamed
 * pipe, which a shell passes as /dev/stdin or <(command). On failure returns NULL and sets
 * errno. */
FILE *file_open_stream(const char *path);
/* Opens a file for writing; creates it, with mode 0666 less the umask, if it does not exist. A
 * symbolic link at path is not followed (ELOOP). flags: O_WRONLY or O_RDWR, and other flags such as
 * O_TRUNC. A character device (/dev/null) is accepted; a pipe, a socket or a disk is not (ENXIO).
 * On failure returns -1 and sets errno. */
int file_create(const char *path, int flags);
/* Removes the file at path, then calls file_create. If path is a symbolic link, removes the link
 * and not its target. Fails if another process has created a file at path in between. */
int file_create_new(const char *path, int flags);
/* Returns true if file_create would open the file for writing; a file that the check creates is
 * removed. Otherwise returns false and sets errno. */
bool file_can_create(const char *path);
/* Opens a stream to write a file (file_create) whose old content is removed. On failure returns
 * NULL and sets errno. */
FILE *file_create_stream(const char *path);
/* Opens a stream to write a new file (file_create_new). On failure returns NULL and sets errno. */
FILE *file_create_new_stream(const char *path);
/* Closes a stream that was written. Returns 0, or the errno if a part of the data could not be
 * written; EIO if an earlier write has failed, whose errno is lost. */
int file_finish_stream(FILE *out);
/* Calls file_finish_stream. path: for the message. ERR_IO: a part of the data could not be
 * written. */
Status file_close_stream(FILE *out, const char *path);
/* Returns a text that explains an errno: for ELOOP that a symbolic link is not followed, for EISDIR
 * that it is a folder, for ENXIO that it is a pipe, a socket or a device; for any other errno
 * strerror's text. */
const char *file_error(int error);
/* Renames the file `path` to path.1, or to the next free number. *to: the new path, owned by the
 * caller; NULL if there is no such file, or if it is empty: an empty file is not renamed. ERR_IO:
 * the file cannot be renamed. */
Status file_move_aside(const char *path, char **to);
/* Makes a folder and its parents, like mkdir -p. path must not be empty. ERR_IO: a folder cannot be
 * made. */
Status file_make_folders(const char *path);
/* Returns a copy of the path `folder` without slashes at its end, and sets *above to false. If
 * there is no such folder, sets *above to true and returns the path of its nearest existing parent,
 * in which file_make_folders would make it. A dangling symbolic link counts as existing. The caller
 * owns the result. */
char *file_nearest_folder(const char *folder, bool *above);
/* Checks that a verb may write a file at path. ERR_USAGE: a file is there and force is false; or
 * path is, or links to, something other than a regular file, which is never replaced. */
Status file_check_writable(const char *path, bool force);
/* Checks that none of the `count` input files `in` is replaced when the file `out` is written. Two
 * paths that lead to one file count as the same file. Files that verbs write next to out (out.part
 * and others) are checked, too. out: may be NULL. ERR_USAGE: an input file would be replaced. */
Status file_check_not_input(const char *out, const char *const *in, int count);
struct stat;
/* Returns true if two results of stat describe the same file. */
bool file_is_same(const struct stat *a, const struct stat *b);
/* Reads a whole file (file_open_stream) and appends a zero byte. *text: owned by the caller;
 * *bytes: its length without the zero byte. ERR_NOINPUT: the file cannot be opened. ERR_IO: it
 * cannot be read. ERR_DATA: it has more than `most` bytes; it is not read further, because a pipe
 * may have no end. */
Status file_text(const char *path, size_t most, char **text, size_t *bytes);
/* Describes the content of a file, to compare it with the file at the same path on another host:
 * "7840 bytes with hash 0123456789abcdef". If the file is larger than 4 MiB, only 64 evenly spread
 * pieces of 4 KiB are hashed. If the file cannot be read, the description is "no file to read
 * (why)". out: `room` bytes. */
void file_describe(const char *path, char *out, size_t room);

/* From now on SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU do not end the process: they
 * are recorded for stop_wanted. Those that are ignored at the time of the call stay ignored
 * (nohup). SIGPIPE is ignored, because unread output is no reason to stop, and SIGXFSZ is ignored,
 * because write reports that a file size limit is exceeded. Call it before any other thread is
 * started, and again after a library may have set handlers (MPI_Init). If it has not been called,
 * stop_wanted returns false. */
void stop_begin(void);
/* Returns true if a signal of stop_begin has arrived. Two threads must not call it at the same
 * time. */
bool stop_wanted(void);
/* Forgets the signals that have arrived, and restores the signal mask and the actions of SIGPIPE
 * and SIGXFSZ that stop_begin found; the other signals get their default action. */
void stop_end(void);
/* Sets *set to the signals of stop_begin that are not ignored, for a caller that waits for them
 * itself. */
void stop_signals(sigset_t *set);

/* The functions command_* run other programs, with default signals and in their own process group.
 * The code of a program is its exit code as a shell returns it, or one of the following.
 * COMMAND_NONE: it could not be started; COMMAND_TIMED_OUT: it exceeded its time and was killed;
 * COMMAND_BUSY: it is running. */
enum { COMMAND_NONE = -1, COMMAND_TIMED_OUT = -2, COMMAND_BUSY = -3 };
/* Starts the program arguments[0], which is looked up in PATH, with these arguments,
 * NULL-terminated. output: file descriptor for its stdout and stderr; -1: they are discarded.
 * Returns 0, or the errno. */
int command_start(pid_t *child, int output, char *const *arguments);
/* Starts `sh -c command`. input, output: file descriptors for its stdin and stdout; -1: /dev/null.
 * Its stderr is that of this process. It does not get the variables by which a launcher (mpirun,
 * srun, weft run) identifies this rank. Returns 0, or the errno. */
int command_shell(pid_t *child, int input, int output, const char *command);
/* Starts a program, as command_start, whose output command_read reads. *answer: file descriptor, to
 * be closed by the caller. Returns 0, or the errno if the program could not be started. */
int command_open(pid_t *child, int *answer, char *const *arguments);
/* Appends the output that has arrived to `out`, which has *length bytes so far, and then a zero
 * byte. Bytes that do not fit into `room` bytes are discarded. Returns true at the end of the
 * output. */
bool command_read(int answer, char *out, size_t room, size_t *length);
/* Waits for the children whose code is COMMAND_BUSY, and replaces these codes. Children that have
 * not ended after limit_s seconds are asked to end, killed 2 seconds later, and get the code
 * COMMAND_TIMED_OUT. */
void command_wait(int count, const pid_t *child, double limit_s, int *code);
/* Runs a program, as command_start, for at most limit_s seconds. Writes its output with a zero byte
 * to `out`; bytes that do not fit into `room` bytes are discarded. Returns the program's code. */
int command_output(char *const *words, double limit_s, char *out, size_t room);

/* largest number of symbols of a Library */
enum { LIBRARY_SYMBOLS = 32 };
/* A function of a library. */
typedef struct LibrarySymbol {
    const char *name;
    /* offset, in bytes, of the pointer that gets the symbol's address, in the table of
     * library_bind */
    size_t slot;
} LibrarySymbol;
/* A library that is bound at run time when it is needed. It stays bound until the process ends. */
typedef struct Library {
    /* file: name of the file, "libcudnn.so.9"; name: name of the library, "cuDNN" */
    const char *file, *name;
    /* for messages. user: the option that needs the library; cure: how to do without the library */
    const char *user, *cure;
    /* at most LIBRARY_SYMBOLS symbols; after the last one .name is NULL */
    const LibrarySymbol *symbol;
    /* symbols that some versions of the library lack, ended in the same way; NULL: there are
     * none */
    const LibrarySymbol *optional;
} Library;
/* Loads a library and writes the addresses of all its symbols into `table`, a struct of pointers to
 * functions; NULL for an optional symbol that is missing. ERR_CONFIG: the library or another symbol
 * is missing; the message says what to do, and table is unchanged. */
Status library_bind(const Library *library, void *table);

#endif
