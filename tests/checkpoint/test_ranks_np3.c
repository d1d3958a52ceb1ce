/* Tests checkpoints of three ranks. The file does not depend on the number of ranks that wrote it;
 * every rank loads all tensors or those that it wants; the failure of one rank is reported on every
 * rank. */
#include "checkpoint/fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>

static World world;
static char folder[64];

/* Replaces pwrite: counts bytes that are written as whole pages (page_bytes), and other bytes
 * (edge_bytes). */
static int64_t page_bytes, edge_bytes;
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    bool pages = offset % 4096 == 0 && bytes % 4096 == 0;
    *(pages ? &page_bytes : &edge_bytes) += (int64_t)bytes;
    return real(fd, data, bytes, offset);
}

/* Replaces pread: counts bytes read by any thread. */
static _Atomic int64_t read_bytes;
ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pread");
    ssize_t got = real(fd, data, bytes, offset);
    if (got > 0) read_bytes += got;
    return got;
}

/* Replaces open. If `decoy` is set, this host still sees the older file `decoy` in place of each
 * file of the folder. */
static const char *decoy;
int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "open");
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    bool other = decoy && strncmp(path, folder, strlen(folder)) == 0;
    return real(other ? decoy : path, flags, mode);
}

static void begin(void)
{
    if (world.rank == 0) snprintf(folder, sizeof folder, "%s", fixture_folder());
    world_bcast(&world, folder, sizeof folder, 0);
}

static void end(void)
{
    world_barrier(&world);
    if (world.rank == 0) fixture_clean(folder);
}

static Status save_by_all(const char *path, int salt)
{
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, salt);
    CheckpointMeta meta = fixture_meta(5);
    snprintf(meta.grid, sizeof meta.grid, "3x1x1");
    Status status = checkpoint_save(&world, path, &meta, &io);
    /* no rank has supplied all tensors */
    CU_ASSERT(f->gets < 2 * FIXTURE_COUNT);
    mem_free(&f);
    return status;
}

static void test_round_trip(void)
{
    begin();
    char *path = fixture_path(folder, "all.h5"), *alone = fixture_path(folder, "alone.h5");
    CHECK_OK(save_by_all(path, 4));
    if (world.rank == 0) {
        bool equal = false;
        FILE *out = tmpfile();
        CHECK_OK(fixture_save(alone, 5, 4));
        CHECK_OK(checkpoint_diff(path, alone, out, &equal));
        CU_ASSERT(equal);
        fclose(out);
    }
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    CheckpointMeta meta = {0};
    CHECK_OK(checkpoint_load(&world, path, &meta, &io));
    CU_ASSERT(fixture_holds(f, 4));
    CU_ASSERT_EQUAL(meta.step, 5);
    CU_ASSERT_STRING_EQUAL(meta.grid, "3x1x1");
    CU_ASSERT_STRING_EQUAL(meta.config ? meta.config : "", "run: {name: fixture}\n");
    CU_ASSERT_STRING_EQUAL(meta.version ? meta.version : "", WEFT_VERSION);
    checkpoint_meta_fini(&meta);
    world_barrier(&world);
    /* a file written by one rank, loaded by three */
    io = fixture_io(f, 0);
    CHECK_OK(checkpoint_load(&world, alone, NULL, &io));
    CU_ASSERT(fixture_holds(f, 4));
    mem_free(&f);
    mem_free(&path);
    mem_free(&alone);
    end();
}

/* ---- pipeline stages: a rank has only some of the tensors ---- */

/* first rank that has tensor i, and number of ranks that have it; 0: all ranks */
static const int holder[FIXTURE_COUNT][2] = {{0, 1}, {1, 2}, {2, 1}, {0, 0}, {2, 1},
                                             {1, 1}, {0, 1}, {1, 2}, {0, 2}, {2, 1}};

typedef struct Part {
    Fixture fixture;
    /* true if a tensor that this rank does not have was requested from it or delivered to it */
    bool strayed;
} Part;

static bool part_holds(void *user, int i)
{
    (void)user;
    int first = holder[i][0], count = holder[i][1] ? holder[i][1] : world.size;
    return world.rank >= first && world.rank < first + count;
}

static const float *part_get(void *user, int i, float *plain)
{
    Part *p = user;
    p->strayed |= !part_holds(user, i);
    return fixture_get(&p->fixture, i, plain);
}

static void part_set(void *user, int i, const float *plain)
{
    Part *p = user;
    p->strayed |= !part_holds(user, i);
    fixture_set(&p->fixture, i, plain);
}

static CheckpointIo part_io(Part *p, CheckpointTensor *tensor, int salt)
{
    CheckpointIo io = fixture_io(&p->fixture, salt);
    p->strayed = false;
    for (int i = 0; i < FIXTURE_COUNT; ++i) {
        tensor[i] = fixture_tensor[i];
        tensor[i].rank_first = holder[i][0];
        tensor[i].rank_count = holder[i][1];
    }
    io.tensor = tensor;
    io.user = p;
    io.get = part_get;
    io.set = part_set;
    io.wants = part_holds;
    return io;
}

static bool part_loaded(Part *p, int salt)
{
    bool good = !p->strayed;
    int holding = 0;
    for (int i = 0; i < FIXTURE_COUNT; ++i) {
        bool holds = part_holds(p, i);
        holding += holds;
        for (int64_t j = 0; j < shape_count(fixture_tensor[i].shape); ++j)
            good &= p->fixture.loaded[i][j] == (holds ? fixture_value(salt, i, j) : 0);
    }
    return good && p->fixture.sets == holding;
}

/* Each tensor is read from a rank that has it, and loaded by the ranks that want it. The file
 * equals the file that a single rank writes. */
static void test_holders(void)
{
    begin();
    char *path = fixture_path(folder, "parts.h5"), *alone = fixture_path(folder, "alone.h5");
    CheckpointTensor tensor[FIXTURE_COUNT];
    Part *p = mem_new(sizeof *p);
    CheckpointIo io = part_io(p, tensor, 4);
    CheckpointMeta meta = fixture_meta(5);
    CHECK_OK(checkpoint_save(&world, path, &meta, &io));
    CU_ASSERT(!p->strayed);
    if (world.rank == 0) {
        bool equal = false;
        FILE *out = tmpfile();
        CHECK_OK(fixture_save(alone, 5, 4));
        CHECK_OK(checkpoint_diff(path, alone, out, &equal));
        CU_ASSERT(equal);
        fclose(out);
    }
    world_barrier(&world);
    io = part_io(p, tensor, 0);
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT(part_loaded(p, 4));
    io = part_io(p, tensor, 0);
    CHECK_OK(checkpoint_load(&world, alone, NULL, &io));
    CU_ASSERT(part_loaded(p, 4));
    mem_free(&p);
    mem_free(&path);
    mem_free(&alone);
    end();
}

/* The ranks together read each tensor once, whether all ranks or only one rank wants it. */
static void test_reads_once(void)
{
    begin();
    char *path = fixture_path(folder, "a.h5");
    int64_t want = 0;
    CheckpointTensor tensor[FIXTURE_COUNT];
    Part *p = mem_new(sizeof *p);
    CHECK_OK(save_by_all(path, 4));
    for (int i = 0; i < FIXTURE_COUNT; ++i)
        want += shape_count(fixture_tensor[i].shape) * (int64_t)sizeof(float);
    for (int parts = 0; parts < 2; ++parts) {
        CheckpointIo io = parts ? part_io(p, tensor, 0) : fixture_io(&p->fixture, 0);
        int64_t all[3], mine, sum = 0;
        io.sets_early = true;
        read_bytes = 0;
        CHECK_OK(checkpoint_load(&world, path, NULL, &io));
        CU_ASSERT(parts ? part_loaded(p, 4) : fixture_holds(&p->fixture, 4));
        mine = read_bytes;
        world_allgather(&world, &mine, sizeof mine, all);
        for (int r = 0; r < 3; ++r) sum += all[r];
        CU_ASSERT_EQUAL(sum, want);
        CU_ASSERT(mine > 0 && mine < want);
    }
    mem_free(&p);
    mem_free(&path);
    end();
}

/* Tensors that another program has chunked, compressed or converted are read by HDF5, and every
 * rank receives them. */
static void test_rewritten(void)
{
    begin();
    char *path = fixture_path(folder, "a.h5");
    Fixture *f = mem_new(sizeof *f);
    CHECK_OK(save_by_all(path, 4));
    for (int i = 0; i < FIXTURE_COUNT; ++i)
        if (world.rank == 0 && shape_count(fixture_tensor[i].shape) > 0 && i != 4)
            fixture_rewrite(path, i, i % 2 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE, i % 2, i != 6);
    for (int once = 0; once < 2; ++once) {
        world_barrier(&world);
        CheckpointIo io = fixture_io(f, 0);
        io.sets_early = once;
        CHECK_OK(checkpoint_load(&world, path, NULL, &io));
        CU_ASSERT(fixture_holds(f, 4));
    }
    mem_free(&f);
    mem_free(&path);
    end();
}

/* A file with fewer tensors than ranks. */
static void test_one_tensor(void)
{
    begin();
    char *path = fixture_path(folder, "one.h5");
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 6);
    CheckpointMeta meta = fixture_meta(5);
    io.count = 1;
    CHECK_OK(checkpoint_save(&world, path, &meta, &io));
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT_EQUAL(f->sets, 1);
    CU_ASSERT_EQUAL(f->loaded[0][524], fixture_value(6, 0, 524));
    mem_free(&f);
    mem_free(&path);
    end();
}

/* Checks that the folder contains only this file. */
static void expect_alone(const char *name)
{
    DIR *stream = opendir(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    for (const struct dirent *item; (item = readdir(stream));)
        CU_ASSERT(item->d_name[0] == '.' || strcmp(item->d_name, name) == 0);
    closedir(stream);
}

/* No page of the file is written by two ranks, since rank 0 writes all partial pages. */
static void test_pages(void)
{
    begin();
    char *path = fixture_path(folder, "pages.h5");
    page_bytes = edge_bytes = 0;
    CHECK_OK(save_by_all(path, 3));
    if (world.rank > 0) CU_ASSERT_EQUAL(edge_bytes, 0);
    int64_t all[3];
    world_allgather(&world, &page_bytes, sizeof page_bytes, all);
    CU_ASSERT(all[1] + all[2] > 0);
    mem_free(&path);
    end();
}

/* A host whose view of the directory is out of date writes to no other file, and reads no other
 * file in place of the checkpoint. */
static void test_another_file(void)
{
    begin();
    char *path = fixture_path(folder, "a.h5"), other[] = "/tmp/weft-test-XXXXXX";
    CHECK_OK(save_by_all(path, 1));
    size_t bytes = 0;
    unsigned char *data = fixture_bytes(path, &bytes);
    int fd = mkstemp(other);
    CU_ASSERT_EQUAL(write(fd, data, bytes), (ssize_t)bytes);
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    if (world.rank == 2) decoy = other;
    CHECK_FAILS(save_by_all(path, 2), ERR_IO, "rank 2: ");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "another file of that name"));
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_IO, "another file of that name");
    decoy = NULL;
    world_barrier(&world);
    expect_alone("a.h5");
    unsigned char *now = fixture_bytes(other, &bytes);
    CU_ASSERT(now && memcmp(now, data, bytes) == 0);
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT(fixture_holds(f, 1));
    close(fd);
    unlink(other);
    mem_free(&now);
    mem_free(&data);
    mem_free(&f);
    mem_free(&path);
    end();
}

static void test_one_rank_fails(void)
{
    begin();
    char *path = fixture_path(folder, "a.h5");
    CHECK_OK(save_by_all(path, 1));
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit low = {1024, old.rlim_max};
    if (world.rank == 1) setrlimit(RLIMIT_FSIZE, &low);
    Status status = save_by_all(path, 2);
    setrlimit(RLIMIT_FSIZE, &old);
    CU_ASSERT_EQUAL(status, ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "rank 1: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "a.h5."));
    expect_alone("a.h5");
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT(fixture_holds(f, 1));
    mem_free(&f);
    mem_free(&path);
    end();
}

static void test_damaged(void)
{
    begin();
    char *path = fixture_path(folder, "a.h5");
    CHECK_OK(save_by_all(path, 1));
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    /* all tensors are tried, so that for each rank there is one that this rank reads */
    for (int i = 0; i < FIXTURE_COUNT; ++i) {
        float one = -1;
        int64_t elements = shape_count(fixture_tensor[i].shape);
        if (elements == 0) continue;
        if (world.rank == 0) {
            hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
            hid_t set = H5Dopen2(file, fixture_tensor[i].path, 0), space = H5Dget_space(set);
            hsize_t last[4];
            for (int d = 0; d < 4; ++d) last[d] = (hsize_t)fixture_tensor[i].shape.dim[d] - 1;
            H5Sselect_elements(space, H5S_SELECT_SET, 1, last);
            hsize_t dim[1] = {1};
            hid_t memory = H5Screate_simple(1, dim, NULL);
            CU_ASSERT(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, 0, &one) >= 0);
            H5Sclose(memory);
            H5Sclose(space);
            H5Dclose(set);
            H5Fclose(file);
        }
        world_barrier(&world);
        CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, fixture_tensor[i].path);
        CU_ASSERT_EQUAL(f->sets, 0);
        world_barrier(&world);
        CHECK_OK(save_by_all(path, 1));
    }
    CHECK_FAILS(checkpoint_load(&world, "/nowhere/a.h5", NULL, &io), ERR_NOINPUT, "/nowhere/a.h5");
    mem_free(&f);
    mem_free(&path);
    end();
}

static int sum(int value)
{
    int total = 0;
    if (world.comm == MPI_COMM_NULL) return value;
    MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, world.comm);
    return total;
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"round trip", test_round_trip},
                                        {"some ranks have it", test_holders},
                                        {"a tensor is read once", test_reads_once},
                                        {"rewritten", test_rewritten},
                                        {"more ranks than tensors", test_one_tensor},
                                        {"one rank's disk is full", test_one_rank_fails},
                                        {"pages", test_pages},
                                        {"another file of that name", test_another_file},
                                        {"damage in any share", test_damaged}};
    if (world_init(&world, &argc, &argv) != OK) return 2;
    int rc = world.size == 3 ? harness_run("ranks_np3", tests, (int)(sizeof tests / sizeof *tests),
                                           world.rank, sum)
                             : 2;
    world_fini(&world);
    return rc;
}
