/* base: what every module stands on. Status and messages, die, log, memory, clock, counter-based random
 * numbers, JSON text. No MPI, no HDF5, no device. Nothing here is collective. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A Status is the exit code it leads to (sysexits.h). Every edge function returns one. */
typedef enum Status {
    OK = 0,
    ERR_USAGE = 64,   /* the command line */
    ERR_DATA = 65,    /* a file's content is wrong */
    ERR_NOINPUT = 66, /* a file is not there or cannot be read */
    ERR_BUG = 70,     /* a fault of ours */
    ERR_MEMORY = 71,  /* the system gives no more memory */
    ERR_IO = 74, /* reading or writing failed: disk full, ...; a rank or the link to it is lost */
    ERR_STOPPED = 75, /* stopped early with a checkpoint: start me again */
    ERR_CONFIG = 78,  /* the configuration */
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

/* Records one message (what, where, what to do) for this thread and returns code. The last one wins; nothing is
 * printed. `return fail(ERR_NOINPUT, "%s: no such file; run `make data` first", path);` */
Status fail(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* The message of the last fail() on this thread; "" if none. Borrowed, valid until the next fail(). */
const char *fail_message(void);

/* A fault inside a step cannot be mended: prints where this process stands (die_context) and the message, then calls
 * the abort hook (MPI_Abort once MPI is up). Exit code: ERR_BUG, alone and under a launcher. */
_Noreturn void die(const char *fmt, ...) BASE_PRINTF(1, 2);
/* The same, and the job's exit code is `code` (an input that turns out bad in the middle of a run). */
_Noreturn void die_as(Status code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* The same for a peer that is gone, or the link to it, which is no fault of this process. The exit code is ERR_IO, or what
 * die_lost_as has set since: ERR_STOPPED where there is a checkpoint to go on from. */
_Noreturn void die_lost(const char *fmt, ...) BASE_PRINTF(1, 2);
void die_lost_as(Status code);
/* place: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07", copied. abort_job may be NULL. */
void die_context(const char *place, void (*abort_job)(int code));

/* Only rank 0 speaks: log_info and log_warn are silent where log_init was given speak = false. log_error always
 * prints, as "weft: error: ...", on stderr. Colour only on a terminal, with NO_COLOR unset and TERM not "dumb". */
void log_init(bool speak);
void log_info(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_warn(const char *fmt, ...) BASE_PRINTF(1, 2);
void log_error(const char *fmt, ...) BASE_PRINTF(1, 2);
bool log_colour(FILE *stream);

/* Memory from the C library; out of memory is die_as(ERR_MEMORY). Owner: the caller, who frees with mem_free, which nulls. */
void *mem_new(size_t bytes);               /* zeroed */
void *mem_resize(void *old, size_t bytes); /* contents kept, growth not zeroed */
char *mem_text(const char *text);          /* copy of a string; NULL stays NULL */
char *mem_format(const char *fmt, ...) BASE_PRINTF(1, 2);
void mem_free_at(void **pointer);
#define mem_free(p) mem_free_at((void **)(p)) /* mem_free(&p) */
/* Page-aligned arena memory, zeroed, with huge pages asked for. Release with mem_pages_free(p, bytes). */
void *mem_pages_new(size_t bytes);
void mem_pages_free(void *p, size_t bytes);

/* The least memory that all processes here together may have: the machine's, or a control group's (version 1 or 2) that this
 * process is in, up to the root of what it can see. */
typedef struct MemoryLimit {
    double bytes;
    char group[512]; /* the file that sets it; "": the machine's own memory */
} MemoryLimit;
/* root: "", or the folder below which /proc and the groups are looked for. */
MemoryLimit memory_limit(const char *root);

double clock_s(void); /* monotonic, seconds */
/* A condition variable for cond_wait_for. Release with pthread_cond_destroy. */
void cond_init(pthread_cond_t *cond);
/* Sleeps, with the lock held before and after, until cond is signalled (or for no reason), or for limit_s by the monotonic clock;
 * false: for limit_s. There is no other timed wait in the program: one by the wall clock lasts as long as that is set back. */
bool cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double limit_s);

/* After path was created or renamed: brings its name to the disk. 0, or errno. Nothing to do where a file system
 * cannot sync a folder (EINVAL) and orders renames itself, nor where a folder may be written but not read (EACCES). */
int file_sync_entry(const char *path);
/* Renames path to path.1, or the next number that is free; *to: that name, owned by the caller. NULL where there is no such
 * file, or an empty one, which stays. ERR_IO. */
Status file_move_aside(const char *path, char **to);

/* From stop_begin on SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU end nothing: they are remembered for stop_wanted.
 * Those that are ignored at that time stay ignored (nohup). SIGPIPE is ignored, too: output that nobody reads is no reason to
 * stop; and SIGXFSZ: a limit on a file's size is an error of its write. Call it first on the only thread, and again once a library may have set handlers of its own. Without it
 * stop_wanted is false. */
void stop_begin(void);
bool stop_wanted(void); /* has any of them come? Not to be called on two threads */
/* As before stop_begin; what was asked for is forgotten. */
void stop_end(void);
/* Which signals these are, for a caller that waits for them itself. */
void stop_signals(sigset_t *set);

/* Counter-based random numbers (Philox4x32-10; Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):
 * a pure function of (seed, purpose, a, b, element), never of the rank or of what was drawn before. */
typedef enum RngPurpose {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    RNG_AUGMENT,
    RNG_DROPOUT,
    RNG_TEST,
    RNG_GENERATE
} RngPurpose;
typedef struct RngKey {
    uint32_t k[2];
} RngKey;
/* Key for one use. a and b: hash of a parameter's name, epoch, step, sample id, ... as the purpose wants. */
RngKey rng_key(uint64_t seed, RngPurpose purpose, uint64_t a, uint64_t b);
void rng_block(RngKey key, uint64_t counter, uint32_t out[4]);
uint32_t rng_u32(RngKey key, uint64_t element);
float rng_uniform(RngKey key, uint64_t element); /* [0, 1), 24 bits */
float rng_normal(RngKey key, uint64_t element);  /* mean 0, deviation 1 (Box-Muller) */
uint64_t hash_text(const char *text);            /* XXH64, seed 0 */
uint64_t hash_bytes(const void *data, size_t bytes);

/* Time by phase: a span is closed by the next phase_enter. One set per process, one thread. */
typedef enum Phase {
    PHASE_OTHER,
    PHASE_DATA,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_SUM,
    PHASE_MESSAGES,
    PHASE_UPDATE,
    PHASE_EVAL,
    PHASE_CHECKPOINT,
    PHASE_COUNT
} Phase;
extern const char *const phase_names[PHASE_COUNT];
Phase phase_enter(Phase phase); /* returns the phase before, for nesting */
double phase_s(Phase phase);    /* seconds so far */
/* From now on `entered` is told every phase as it begins; NULL: nobody is. */
void phase_watch(void (*entered)(Phase phase));
/* With a trace on, every span goes to a ring of the newest `events`; trace_write makes a Chrome trace (trace.json). */
void trace_start(int events);
Status trace_write(const char *path, int rank);

/* JSON as it is written. `json_object(&json, NULL); json_int(&json, "step", 3); json_end(&json);` writes {"step": 3} and a line's
 * end, which follows what is outermost. key: NULL in an array and outermost, else the value's name in its object. Nothing is kept in
 * memory; whether writing went well is asked of out. */
enum { JSON_DEPTH = 8 };
typedef struct JsonLevel {
    char close;
    bool lines, filled;
} JsonLevel;
typedef struct Json {
    FILE *out; /* borrowed */
    /* a blank behind commas and colons */
    bool spaced;
    int depth;
    JsonLevel level[JSON_DEPTH];
} Json;
Json json_to(FILE *out, bool spaced);
void json_object(Json *json, const char *key);
void json_array(Json *json, const char *key);
/* An array with a line for each value. */
void json_lines(Json *json, const char *key);
/* Closes the innermost object or array. */
void json_end(Json *json);
/* NULL: null. Bytes that are no UTF-8 become U+FFFD. */
void json_text(Json *json, const char *key, const char *text);
void json_format(Json *json, const char *key, const char *fmt, ...) BASE_PRINTF(3, 4);
void json_bool(Json *json, const char *key, bool value);
void json_int(Json *json, const char *key, int64_t value);
/* As text_real, and with so many decimals. NaN and infinities are null. */
void json_real(Json *json, const char *key, double value);
void json_fixed(Json *json, const char *key, int decimals, double value);
/* value: JSON already. */
void json_raw(Json *json, const char *key, const char *value);

/* Text in double quotes, escaped as in JSON and YAML; bytes that are no UTF-8 stay as they are. */
void text_quote(FILE *out, const char *text);
/* The shortest of 15, 16 or 17 digits that reads back as the same double; null for NaN and infinities. */
void text_real(FILE *out, double value);
/* The nearest of `count` words to `word` by edit distance, or NULL if none is near. Borrowed from words. */
const char *text_nearest(const char *word, const char *const *words, int count);
/* Bytes as people read them ("45.2 MB"), into a buffer of at least 16 chars, which it returns. */
char *text_bytes(double bytes, char *out);

/* A library that is bound when it is needed, not linked. It stays bound until the process ends. */
enum { LIBRARY_SYMBOLS = 32 };
typedef struct LibrarySymbol {
    const char *name;
    size_t slot; /* where in a table its address goes */
} LibrarySymbol;
typedef struct Library {
    const char *file, *name;     /* "libcudnn.so.9", "cuDNN" */
    const char *user, *cure;     /* for messages: what needs it, and what does without */
    const LibrarySymbol *symbol; /* at most LIBRARY_SYMBOLS; ends with a name NULL */
} Library;
/* Fills table's slots, or none of them: ERR_CONFIG says what is missing and where to look. */
Status library_bind(const Library *library, void *table);

#endif
