/* Tests of saves that fail: a full disk, no folder, a process that is killed while it saves.
 * Earlier files can still be loaded. Also writes of which the system writes only a part, which do
 * not fail. */
#include "checkpoint/fixture.h"

#include <dirent.h>
#include <dlfcn.h>
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

/* Replaces pwrite with a function that writes at most written_most bytes, and alters the byte at
 * offset `altered` of a file (-1: none). */
static size_t written_most = SIZE_MAX;
static off_t altered = -1;
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    ssize_t put = real(fd, data, bytes < written_most ? bytes : written_most, offset);
    if (altered < offset || altered >= offset + put) return put;
    char other = (char)~((const char *)data)[altered - offset];
    CU_ASSERT_EQUAL(real(fd, &other, 1, altered), 1);
    return put;
}

/* Replaces fsync, which fails while sync_fails is true. */
static bool sync_fails;
int fsync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    if (!sync_fails) return real(fd);
    errno = EIO;
    return -1;
}

static void expect_no_part(const char *path)
{
    char *dir = mem_text(path);
    *strrchr(dir, '/') = 0;
    DIR *stream = opendir(dir);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    for (const struct dirent *item; (item = readdir(stream));)
        CU_ASSERT_PTR_NULL(strstr(item->d_name, ".part"));
    closedir(stream);
    mem_free(&dir);
}

static void test_no_folder(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "missing/step-00000001.h5");
    CHECK_FAILS(fixture_save(path, 1, 1), ERR_IO, "missing/step-00000001.h5");
    mem_free(&path);
    fixture_clean(folder);
}

/* A limit on file sizes makes the save fail at several places. */
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
        /* the limit is not the disk's, so the message must not suggest to free disk space */
        CU_ASSERT_PTR_NULL(strstr(fail_message(), CHECKPOINT_MAKE_ROOM));
        CU_ASSERT_PTR_NULL(strstr(fail_message(), "(null)"));
        expect_no_part(path);
        expect_good(path, 1);
    }
    CHECK_OK(fixture_save(path, 1, 2));
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    expect_good(path, 2);
    mem_free(&path);
    fixture_clean(folder);
}

/* The disk is full: a real file system of a few pages is filled up step by step. */
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
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), CHECKPOINT_MAKE_ROOM));
        CU_ASSERT_PTR_NULL(strstr(fail_message(), "inodes"));
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

/* No inode is free on a real file system that has free space. */
static void test_no_inodes(void)
{
    const char *folder = fixture_folder();
    if (mount("tmpfs", folder, "tmpfs", 0, "size=8m,nr_inodes=4") != 0) {
        fixture_clean(folder);
        TEST_SKIP("mounting a small tmpfs needs root");
    }
    char *path = fixture_path(folder, "step-00000001.h5"), *fill = fixture_path(folder, "fill.");
    CHECK_OK(fixture_save(path, 1, 1));
    for (int i = 0; i < 4; ++i) {
        char *name = mem_format("%s%d", fill, i);
        int fd = open(name, O_WRONLY | O_CREAT, 0666);
        if (fd >= 0) close(fd);
        mem_free(&name);
    }
    CHECK_FAILS(fixture_save(path, 1, 2), ERR_IO, "MB free, but no inodes");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), CHECKPOINT_MAKE_ROOM));
    expect_no_part(path);
    expect_good(path, 1);
    mem_free(&path);
    mem_free(&fill);
    CU_ASSERT_EQUAL(umount(folder), 0);
    fixture_clean(folder);
}

/* If a tensor cannot be read while the file is written, as in an import, the old file stays. */
static Status read_failed(void *user)
{
    (void)user;
    return fail(ERR_DATA, "a tensor ends too soon");
}

static void test_unreadable(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 1));
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, 2);
    CheckpointMeta meta = fixture_meta(2);
    World world = world_alone();
    io.got_all = read_failed;
    CHECK_FAILS(checkpoint_save(&world, path, &meta, &io), ERR_DATA, "a tensor ends too soon");
    expect_no_part(path);
    expect_good(path, 1);
    mem_free(&f);
    mem_free(&path);
    fixture_clean(folder);
}

static int die_at;
static const float *get_and_die(void *user, int i, float *plain)
{
    fixture_get(user, i, plain);
    if (((Fixture *)user)->gets == die_at) raise(SIGKILL);
    return plain;
}

/* The process is killed while hashing and while writing, at each tensor. */
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
            World world = world_alone();
            io.get = get_and_die;
            _exit(checkpoint_save(&world, path, &meta, &io) == OK ? 0 : 1);
        }
        int status = 0;
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CU_ASSERT(access(path, F_OK) != 0);
        CHECK_OK(checkpoint_newest(folder, NULL, &newest));
        CU_ASSERT_STRING_EQUAL(newest ? newest : "", old);
        mem_free(&newest);
        expect_good(old, 1);
    }
    /* saving works although the killed process left a .part file */
    CHECK_OK(fixture_save(path, 2, 2));
    expect_good(path, 2);
    mem_free(&f);
    mem_free(&old);
    mem_free(&path);
    fixture_clean(folder);
}

/* If the file system writes fewer bytes than requested, the rest is written afterwards. */
static void test_short_writes(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    written_most = 1000;
    CHECK_OK(fixture_save(path, 1, 1));
    written_most = SIZE_MAX;
    expect_good(path, 1);
    mem_free(&path);
    fixture_clean(folder);
}

/* If the file system reports success but stores other bytes, the save fails: a file is read back
 * before it is renamed over the old one. */
static void test_altered(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 1));
    size_t bytes = 0;
    unsigned char *data = fixture_bytes(path, &bytes);
    mem_free(&data);
    int failed = 0;
    for (altered = 0; altered < (off_t)bytes; altered += 1000) {
        Status status = fixture_save(path, 1, 2);
        off_t at = altered;
        altered = -1;
        /* the altered byte was between tensors, so the file is good */
        if (status == OK) {
            expect_good(path, 2);
            CHECK_OK(fixture_save(path, 1, 1));
        } else {
            ++failed;
            CU_ASSERT_EQUAL(status, ERR_IO);
            CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "not what was written"));
            expect_no_part(path);
            expect_good(path, 1);
        }
        altered = at;
    }
    altered = -1;
    CU_ASSERT(failed > 20);
    mem_free(&path);
    fixture_clean(folder);
}

static int bad_tensor;
static float bad_value;
static const float *get_bad(void *user, int i, float *plain)
{
    fixture_get(user, i, plain);
    int64_t count = shape_count(fixture_tensor[i].shape);
    if (i == bad_tensor || i == FIXTURE_COUNT - 1) plain[count - 1] = bad_value;
    return plain;
}

/* A model with a tensor that is not finite is not saved. Two tensors are not finite here; the
 * message names the tensor with the lower index, although the other, larger one is written
 * first. */
static void test_not_finite(void)
{
    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 1));
    Fixture *f = mem_new(sizeof *f);
    for (bad_tensor = 0; bad_tensor < FIXTURE_COUNT; ++bad_tensor) {
        if (shape_count(fixture_tensor[bad_tensor].shape) == 0) continue;
        bad_value = not_finite[bad_tensor % 3];
        CheckpointIo io = fixture_io(f, 2);
        CheckpointMeta meta = fixture_meta(1);
        World world = world_alone();
        io.get = get_bad;
        CHECK_FAILS(checkpoint_save(&world, path, &meta, &io), ERR_DATA,
                    fixture_tensor[bad_tensor].path);
        expect_no_part(path);
        expect_good(path, 1);
    }
    mem_free(&f);
    mem_free(&path);
    fixture_clean(folder);
}

/* A disk that cannot keep the bytes: the file has been written, and is not kept. */
static void test_no_sync(void)
{
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 1));
    sync_fails = true;
    CHECK_FAILS(fixture_save(path, 1, 2), ERR_IO, "writing failed");
    /* there is no cure to be named */
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "(null)"));
    sync_fails = false;
    expect_no_part(path);
    expect_good(path, 1);
    mem_free(&path);
    fixture_clean(folder);
}

TEST_MAIN("failed_save", {"altered while written", test_altered},
          {"written in parts", test_short_writes}, {"not finite", test_not_finite},
          {"no folder", test_no_folder}, {"a limit on file sizes", test_size_limit},
          {"a full disk", test_full_disk}, {"no inodes", test_no_inodes},
          {"a tensor that cannot be read", test_unreadable}, {"killed while saving", test_killed},
          {"a sync that fails", test_no_sync})
