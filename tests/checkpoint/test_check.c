/* Tests `weft ckpt check` of a folder. */
#include "checkpoint/fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>

static const char *folder;

/* Replaces readdir with a function that fails after `readable` entries (-1: never). */
static int readable = -1;
struct dirent *readdir(DIR *stream)
{
    struct dirent *(*real)(DIR *);
    void *symbol = dlsym(RTLD_NEXT, "readdir");
    memcpy(&real, &symbol, sizeof real);
    if (readable < 0) return real(stream);
    if (readable-- > 0) return real(stream);
    errno = EIO;
    return NULL;
}

static void save(const char *name, int64_t step)
{
    char *path = fixture_path(folder, name);
    CHECK_OK(fixture_save(path, step, (int)step));
    mem_free(&path);
}

static void write_text(const char *name)
{
    char *path = fixture_path(folder, name);
    fixture_write(path, "not done", 8);
    mem_free(&path);
}

/* Damages a file: changes one value of a tensor. */
static void damage(const char *name, int salt)
{
    char *path = fixture_path(folder, name);
    size_t count = 0;
    unsigned char *bytes = fixture_bytes(path, &count);
    float value[2] = {fixture_value(salt, 1, 9), fixture_value(salt, 1, 10)};
    unsigned char *at = memmem(bytes, count, value, sizeof value);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    at[1] ^= 64;
    fixture_write(path, bytes, count);
    mem_free(&bytes);
    mem_free(&path);
}

/* Checks the folder. Returns the printed text, with @ in place of the folder's path, owned by the
 * caller. want, says: expected status, and words of the message. */
static char *printed(Status want, const char *says)
{
    FILE *out = tmpfile();
    if (want == OK)
        CHECK_OK(checkpoint_check(folder, out));
    else
        CHECK_FAILS(checkpoint_check(folder, out), want, says);
    char *text = fixture_text(out);
    size_t n = strlen(folder);
    for (char *at; (at = strstr(text, folder));) {
        *at = '@';
        memmove(at + 1, at + n, strlen(at + n) + 1);
    }
    return text;
}

static void expect_lines(Status want, const char *says, const char *const *line, int count)
{
    char *text = printed(want, says), *rest = text;
    for (int i = 0; i < count; ++i) {
        char *got = strsep(&rest, "\n");
        bool same = got && strncmp(got, line[i], strlen(line[i])) == 0;
        if (!same) printf("  line %d is '%s', not '%s'\n", i, got ? got : "", line[i]);
        CU_ASSERT(same);
    }
    CU_ASSERT(rest && *rest == 0);
    mem_free(&text);
}

#define EXPECT(want, says, ...)                                                                    \
    do {                                                                                           \
        static const char *const lines[] = {__VA_ARGS__};                                          \
        expect_lines(want, says, lines, (int)(sizeof lines / sizeof lines[0]));                    \
    } while (0)

static void test_listing(void)
{
    folder = fixture_folder();
    write_text("step-abc.h5");
    CHECK_FAILS(checkpoint_check(folder, stdout), ERR_NOINPUT, "holds no checkpoint");
    write_text("step-00000130.h5.part");
    EXPECT(ERR_NOINPUT, "holds no checkpoint", "@/step-00000130.h5.part: unfinished, never loaded");
    save("step-00000009.h5", 9);
    save("step-00000010.h5", 10);
    save("step-00000100.h5", 100);
    save("best.h5", 10);
    EXPECT(OK, "", "@/step-00000130.h5.part: unfinished, never loaded",
           "@/step-00000100.h5: good: step 100, 10 tensors", "@/step-00000010.h5: good: step 10",
           "@/step-00000009.h5: good: step 9", "@/best.h5: good: step 10",
           "@: a run resumes from step-00000100.h5");
    damage("step-00000100.h5", 100);
    write_text("step-00000010.h5");
    EXPECT(ERR_DATA, "2 of 4 checkpoints are not good",
           "@/step-00000130.h5.part: unfinished, never loaded",
           "@/step-00000100.h5: bad: the checksum of tensor /params/layer1.0.conv1.weight does not "
           "match",
           "@/step-00000010.h5: bad: not an HDF5 file", "@/step-00000009.h5: good: step 9",
           "@/best.h5: good: step 10", "@: a run resumes from step-00000009.h5");
    damage("step-00000009.h5", 9);
    EXPECT(ERR_DATA, "3 of 4 checkpoints are not good",
           "@/step-00000130.h5.part: unfinished, never loaded", "@/step-00000100.h5: bad: ",
           "@/step-00000010.h5: bad: ", "@/step-00000009.h5: bad: ", "@/best.h5: good: step 10",
           "@: nothing to resume from: no step-*.h5 is good");
    fixture_clean(folder);
}

/* A folder with the name of a checkpoint is skipped, as by a run that resumes. */
static void test_no_file(void)
{
    folder = fixture_folder();
    save("step-00000009.h5", 9);
    char *path = fixture_path(folder, "step-00000010.h5");
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    EXPECT(ERR_DATA, "1 of 2 checkpoints is not good",
           "@/step-00000010.h5: bad: cannot open the checkpoint: it is a folder, not a file",
           "@/step-00000009.h5: good: step 9", "@: a run resumes from step-00000009.h5");
    mem_free(&path);
    fixture_clean(folder);
}

/* The argument may be the folder of a run; then its folder checkpoints/ is checked. */
static void test_run_folder(void)
{
    const char *run = fixture_folder();
    char *path = fixture_path(run, "checkpoints");
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    folder = path;
    save("step-00000009.h5", 9);
    folder = run;
    EXPECT(OK, "", "@/checkpoints/step-00000009.h5: good: step 9",
           "@/checkpoints: a run resumes from step-00000009.h5");
    mem_free(&path);
    fixture_clean(run);
}

/* If listing the folder fails midway, no file is reported as good or damaged. */
static void test_unreadable(void)
{
    folder = fixture_folder();
    save("step-00000009.h5", 9);
    save("step-00000010.h5", 10);
    for (int entries = 0; entries < 4; ++entries) {
        readable = entries;
        char *text = printed(ERR_IO, "the checkpoints cannot be listed: Input/output error");
        CU_ASSERT_STRING_EQUAL(text, "");
        mem_free(&text);
    }
    readable = -1;
    int64_t handles = fixture_handles();
    char *text = printed(OK, "");
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    mem_free(&text);
    fixture_clean(folder);
    CHECK_FAILS(checkpoint_check(folder, stdout), ERR_NOINPUT, folder);
}

TEST_MAIN("check", {"listing", test_listing}, {"no file", test_no_file},
          {"a run's folder", test_run_folder}, {"unreadable", test_unreadable})
