/* Tests checkpoints on one rank: loading returns the saved values, HDF5's own tools read the file,
 * and files that other programs have rewritten (chunked, compressed, float64) still load. */
#include "checkpoint/fixture.h"

static void test_round_trip(void)
{
    int64_t handles = fixture_handles();
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000012.h5");
    Fixture *f = mem_new(sizeof *f);
    CheckpointMeta meta = {0};
    CHECK_OK(fixture_save(path, 12, 1));
    CHECK_OK(fixture_load(path, f, &meta));
    CU_ASSERT(fixture_holds(f, 1));
    CU_ASSERT_EQUAL(meta.step, 12);
    CU_ASSERT_EQUAL(meta.epoch, 3);
    CU_ASSERT_EQUAL(meta.data_step, 7);
    CU_ASSERT_EQUAL(meta.seed, 42);
    CU_ASSERT_EQUAL(meta.best_metric, 0.875);
    CU_ASSERT_STRING_EQUAL(meta.config, "run: {name: fixture}\n");
    CU_ASSERT_STRING_EQUAL(meta.version, WEFT_VERSION);
    CU_ASSERT_STRING_EQUAL(meta.grid, "1x1x1");
    checkpoint_meta_fini(&meta);
    CU_ASSERT_PTR_NULL(meta.config);
    CHECK_OK(fixture_load(path, f, NULL));
    CU_ASSERT(fixture_holds(f, 1));
    char *part = mem_format("%s.part", path);
    CU_ASSERT(access(part, F_OK) != 0);
    mem_free(&part);
    mem_free(&f);
    mem_free(&path);
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    fixture_clean(folder);
}

/* Tensors of a page or more begin at a multiple of the page size (docs/formats.md). */
static void test_alignment(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5");
    int large = 0;
    CHECK_OK(fixture_save(path, 1, 0));
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int i = 0; i < FIXTURE_COUNT; ++i) {
        if (shape_count(fixture_tensor[i].shape) * (int64_t)sizeof(float) < 4096) continue;
        hid_t set = H5Dopen2(file, fixture_tensor[i].path, H5P_DEFAULT);
        CU_ASSERT_EQUAL(H5Dget_offset(set) % 4096, 0);
        H5Dclose(set);
        ++large;
    }
    CU_ASSERT_EQUAL(large, 2);
    H5Fclose(file);
    mem_free(&path);
    fixture_clean(folder);
}

/* Replaces posix_fadvise: counts the files that are dropped from the cache. */
static int dropped;
int posix_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
    (void)fd;
    dropped += advice == POSIX_FADV_DONTNEED && offset == 0 && bytes == 0;
    return 0;
}

typedef struct Calls {
    const char *path, *also;
    int before, after;
    /* true: both files had their final names at each call of `after` */
    bool complete;
} Calls;

static void count_before(void *user)
{
    Calls *calls = user;
    ++calls->before;
    CU_ASSERT_EQUAL(calls->after, 0);
}

static void count_after(void *user)
{
    Calls *calls = user;
    ++calls->after;
    calls->complete = access(calls->path, F_OK) == 0 && access(calls->also, F_OK) == 0;
}

static void test_hooks(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5"), *also = fixture_path(folder, "best.h5");
    Fixture *f = mem_new(sizeof *f);
    Calls calls = {.path = path, .also = also};
    CheckpointIo io = fixture_io(f, 0);
    CheckpointMeta meta = fixture_meta(1);
    World world = world_alone();
    io.hooks = (CheckpointHooks){&calls, count_before, count_after};
    io.second_path = also;
    dropped = 0;
    CHECK_OK(checkpoint_save(&world, path, &meta, &io));
    /* both files are read back from the disk */
    CU_ASSERT_EQUAL(dropped, 2);
    /* two files are created and renamed */
    CU_ASSERT_EQUAL(calls.before, 4);
    CU_ASSERT_EQUAL(calls.after, 1);
    CU_ASSERT(calls.complete);
    mem_free(&f);
    mem_free(&path);
    mem_free(&also);
    fixture_clean(folder);
}

static void test_overwrite(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "best.h5"), *part = fixture_path(folder, "best.h5.part");
    Fixture *f = mem_new(sizeof *f);
    CHECK_OK(fixture_save(path, 1, 1));
    fixture_write(part, "left over from a run that died", 30);
    CHECK_OK(fixture_save(path, 2, 5));
    CHECK_OK(fixture_load(path, f, NULL));
    CU_ASSERT(fixture_holds(f, 5));
    mem_free(&f);
    mem_free(&part);
    mem_free(&path);
    fixture_clean(folder);
}

/* The configuration may be longer than the 64 KB that HDF5 stores in an object's header, and
 * best_metric may be unknown. */
static void test_long_config(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5");
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 0);
    World world = world_alone();
    CheckpointMeta meta = fixture_meta(1), back = {0};
    char *config = mem_new(100001);
    memset(config, 'x', 100000);
    meta.config = config;
    meta.best_metric = NAN;
    CHECK_OK(checkpoint_save(&world, path, &meta, &io));
    CHECK_OK(checkpoint_read_meta(path, &back));
    CU_ASSERT_STRING_EQUAL(back.config ? back.config : "", config);
    CU_ASSERT(isnan(back.best_metric));
    checkpoint_meta_fini(&back);
    mem_free(&config);
    mem_free(&f);
    mem_free(&path);
    fixture_clean(folder);
}

/* Loads only the parameters of a file that also has optimizer state. */
static void test_params_only(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5");
    Fixture *f = mem_new(sizeof *f);
    CheckpointTensor some[FIXTURE_COUNT];
    int count = 0;
    for (int i = 0; i < FIXTURE_COUNT; ++i)
        if (strncmp(fixture_tensor[i].path, "/optim/", 7) != 0) some[count++] = fixture_tensor[i];
    CheckpointIo io = fixture_io(f, 0);
    io.tensor = f->tensor = some;
    io.count = count;
    World world = world_alone();
    CHECK_OK(fixture_save(path, 1, 2));
    CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, "/optim/m/conv1.weight");
    CU_ASSERT_EQUAL(f->sets, 0);
    io.params_only = true;
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT_EQUAL(f->sets, count);
    CU_ASSERT_EQUAL(f->loaded[3][1], fixture_value(2, 3, 1));
    mem_free(&f);
    mem_free(&path);
    fixture_clean(folder);
}

static void test_h5dump(void)
{
    if (system("command -v h5dump >/dev/null 2>&1") != 0) TEST_SKIP("h5dump is not installed");
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5"), text[4096] = "";
    CHECK_OK(fixture_save(path, 12, 0));
    char *command = mem_format("h5dump -a /step -a /format -d /params/fc.bias -y '%s' 2>&1", path);
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    CU_ASSERT(fread(text, 1, sizeof text - 1, pipe) > 0);
    CU_ASSERT_EQUAL(pclose(pipe), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "weft-checkpoint"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "H5T_IEEE_F32LE"));
    /* element 0 of tensor 4 */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "50000"));
    mem_free(&command);
    mem_free(&path);
    fixture_clean(folder);
}

static void test_rewritten(void)
{
    int64_t handles = fixture_handles();
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5");
    Fixture *f = mem_new(sizeof *f);
    FILE *out = tmpfile();
    CHECK_OK(fixture_save(path, 1, 3));
    fixture_rewrite(path, 1, H5T_IEEE_F32LE, true, true);
    fixture_rewrite(path, 3, H5T_IEEE_F64LE, false, true);
    fixture_rewrite(path, 9, H5T_IEEE_F32BE, false, true);
    CHECK_OK(fixture_load(path, f, NULL));
    CU_ASSERT(fixture_holds(f, 3));
    /* a tensor without a checksum is read, with a warning */
    fixture_rewrite(path, 0, H5T_IEEE_F32LE, false, false);
    CHECK_OK(fixture_load(path, f, NULL));
    CU_ASSERT(fixture_holds(f, 3));
    CHECK_OK(checkpoint_check(path, out));
    char *text = fixture_text(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1 of them have no checksum"));
    mem_free(&text);
    mem_free(&f);
    mem_free(&path);
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    fixture_clean(folder);
}

static void test_no_tensors(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "a.h5");
    CheckpointIo io = {.count = 0};
    CheckpointMeta meta = fixture_meta(1);
    World world = world_alone();
    CHECK_OK(checkpoint_save(&world, path, &meta, &io));
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    mem_free(&path);
    fixture_clean(folder);
}

TEST_MAIN("save_load", {"round trip", test_round_trip}, {"alignment", test_alignment},
          {"hooks", test_hooks}, {"overwrites a file and a stale part", test_overwrite},
          {"a long configuration", test_long_config}, {"parameters alone", test_params_only},
          {"h5dump reads it", test_h5dump}, {"chunked, compressed, other types", test_rewritten},
          {"no tensors at all", test_no_tensors})
