/* Tests unfinished data sets: a signal that ends the process removes them, and earlier files
 * stay. */
#include "data/data_private.h"
#include "fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static herr_t nothing(void *user, hid_t file)
{
    (void)user, (void)file;
    return 0;
}

static herr_t end_by(void *signal, hid_t file)
{
    (void)file;
    raise(*(int *)signal);
    return -1;
}

/* Begins both files of an import; the signal comes while the second is laid out. */
static void begin_both(const char *out, const char *test, int signal)
{
    PartFile part[2];
    if (part_new(&part[0], out, true, 4096, nothing, NULL) != OK) _exit(1);
    if (part_new(&part[1], test, true, 4096, end_by, &signal) != OK) _exit(2);
    _exit(0);
}

static void test_signals(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    char *out = mem_text(in_scratch("out.h5")), *test = mem_text(in_scratch("test.h5"));
    char *out_part = mem_format("%s.part", out), *test_part = mem_format("%s.part", test);
    FILE *earlier = fopen(out, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(earlier);
    fputs("earlier", earlier);
    fclose(earlier);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        int state = 0;
        struct stat st;
        pid_t child = fork();
        if (child == 0) begin_both(out, test, signals[i]);
        CU_ASSERT_EQUAL(waitpid(child, &state, 0), child);
        CU_ASSERT(WIFSIGNALED(state) && WTERMSIG(state) == signals[i]);
        CU_ASSERT(stat(out_part, &st) != 0 && stat(test_part, &st) != 0);
        CU_ASSERT(stat(test, &st) != 0);
        CU_ASSERT(stat(out, &st) == 0 && st.st_size == 7);
    }
    mem_free(&test_part);
    mem_free(&out_part);
    mem_free(&test);
    mem_free(&out);
}

TEST_MAIN("part", {"a signal takes the files with it", test_signals})
