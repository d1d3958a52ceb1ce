/* Saves that cannot end: a full disk, no folder, a death in the middle. What was there before stays loadable. */
#include "checkpoint/fixture.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void expect_good(const char *path, int salt)
{
    Fixture *f = mem_new(sizeof *f);
    CHECK_OK(fixture_load(path, f, NULL));
    CU_ASSERT(fixture_holds(f, salt));
    mem_free(&f);
}

static void expect_no_part(const char *path)
{
    char *part = mem_format("%s.part", path);
    CU_ASSERT(access(part, F_OK) != 0);
    mem_free(&part);
}

static void test_no_folder(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "missing/step-00000001.h5");
    CHECK_FAILS(fixture_save(path, 1, 1), ERR_IO, "missing/step-00000001.h5");
    mem_free(&path);
    fixture_clean(folder);
}

/* The limit on file sizes stands for a full disk, at several places of the save. */
static void test_size_limit(void)
{
    int64_t handles = fixture_handles();
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 1));
    struct rlimit old, low;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 40000; limit += 5000) {
        low = (struct rlimit){limit, old.rlim_max};
        CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &low), 0);
        Status status = fixture_save(path, 1, 2);
        setrlimit(RLIMIT_FSIZE, &old);
        CU_ASSERT_EQUAL(status, ERR_IO);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), path));
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "free"));
        expect_no_part(path);
        expect_good(path, 1);
    }
    CHECK_OK(fixture_save(path, 1, 2));
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    expect_good(path, 2);
    mem_free(&path);
    fixture_clean(folder);
}

/* A real file system of a few pages, filled up more and more. */
static void test_full_disk(void)
{
    const char *folder = fixture_folder();
    if (mount("tmpfs", folder, "tmpfs", 0, "size=320k") != 0) {
        fixture_clean(folder);
        TEST_SKIP("mounting a small tmpfs needs root");
    }
    char *path = fixture_path(folder, "step-00000001.h5"), *fill = fixture_path(folder, "fill");
    CHECK_OK(fixture_save(path, 1, 1));
    void *block = mem_new(20480);
    int failed = 0, fd = open(fill, O_WRONLY | O_CREAT, 0666);
    for (int i = 0; i < 16; ++i) {
        if (write(fd, block, 20480) < 0) break;
        Status status = fixture_save(path, 1, 1);
        CU_ASSERT(status == OK || status == ERR_IO);
        if (status == OK) continue;
        ++failed;
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), path));
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "No space left"));
        expect_no_part(path);
        expect_good(path, 1);
    }
    CU_ASSERT(failed > 0);
    close(fd);
    mem_free(&block);
    mem_free(&path);
    mem_free(&fill);
    CU_ASSERT_EQUAL(umount(folder), 0);
    fixture_clean(folder);
}

static int die_at;
static void get_and_die(void *user, int i, float *plain)
{
    fixture_get(user, i, plain);
    if (((Fixture *)user)->gets == die_at) raise(SIGKILL);
}

/* Killed while hashing and while writing, at each tensor. */
static void test_killed(void)
{
    const char *folder = fixture_folder();
    char *old = fixture_path(folder, "step-00000001.h5"),
         *path = fixture_path(folder, "step-00000002.h5"), *newest = NULL;
    CHECK_OK(fixture_save(old, 1, 1));
    Fixture *f = mem_new(sizeof *f);
    for (die_at = 3; die_at <= 2 * FIXTURE_COUNT; die_at += 4) {
        pid_t child = fork();
        if (child == 0) {
            CheckpointIo io = fixture_io(f, 2);
            CheckpointMeta meta = fixture_meta(2);
            World world = fixture_alone();
            io.get = get_and_die;
            _exit(checkpoint_save(&world, path, &meta, &io) == OK ? 0 : 1);
        }
        int status = 0;
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CU_ASSERT(access(path, F_OK) != 0);
        CHECK_OK(checkpoint_newest(folder, &newest));
        CU_ASSERT_STRING_EQUAL(newest ? newest : "", old);
        mem_free(&newest);
        expect_good(old, 1);
    }
    CHECK_OK(fixture_save(path, 2, 2)); /* over the .part that was left */
    expect_good(path, 2);
    mem_free(&f);
    mem_free(&old);
    mem_free(&path);
    fixture_clean(folder);
}

TEST_MAIN("failed_save", {"no folder", test_no_folder}, {"a limit on file sizes", test_size_limit},
          {"a full disk", test_full_disk}, {"killed while saving", test_killed})
