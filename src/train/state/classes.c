/* Maps labels to classes: those of the checkpoint that will be loaded, in its order, or else those
 * of the training set. Labels of the training and test sets are matched by the names of classes; a
 * checkpoint's names are compared again when it is loaded. Also reads all labels of the sets for
 * errors and warnings. */
#include "classes.h"

#include "base/escape.h"
#include "checkpoint.h"

#include <string.h>

/* The lists of names that are matched, and their sources. */
typedef struct Lists {
    ClassNames train, test, model;
    /* path of the file from which `model` was read; borrowed */
    const char *model_path;
    /* path of the checkpoint that the trainer will load; NULL: there is none; owned */
    char *source;
    /* true: only initial parameters are read from `source` (model.init_from) */
    bool begins;
} Lists;

/* Returns the path of the checkpoint that this trainer will probably load; NULL: it will load none.
 * Called while the trainer is set up. *begins: true if the checkpoint only gives initial
 * parameters. Owner: the caller. */
static char *find_source(const Trainer *t, bool *begins)
{
    const Config *c = t->config;
    const char *resume = c->checkpoint.resume == RESUME_FILE ? c->checkpoint.resume_path : NULL;
    const char *init = c->model.init_from;
    *begins = false;
    if (t->checkpoint) return mem_text(t->checkpoint);
    char *dir = mem_format("%s/%s/checkpoints", c->run.dir, c->run.name);
    char *path = c->run.fresh ? NULL : checkpoint_newest_unverified(dir);
    mem_free(&dir);
    if (path) return path;
    if (resume && *resume) return mem_text(resume);
    *begins = init && *init;
    return *begins ? mem_text(init) : NULL;
}

/* Reads the names of classes from the checkpoint l->source, and sets *classes to the number of its
 * classes. Returns false if there is no checkpoint or it cannot be read; a file that cannot be read
 * is reported when it is loaded. */
static bool read_source(Lists *l, int64_t *classes)
{
    CheckpointMeta meta = {0};
    if (!l->source || checkpoint_read_meta(l->source, &meta) != OK) return false;
    class_names_from_lines(&l->model, meta.classes);
    *classes = meta.input.classes > l->model.count ? meta.input.classes : l->model.count;
    checkpoint_meta_fini(&meta);
    return true;
}

static void say(char **line)
{
    if (*line) log_info("%s", *line);
    mem_free(line);
}

/* Returns the number of the first class that has another name in a than in b; -1: there is none. */
static int64_t first_difference(const ClassNames *a, const ClassNames *b)
{
    for (int64_t i = 0; i < a->count && i < b->count; ++i)
        if (strcmp(a->name[i], b->name[i]) != 0) return i;
    return -1;
}

/* Matches the training set's classes with those of the checkpoint in model.init_from, which may
 * differ. With another number of classes nothing is matched, because the classifier gets new
 * initial values. With the same number a difference is logged. Data without names of classes do not
 * get the checkpoint's names. *line: a line for the log, owned by the caller, or unchanged. */
static Status take_beginning(Trainer *t, Lists *l, int64_t classes, char **line)
{
    const int64_t asked = t->config->model.classes, now = t->train_set.classes;
    int64_t i = first_difference(&l->model, &l->train);
    bool as_many = classes == (asked ? asked : now);
    bool same_number =
        as_many && (!class_names_are_numbers(&l->train) || class_names_are_numbers(&l->model));
    Status st = OK;
    if (same_number)
        st = data_set_use_classes(&t->train_set, &l->train, &l->model, l->source, line);
    if (as_many && !same_number)
        log_info("model.init_from: %s names no classes, so what was learnt is taken by number: "
                 "%lld is '%.80s' in %s",
                 t->train_set.path, (long long)t->train_set.label_base, l->model.name[0],
                 l->source);
    if (st == ERR_DATA && i >= 0) {
        char *then, *here;
        text_escape_pair(l->model.name[i], l->train.name[i], &then, &here);
        log_info("model.init_from: class %lld is '%.160s' in %s and '%.160s' in %s; both have the "
                 "same number of classes, so the second begins with what was learnt for the first",
                 (long long)i, then, l->source, here, t->train_set.path);
        mem_free(&then);
        mem_free(&here);
    }
    if (!same_number || st == ERR_DATA) class_names_free(&l->model);
    return st == ERR_DATA ? OK : st;
}

/* Sets l->model to the names of classes to which labels are mapped. */
static Status choose_names(Trainer *t, Lists *l)
{
    int64_t classes = 0;
    char *line = NULL;
    l->source = find_source(t, &l->begins);
    bool read = read_source(l, &classes);
    Status st = OK;
    if (l->model.count > 0 && l->begins)
        st = take_beginning(t, l, classes, &line);
    else if (read && !l->begins)
        st = data_set_use_classes(&t->train_set, &l->train, &l->model, l->source, &line);
    /* without data.train t->train_set is the test set, for which fit_names logs the line */
    if (!t->config->data.train) mem_free(&line);
    say(&line);
    l->model_path = l->model.count > 0 ? l->source : t->train_set.path;
    if (l->model.count == 0) class_names_merge(&l->model, &l->train);
    return st;
}

/* Adds to the model's names the names of classes that only the test set has, if model.classes is
 * large enough for all. */
static void add_test_names(const Trainer *t, Lists *l)
{
    ClassNames all = {0};
    class_names_merge(&all, &l->model);
    class_names_merge(&all, &l->test);
    if (all.count <= t->config->model.classes && l->model.count > 0) {
        ClassNames less = l->model;
        l->model = all;
        all = less;
    }
    class_names_free(&all);
}

static Status fit_names(Trainer *t, Lists *l)
{
    char *line = NULL;
    TRY(choose_names(t, l));
    if (l->test.count > 0) add_test_names(t, l);
    if (t->test_set.samples > 0)
        TRY(data_set_use_classes(&t->test_set, &l->test, &l->model, l->model_path, &line));
    say(&line);
    mem_free(&t->classes);
    if (l->model.count > 0) t->classes = class_names_lines(&l->model);
    return OK;
}

Status classes_fit(Trainer *t)
{
    Lists l = {0};
    if (t->train_set.classes == 0 || data_has_tokens(&t->train_set)) return OK;
    Status st = data_set_class_names(&t->train_set, &l.train);
    if (st == OK && t->test_set.samples > 0) st = data_set_class_names(&t->test_set, &l.test);
    if (st == OK) st = fit_names(t, &l);
    class_names_free(&l.train);
    class_names_free(&l.test);
    class_names_free(&l.model);
    mem_free(&l.source);
    return st;
}

/* ---- odd labels ---- */

/* Returns the first class of which only the test set has samples; -1: there is none. */
static int64_t only_in_test(const LabelUse *train, const LabelUse *test)
{
    for (int i = 0; i < DATA_CLASSES_SEEN / 64; ++i) {
        uint64_t only = test->seen[i] & ~train->seen[i];
        if (only) return (int64_t)i * 64 + __builtin_ctzll(only);
    }
    return -1;
}

static Status warn_of_labels(const Trainer *t, const LabelUse *train, const LabelUse *test)
{
    char *line;
    const bool tested = t->test_set.samples > 0;
    /* A test set need not have all classes, so its labels are checked only if it has more classes
     * than the training set. */
    bool more = tested && t->test_set.classes > t->train_set.classes;
    char *odd = data_set_label_warning(&t->train_set, t->config, train);
    if (!odd && more) odd = data_set_label_warning(&t->test_set, t->config, test);
    data_warn(odd);
    TRY(data_files_compare_labels(&t->train_set, &line));
    data_warn(line);
    if (!tested) return OK;
    TRY(data_files_compare_labels(&t->test_set, &line));
    data_warn(line);
    data_warn(data_label_shift_warning(&t->test_set, test, &t->train_set, train));
    int64_t only = only_in_test(train, test);
    if (only >= 0)
        log_warn("%s: has samples of class %lld, of which %s has none: the model does not learn it",
                 t->test_set.path, (long long)only, t->train_set.path);
    return OK;
}

Status classes_check_labels(Trainer *t)
{
    LabelUse *train = mem_new(sizeof *train), *test = mem_new(sizeof *test);
    Status st = data_set_count_labels(&t->train_set, train);
    if (st == OK && t->test_set.samples > 0) st = data_set_count_labels(&t->test_set, test);
    if (st == OK && t->train_set.classes > 0 && !data_has_tokens(&t->train_set))
        st = warn_of_labels(t, train, test);
    mem_free(&train);
    mem_free(&test);
    return st;
}

/* ---- checking a loaded checkpoint ---- */

/* Called after a load. If the loaded file is the one that find_source has returned, the names have
 * been matched before. */
Status classes_check_loaded(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    ClassNames now, then;
    Status st = OK;
    if (!t->classes || !meta->classes || strcmp(t->classes, meta->classes) == 0) return OK;
    class_names_from_lines(&now, t->classes);
    class_names_from_lines(&then, meta->classes);
    int64_t i = first_difference(&now, &then);
    if (i >= 0 && !class_names_are_numbers(&now) && !class_names_are_numbers(&then)) {
        char *shown_now, *shown_then;
        text_escape_pair(now.name[i], then.name[i], &shown_now, &shown_then);
        st = fail(
            ERR_DATA,
            "%s: class %lld is '%.160s' in this file, but '%.160s' in the labels of %s: name the "
            "data that the model was trained on",
            path, (long long)i, shown_then, shown_now, t->train_set.path);
        mem_free(&shown_now);
        mem_free(&shown_then);
    }
    class_names_free(&now);
    class_names_free(&then);
    return st;
}
