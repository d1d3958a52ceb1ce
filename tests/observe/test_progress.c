/* The progress line: its contents, that it fits, how often it is drawn on a (pseudo) terminal, and
 * plain lines elsewhere. */
#include "harness.h"
#include "observe/observer.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sys/ioctl.h>

static const TrainLine typical = {.step = 1200,
                                  .steps = 3752,
                                  .epoch = 3,
                                  .epochs = 8,
                                  .loss = 0.32139,
                                  .lr = 0.0123,
                                  .samples_per_s = 3970.2,
                                  .grad_norm = 1.5,
                                  .top1 = 0.875,
                                  .top5 = 0.993,
                                  .left_s = 83};

static void test_text(void)
{
    char text[PROGRESS_CHARS];
    progress_text(&typical, 200, false, text);
    CU_ASSERT_STRING_EQUAL(text, "epoch 3/8  step 1,200/3,752  loss 0.3214  top-1 87.5 %  "
                                 "top-5 99.3 %  lr 0.0123  3,970 samples/s  1:23 left");
    TrainLine line = typical;
    line.counts_tokens = true;
    progress_text(&line, 200, false, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  3,970 tokens/s  "));
    line.counts_tokens = false;
    line.time_s[LEDGER_COMPUTE] = 2;
    line.time_s[LEDGER_SUMS] = 0.75;
    line.time_s[LEDGER_DATA] = 0.1;
    line.time_s[LEDGER_CHECKPOINT] = 0.25;
    progress_text(&line, 200, false, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1:23 left  waits: sums 24 %"));
    line.time_s[LEDGER_DATA] = 1;
    progress_text(&line, 200, false, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1:23 left  waits: data 25 %, sums 19 %"));
    memset(line.time_s, 0, sizeof line.time_s);
    line.top1 = line.top5 = line.left_s = NAN;
    line.epochs = 0;
    progress_text(&line, 200, false, text);
    CU_ASSERT_STRING_EQUAL(text, "epoch 3  step 1,200/3,752  loss 0.3214  lr 0.0123  "
                                 "3,970 samples/s");
}

/* Columns of a text that contains colour codes. */
static int columns(const char *text)
{
    int count = 0;
    for (; *text; ++text) {
        if (*text == '\033')
            while (*text && *text != 'm') ++text;
        else
            ++count;
    }
    return count;
}

static void test_width(void)
{
    char plain[PROGRESS_CHARS], colour[PROGRESS_CHARS];
    TrainLine huge = typical;
    huge.step = huge.steps = huge.epoch = huge.epochs = INT64_MAX;
    huge.loss = -1e300;
    huge.samples_per_s = 1e300;
    huge.left_s = 1e300;
    const TrainLine *line[] = {&typical, &huge};
    for (int k = 0; k < 2; ++k)
        for (int width = 0; width < 300; ++width) {
            progress_text(line[k], width, false, plain);
            progress_text(line[k], width, true, colour);
            CU_ASSERT((int)strlen(plain) <= width);
            CU_ASSERT_EQUAL(columns(colour), (int)strlen(plain));
        }
    progress_text(&typical, 40, false, plain);
    CU_ASSERT_PTR_NOT_NULL(strstr(plain, "loss 0.3214"));
    CU_ASSERT_PTR_NOT_NULL(strstr(plain, "step 1,200/3,752"));
    CU_ASSERT_PTR_NULL(strstr(plain, "lr"));
}

static void test_numbers(void)
{
    char text[64];
    CU_ASSERT_STRING_EQUAL(text_count(0, text), "0");
    CU_ASSERT_STRING_EQUAL(text_count(999, text), "999");
    CU_ASSERT_STRING_EQUAL(text_count(-1000, text), "-1,000");
    CU_ASSERT_STRING_EQUAL(text_count(INT64_MIN, text), "-9,223,372,036,854,775,808");
}

static int saved = -1;

static void stdout_to(int fd)
{
    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
}

static void stdout_back(void)
{
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
}

static void test_plain(void)
{
    char text[4096] = "";
    FILE *out = tmpfile();
    Progress progress;
    stdout_to(fileno(out));
    progress_open(&progress);
    progress_train(&progress, &typical, false);
    progress_train(&progress, &typical, true);
    progress_end_line(&progress);
    EvalLine eval = {
        .step = 1200, .samples = 10000, .loss = 0.25, .top1 = 0.91, .top5 = NAN, .seconds = 1.5};
    progress_eval(&progress, &eval);
    eval.auc_kind = "buckets", eval.auc = 0.9071, eval.normalized_entropy = NAN;
    eval.calibration = 1.01;
    progress_eval(&progress, &eval);
    eval.auc_kind = NULL, eval.top1 = NAN, eval.has_boxes = true;
    eval.coco[COCO_AP] = -1, eval.coco[COCO_AP50] = 0.5;
    progress_eval(&progress, &eval);
    stdout_back();
    CU_ASSERT(!progress.terminal);
    rewind(out);
    CU_ASSERT(fread(text, 1, sizeof text - 1, out) > 0);
    fclose(out);
    CU_ASSERT_STRING_EQUAL(text, "epoch 3/8  step 1,200/3,752  loss 0.3214  top-1 87.5 %  "
                                 "top-5 99.3 %  lr 0.0123  3,970 samples/s  1:23 left\n"
                                 "evaluation after step 1200: loss 0.2500, top-1 91.00 % "
                                 "(10,000 samples, 1.5 s)\n"
                                 "evaluation after step 1200: loss 0.2500, accuracy 91.00 %, "
                                 "AUC 0.9071 (buckets), calibration 1.010 (10,000 samples, "
                                 "1.5 s)\n"
                                 "evaluation after step 1200: loss 0.2500, AP -, AP50 50.00 % "
                                 "(10,000 samples, 1.5 s)\n");
}

/* Reads what has arrived at the terminal's other end, up to a mark that is written after it. */
static void drain(int master, int slave, char *text, size_t room)
{
    enum { LIMIT_MS = 60000 };
    struct pollfd ready = {.fd = master, .events = POLLIN};
    size_t have = 0;
    char *end = NULL;
    CU_ASSERT_EQUAL(write(slave, "#", 1), 1);
    while (!end && have < room - 1 && poll(&ready, 1, LIMIT_MS) > 0) {
        ssize_t got = read(master, text + have, room - 1 - have);
        if (got <= 0) break;
        text[have += (size_t)got] = 0;
        end = strchr(text, '#');
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    *end = 0;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) ++count;
    return count;
}

static void test_terminal(void)
{
    static char text[65536];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        TEST_SKIP("no pseudo terminals here");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(slave >= 0);
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    ioctl(slave, TIOCSWINSZ, &size);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    Progress progress;
    stdout_to(slave);
    double begin_s = clock_s();
    progress_open(&progress);
    for (int i = 0; i < 1000; ++i) progress_train(&progress, &typical, i % 10 == 0);
    usleep(120000);
    progress_train(&progress, &typical, false);
    TrainLine last = typical;
    last.step = last.steps;
    /* the last one is drawn at once */
    progress_train(&progress, &last, false);
    progress_end_line(&progress);
    progress_end_line(&progress);
    /* ten a second, and the last line */
    int most = 3 + (int)((clock_s() - begin_s) / 0.1);
    stdout_back();
    drain(master, slave, text, sizeof text);
    CU_ASSERT(progress.terminal);
    int draws = count_of(text, "\r") - count_of(text, "\r\n");
    CU_ASSERT(draws >= 3 && draws <= most);
    CU_ASSERT_EQUAL(count_of(text, "\033[K"), draws);
    CU_ASSERT_EQUAL(count_of(text, "\n"), 1);
    CU_ASSERT_EQUAL(count_of(text, "step 3,752/3,752"), 1);
    /* NO_COLOR: no code but clear-to-end */
    CU_ASSERT_EQUAL(count_of(text, "\033["), draws);
    for (char *at = strtok(text, "\r\n"); at; at = strtok(NULL, "\r\n")) {
        char *clear = strstr(at, "\033[K");
        if (clear) *clear = 0;
        CU_ASSERT(strlen(at) < 60);
    }
    setenv("TERM", "dumb", 1);
    stdout_to(slave);
    progress_open(&progress);
    stdout_back();
    CU_ASSERT(!progress.terminal);
    close(slave);
    close(master);
}

TEST_MAIN("progress", {"text", test_text}, {"fits the width", test_width},
          {"numbers", test_numbers}, {"plain lines", test_plain}, {"a terminal", test_terminal})
