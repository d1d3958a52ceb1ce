/* Tests the search for the newest good checkpoint of a folder, and the removal of old
 * checkpoints. */
#include "checkpoint/fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

/* Replaces readdir with a function that fails at entry number `failing_entry` of a listing; 0: it
 * never fails. entries: number of entries so far. */
static int failing_entry, entries;
struct dirent *readdir(DIR *stream)
{
    struct dirent *(*real)(DIR *);
    *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (failing_entry && ++entries == failing_entry) {
        errno = EIO;
        return NULL;
    }
    return real(stream);
}

/* Replaces pread with a function that fails at read number `failing_read`; 0: it never fails.
 * reads: number of reads so far. The count in shared memory includes HDF5's reads, which other
 * processes make. */
static int failing_read, *reads;
static void count_reads(void)
{
    reads = mmap(NULL, sizeof *reads, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(reads != MAP_FAILED);
}

__attribute__((visibility("default"))) ssize_t pread(int file, void *to, size_t bytes, off_t from)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (failing_read && ++*reads == failing_read) {
        errno = EIO;
        return -1;
    }
    return real(file, to, bytes, from);
}

static const char *folder;

static void save_step(int step)
{
    char *path = mem_format("%s/step-%08d.h5", folder, step);
    CHECK_OK(fixture_save(path, step, step));
    mem_free(&path);
}

static bool is_there(const char *name)
{
    char *path = fixture_path(folder, name);
    bool existing = access(path, F_OK) == 0;
    mem_free(&path);
    return existing;
}

/* Cuts a file short, as a crash may do to a file that has not been synced. */
static void tear(const char *name, off_t bytes)
{
    char *path = fixture_path(folder, name);
    CU_ASSERT_EQUAL(truncate(path, bytes), 0);
    mem_free(&path);
}

static void expect_newest(const char *name)
{
    char *path = NULL;
    CHECK_OK(checkpoint_newest(folder, NULL, &path));
    if (!name) CU_ASSERT_PTR_NULL(path);
    if (name) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(path);
        CU_ASSERT_STRING_EQUAL(path + strlen(folder) + 1, name);
    }
    mem_free(&path);
}

/* Returns the warnings of a call of checkpoint_newest, which it writes to stderr or stdout. */
static char *warnings_of_newest(void)
{
    FILE *log = tmpfile();
    fflush(stdout);
    fflush(stderr);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(log), STDOUT_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    char *path = NULL;
    Status status = checkpoint_newest(folder, NULL, &path);
    fflush(stdout);
    fflush(stderr);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    CHECK_OK(status);
    mem_free(&path);
    fseek(log, 0, SEEK_END);
    return fixture_text(log);
}

static void test_newest(void)
{
    folder = fixture_folder();
    log_init(true);
    expect_newest(NULL);
    save_step(9);
    save_step(10);
    save_step(100);
    char *part = fixture_path(folder, "step-00000200.h5.part"),
         *other = fixture_path(folder, "step-abc.h5");
    fixture_write(part, "not done", 8);
    fixture_write(other, "not ours", 8);
    expect_newest("step-00000100.h5");
    tear("step-00000100.h5", 5000);
    expect_newest("step-00000010.h5");
    char *text = warnings_of_newest();
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "step-00000100.h5"));
    mem_free(&text);
    tear("step-00000010.h5", 0);
    expect_newest("step-00000009.h5");
    save_step(7);
    tear("step-00000009.h5", 100);
    expect_newest("step-00000007.h5");
    tear("step-00000007.h5", 100);
    char *best = fixture_path(folder, "best.h5"), *path = NULL;
    CHECK_FAILS(checkpoint_newest(folder, NULL, &path), ERR_DATA, "none of 4 checkpoints loads");
    CHECK_OK(fixture_save(best, 3, 3));
    CHECK_FAILS(checkpoint_newest(folder, NULL, &path), ERR_DATA, "best.h5 is good");
    CU_ASSERT_PTR_NULL(path);
    mem_free(&best);
    mem_free(&part);
    mem_free(&other);
    fixture_clean(folder);
    /* if there is no folder, there is no checkpoint */
    expect_newest(NULL);
}

/* If listing a folder fails, at once or at a later entry, the folder is not treated as empty. */
static void test_unreadable(void)
{
    folder = fixture_folder();
    char *path = NULL, *file = fixture_path(folder, "step-00000003.h5");
    save_step(3);
    save_step(4);
    /* five calls of readdir: ., .., two files, and the end */
    for (failing_entry = 1; failing_entry <= 5; ++failing_entry) {
        entries = 0;
        CHECK_FAILS(checkpoint_newest(folder, NULL, &path), ERR_IO, "cannot be listed");
        CU_ASSERT_PTR_NULL(path);
        if (failing_entry == 5) CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "0004.h5 is good"));
        KnownFiles *good = known_files_new();
        entries = 0;
        CHECK_FAILS(checkpoint_prune(folder, 1, good, NULL), ERR_IO, "cannot be listed");
        known_files_free(&good);
    }
    failing_entry = 0;
    CU_ASSERT(is_there("step-00000003.h5"));
    expect_newest("step-00000004.h5");
    CHECK_FAILS(checkpoint_newest(file, NULL, &path), ERR_IO, "Not a directory");
    mem_free(&file);
    fixture_clean(folder);
}

/* If a read of a file fails, whether HDF5's or a tensor's, the file is not treated as damaged, and
 * no older file is used instead. */
static void test_failing_read(void)
{
    folder = fixture_folder();
    char *path = NULL, *file = fixture_path(folder, "step-00000004.h5");
    CheckpointMeta meta = {0};
    save_step(3);
    save_step(4);
    count_reads();
    failing_read = INT_MAX;
    CHECK_OK(checkpoint_newest(folder, NULL, &path));
    mem_free(&path);
    int all = *reads;
    CU_ASSERT(all > 5);
    for (failing_read = 1; failing_read <= all; ++failing_read) {
        *reads = 0;
        CHECK_FAILS(checkpoint_newest(folder, NULL, &path), ERR_IO, "Input/output error");
        CU_ASSERT_PTR_NULL(path);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "step-00000003.h5 is good"));
    }
    failing_read = 1;
    *reads = 0;
    CHECK_FAILS(checkpoint_read_meta(file, &meta), ERR_IO, "Input/output error");
    failing_read = 0;
    expect_newest("step-00000004.h5");
    mem_free(&file);
    fixture_clean(folder);
}

static void check_new(KnownFiles *seen, int64_t expected)
{
    int64_t step;
    CHECK_OK(checkpoint_find_unseen(folder, seen, &step));
    CU_ASSERT_EQUAL(step, expected);
}

/* Step files that are new or have been replaced are reported; a damaged file is not. */
static void test_new_step(void)
{
    folder = fixture_folder();
    KnownFiles *seen = known_files_new();
    char *damaged = fixture_path(folder, "step-00009999.h5");
    int64_t step;
    check_new(seen, -1);
    save_step(3);
    save_step(4);
    check_new(seen, 4);
    fixture_write(damaged, "x", 1);
    check_new(seen, -1);
    save_step(5);
    save_step(6);
    check_new(seen, 6);
    check_new(seen, -1);
    save_step(4);
    check_new(seen, 4);
    CHECK_FAILS(checkpoint_find_unseen(damaged, seen, &step), ERR_IO, "Not a directory");
    mem_free(&damaged);
    known_files_free(&seen);
    fixture_clean(folder);
}

static void test_prune(void)
{
    folder = fixture_folder();
    for (int step = 5; step <= 25; step += 5) save_step(step);
    char *best = fixture_path(folder, "best.h5"),
         *part = fixture_path(folder, "step-00000030.h5.part");
    CHECK_OK(fixture_save(best, 15, 15));
    fixture_write(part, "not done", 8);
    KnownFiles *good = known_files_new();
    CHECK_OK(checkpoint_prune(folder, 0, good, NULL));
    CU_ASSERT(is_there("step-00000005.h5"));
    CHECK_OK(checkpoint_prune(folder, 2, good, NULL));
    CU_ASSERT(!is_there("step-00000005.h5"));
    CU_ASSERT(!is_there("step-00000010.h5"));
    CU_ASSERT(!is_there("step-00000015.h5"));
    CU_ASSERT(is_there("step-00000020.h5"));
    CU_ASSERT(is_there("step-00000025.h5"));
    CU_ASSERT(is_there("best.h5"));
    CU_ASSERT(!is_there("step-00000030.h5.part"));
    CHECK_OK(checkpoint_prune(folder, 7, good, NULL));
    CU_ASSERT(is_there("step-00000020.h5"));
    known_files_free(&good);
    mem_free(&best);
    mem_free(&part);
    fixture_clean(folder);
}

/* Files that do not load are not counted among the files to keep, and they are not removed in place
 * of good files. */
static void test_prune_torn(void)
{
    folder = fixture_folder();
    KnownFiles *good = known_files_new();
    char *path = fixture_path(folder, "step-00000008.h5");
    for (int step = 2; step <= 10; step += 2) save_step(step);
    tear("step-00000010.h5", 2500);
    tear("step-00000006.h5", 2500);
    /* step 8 is known as good, as after a save */
    known_files_add(good, path);
    CHECK_OK(checkpoint_prune(folder, 1, good, NULL));
    CU_ASSERT(is_there("step-00000010.h5"));
    CU_ASSERT(is_there("step-00000008.h5"));
    CU_ASSERT(!is_there("step-00000006.h5") && !is_there("step-00000004.h5"));
    /* step 8 has been replaced since it was verified as good */
    tear("step-00000008.h5", 2500);
    save_step(4);
    save_step(2);
    CHECK_OK(checkpoint_prune(folder, 1, good, NULL));
    CU_ASSERT(is_there("step-00000008.h5"));
    expect_newest("step-00000004.h5");
    CU_ASSERT(!is_there("step-00000002.h5"));
    tear("step-00000004.h5", 2500);
    /* if there is no good file, no file is removed */
    CHECK_OK(checkpoint_prune(folder, 1, good, NULL));
    CU_ASSERT(is_there("step-00000004.h5") && is_there("step-00000010.h5"));
    mem_free(&path);
    known_files_free(&good);
    fixture_clean(folder);
}

/* The file that has just been saved is kept although other files have higher steps, and is counted
 * among the files to keep. */
static void test_prune_saved(void)
{
    folder = fixture_folder();
    KnownFiles *good = known_files_new();
    char *saved = fixture_path(folder, "step-00000004.h5");
    for (int step = 2; step <= 10; step += 2) save_step(step);
    CHECK_OK(checkpoint_prune(folder, 2, good, saved));
    CU_ASSERT(is_there("step-00000004.h5") && is_there("step-00000010.h5"));
    CU_ASSERT(!is_there("step-00000008.h5") && !is_there("step-00000006.h5"));
    CU_ASSERT(!is_there("step-00000002.h5"));
    CHECK_OK(checkpoint_prune(folder, 1, good, saved));
    CU_ASSERT(is_there("step-00000004.h5") && !is_there("step-00000010.h5"));
    mem_free(&saved);
    known_files_free(&good);
    fixture_clean(folder);
}

TEST_MAIN("folder", {"newest good checkpoint", test_newest}, {"unreadable", test_unreadable},
          {"reads that fail", test_failing_read}, {"new steps", test_new_step},
          {"prune", test_prune}, {"prune among torn files", test_prune_torn},
          {"prune behind a save", test_prune_saved})
