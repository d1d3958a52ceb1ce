/* Prints the progress line. On a terminal it is one line, rewritten at most ten times a second and
 * never wider than the window; on other outputs each logged step has a plain line. If stdout cannot
 * be written (a closed pipe), the run continues: metrics.jsonl has the same figures. Also writes
 * the figures of an evaluation and numbers as text. */
#include "observer.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* shortest time between two drawings of the line on a terminal, in seconds */
#define REDRAW_S 0.1
/* FIELD_CHARS: bytes of a field's text. FIELDS: number of fields. WIDTH_DEFAULT: columns of a
 * terminal that does not give its width. */
enum { FIELD_CHARS = 64, FIELDS = 10, WIDTH_DEFAULT = 80 };
/* fields of the progress line, in their order */
enum {
    FIELD_EPOCH,
    FIELD_STEP,
    FIELD_LOSS,
    FIELD_TOP1,
    FIELD_TOP5,
    FIELD_LR,
    FIELD_NOISE,
    FIELD_RATE,
    FIELD_LEFT,
    FIELD_WAITS
};

/* A cause of waiting is shown if it makes up at least this fraction of the time. */
static const double WAIT_SHOWN_MIN = 0.05;

const char *row_unit(bool tokens)
{
    return tokens ? "tokens" : "samples";
}

/* Appends a figure of an evaluation to `out` if the figure is defined. */
static void add_figure(char *out, const char *format, double value)
{
    size_t at = strlen(out);
    if (!isnan(value)) snprintf(out + at, EVAL_CHARS - at, format, value);
}

/* Appends one of COCO's numbers to `out`; "-" if it is not defined. */
static void add_coco(char *out, const EvalLine *line, CocoNumber number)
{
    const size_t at = strlen(out);
    const double value = line->coco[number];
    snprintf(out + at, EVAL_CHARS - at, value < 0 ? ", %s -" : ", %s %.2f %%",
             coco_number_name(number), 100 * value);
}

const char *text_eval(const EvalLine *line, char *out)
{
    *out = 0;
    add_figure(out, line->auc_kind ? ", accuracy %.2f %%" : ", top-1 %.2f %%", 100 * line->top1);
    add_figure(out, ", top-5 %.2f %%", 100 * line->top5);
    if (line->has_boxes) {
        add_coco(out, line, COCO_AP);
        add_coco(out, line, COCO_AP50);
    }
    if (line->fields) field_metrics_text(line->fields, out, EVAL_CHARS);
    if (line->labels) label_metrics_text(line->labels, out, EVAL_CHARS);
    if (!line->auc_kind) return out;
    add_figure(out, ", AUC %.4f", line->auc);
    if (!isnan(line->auc)) strcat(strcat(strcat(out, " ("), line->auc_kind), ")");
    add_figure(out, ", normalised entropy %.4f", line->normalized_entropy);
    add_figure(out, ", calibration %.3f", line->calibration);
    return out;
}

double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

char *text_count(int64_t value, char *out)
{
    char digits[32];
    int count = snprintf(digits, sizeof digits, "%llu",
                         value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value);
    char *to = out;
    if (value < 0) *to++ = '-';
    for (int i = 0; i < count; ++i) {
        if (i > 0 && (count - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return out;
}

static void text_rate(double rate, char *out)
{
    if (rate >= 100 && rate < 1e15)
        text_count((int64_t)(rate + 0.5), out);
    else
        snprintf(out, 32, "%.3g", rate);
}

/* Writes the causes of waiting that make up much of the time: "waits: sums 12 %, data 6 %". */
static void text_waits(const TrainLine *line, char *out)
{
    static const LedgerLine wait[] = {LEDGER_DATA, LEDGER_MESSAGES, LEDGER_EXCHANGES, LEDGER_SUMS};
    double all_s = line_time_s(line);
    size_t at = 0;
    for (size_t i = 0; i < sizeof wait / sizeof *wait && all_s > 0; ++i) {
        double part = line->time_s[wait[i]] / all_s;
        if (part < WAIT_SHOWN_MIN) continue;
        at += (size_t)snprintf(out + at, FIELD_CHARS - at, "%s%s %.0f %%",
                               at ? ", " : "waits: ", ledger_names[wait[i]], 100 * part);
    }
}

static void fields_fill(const TrainLine *line, char field[FIELDS][FIELD_CHARS])
{
    char a[32], b[32];
    memset(field, 0, (size_t)FIELDS * FIELD_CHARS);
    if (line->epochs > 0)
        snprintf(field[FIELD_EPOCH], FIELD_CHARS, "epoch %lld/%lld", (long long)line->epoch,
                 (long long)line->epochs);
    else
        snprintf(field[FIELD_EPOCH], FIELD_CHARS, "epoch %lld", (long long)line->epoch);
    snprintf(field[FIELD_STEP], FIELD_CHARS, "step %.20s/%.20s", text_count(line->step, a),
             text_count(line->steps, b));
    snprintf(field[FIELD_LOSS], FIELD_CHARS, "loss %.4f", text_nan_without_sign(line->loss));
    if (!isnan(line->top1))
        snprintf(field[FIELD_TOP1], FIELD_CHARS, "%s %.1f %%",
                 line->has_one_logit ? "accuracy" : "top-1", 100 * line->top1);
    if (!isnan(line->top5))
        snprintf(field[FIELD_TOP5], FIELD_CHARS, "top-5 %.1f %%", 100 * line->top5);
    snprintf(field[FIELD_LR], FIELD_CHARS, "lr %.3g", line->lr);
    if (line->has_grad_noise && !isnan(line->noise_scale))
        snprintf(field[FIELD_NOISE], FIELD_CHARS, "noise scale %.3g", line->noise_scale);
    text_rate(line->samples_per_s, a);
    snprintf(field[FIELD_RATE], FIELD_CHARS, "%.31s %s/s", a, row_unit(line->counts_tokens));
    if (!isnan(line->left_s))
        snprintf(field[FIELD_LEFT], FIELD_CHARS, "%.31s left", text_seconds(line->left_s, a));
    text_waits(line, field[FIELD_WAITS]);
}

static int fields_width(char field[FIELDS][FIELD_CHARS])
{
    /* two blanks are printed before each field except the first */
    int width = -2;
    for (int i = 0; i < FIELDS; ++i)
        if (field[i][0]) width += (int)strlen(field[i]) + 2;
    return width;
}

void progress_text(const TrainLine *line, int width, bool colour, char *out)
{
    /* fields in the order in which they are left out, until the line fits */
    static const int drop_order[] = {FIELD_WAITS, FIELD_NOISE, FIELD_LR,   FIELD_TOP5, FIELD_TOP1,
                                     FIELD_EPOCH, FIELD_RATE,  FIELD_LEFT, FIELD_STEP};
    static const char *const paint[FIELDS] = {
        [FIELD_LOSS] = "\033[1m", [FIELD_LR] = "\033[2m", [FIELD_LEFT] = "\033[36m"};
    char field[FIELDS][FIELD_CHARS];
    fields_fill(line, field);
    for (size_t i = 0; i < sizeof drop_order / sizeof *drop_order; ++i)
        if (fields_width(field) > width) field[drop_order[i]][0] = 0;
    if ((int)strlen(field[FIELD_LOSS]) > width) field[FIELD_LOSS][width > 0 ? width : 0] = 0;
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < FIELDS; ++i) {
        if (!field[i][0]) continue;
        bool painted = colour && paint[i];
        at += (size_t)snprintf(out + at, PROGRESS_CHARS - at, "%s%s%s%s", at ? "  " : "",
                               painted ? paint[i] : "", field[i], painted ? "\033[0m" : "");
    }
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return WIDTH_DEFAULT;
}

void progress_open(Progress *progress)
{
    *progress = (Progress){.drawn_s = -1, .terminal = log_redraws(stdout)};
}

static void redraw(Progress *progress, const TrainLine *line)
{
    double now_s = clock_s();
    bool is_last_step = line->step >= line->steps;
    if (progress->drawn_s >= 0 && now_s - progress->drawn_s < REDRAW_S && !is_last_step) return;
    char text[PROGRESS_CHARS];
    progress_text(line, terminal_width() - 1, log_colour(stdout), text);
    printf("\r%s\033[K", text);
    fflush(stdout);
    progress->drawn_s = now_s;
    progress->shown = true;
}

void progress_train(Progress *progress, const TrainLine *line, bool log_now)
{
    if (progress->terminal) {
        redraw(progress, line);
    } else if (log_now) {
        char text[PROGRESS_CHARS];
        progress_text(line, PROGRESS_CHARS, false, text);
        puts(text);
        fflush(stdout);
    }
}

void progress_end_line(Progress *progress)
{
    if (!progress->shown) return;
    putchar('\n');
    fflush(stdout);
    progress->shown = false;
    progress->drawn_s = -1;
}

void progress_eval(Progress *progress, const EvalLine *line)
{
    char count[32], figures[EVAL_CHARS];
    progress_end_line(progress);
    char *text = mem_format("evaluation after step %lld: loss %.4f%s (%s %s, %.1f s)\n",
                            (long long)line->step, text_nan_without_sign(line->loss),
                            text_eval(line, figures), text_count(line->samples, count),
                            row_unit(line->counts_tokens), line->seconds);
    fputs(text, stdout);
    fflush(stdout);
    log_copy(text);
    mem_free(&text);
}
