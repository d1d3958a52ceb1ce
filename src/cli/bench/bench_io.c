/* weft bench io [FILE]: measures how fast samples in random order are read from a cached file, with
 * one reader per core, by the code that training uses. As an upper limit, it also measures how fast
 * the same samples are copied from memory. Without FILE, a data set of 50,000 samples of 3,072
 * bytes is written to $TMPDIR and removed again. Files of encoded pictures are measured in
 * bench_pictures.c.
 *
 * Why readers map files of small samples into memory: On a virtual machine a pread of 3 KB takes
 * 1.4 to 2 microseconds, mostly for the system call. A copy from the mapped page cache takes 0.8 to
 * 1.2 microseconds, or 0.4 when reader_prefetch hides the latency of main memory. preadv helps only
 * with consecutive samples, and io_uring still needs kernel work for each sample; neither is faster
 * than a copy of mapped memory. data/loader/mapped_copy.c handles the risk of a mapping, which is a
 * file that shrinks. */
#include "../private.h"

#include "data/import.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* size of a CIFAR-10 record: a label and 3x32x32 pixels */
    RECORD_BYTES = 3073,
    /* number of records in the file that is made without FILE */
    RECORDS = 1000,
    /* number of times that this file is imported into the data set */
    FILE_REPEATS = 50,
    /* number of samples between two readings of the clock */
    CLOCK_EVERY = 256,
    READERS_MAX = 1024
};

typedef struct IoOptions {
    double seconds;
    bool json;
} IoOptions;

static const Flag flags[] = {
    {"--seconds", FLAG_FIELD(IoOptions, seconds), .value = "S", .lo_open = true, .hi = 3600,
     .default_text = "2", .help = "how long to read"},
    {"--json", FLAG_FIELD(IoOptions, json), .help = "one JSON object"},
};

typedef struct IoArgs {
    /* path of the data set, borrowed; NULL: a temporary file is made */
    const char *file;
    /* time for which samples are read */
    double seconds;
    bool json;
} IoArgs;

/* A thread that reads samples. There is one for each core. */
typedef struct IoWorker {
    /* borrowed */
    const DataSet *set;
    /* time for which the thread reads */
    double seconds;
    /* seed of the order of samples */
    uint64_t seed;
    /* samples in memory that are copied instead of reading the file, borrowed; NULL: the file is
     * read */
    const uint8_t *memory;
    /* number of samples in the file or in memory */
    int64_t samples;
    /* result */
    double samples_per_s;
    /* result */
    Status status;
    /* text of the failure if `status` is not OK */
    char message[512];
} IoWorker;

/* xorshift64* (Vigna 2016) */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

static int64_t next_sample(uint64_t *state, int64_t samples)
{
    return (int64_t)((next_random(state) >> 32) * (uint64_t)samples >> 32);
}

/* Returns the number of bytes that are stored for a sample. A sample of a token set has `context`
 * tokens. */
static int64_t sample_bytes(const DataSet *set)
{
    return set->x.sample_bytes * (data_has_tokens(set) ? set->context : 1);
}

/* Reads or copies random samples for w->seconds, and sets w->samples_per_s. to: room for one
 * sample. */
static Status io_measure(IoWorker *w, Reader *reader, uint8_t *to)
{
    uint64_t state = w->seed;
    const size_t bytes = (size_t)sample_bytes(w->set);
    int64_t done = 0, sample = next_sample(&state, w->samples);
    double begin_s = clock_s(), end_s = begin_s + w->seconds, now_s = begin_s;
    for (; now_s < end_s; now_s = clock_s()) {
        for (int i = 0; i < CLOCK_EVERY; ++i) {
            int64_t next = next_sample(&state, w->samples);
            if (w->memory) {
                memcpy(to, w->memory + (size_t)sample * bytes, bytes);
                /* the compiler must not remove the copy */
                __asm__ volatile("" : : "r"(to) : "memory");
            } else {
                reader_prefetch(reader, next);
                TRY(reader_get(reader, sample, to, NULL, NULL));
            }
            sample = next;
        }
        done += CLOCK_EVERY;
    }
    w->samples_per_s = (double)done / (now_s - begin_s);
    return OK;
}

/* Reads the file once in order, so that it is in the page cache, and so that the pages of a mapped
 * file are in this process's page table. */
static Status io_warm(const IoWorker *w, Reader *reader, uint8_t *to)
{
    for (int64_t i = 0; i < w->samples; ++i) TRY(reader_get(reader, i, to, NULL, NULL));
    return OK;
}

static void *io_run(void *user)
{
    IoWorker *w = user;
    Reader *reader = NULL;
    uint8_t *to = mem_new((size_t)sample_bytes(w->set));
    w->status = reader_new(&reader, w->set);
    if (w->status == OK && !w->memory) w->status = io_warm(w, reader, to);
    if (w->status == OK) w->status = io_measure(w, reader, to);
    if (w->status != OK) snprintf(w->message, sizeof w->message, "%s", fail_message());
    reader_free(&reader);
    mem_free(&to);
    return NULL;
}

/* Runs `readers` copies of the worker `model` at the same time, each on a thread and with its own
 * seed. *samples_per_s: mean rate of the workers. */
static Status io_all(const IoWorker *model, int readers, double *samples_per_s)
{
    IoWorker *worker = mem_new((size_t)readers * sizeof *worker);
    pthread_t *thread = mem_new((size_t)readers * sizeof *thread);
    int started = 0, rc = 0;
    double sum = 0;
    Status st = OK;
    for (; started < readers && rc == 0; started += rc == 0) {
        worker[started] = *model;
        worker[started].seed = 0x9e3779b97f4a7c15u * (uint64_t)(started + 1);
        rc = pthread_create(&thread[started], NULL, io_run, &worker[started]);
    }
    if (rc != 0) st = fail(ERR_IO, "a thread cannot be started: %s", strerror(rc));
    for (int i = 0; i < started; ++i) {
        pthread_join(thread[i], NULL);
        if (worker[i].status != OK) st = fail(worker[i].status, "%s", worker[i].message);
        sum += worker[i].samples_per_s;
    }
    *samples_per_s = sum / readers;
    mem_free(&thread);
    mem_free(&worker);
    return st;
}

/* Measures copies from memory. The memory has all samples of the set, or as many as fit into
 * MEMORY_MAX bytes. model: worker without `memory`. */
static Status io_limit(IoWorker model, int readers, double *samples_per_s)
{
    enum { MEMORY_MAX = 256 << 20 };
    int64_t samples_max = MEMORY_MAX / sample_bytes(model.set);
    if (model.samples > samples_max) model.samples = samples_max < 1 ? 1 : samples_max;
    size_t bytes = (size_t)(model.samples * sample_bytes(model.set));
    uint8_t *memory = mem_pages_new(bytes);
    memset(memory, 1, bytes);
    model.memory = memory;
    Status st = io_all(&model, readers, samples_per_s);
    mem_pages_free(memory, bytes);
    return st;
}

static void io_report(const IoArgs *args, const DataSet *set, int readers, double rate,
                      double limit)
{
    double mb = rate * (double)sample_bytes(set) / 1e6;
    const char *file = args->file ? args->file : "temporary";
    if (args->json) {
        Json json = json_to(stdout, true);
        json_object(&json, NULL);
        json_text(&json, "bench", "io");
        json_text(&json, "file", file);
        json_int(&json, "sample_bytes", sample_bytes(set));
        json_int(&json, "samples", set->samples);
        json_bool(&json, "direct", set->x.offset >= 0);
        json_int(&json, "readers", readers);
        json_fixed(&json, "samples_per_s_core", 0, rate);
        json_fixed(&json, "mb_per_s_core", 1, mb);
        json_fixed(&json, "samples_per_s", 0, rate * readers);
        json_fixed(&json, "limit_samples_per_s_core", 0, limit);
        json_end(&json);
        return;
    }
    printf("%s: %lld samples of %lld bytes, random order, %d reader%s, %s\n", file,
           (long long)set->samples, (long long)sample_bytes(set), readers, readers == 1 ? "" : "s",
           set->x.offset >= 0 ? "direct" : "through the HDF5 library");
    printf("  a core    %12.0f samples/s  %9.1f MB/s\n", rate, mb);
    printf("  all cores %12.0f samples/s  %9.1f MB/s\n", rate * readers, mb * readers);
    printf("  limit     %12.0f samples/s a core (the same copies from memory): %.0f %%\n", limit,
           100.0 * rate / limit);
}

static Status io_file(const IoArgs *args, const char *path)
{
    DataSet set;
    double rate, limit;
    TRY(data_set_open(&set, NULL, path));
    if (set.encoded) {
        const bool boxes = data_has_boxes(&set);
        data_set_fini(&set);
        return bench_pictures(path, boxes, args->seconds, args->json);
    }
    int readers = threads_share(1);
    if (readers > READERS_MAX) readers = READERS_MAX;
    IoWorker model = {.set = &set, .seconds = args->seconds, .samples = set.samples};
    Status st = io_all(&model, readers, &rate);
    if (st == OK) st = io_limit(model, readers, &limit);
    if (st == OK) io_report(args, &set, readers, rate, limit);
    data_set_fini(&set);
    return st;
}

/* Writes a file of RECORDS records in CIFAR-10's format, with random pixels. */
static Status records_write(const char *path)
{
    uint8_t *bytes = mem_new((size_t)RECORDS * RECORD_BYTES);
    uint64_t state = 1;
    for (int64_t i = 0; i < (int64_t)RECORDS * RECORD_BYTES; ++i) {
        bool is_label = i % RECORD_BYTES == 0;
        bytes[i] = is_label ? (uint8_t)(i / RECORD_BYTES % 10) : (uint8_t)next_random(&state);
    }
    FILE *file = file_create_stream(path);
    bool good = file && fwrite(bytes, RECORD_BYTES, RECORDS, file) == RECORDS;
    if (file && fclose(file) != 0) good = false;
    mem_free(&bytes);
    return good ? OK
                : fail(ERR_IO, "%s: cannot be written: %s; set TMPDIR to another folder", path,
                       strerror(errno));
}

static Status io_temporary(const IoArgs *args)
{
    const char *tmp = getenv("TMPDIR"), *files[FILE_REPEATS];
    char *dir = mem_format("%s/weft-bench-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        Status st = fail(ERR_IO, "%s: cannot be made: %s; set TMPDIR to another folder", dir,
                         strerror(errno));
        mem_free(&dir);
        return st;
    }
    char *records = mem_format("%s/records.bin", dir), *set = mem_format("%s/set.h5", dir);
    for (int i = 0; i < FILE_REPEATS; ++i) files[i] = records;
    Status st = records_write(records);
    if (st == OK) st = data_import_cifar(files, FILE_REPEATS, false, set, false);
    unlink(records);
    if (st == OK) st = io_file(args, set);
    unlink(set);
    rmdir(dir);
    mem_free(&set);
    mem_free(&records);
    mem_free(&dir);
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    const IoOptions *o = options;
    IoArgs args = {argc > 0 ? argv[0] : NULL, o->seconds, o->json};
    if (argc > 1) return fail(ERR_USAGE, "bench io takes one file; %s is a second one", argv[1]);
    return args.file ? io_file(&args, args.file) : io_temporary(&args);
}

const Verb verb_bench_io = {
    .name = "bench io",
    .words = "[FILE]",
    .help = "measures how many samples per second are read in random order from a cached file",
    VERB_FLAGS(IoOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
