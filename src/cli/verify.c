/* weft verify: is training the same to the bit on several grids? Starts each run's ranks itself, one run after the other,
 * and compares their losses and the hashes of all tensors with the first one's. Refuses to run under a launcher. An
 * interrupt ends the ranks and leaves no folder. */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3, RANKS_MOST = 65536 };

typedef struct List { /* words between commas; one NULL where nothing was given */
    int count;
    char **word; /* owned, and the words */
} List;

typedef struct Trials {
    int count;
    Trial *trial; /* owned */
    bool json;
} Trials;

/* ---- the command line ---- */

static Status list_init(List *list, const char *flag, const char *text)
{
    *list = (List){.count = 0};
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        int length = (int)strcspn(at, ",");
        list->word = mem_resize(list->word, (size_t)(list->count + 1) * sizeof *list->word);
        list->word[list->count++] = mem_format("%.*s", length, at);
        if (length == 0)
            return fail(ERR_USAGE, "%s %s: a word between commas is empty", flag, text);
    }
    if (list->count) return OK;
    list->word = mem_new(sizeof *list->word);
    list->count = 1;
    return OK;
}

static void list_fini(List *list)
{
    for (int i = 0; i < list->count; ++i) mem_free(&list->word[i]);
    mem_free(&list->word);
}

static Status parse_grid(const char *text, GridShape *shape)
{
    int dp, pp, tp, end = 0;
    bool read = sscanf(text, "%9dx%9dx%9d%n", &dp, &pp, &tp, &end) == 3 && text[end] == 0;
    if (!read || dp < 1 || pp < 1 || tp < 1)
        return fail(ERR_USAGE, "--grids: '%s' is no grid: dp x pp x tp is wanted, like 2x1x1",
                    text);
    if ((double)dp * pp * tp > RANKS_MOST)
        return fail(ERR_USAGE, "--grids: %s is more than %d ranks", text, RANKS_MOST);
    *shape = (GridShape){.dp = dp, .pp = pp, .tp = tp};
    return OK;
}

static Status parse_steps(const char *text, int *steps)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*end != 0 || end == text || errno || value < 1 || value > 1000000)
        return fail(ERR_USAGE, "--steps %s: a number from 1 to 1000000 is wanted", text);
    *steps = (int)value;
    return OK;
}

/* ---- what to run ---- */

static void add_trial(Trials *all, GridShape g, const char *schedule, const char *zero,
                      const char *transport)
{
    all->trial = mem_resize(all->trial, (size_t)(all->count + 1) * sizeof *all->trial);
    Trial *t = &all->trial[all->count++];
    *t = (Trial){.shape = g, .schedule = schedule, .zero = zero, .transport = transport};
    t->name = mem_format("%dx%dx%d%s%s%s%s%s%s", g.dp, g.pp, g.tp, schedule ? ", " : "",
                         schedule ? schedule : "", zero ? ", zero " : "", zero ? zero : "",
                         transport ? ", " : "", transport ? transport : "");
}

/* All combinations; of values that mean nothing on a grid only the first. */
static Status make_trials(Trials *all, const List *grids, const List *schedules, const List *zeros,
                          const List *transports)
{
    for (int g = 0; g < grids->count; ++g) {
        GridShape shape = {0};
        TRY(parse_grid(grids->word[g], &shape));
        int zero_count = shape.dp > 1 ? zeros->count : 1;
        int transport_count = shape.dp * shape.pp * shape.tp > 1 ? transports->count : 1;
        for (int s = 0; s < schedules->count; ++s)
            for (int z = 0; z < zero_count; ++z)
                for (int t = 0; t < transport_count; ++t)
                    add_trial(all, shape, schedules->word[s], zeros->word[z], transports->word[t]);
    }
    if (all->count > 1) return OK;
    return fail(ERR_USAGE, "one run is nothing to compare: give --grids, or --schedules, several");
}

/* Each trial's configuration is read before the first one starts. */
static Status check_trials(const Trials *all, const Verification *v)
{
    for (int i = 0; i < all->count; ++i) {
        Config *config = NULL;
        TRY(trial_config(&config, v, &all->trial[i]));
        config_free(&config);
    }
    return OK;
}

/* ---- comparing ---- */

/* How a trial's results differ from the first one's. */
typedef struct Difference {
    int step;           /* the first with another loss; 0: none */
    const char *tensor; /* the first that differs, parameters first; NULL: none */
    int tensors;        /* how many differ */
} Difference;

static bool is_param(const char *path)
{
    return strncmp(path, "/params/", strlen("/params/")) == 0;
}

static Difference compare(const Trial *a, const Trial *b, int steps)
{
    Difference d = {0};
    for (int s = steps; s > 0; --s)
        if (strcmp(a->loss[s - 1], b->loss[s - 1]) != 0) d.step = s;
    int count = a->hashes.count < b->hashes.count ? a->hashes.count : b->hashes.count;
    for (int i = 0; i < count; ++i) {
        const CheckpointHash *x = &a->hashes.tensor[i], *y = &b->hashes.tensor[i];
        if (strcmp(x->path, y->path) == 0 && x->hash == y->hash) continue;
        ++d.tensors;
        if (!d.tensor || (!is_param(d.tensor) && is_param(x->path))) d.tensor = x->path;
    }
    if (!d.tensor && a->hashes.count != b->hashes.count) {
        const CheckpointHashes *longer = a->hashes.count > count ? &a->hashes : &b->hashes;
        d.tensor = longer->tensor[count].path;
        d.tensors = longer->count - count;
    }
    return d;
}

/* ---- printing ---- */

static int name_width(const Trials *all)
{
    int width = (int)strlen("grid");
    for (int i = 0; i < all->count; ++i)
        if ((int)strlen(all->trial[i].name) > width) width = (int)strlen(all->trial[i].name);
    return width;
}

static int trial_ranks(const Trial *t)
{
    return t->shape.dp * t->shape.pp * t->shape.tp;
}

static void print_head(int width, FILE *out)
{
    fprintf(out, "%-*s  %5s  %7s  %s\n", width, "grid", "ranks", "seconds", "hash");
}

static void print_trial(const Trial *t, int width, const char *verdict, FILE *out)
{
    fprintf(out, "%-*s  %5d  %7.2f  %016" PRIx64 "%s%s\n", width, t->name, trial_ranks(t),
            t->seconds, t->hash, *verdict ? "  " : "", verdict);
    fflush(out);
}

static void json_word(FILE *out, const char *key, const char *word)
{
    fprintf(out, ", \"%s\": ", key);
    if (word)
        json_text(out, word);
    else
        fprintf(out, "null");
}

static void print_json(const Trial *t, Difference d, int steps, FILE *out)
{
    fprintf(out, "{\"grid\": \"%dx%dx%d\", \"ranks\": %d", t->shape.dp, t->shape.pp, t->shape.tp,
            trial_ranks(t));
    json_word(out, "schedule", t->schedule);
    json_word(out, "zero", t->zero);
    json_word(out, "transport", t->transport);
    fprintf(out, ", \"seconds\": %.3f, \"hash\": \"%016" PRIx64 "\", \"same\": %s", t->seconds,
            t->hash, d.step || d.tensor ? "false" : "true");
    json_word(out, "first_tensor", d.tensor);
    fprintf(out,
            ", \"tensors_differ\": %d, \"tensors\": %d, \"loss_differs_at_step\": %d, \"loss\": [",
            d.tensors, t->hashes.count, d.step);
    for (int s = 0; s < steps; ++s) fprintf(out, "%s%s", s ? ", " : "", t->loss[s]);
    fprintf(out, "]}\n");
    fflush(out);
}

static Status report(const Trial *t, const Trial *first, Difference d)
{
    char *loss = d.step ? mem_format("; the loss of step %d is %s there and %s here", d.step,
                                     first->loss[d.step - 1], t->loss[d.step - 1])
                        : mem_text("; the losses are the same");
    Status status = fail(ERR_DATA, "grid %s and grid %s differ: %s%s (%d of %d tensors)%s",
                         first->name, t->name, d.tensor ? "first in tensor " : "in no tensor",
                         d.tensor ? d.tensor : "", d.tensors, t->hashes.count, loss);
    mem_free(&loss);
    return status;
}

/* ---- the verb ---- */

/* All trials are run, also after one that differs. */
static Status run_all(Trials *all, Verification *v)
{
    const Trial *first = all->trial;
    Status verdict = OK;
    char *message = NULL;
    int width = name_width(all);
    if (!all->json) print_head(width, stdout);
    for (int i = 0; i < all->count; ++i) {
        Trial *t = &all->trial[i];
        Status status = trial_run(v, t);
        if (status != OK) {
            mem_free(&message);
            return status;
        }
        Difference d = compare(first, t, v->steps);
        bool same = !d.step && !d.tensor;
        if (all->json)
            print_json(t, d, v->steps, stdout);
        else
            print_trial(t, width, t == first ? "" : same ? "same" : "differs", stdout);
        if (!same) fprintf(stderr, "%s%s", verdict == OK ? first->said : "", t->said);
        if (same || verdict != OK) continue;
        verdict = report(t, first, d);
        message = mem_text(fail_message());
    }
    if (verdict != OK) fail(verdict, "%s", message);
    if (verdict == OK && !all->json)
        printf("the same to the bit: %d tensors and the losses of %d steps on %d runs\n",
               first->hashes.count, v->steps, all->count);
    mem_free(&message);
    return verdict;
}

/* A folder beside run.dir: there is room for runs, and other nodes see it, too. */
static Status make_folder(Verification *v)
{
    Config *config = NULL;
    TRY(config_load(&config, v->argv[0], v->argc - 1, v->argv + 1));
    size_t length = strlen(config->run.dir);
    while (length > 1 && config->run.dir[length - 1] == '/') --length;
    v->dir = mem_format("%.*s.verify-XXXXXX", (int)length, config->run.dir);
    config_free(&config);
    if (mkdtemp(v->dir)) return OK;
    Status status = fail(ERR_IO, "%s: this folder cannot be made: %s; choose another run.dir",
                         v->dir, strerror(errno));
    mem_free(&v->dir);
    return status;
}

static Status run(Trials *all, Verification *v)
{
    sigset_t before;
    TRY(check_trials(all, v));
    launch_block(&before);
    Status status = make_folder(v);
    if (status == OK) status = run_all(all, v);
    if (v->dir) folder_remove(v->dir);
    mem_free(&v->dir);
    if (v->stopped) { /* end as this signal ends a program, now that all is put away */
        fflush(NULL);
        signal(v->stopped, SIG_DFL);
        raise(v->stopped);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

Status verb_verify(int argc, char **argv)
{
    const char *grids = NULL, *steps = NULL, *schedules = NULL, *zeros = NULL, *transports = NULL;
    Trials all = {0};
    const Flag flags[] = {{"--grids", &grids, NULL},           {"--steps", &steps, NULL},
                          {"--schedules", &schedules, NULL},   {"--zero", &zeros, NULL},
                          {"--transports", &transports, NULL}, {"--json", NULL, &all.json}};
    TRY(flags_take(&argc, argv, flags, sizeof flags / sizeof *flags));
    if (launched())
        return fail(ERR_USAGE, "verify starts its ranks itself: run it without mpirun or srun");
    Verification v = {.argc = argc, .argv = argv, .steps = STEPS};
    if (steps) TRY(parse_steps(steps, &v.steps));
    List list[4] = {{0}};
    Status status = list_init(&list[0], "--grids", grids ? grids : "1x1x1,2x1x1,1x2x1");
    if (status == OK) status = list_init(&list[1], "--schedules", schedules);
    if (status == OK) status = list_init(&list[2], "--zero", zeros);
    if (status == OK) status = list_init(&list[3], "--transports", transports);
    if (status == OK) status = make_trials(&all, &list[0], &list[1], &list[2], &list[3]);
    if (status == OK) status = run(&all, &v);
    for (int i = 0; i < all.count; ++i) trial_fini(&all.trial[i]);
    mem_free(&all.trial);
    for (int i = 0; i < 4; ++i) list_fini(&list[i]);
    return status;
}
