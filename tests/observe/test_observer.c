/* The observer's files: metrics.jsonl with removal of later lines on resume, flushing, a full disk;
 * and the summary. */
#include "harness.h"
#include "observe/observer.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char folder[64], path[128];

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

static const char *content(void)
{
    static char text[8192];
    memset(text, 0, sizeof text);
    FILE *in = fopen(path, "r");
    if (!in) return "";
    if (fread(text, 1, sizeof text - 1, in) == 0) text[0] = 0;
    fclose(in);
    return text;
}

static void put(const char *text, size_t bytes)
{
    FILE *out = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    CU_ASSERT_EQUAL(fwrite(text, 1, bytes, out), bytes);
    fclose(out);
}

static TrainLine line_of(int64_t step)
{
    return (TrainLine){.step = step,
                       .steps = 100,
                       .epoch = 1,
                       .epochs = 2,
                       .loss = 0.5,
                       .lr = 0.25,
                       .samples_per_s = 1000,
                       .grad_norm = NAN,
                       .top1 = NAN,
                       .top5 = NAN,
                       .left_s = NAN};
}

static int lines(const char *text)
{
    int count = 0;
    for (; *text; ++text) count += *text == '\n';
    return count;
}

static void test_lines(void)
{
    begin();
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    TrainLine line = line_of(5);
    observer_train(observer, &line, true);
    line.step = 6;
    /* writes no line */
    observer_train(observer, &line, false);
    line.step = 10;
    line.top1 = 0.75;
    line.top5 = 0.875;
    line.grad_norm = 2;
    observer_train(observer, &line, true);
    EvalLine eval = {.step = 10,
                     .epoch = 1,
                     .samples = 100,
                     .loss = 0.125,
                     .top1 = 0.5,
                     .top5 = NAN,
                     .seconds = 2};
    observer_eval(observer, &eval);
    eval.auc_kind = "exact", eval.auc = 0.75, eval.normalized_entropy = 0.5;
    eval.calibration = NAN;
    observer_eval(observer, &eval);
    observer_decision(observer, &(DecisionLine){10, 1, .event = "hook", .save = true, .lr = 0.125});
    CU_ASSERT_STRING_EQUAL(
        content(),
        "{\"step\":5,\"epoch\":1,\"loss\":0.5,\"lr\":0.25,\"samples_per_s\":1000,\"grad_norm\":"
        "null}\n"
        "{\"step\":10,\"epoch\":1,\"loss\":0.5,\"lr\":0.25,\"samples_per_s\":1000,\"grad_norm\":2,"
        "\"train_top1\":0.75,\"train_top5\":0.875}\n"
        "{\"step\":10,\"epoch\":1,\"samples\":100,\"eval_loss\":0.125,\"top1\":0.5,\"seconds\":2}"
        "\n"
        "{\"step\":10,\"epoch\":1,\"samples\":100,\"eval_loss\":0.125,\"top1\":0.5,\"eval_auc\":0."
        "75,"
        "\"eval_auc_kind\":\"exact\",\"eval_normalized_entropy\":0.5,\"eval_calibration\":null,"
        "\"seconds\":2}\n"
        "{\"step\":10,\"epoch\":1,\"event\":\"hook\",\"save\":true,\"lr\":0.125}\n");
    observer_free(&observer);
    CU_ASSERT_PTR_NULL(observer);
    end();
}

/* A line has the time since the line before, and the fractions of its parts, which add up to 1. */
static void test_times(void)
{
    begin();
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    TrainLine line = line_of(5);
    line.time_s[LEDGER_COMPUTE] = 1.5;
    line.time_s[LEDGER_SUMS] = 0.25;
    line.time_s[LEDGER_OTHER] = 0.25;
    observer_train(observer, &line, true);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(content(), ",\"time_s\":2.000000,\"time_compute\":0.7500,\"time_messages\":0.0000,"
                          "\"time_exchanges\":0.0000,"
                          "\"time_sums\":0.1250,\"time_update\":0.0000,\"time_data\":0.0000,"
                          "\"time_eval\":0.0000,\"time_checkpoint\":0.0000,"
                          "\"time_other\":0.1250}\n"));
    observer_free(&observer);
    end();
}

/* Lines of detectors have the parts of the loss, and COCO's numbers. */
static void test_boxes(void)
{
    begin();
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    TrainLine line = line_of(5);
    EvalLine eval = {.step = 5, .epoch = 1, .samples = 4, .loss = 2, .top1 = NAN, .top5 = NAN};
    line.has_boxes = eval.has_boxes = true;
    for (int i = 0; i < LOSS_PARTS; ++i) {
        line.part[i] = 0.125 * (i + 1);
        eval.part[i] = 0.25 * (i + 1);
    }
    for (int i = 0; i < COCO_NUMBERS; ++i) eval.coco[i] = i == COCO_AP_LARGE ? -1 : 0.5;
    observer_train(observer, &line, true);
    observer_eval(observer, &eval);
    CU_ASSERT_STRING_EQUAL(
        content(),
        "{\"step\":5,\"epoch\":1,\"loss\":0.5,\"lr\":0.25,\"samples_per_s\":1000,\"grad_norm\":"
        "null,\"box_loss\":0.125,\"object_loss\":0.25,\"class_loss\":0.375}\n"
        "{\"step\":5,\"epoch\":1,\"samples\":4,\"eval_loss\":2,\"AP\":0.5,\"AP50\":0.5,\"AP75\":0."
        "5,"
        "\"AP_small\":0.5,\"AP_medium\":0.5,\"AP_large\":-1,\"AR_1\":0.5,\"AR_10\":0.5,\"AR_100\":"
        "0.5,"
        "\"AR_small\":0.5,\"AR_medium\":0.5,\"AR_large\":0.5,\"eval_box_loss\":0.25,"
        "\"eval_object_loss\":0.5,\"eval_class_loss\":0.75,\"seconds\":0}\n");
    observer_free(&observer);
    end();
}

/* Figures of models of tokens have names with "tokens". */
static void test_tokens(void)
{
    begin();
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    TrainLine line = line_of(5);
    EvalLine eval = {.step = 5, .epoch = 1, .samples = 640, .loss = 2, .top1 = NAN, .top5 = NAN};
    line.counts_tokens = eval.counts_tokens = true;
    observer_train(observer, &line, true);
    observer_eval(observer, &eval);
    CU_ASSERT_STRING_EQUAL(
        content(),
        "{\"step\":5,\"epoch\":1,\"loss\":0.5,\"lr\":0.25,\"tokens_per_s\":1000,\"grad_norm\":"
        "null}\n"
        "{\"step\":5,\"epoch\":1,\"tokens\":640,\"eval_loss\":2,\"seconds\":0}\n");
    observer_free(&observer);
    end();
}

static void write_steps(int64_t keep, int64_t first, int64_t last)
{
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, keep, keep > 0));
    for (int64_t step = first; step <= last; ++step) {
        TrainLine line = line_of(step);
        observer_train(observer, &line, true);
    }
    observer_free(&observer);
}

static void test_resume(void)
{
    begin();
    write_steps(0, 1, 9);
    /* resumes from step 6 */
    write_steps(6, 7, 8);
    CU_ASSERT_EQUAL(lines(content()), 8);
    CU_ASSERT_PTR_NULL(strstr(content(), "\"step\":9"));
    write_steps(8, 9, 12);
    CU_ASSERT_EQUAL(lines(content()), 12);
    const char *at = content();
    /* each step once, in order */
    for (int step = 1; step <= 12; ++step) {
        char want[32];
        snprintf(want, sizeof want, "{\"step\":%d,", step);
        CU_ASSERT_EQUAL(strncmp(at, want, strlen(want)), 0);
        at = strchr(at, '\n');
        if (at) ++at;
    }
    /* a new run: the old file is kept under another name */
    write_steps(0, 1, 1);
    CU_ASSERT_EQUAL(lines(content()), 1);
    write_steps(0, 1, 3);
    CU_ASSERT_EQUAL(lines(content()), 3);
    strcat(path, ".1");
    CU_ASSERT_EQUAL(lines(content()), 12);
    path[strlen(path) - 1] = '2';
    CU_ASSERT_EQUAL(lines(content()), 1);
    path[strlen(path) - 2] = 0;
    strcat(path, ".part");
    CU_ASSERT(access(path, F_OK) != 0);
    end();
}

/* A crash leaves half a line, or (on some file systems) zeros. */
static void test_torn(void)
{
    static const char good[] = "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":2}\n";
    static const char *const tail[] = {"{\"step\":3,\"lo", "{\"step\":3}",
                                       "{\"step\":3,\"loss\":2\n", "{", "\n"};
    begin();
    for (size_t i = 0; i < sizeof tail / sizeof *tail; ++i) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", good, tail[i]);
        put(text, strlen(text));
        write_steps(10, 11, 10);
        CU_ASSERT_STRING_EQUAL(content(), good);
    }
    char zeros[sizeof good + 20] = {0};
    memcpy(zeros, good, sizeof good);
    put(zeros, sizeof zeros);
    write_steps(10, 11, 10);
    CU_ASSERT_STRING_EQUAL(content(), good);
    /* the line to remove lies between others */
    static const char middle[] =
        "{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo\n{\"step\":2,\"loss\":2}\n";
    put(middle, strlen(middle));
    write_steps(10, 11, 10);
    CU_ASSERT_STRING_EQUAL(content(), good);
    end();
}

/* Lines are also removed at the end of a file that cannot be replaced by a new one. */
static void test_cut_in_place(void)
{
    static const char all[] = "{\"step\":1,\"loss\":2}\n{\"step\":7,\"loss\":2}\n{\"step\":8,\"lo";
    char part[sizeof path + 8];
    begin();
    snprintf(part, sizeof part, "%s.part", path);
    put(all, strlen(all));
    CU_ASSERT_EQUAL(mkdir(part, 0700), 0);
    write_steps(2, 11, 10);
    CU_ASSERT_STRING_EQUAL(content(), "{\"step\":1,\"loss\":2}\n");
    CU_ASSERT_EQUAL(rmdir(part), 0);
    end();
}

static void test_errors(void)
{
    begin();
    Observer *observer = NULL;
    CHECK_FAILS(observer_new(&observer, "/nowhere/at/all", NULL, 0, false), ERR_IO,
                "/nowhere/at/all");
    CU_ASSERT_PTR_NULL(observer);
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = (struct rlimit){0, old.rlim_max};
    TrainLine line = line_of(1);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    observer_train(observer, &line, true);
    Status status = observer_flush(observer);
    setrlimit(RLIMIT_FSIZE, &old);
    CU_ASSERT_EQUAL(status, ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "metrics.jsonl"));
    CU_ASSERT_EQUAL(lines(content()), 0);
    line.step = 2;
    observer_train(observer, &line, true);
    /* there is space again: nothing is missing */
    CHECK_OK(observer_flush(observer));
    CHECK_OK(observer_sync(observer));
    CU_ASSERT_EQUAL(lines(content()), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(content(), "{\"step\":1,"));
    observer_free(&observer);
    end();
}

static void train_lines(Observer *observer, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; ++step) {
        TrainLine line = line_of(step);
        observer_train(observer, &line, true);
    }
}

/* Lines are in the file as soon as they are reported, also after a cut in the middle of one, and
 * those reported while somebody replaced the file by an edited copy. */
static void test_changed(void)
{
    char copy[160], text[8192];
    begin();
    Observer *observer = NULL;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    train_lines(observer, 1, 3);
    CU_ASSERT_EQUAL(lines(content()), 3);
    snprintf(text, sizeof text, "%s", content());
    long line_bytes = strchr(text, '\n') + 1 - text;
    CU_ASSERT_EQUAL(truncate(path, line_bytes + 10), 0);
    train_lines(observer, 4, 5);
    CU_ASSERT_EQUAL(lines(content()), 3);
    CU_ASSERT_EQUAL(strncmp(content(), text, (size_t)line_bytes), 0);
    CU_ASSERT_EQUAL(strncmp(content() + line_bytes, "{\"step\":4,", 10), 0);
    /* a complete line without its line end */
    CU_ASSERT_EQUAL(truncate(path, line_bytes - 1), 0);
    train_lines(observer, 6, 6);
    CU_ASSERT_EQUAL(strncmp(content(), text, (size_t)line_bytes), 0);
    CU_ASSERT_EQUAL(strncmp(content() + line_bytes, "{\"step\":6,", 10), 0);
    snprintf(copy, sizeof copy, "%s.copy", path);
    FILE *out = fopen(copy, "w");
    fputs("{\"step\":1,\"loss\":7}\n", out);
    fclose(out);
    train_lines(observer, 7, 8);
    CU_ASSERT_EQUAL(rename(copy, path), 0);
    CHECK_OK(observer_flush(observer));
    train_lines(observer, 9, 9);
    CU_ASSERT_EQUAL(lines(content()), 5);
    CU_ASSERT_EQUAL(strncmp(content(), "{\"step\":1,\"loss\":7}\n{\"step\":6,", 30), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(content(), "\n{\"step\":8,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(content(), "\n{\"step\":9,"));
    observer_free(&observer);
    end();
}

/* Ranks other than 0 pass NULL. */
static void test_null(void)
{
    Observer *observer = NULL;
    TrainLine line = line_of(1);
    EvalLine eval = {.step = 1};
    observer_train(observer, &line, true);
    observer_eval(observer, &eval);
    CHECK_OK(observer_flush(observer));
    observer_end_line(observer);
    observer_free(&observer);
}

static char *summary_text(const RunSummary *summary)
{
    static char text[4096];
    FILE *out = tmpfile();
    observer_summary(summary, out);
    long bytes = ftell(out);
    rewind(out);
    memset(text, 0, sizeof text);
    CU_ASSERT_EQUAL(fread(text, 1, (size_t)bytes, out), (size_t)bytes);
    fclose(out);
    return text;
}

static void test_summary(void)
{
    RunSummary summary = {.dir = "runs/x",
                          .best_path = "runs/x/checkpoints/best.h5",
                          .newest_path = "runs/x/checkpoints/step-00000010.h5",
                          .seconds = 78.25,
                          .samples_per_s = 3970.4,
                          .eval = {.samples = 10000, .loss = 0.25, .top1 = 0.915, .top5 = 0.997}};
    summary.ledger =
        (Ledger){.ranks = 4,
                 .line_s = {[LEDGER_COMPUTE] = 60, [LEDGER_BUBBLE] = 15, [LEDGER_DATA] = 5},
                 .busiest = 3,
                 .busiest_s = 75,
                 .busy_s = 65};
    char *text = summary_text(&summary);
    static const char *const want[] = {"done after 78.2 s",
                                       "3,970 samples/s",
                                       "top-1 91.50 %",
                                       "top-5 99.70 %",
                                       "10,000 samples",
                                       "mean of 4 ranks: compute 75.0 %, bubble 18.8 %, data 6.2 %",
                                       "rank 3, 15.4 % more than the mean",
                                       "checkpoints/best.h5",
                                       "step-00000010.h5",
                                       "runs/x/metrics.jsonl",
                                       "tensorboard --logdir runs/x"};
    for (size_t i = 0; i < sizeof want / sizeof *want; ++i)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, want[i]));
    CU_ASSERT_PTR_NULL(strstr(text, "nan"));
    summary.counts_tokens = summary.eval.counts_tokens = true;
    text = summary_text(&summary);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "3,970 tokens/s"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "10,000 tokens"));
    summary.stopped = true;
    summary.eval.samples = 0;
    text = summary_text(&summary);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "stopped early"));
    CU_ASSERT_PTR_NULL(strstr(text, "top-1"));
}

static int64_t size_of(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* If no new log.txt can be opened when the old one is full, messages go on in the old one. */
static void test_full_log(void)
{
    enum { ALMOST_FULL = (16 << 20) - 1000, LINE = 2000 };
    char *text = mem_new(ALMOST_FULL), older[140], line[LINE + 1] = "";
    struct rlimit files;
    begin();
    snprintf(path, sizeof path, "%s/log.txt", folder);
    snprintf(older, sizeof older, "%s.1", path);
    memset(text, '\n', ALMOST_FULL);
    put(text, ALMOST_FULL);
    memset(line, 'x', LINE - 1);
    line[LINE - 1] = '\n';
    CHECK_OK(log_file_open(folder, NULL, 0));
    int64_t size = size_of(path);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &files), 0);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, files.rlim_max}), 0);
    log_copy(line);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &files), 0);
    CU_ASSERT_EQUAL(size_of(path), size + LINE);
    CU_ASSERT_EQUAL(size_of(older), -1);
    log_copy("later\n");
    CU_ASSERT_EQUAL(size_of(older), size + LINE);
    CU_ASSERT_STRING_EQUAL(content(), "later\n");
    log_copy_to(NULL, NULL);
    mem_free(&text);
    end();
}

/* Lines that could not be written are counted as lines, also if one write has several. */
static void test_lost_lines(void)
{
    struct rlimit size;
    begin();
    snprintf(path, sizeof path, "%s/log.txt", folder);
    CHECK_OK(log_file_open(folder, NULL, 0));
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &size), 0);
    const struct rlimit full = {(rlim_t)size_of(path) + 4, size.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &full), 0);
    log_copy("one\ntwo\nthree\n");
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &size), 0);
    signal(SIGXFSZ, before);
    log_copy("four\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(content(), "one\n\n(2 lines could not be written here)\nfour\n"));
    log_copy_to(NULL, NULL);
    end();
}

TEST_MAIN("observer", {"lines", test_lines}, {"tokens", test_tokens}, {"boxes", test_boxes},
          {"times", test_times}, {"cut on resume", test_resume}, {"torn lines", test_torn},
          {"cut in place", test_cut_in_place}, {"errors", test_errors},
          {"changed by others", test_changed}, {"no observer", test_null},
          {"summary", test_summary}, {"a full log", test_full_log}, {"lost lines", test_lost_lines})
