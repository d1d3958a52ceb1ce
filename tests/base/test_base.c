/* Status and messages, memory, nearest words, bytes for people, log and die (in child
 * processes). */
#include "base.h"
#include "child.h"
#include "harness.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

static void *fail_elsewhere(void *text)
{
    fail(ERR_IO, "%s", (const char *)text);
    return NULL;
}

static void test_fail(void)
{
    CU_ASSERT_EQUAL(fail(ERR_DATA, "file %s: line %d", "a.h5", 3), ERR_DATA);
    CU_ASSERT_STRING_EQUAL(fail_message(), "file a.h5: line 3");
    CU_ASSERT_EQUAL(fail(ERR_CONFIG, "outer: %s", fail_message()), ERR_CONFIG);
    CU_ASSERT_STRING_EQUAL(fail_message(), "outer: file a.h5: line 3");
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fail_elsewhere, "other"), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_STRING_EQUAL(fail_message(), "outer: file a.h5: line 3");
    char *longer = mem_new(10000);
    memset(longer, 'x', 9999);
    fail(ERR_BUG, "%s", longer);
    CU_ASSERT(strlen(fail_message()) > 1000);
    mem_free(&longer);
}

/* A kept error keeps its message, whatever fails later. */
static void test_kept_error(void)
{
    KeptError error = {0};
    CHECK_OK(error_report(&error));
    error_keep(&error, OK);
    error_keep(&error, fail(ERR_DATA, "the first"));
    error_keep(&error, fail(ERR_IO, "the second"));
    CHECK_FAILS(error_report(&error), ERR_DATA, "the first");
    CHECK_OK(error_report(&error));
}

static void test_memory(void)
{
    unsigned char *p = mem_new(1000);
    for (int i = 0; i < 1000; ++i) CU_ASSERT_EQUAL(p[i], 0);
    p[999] = 7;
    p = mem_resize(p, 5000);
    CU_ASSERT_EQUAL(p[999], 7);
    mem_free(&p);
    CU_ASSERT_PTR_NULL(p);
    mem_free(&p);
    CU_ASSERT_PTR_NULL(mem_text(NULL));
    char *text = mem_text("text"), *made = mem_format("%s-%03d", text, 7);
    CU_ASSERT_STRING_EQUAL(made, "text-007");
    mem_free(&text);
    mem_free(&made);
}

static void test_pages(void)
{
    const size_t sizes[] = {0, 1, 4096, 4097, 2 << 20, (2 << 20) + 1, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        unsigned char *p = mem_pages_new(sizes[i]);
        CU_ASSERT_EQUAL((uintptr_t)p % 4096, 0);
        if (sizes[i] >= 2 << 20) CU_ASSERT_EQUAL((uintptr_t)p % (2 << 20), 0);
        if (sizes[i]) {
            CU_ASSERT_EQUAL(p[0], 0);
            CU_ASSERT_EQUAL(p[sizes[i] - 1], 0);
            p[0] = p[sizes[i] - 1] = 1;
        }
        mem_pages_free(p, sizes[i]);
    }
    mem_pages_free(NULL, 100);
}

static double monotonic_s(void)
{
    struct timespec now;
    CU_ASSERT_EQUAL(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_clock(void)
{
    for (int i = 0; i < 1000; ++i) {
        double before = monotonic_s(), now = clock_s(), after = monotonic_s();
        CU_ASSERT(before <= now && now <= after);
    }
}

static void test_nearest(void)
{
    static const char *const words[] = {"batch", "epochs", "micro_batch", "lr", "threads"};
    CU_ASSERT_PTR_EQUAL(text_nearest("bach", words, 5), words[0]);
    CU_ASSERT_PTR_EQUAL(text_nearest("btach", words, 5), words[0]);
    CU_ASSERT_PTR_EQUAL(text_nearest("Epochs", words, 5), words[1]);
    CU_ASSERT_PTR_EQUAL(text_nearest("epoch", words, 5), words[1]);
    CU_ASSERT_PTR_EQUAL(text_nearest("microbatch", words, 5), words[2]);
    CU_ASSERT_PTR_NULL(text_nearest("zebra", words, 5));
    CU_ASSERT_PTR_NULL(text_nearest("x", words, 5));
    CU_ASSERT_PTR_NULL(text_nearest("", words, 5));
    CU_ASSERT_PTR_NULL(text_nearest("batch", words, 0));
}

static void check_bytes(double bytes, const char *want)
{
    char text[16];
    CU_ASSERT_STRING_EQUAL(text_bytes(bytes, text), want);
}

static void test_seconds(void)
{
    char text[32];
    CU_ASSERT_STRING_EQUAL(text_seconds(0, text), "0:00");
    CU_ASSERT_STRING_EQUAL(text_seconds(59.6, text), "1:00");
    CU_ASSERT_STRING_EQUAL(text_seconds(3601, text), "1:00:01");
}

static void test_bytes(void)
{
    check_bytes(0, "0 B");
    check_bytes(999, "999 B");
    check_bytes(1500, "1.5 KB");
    check_bytes(45.2e6, "45.2 MB");
    check_bytes(999.99e6, "1.0 GB");
    check_bytes(3e12, "3.0 TB");
    check_bytes(1e300, "999999.0 PB");
}

static void test_unsigned_nan(void)
{
    char text[64];
    snprintf(text, sizeof text, "%g %g %g", text_nan_without_sign(-(double)NAN),
             text_nan_without_sign((double)NAN), text_nan_without_sign(-INFINITY));
    CU_ASSERT_STRING_EQUAL(text, "nan nan -inf");
    CU_ASSERT_EQUAL(text_nan_without_sign(-1.5), -1.5);
}

static void say_as_rank_1(void)
{
    log_init(false);
    log_info("quiet %d", 1);
    log_warn("quiet %d", 2);
    log_error("loud %d", 3);
}
static void say_as_rank_0(void)
{
    log_init(true);
    log_info("plain %d", 1);
    log_warn("hm %d", 2);
}
static void leave(int code)
{
    _exit(code);
}
static void die_with_hook(void)
{
    die_context("rank 3 of 8", leave);
    die("MPI_Send: %s", "no");
}
static void die_of_a_peer(void)
{
    die_lost("rank 1 has ended");
}

static void die_with_checkpoint(void)
{
    die_lost_set_code(ERR_STOPPED);
    die_lost("rank 1 has ended");
}

static void allocate_too_much(void)
{
    mem_pages_new((size_t)1 << 60);
}

static void die_bare(void)
{
    die("broken");
}

static void test_log(void)
{
    char text[8192];
    in_child(say_as_rank_1, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "weft: error: loud 3\n");
    in_child(say_as_rank_0, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "plain 1\nweft: warning: hm 2\n");
}

static void test_die(void)
{
    char text[8192];
    int status = in_child(die_with_hook, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_BUG);
    CU_ASSERT_STRING_EQUAL(text, "weft: error: rank 3 of 8: MPI_Send: no\n");
    status = in_child(die_bare, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_BUG);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "weft: error: broken\n"));
    status = in_child(die_of_a_peer, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_IO);
    status = in_child(die_with_checkpoint, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_STOPPED);
    status = in_child(allocate_too_much, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_MEMORY);
}

static void take_never_ends(void *user, const char *text, size_t bytes)
{
    (void)user, (void)text, (void)bytes;
    for (;;) pause();
}

static void take_dies(void *user, const char *text, size_t bytes)
{
    (void)user, (void)text, (void)bytes;
    die("in the log");
}

static void *log_a_line(void *unused)
{
    log_info("a line");
    return unused;
}

/* The file system of log.txt hangs: with this message, ... */
static void die_in_hung_log(void)
{
    alarm(100);
    log_copy_to(take_never_ends, NULL);
    die("broken");
}

/* ... or with the one of another thread, which holds the lock for ever. */
static void die_behind_hung_log(void)
{
    pthread_t thread;
    alarm(100);
    log_init(true);
    log_copy_to(take_never_ends, NULL);
    if (pthread_create(&thread, NULL, log_a_line, NULL) != 0) return;
    clock_sleep(0.1);
    die("broken");
}

static void die_while_logging(void)
{
    alarm(100);
    log_init(true);
    log_copy_to(take_dies, NULL);
    log_info("a line");
}

/* A process that dies does not wait for its log. */
static void test_die_with_hung_log(void)
{
    static void (*const all[])(void) = {die_in_hung_log, die_behind_hung_log, die_while_logging};
    static const char *const words[] = {"error: broken", "error: broken", "error: in the log"};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        char text[8192];
        int status = in_child(all[i], text, sizeof text);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ERR_BUG);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, words[i]));
    }
}

/* A pipe is not a terminal, whatever the environment contains. */
static void test_colour(void)
{
    FILE *file = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    CU_ASSERT_FALSE(log_colour(file));
    CU_ASSERT_FALSE(log_redraws(file));
    fclose(file);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) TEST_SKIP("no pseudo terminal here");
    FILE *terminal = fopen(ptsname(master), "w");
    if (terminal) {
        CU_ASSERT_TRUE(log_colour(terminal));
        CU_ASSERT_TRUE(log_redraws(terminal));
        setenv("NO_COLOR", "1", 1);
        CU_ASSERT_FALSE(log_colour(terminal));
        unsetenv("NO_COLOR");
        CU_ASSERT_TRUE(log_redraws(terminal));
        setenv("TERM", "dumb", 1);
        CU_ASSERT_FALSE(log_colour(terminal));
        CU_ASSERT_FALSE(log_redraws(terminal));
        fclose(terminal);
    }
    close(master);
}

/* Writes `bytes` bytes, the one at `changed` altered, and describes the file. */
static void describe(const char *path, size_t bytes, size_t changed, char out[128])
{
    char *content = mem_new(bytes);
    for (size_t i = 0; i < bytes; ++i) content[i] = (char)(i * 2654435761u >> 13);
    content[changed] = (char)(content[changed] + 1);
    FILE *file = fopen(path, "w");
    CU_ASSERT_FATAL(file != NULL);
    CU_ASSERT_EQUAL(fwrite(content, 1, bytes, file), bytes);
    fclose(file);
    file_describe(path, out, 128);
    mem_free(&content);
}

/* All bytes of a small file count; of a large one its first and last bytes and its length. */
static void test_file_describe(void)
{
    char path[] = "/tmp/weft-describe-XXXXXX", a[128], b[128];
    int made = mkstemp(path);
    CU_ASSERT_FATAL(made >= 0);
    close(made);
    describe(path, 1000, 0, a);
    CU_ASSERT_PTR_EQUAL(strstr(a, "1000 bytes with hash "), a);
    describe(path, 1000, 0, b);
    CU_ASSERT_STRING_EQUAL(a, b);
    for (size_t i = 1; i < 1000; i += 111) {
        describe(path, 1000, i, b);
        CU_ASSERT_STRING_NOT_EQUAL(a, b);
    }
    const size_t large = ((size_t)4 << 20) + 12345;
    describe(path, large, 5000, a);
    describe(path, large, large - 1, b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    describe(path, large, 0, b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    describe(path, large + 1, 5000, b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    file_describe("/tmp", b, sizeof b);
    CU_ASSERT_STRING_EQUAL(b, "no file to read (it is a folder, not a file)");
    unlink(path);
    file_describe(path, b, sizeof b);
    CU_ASSERT_STRING_EQUAL(b, "no file to read (No such file or directory)");
}

TEST_MAIN("base", {"fail", test_fail}, {"kept error", test_kept_error}, {"memory", test_memory},
          {"pages", test_pages}, {"clock", test_clock}, {"nearest", test_nearest},
          {"bytes", test_bytes}, {"unsigned nan", test_unsigned_nan}, {"seconds", test_seconds},
          {"log", test_log}, {"die", test_die},
          {"die with a log that hangs", test_die_with_hung_log}, {"colour", test_colour},
          {"files described", test_file_describe})
