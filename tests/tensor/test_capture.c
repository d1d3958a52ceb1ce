/* Captures on a backend that counts calls: direct, recorded, replayed, off, and failing to
 * record. */
#include "harness.h"
#include "tensor.h"

struct Recording {
    int replays;
};

static struct {
    int works, begins, replays, frees;
    bool recording, fails;
} seen;

static Stream *no_stream(Backend *b)
{
    (void)b;
    return NULL;
}

static void begin(Stream *s)
{
    (void)s;
    ++seen.begins;
    seen.recording = true;
}

static Recording *end(Stream *s, const char **why)
{
    (void)s;
    seen.recording = false;
    *why = "as the test wants it";
    return seen.fails ? NULL : mem_new(sizeof(Recording));
}

static void replay(Recording *r, Stream *s)
{
    (void)s;
    ++r->replays;
    ++seen.replays;
}

static void free_recording(Recording **r)
{
    ++seen.frees;
    mem_free(r);
}

static const BackendTable table = {.name = "counting",
                                   .stream = no_stream,
                                   .record_begin = begin,
                                   .record_end = end,
                                   .replay = replay,
                                   .recording_free = free_recording};

/* Work that is being recorded does not run. */
static void work(void *user)
{
    *(int *)user += !seen.recording;
    ++seen.works;
}

static void test_replayed(void)
{
    Backend b = {.table = &table, .options = {.replay = true}};
    Capture s = {0};
    int done = 0;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < 5; ++i) capture_run(&s, &b, work, &done);
    CU_ASSERT_EQUAL(seen.works, 2);
    CU_ASSERT_EQUAL(seen.begins, 1);
    CU_ASSERT_EQUAL(done + seen.replays, 5);
    capture_drop(&s, &b);
    CU_ASSERT_EQUAL(seen.frees, 1);
    capture_run(&s, &b, work, &done);
    /* called directly again */
    CU_ASSERT_EQUAL(done, 2);
    capture_drop(&s, &b);
}

static void test_off(void)
{
    Backend b = {.table = &table};
    Capture s = {0};
    int done = 0;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < 5; ++i) capture_run(&s, &b, work, &done);
    CU_ASSERT_EQUAL(done, 5);
    CU_ASSERT_EQUAL(seen.begins, 0);
    /* runs everything at once */
    b = (Backend){.table = &backend_cpu, .options = {.replay = true}};
    for (int i = 0; i < 5; ++i) capture_run(&s, &b, work, &done);
    CU_ASSERT_EQUAL(done, 10);
}

/* Each call runs its work once, whatever happens, and no recording is attempted again. */
static void test_fails(void)
{
    Backend b = {.table = &table, .options = {.replay = true}};
    Capture s[2] = {0};
    int done = 0;
    memset(&seen, 0, sizeof seen);
    seen.fails = true;
    for (int i = 0; i < 8; ++i) capture_run(&s[i % 2], &b, work, &done);
    CU_ASSERT_EQUAL(done, 8);
    CU_ASSERT_EQUAL(seen.begins, 1);
    CU_ASSERT_EQUAL(seen.replays, 0);
    CU_ASSERT_FALSE(b.options.replay);
}

int main(void)
{
    static const HarnessTest tests[] = {{"plain, recorded, replayed", test_replayed},
                                        {"off", test_off},
                                        {"a recording that fails", test_fails}};
    return harness_run("capture", tests, 3, 0, NULL);
}
