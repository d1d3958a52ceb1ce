/* The newest good checkpoint of a folder, and the removal of old ones. */
#include "checkpoint/fixture.h"

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
    bool there = access(path, F_OK) == 0;
    mem_free(&path);
    return there;
}

/* Cuts a file short, as a crash without our care would. */
static void tear(const char *name, off_t bytes)
{
    char *path = fixture_path(folder, name);
    CU_ASSERT_EQUAL(truncate(path, bytes), 0);
    mem_free(&path);
}

static void expect_newest(const char *name)
{
    char *path = NULL;
    CHECK_OK(checkpoint_newest(folder, &path));
    if (!name) CU_ASSERT_PTR_NULL(path);
    if (name) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(path);
        CU_ASSERT_STRING_EQUAL(path + strlen(folder) + 1, name);
    }
    mem_free(&path);
}

/* What a call of checkpoint_newest writes to stderr or stdout, where warnings go. */
static char *warnings_of_newest(void)
{
    FILE *log = tmpfile();
    fflush(stdout);
    fflush(stderr);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(log), STDOUT_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    char *path = NULL;
    Status status = checkpoint_newest(folder, &path);
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
    tear("step-00000009.h5", 100);
    expect_newest(NULL);
    mem_free(&part);
    mem_free(&other);
    fixture_clean(folder);
    expect_newest(NULL); /* no folder: no checkpoint */
}

static void test_prune(void)
{
    folder = fixture_folder();
    for (int step = 5; step <= 25; step += 5) save_step(step);
    char *best = fixture_path(folder, "best.h5"),
         *part = fixture_path(folder, "step-00000030.h5.part");
    CHECK_OK(fixture_save(best, 15, 15));
    fixture_write(part, "not done", 8);
    CHECK_OK(checkpoint_prune(folder, 0));
    CU_ASSERT(is_there("step-00000005.h5"));
    CHECK_OK(checkpoint_prune(folder, 2));
    CU_ASSERT(!is_there("step-00000005.h5"));
    CU_ASSERT(!is_there("step-00000010.h5"));
    CU_ASSERT(!is_there("step-00000015.h5"));
    CU_ASSERT(is_there("step-00000020.h5"));
    CU_ASSERT(is_there("step-00000025.h5"));
    CU_ASSERT(is_there("best.h5"));
    CU_ASSERT(!is_there("step-00000030.h5.part"));
    CHECK_OK(checkpoint_prune(folder, 7));
    CU_ASSERT(is_there("step-00000020.h5"));
    mem_free(&best);
    mem_free(&part);
    fixture_clean(folder);
}

TEST_MAIN("folder", {"newest good checkpoint", test_newest}, {"prune", test_prune})
