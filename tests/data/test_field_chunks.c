/* Unpacked chunks that processes share: each chunk is unpacked once an epoch by all of them
 * together, in memory for the whole set and in memory for two windows of the order of samples;
 * places are given out in turn; a chunk that cannot be read, and a process that is killed while it
 * unpacks one, stop nobody. */
#include "child.h"
#include "fixture.h"
#include "../../src/data/chunks/field_chunks.h"

#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* ---- places ---- */

enum { PLACE = 64, PLACES = 4, SLOTS = 6 };

static ChunkAnswer find(ChunkMemory *m, int64_t number, size_t bytes, ChunkHeld *held)
{
    return chunk_memory_find(m, (ChunkKey){.number = number}, bytes, false, held);
}

/* Claims a chunk and completes it; the caller holds it. */
static ChunkHeld put(ChunkMemory *m, int64_t number, size_t bytes)
{
    ChunkHeld held = {0};
    CU_ASSERT_EQUAL(find(m, number, bytes, &held), CHUNK_CLAIMED);
    memset(held.data, (int)number, bytes);
    chunk_memory_unpacked(m, &held, true);
    return held;
}

/* Is the chunk in the memory, with its data? */
static bool has(ChunkMemory *m, int64_t number, size_t bytes)
{
    ChunkHeld held;
    const ChunkAnswer answer = find(m, number, bytes, &held);
    bool same = answer == CHUNK_COMPLETE;
    for (size_t i = 0; same && i < bytes; ++i) same = ((uint8_t *)held.data)[i] == number;
    if (answer == CHUNK_COMPLETE) chunk_memory_release(m, &held);
    if (answer == CHUNK_CLAIMED) chunk_memory_unpacked(m, &held, false);
    return same;
}

static void places(void)
{
    const ChunkSizes sizes = {.other = {PLACES * PLACE, SLOTS}};
    ChunkMemory *m = chunk_memory_init(mem_pages_new(chunk_memory_bytes(&sizes)), &sizes);
    ChunkHeld held[PLACES], other;
    for (int i = 0; i < PLACES; ++i) held[i] = put(m, i, PLACE);
    CU_ASSERT_EQUAL(find(m, 9, PLACE, &other), CHUNK_NO_PLACE);
    chunk_memory_release(m, &held[1]);
    chunk_memory_release(m, &held[2]);
    CU_ASSERT(has(m, 1, PLACE));
    /* the first chunk is held, so the second one is dropped */
    ChunkHeld late = put(m, 5, PLACE);
    CU_ASSERT(has(m, 0, PLACE) && has(m, 2, PLACE) && has(m, 3, PLACE) && has(m, 5, PLACE));
    chunk_memory_release(m, &late);
    /* a chunk of two places drops two neighbours */
    late = put(m, 6, 2 * PLACE);
    CU_ASSERT(has(m, 0, PLACE) && has(m, 3, PLACE) && has(m, 6, 2 * PLACE));
    chunk_memory_release(m, &late);
    CU_ASSERT(!has(m, 1, PLACE) && !has(m, 2, PLACE));
    CU_ASSERT_EQUAL(find(m, 7, (PLACES + 1) * PLACE, &other), CHUNK_NO_PLACE);
    CU_ASSERT_EQUAL(chunk_memory_total(m), PLACES + 2);
    mem_pages_free(m, chunk_memory_bytes(&sizes));
}

/* There are fewer slots than small chunks that would fit; static chunks stay. */
static void slots(void)
{
    const ChunkSizes sizes = {.statics = {PLACE, 1}, .other = {PLACES * PLACE, 2}};
    ChunkMemory *m = chunk_memory_init(mem_pages_new(chunk_memory_bytes(&sizes)), &sizes);
    ChunkHeld held;
    const ChunkKey fixed = {.variable = 1};
    CU_ASSERT_EQUAL(chunk_memory_find(m, fixed, PLACE, true, &held), CHUNK_CLAIMED);
    chunk_memory_unpacked(m, &held, true);
    chunk_memory_release(m, &held);
    for (int i = 0; i < 20; ++i) {
        held = put(m, i, PLACE);
        chunk_memory_release(m, &held);
        CU_ASSERT(has(m, i, PLACE) && (i < 1 || has(m, i - 1, PLACE)));
    }
    CU_ASSERT_EQUAL(chunk_memory_find(m, fixed, PLACE, true, &held), CHUNK_COMPLETE);
    mem_pages_free(m, chunk_memory_bytes(&sizes));
}

/* ---- a set ---- */

enum {
    FRAMES = 64,
    ROWS = 6,
    COLUMNS = 10,
    PIXELS = ROWS * COLUMNS,
    CHUNK = 4,
    WINDOW = 16,
    BATCH = 8,
    EPOCHS = 2,
    VARIABLES = 2,
    CHUNKS = VARIABLES * FRAMES / CHUNK
};

static float value_at(int variable, int frame, int pixel)
{
    return (float)(10000 * variable + 100 * frame + pixel);
}

static void array_put(hid_t file, const char *name, int variable, int frames)
{
    const hsize_t dim[] = {(hsize_t)frames, ROWS, COLUMNS};
    const hsize_t chunk[] = {frames > 1 ? CHUNK : 1, ROWS, COLUMNS};
    float *value = mem_new((size_t)(frames * PIXELS) * sizeof *value);
    for (int i = 0; i < frames * PIXELS; ++i) value[i] = value_at(variable, i / PIXELS, i % PIXELS);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, dim, NULL);
    H5Pset_chunk(create, 3, chunk);
    H5Pset_shuffle(create);
    H5Pset_deflate(create, 4);
    hid_t d = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    CU_ASSERT(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    mem_free(&value);
}

/* Overwrites the middle of the first chunk of /a. */
static void damage(const char *path)
{
    hsize_t start[3] = {0}, bytes;
    haddr_t at;
    unsigned mask;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), d = H5Dopen2(file, "a", H5P_DEFAULT);
    CU_ASSERT(H5Dget_chunk_info_by_coord(d, start, &mask, &at, &bytes) >= 0);
    H5Dclose(d);
    H5Fclose(file);
    FILE *f = fopen(path, "r+b");
    CU_ASSERT(fseek(f, (long)(at + bytes / 2), SEEK_SET) == 0 && fwrite("damage", 6, 1, f) == 1);
    fclose(f);
}

/* user_block: bytes before those of HDF5 in the file. */
static DataSet *set_of(bool damaged, hsize_t user_block)
{
    DataSet *set = mem_new(sizeof *set);
    Config *config = NULL;
    const char *path = in_scratch("chunks.h5");
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(create, user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
    H5Pclose(create);
    array_put(file, "a", 0, FRAMES);
    array_put(file, "b", 1, FRAMES);
    array_put(file, "ground", 2, 1);
    H5Fclose(file);
    if (damaged) damage(path);
    char *word[] = {
        mem_text("data.variables={inputs: [a], static: [ground], targets: [b]}"),
        mem_text("data.window={inputs: [0], targets: [0]}"),
    };
    config_use_words(data_words, DATA_WORDS);
    CHECK_OK(config_load(&config, NULL, 2, word));
    CHECK_OK(data_set_open(set, config, path));
    for (int i = 0; i < 2; ++i) mem_free(&word[i]);
    config_free(&config);
    CU_ASSERT_EQUAL(set->samples, FRAMES);
    return set;
}

static DataSet *set_open(bool damaged)
{
    DataSet *set = set_of(damaged, 0);
    CU_ASSERT_EQUAL(data_fields_chunks(set), CHUNKS + 1);
    return set;
}

static void set_free(DataSet *set)
{
    data_set_fini(set);
    mem_free(&set);
}

/* HDF5 reads the chunks of a file that begins with other bytes. */
static void user_block(void)
{
    DataSet *set = set_of(false, 1024);
    FieldReader *reader;
    double plane[PIXELS];
    CU_ASSERT_EQUAL(data_fields_chunks(set), 0);
    CHECK_OK(field_reader_new(&reader, set));
    for (int frame = 0; frame < FRAMES; frame += CHUNK + 1) {
        CHECK_OK(field_read_variable(reader, 0, frame, plane));
        CU_ASSERT(plane[7] == (double)value_at(0, frame, 7));
    }
    field_reader_free(&reader);
    set_free(set);
}

/* ---- processes ---- */

enum { PROCESSES = 4 };

/* Memory that the processes of a test share. */
typedef struct Shared {
    /* steps that each process has done; chunks unpacked when all had done the first epoch */
    _Atomic int done[PROCESSES];
    _Atomic int64_t first_epoch;
    alignas(64) char memory[];
} Shared;

static Shared *shared;

static Shared *shared_new(const ChunkSizes *sizes)
{
    const size_t bytes = sizeof(Shared) + chunk_memory_bytes(sizes);
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(shared != MAP_FAILED);
    chunk_memory_init(shared->memory, sizes);
    return shared;
}

static void shared_free(const ChunkSizes *sizes)
{
    munmap(shared, sizeof(Shared) + chunk_memory_bytes(sizes));
}

static bool is_frame(const float *plane, int variable, int64_t frame)
{
    int i = 0;
    while (i < PIXELS && plane[i] == value_at(variable, (int)frame, i)) ++i;
    return i == PIXELS;
}

static void wait_for(int processes, int steps)
{
    for (int p = 0; p < processes; ++p)
        while (atomic_load(&shared->done[p]) < steps) clock_sleep(1e-4);
}

/* Reads this process's samples of all epochs. A process is two steps ahead of the others at most,
 * as the loaders of ranks are that wait for each other in each step. */
static bool read_epochs(FieldReader *reader, int process, int processes)
{
    float x[2 * PIXELS], y[PIXELS];
    const int steps = FRAMES / BATCH, each = BATCH / processes;
    bool good = true;
    for (int step = 0; step < EPOCHS * steps; ++step) {
        const int epoch = step / steps;
        wait_for(processes, step - 1);
        if (step == steps) wait_for(processes, steps);
        if (step == steps && process == 0)
            atomic_store(&shared->first_epoch, field_reader_unpacked(reader));
        while (step == steps && atomic_load(&shared->first_epoch) == 0) clock_sleep(1e-4);
        for (int i = 0; i < each; ++i) {
            const int64_t position = step % steps * BATCH + process * each + i;
            const int64_t sample = sampler_in_chunks(FRAMES, CHUNK, WINDOW, 3, epoch, position);
            good = good && field_read(reader, sample, false, x, y) == OK &&
                   is_frame(x, 0, sample) && is_frame(y, 1, sample) && is_frame(x + PIXELS, 2, 0);
        }
        atomic_store(&shared->done[process], step + 1);
    }
    return good;
}

/* Runs a process that shares the memory; its exit code is 0 if all samples are right. */
static pid_t begin(const DataSet *set, int process, int processes)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) return child;
    FieldReader *reader;
    const FieldMemory memory = {.at = shared->memory};
    bool good = field_reader_new(&reader, set) == OK;
    field_reader_share(reader, &memory);
    good = good && read_epochs(reader, process, processes);
    field_reader_free(&reader);
    _exit(good ? 0 : 1);
}

/* Returns the number of chunks unpacked by `processes` processes in all epochs. */
static int64_t unpacked_by(const DataSet *set, int processes, const ChunkSizes *sizes)
{
    pid_t child[PROCESSES];
    shared_new(sizes);
    for (int p = 0; p < processes; ++p) child[p] = begin(set, p, processes);
    for (int p = 0; p < processes; ++p) {
        int status = -1;
        waitpid(child[p], &status, 0);
        CU_ASSERT_EQUAL(status, 0);
    }
    const int64_t total = chunk_memory_total((ChunkMemory *)(void *)shared->memory);
    CU_ASSERT_EQUAL(shared->first_epoch, CHUNKS + 1);
    shared_free(sizes);
    return total;
}

/* A set that fits is unpacked once; of one that is larger each chunk once an epoch. */
static void once(void)
{
    DataSet *set = set_open(false);
    const size_t place = chunk_place_bytes(CHUNK * PIXELS * sizeof(float));
    const int held = 2 * VARIABLES * WINDOW / CHUNK;
    const ChunkSizes all = field_chunk_sizes(set, 1);
    const ChunkSizes some = {.statics = all.statics, .other = {(size_t)held * place, CHUNKS}};
    CU_ASSERT(all.statics.chunks == 1 && all.other.chunks == CHUNKS);
    CU_ASSERT_EQUAL(all.other.bytes, CHUNKS * place);
    CU_ASSERT(data_fields_kept_bytes(set, 1) == chunk_memory_bytes(&all));
    for (int processes = 1; processes <= PROCESSES; processes *= 2) {
        CU_ASSERT_EQUAL(unpacked_by(set, processes, &all), CHUNKS + 1);
        /* chunks of the first epoch's last windows may still be there */
        const int64_t total = unpacked_by(set, processes, &some);
        CU_ASSERT(total <= EPOCHS * CHUNKS + 1 && total >= EPOCHS * CHUNKS + 1 - held);
    }
    set_free(set);
}

/* Each process that needs a chunk that cannot be read gets the message. */
static void damaged(void)
{
    DataSet *set = set_open(true);
    const ChunkSizes all = field_chunk_sizes(set, 1);
    pid_t child[PROCESSES];
    float x[2 * PIXELS];
    shared_new(&all);
    for (int p = 0; p < PROCESSES; ++p) {
        if ((child[p] = fork()) != 0) continue;
        FieldReader *reader;
        const FieldMemory memory = {.at = shared->memory};
        bool good = field_reader_new(&reader, set) == OK;
        field_reader_share(reader, &memory);
        for (int i = 0; i < 50; ++i)
            good = good && field_read(reader, 0, false, x, NULL) == ERR_IO &&
                   strstr(fail_message(), "chunks.h5: a cannot be read: a chunk is damaged") &&
                   field_read(reader, CHUNK, false, x, NULL) == OK;
        field_reader_free(&reader);
        _exit(good ? 0 : 1);
    }
    for (int p = 0; p < PROCESSES; ++p) {
        int status = -1;
        waitpid(child[p], &status, 0);
        CU_ASSERT_EQUAL(status, 0);
    }
    shared_free(&all);
    set_free(set);
}

/* ---- a process that is killed ---- */

static const DataSet *killed_set;

static void checked(void *user)
{
    fprintf(stderr, "checked %s", (const char *)user);
    _exit(3);
}

static void read_one(void)
{
    FieldReader *reader;
    float x[2 * PIXELS];
    char user[] = "the others";
    const FieldMemory memory = {.at = shared->memory, .check = checked, .user = user};
    if (field_reader_new(&reader, killed_set) != OK) return;
    field_reader_share(reader, &memory);
    if (field_read(reader, 0, false, x, NULL) != OK) return;
    field_reader_free(&reader);
}

/* Kills a process that has called `stays`. */
static void kill_after(void (*stays)(ChunkMemory *m))
{
    int ends[2];
    char ready;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        stays((ChunkMemory *)(void *)shared->memory);
        if (write(ends[1], "r", 1) == 1) pause();
        _exit(1);
    }
    CU_ASSERT_EQUAL(read(ends[0], &ready, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

static void claim_first(ChunkMemory *m)
{
    ChunkHeld held;
    find(m, 0, CHUNK * PIXELS * sizeof(float), &held);
}

/* The mutex is the first member. */
static void lock_it(ChunkMemory *m)
{
    pthread_mutex_lock((pthread_mutex_t *)(void *)m);
}

static void killed(void)
{
    char text[1000];
    DataSet *set = set_open(false);
    const ChunkSizes all = field_chunk_sizes(set, 1);
    killed_set = set;
    shared_new(&all);
    kill_after(claim_first);
    CU_ASSERT_EQUAL(WEXITSTATUS(in_child(read_one, text, sizeof text)), 3);
    CU_ASSERT_STRING_EQUAL(text, "checked the others");
    shared_free(&all);
    shared_new(&all);
    kill_after(lock_it);
    CU_ASSERT_EQUAL(WEXITSTATUS(in_child(read_one, text, sizeof text)), ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "a process of this node has ended while it used the"));
    shared_free(&all);
    set_free(set);
}

TEST_MAIN("field chunks", {"places in turn", places}, {"slots, static chunks", slots},
          {"once an epoch", once}, {"a damaged chunk", damaged}, {"a user block", user_block},
          {"a killed process", killed})
