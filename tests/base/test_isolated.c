/* Work in a separate process: damage that it may do to itself, of which the caller gets a message
 * and continues; forked from the caller, and from the process that isolated_begin makes.
 * cores: 0.3 */
#include "base.h"
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

typedef enum Deed { ECHO, CRASH, SPIN, SLEEP, EAT, DIE, CHATTER, WRITE, PARENT } Deed;

static char folder[] = "/tmp/weft-apart-XXXXXX";

static void eat(void)
{
    for (;;) {
        char *piece = mem_new(16 << 20);
        memset(piece, 1, 16 << 20);
    }
}

static void try_writing(FILE *answer)
{
    char *path = mem_format("%s/written", folder);
    int file = open(path, O_WRONLY | O_CREAT, 0666);
    signal(SIGXFSZ, SIG_IGN);
    bool put = file >= 0 && write(file, "x", 1) == 1;
    fprintf(answer, "%s", put ? "wrote" : "refused");
    mem_free(&path);
}

static void work(const void *input, size_t bytes, FILE *answer)
{
    volatile double busy = 0;
    switch (*(const Deed *)input) {
    case ECHO:
        for (size_t i = 0; i < bytes; ++i) fputc(((const char *)input)[i], answer);
        break;
    case CRASH:
        raise(SIGSEGV);
        break;
    case SPIN:
        for (;;) busy += 1;
    case SLEEP:
        for (;;) sleep(60);
    case EAT:
        eat();
        break;
    case DIE:
        die("a fault in the worker");
    case CHATTER:
        for (;;) fputs("more and more", answer);
    case WRITE:
        try_writing(answer);
        break;
    case PARENT:
        fprintf(answer, "%d", (int)getppid());
        break;
    }
}

/* The time limit is only short for jobs that sleep, because elapsed time also grows while other
 * processes use the core. */
#define READER(limit_s)                                                                            \
    {                                                                                              \
        .subject = "the reader", .memory_bytes = 64 << 20, .busy_s = 1, .clock_s = (limit_s),      \
        .answer_bytes = 1 << 20, .work = work                                                      \
    }
static const IsolatedJob job = READER(60), hurried = READER(2);

static Status run(Deed deed, char **answer)
{
    size_t bytes;
    return isolated_run(deed == SLEEP ? &hurried : &job, "strange.h5", &deed, sizeof deed, answer,
                        &bytes);
}

static void fails(Deed deed, const char *text)
{
    char *answer;
    CHECK_FAILS(run(deed, &answer), ERR_DATA, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "strange.h5: the reader"));
    CU_ASSERT_PTR_NULL(answer);
}

static void echoes(size_t bytes)
{
    char *input = mem_new(bytes), *answer = NULL;
    size_t got = 0;
    for (size_t i = sizeof(Deed); i < bytes; ++i) input[i] = (char)(i * 7);
    CHECK_OK(isolated_run(&job, "strange.h5", input, bytes, &answer, &got));
    CU_ASSERT_EQUAL(got, bytes);
    CU_ASSERT(answer && memcmp(answer, input, bytes) == 0 && answer[bytes] == 0);
    mem_free(&answer);
    mem_free(&input);
}

static void all(void)
{
    char *answer;
    echoes(sizeof(Deed));
    echoes(1000003);
    fails(CRASH, "crashed (Segmentation fault)");
    fails(SPIN, "was busy for more than 1 s");
    fails(SLEEP, "took more than 2 s");
    fails(DIE, "gave up (exit 70)");
    fails(CHATTER, "answered with more than 1048576 bytes");
    CHECK_OK(run(WRITE, &answer));
    CU_ASSERT_STRING_EQUAL(answer, "refused");
    mem_free(&answer);
#if !defined(__SANITIZE_ADDRESS__)
    fails(EAT, "needed more than 67.1 MB of memory");
#endif
    echoes(77);
}

static void too_many(void)
{
    enum { MANY = ISOLATED_MOST + 1 };
    const void *input[MANY] = {0};
    const char *path[MANY] = {0};
    char *answer[MANY];
    size_t bytes[MANY] = {0}, answer_bytes[MANY];
    int good;
    CHECK_FAILS(isolated_run_many(&job, MANY, input, bytes, path, answer, answer_bytes, &good),
                ERR_BUG, "33 inputs, at most 32");
    CU_ASSERT_EQUAL(good, 0);
}

static void by_the_caller(void)
{
    char *answer, pid_text[24];
    all();
    snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
    CHECK_OK(run(PARENT, &answer));
    CU_ASSERT_STRING_EQUAL(answer, pid_text);
    mem_free(&answer);
}

static void by_the_maker(void)
{
    char *answer;
    isolated_begin();
    /* the maker was copied before this arena existed, so it is not affected by it */
    size_t room = (size_t)1 << 30;
    void *arena = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    all();
    CHECK_OK(run(PARENT, &answer));
    int maker = atoi(answer);
    CU_ASSERT(maker > 1 && maker != (int)getpid());
    mem_free(&answer);
    /* its command line differs from its caller's */
    char *cmdline = mem_format("/proc/%d/cmdline", maker);
    size_t words;
    CHECK_OK(file_text(cmdline, 4096, &answer, &words));
    CU_ASSERT(strncmp(answer, "weft: reads files", 17) == 0);
    mem_free(&cmdline);
    mem_free(&answer);
    munmap(arena, room);
    /* it ignores signals to the group; its death is reported */
    kill(maker, SIGTERM);
    kill(maker, SIGINT);
    echoes(8);
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
    CHECK_FAILS(run(PARENT, &answer), ERR_IO, "strange.h5: the process that reads files");
    isolated_end();
    echoes(8);
}

/* The maker ends with its caller, even if that is killed. */
static void none_is_left(void)
{
    int ends[2], state;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char *answer = NULL;
        isolated_begin();
        if (run(PARENT, &answer) == OK) (void)!write(ends[1], answer, strlen(answer));
        raise(SIGKILL);
    }
    char text[24] = "";
    CU_ASSERT(read(ends[0], text, sizeof text - 1) > 0);
    waitpid(child, &state, 0);
    bool ended = false;
    for (int i = 0; i < 1000 && !ended; ++i) {
        char *path = mem_format("/proc/%s/statm", text);
        FILE *file = fopen(path, "r");
        int pages = 0;
        /* a zombie has no memory */
        ended = !file || fscanf(file, "%d", &pages) != 1 || pages == 0;
        if (file) fclose(file);
        mem_free(&path);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    CU_ASSERT(ended);
    close(ends[0]);
    close(ends[1]);
}

static void folder_begin(void)
{
    CU_ASSERT_PTR_NOT_NULL(mkdtemp(folder));
}

static void folder_end(void)
{
    char *path = mem_format("%s/written", folder);
    unlink(path);
    rmdir(folder);
    mem_free(&path);
}

TEST_MAIN("isolated", {"a folder", folder_begin}, {"by the caller", by_the_caller},
          {"too many", too_many}, {"by the maker", by_the_maker}, {"none is left", none_is_left},
          {"the folder goes", folder_end})
