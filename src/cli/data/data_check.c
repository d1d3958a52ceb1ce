/* weft data check: reads a data set and checks it. With two data sets it also checks that the first
 * can be the training set, and the second the test set, of a model. */
#include "../private.h"

#include "train.h"

#include <string.h>

/* A data set and the results of its check. */
typedef struct Checked {
    /* owned */
    DataSet *set;
    /* names of the classes; owned */
    ClassNames names;
    /* classes that occur in the labels; zeroed if the set has no labels (has_labels); owned */
    LabelUse *use;
} Checked;

/* Returns whether the set has a class label for each sample or for each pixel. */
static bool has_labels(const DataSet *set)
{
    const DataKindInfo *kind = data_kind(set);
    return kind->x != X_TOKENS && kind->labels != LABELS_BOXES && set->classes > 0;
}

/* Opens set i, checks it, prints warnings, and prints that the set is good. */
static Status check_one(Checked *c, const Config *config, const DataWords *words, int i)
{
    DataSet *set = c->set;
    char *line;
    TRY(data_words_open(words, i, config, set));
    TRY(data_set_check(set, config->model.classes));
    if (data_has_boxes(set)) TRY(data_set_class_names(set, &c->names));
    if (has_labels(set)) {
        TRY(data_set_count_labels(set, c->use));
        TRY(data_set_class_names(set, &c->names));
        data_warn(data_set_label_warning(set, config, c->use));
        TRY(data_files_compare_labels(set, &line));
        data_warn(line);
    }
    if (set->target_width > 0 && loss_info(config)->reads != LOSS_READS_TARGETS)
        data_warn(data_set_label_warning(set, config, NULL));
    TRY(data_files_compare_ranges(set, &line));
    data_warn(line);
    printf("%s: good, %lld samples\n", set->path, (long long)set->samples);
    return OK;
}

/* Prints a line, unless it is NULL, and frees it. */
static void print_line(char *line)
{
    if (line) printf("%s\n", line);
    mem_free(&line);
}

/* Checks that a model that is trained on the first set has all classes of the second set. Prints a
 * warning if the labels of the two sets seem to start at different numbers. */
static Status check_labels(const Checked *first, const Checked *second)
{
    const DataSet *train = first->set, *test = second->set;
    if (test->classes > train->classes)
        return fail(ERR_DATA,
                    "%s: has labels up to %lld, but %s only up to %lld: set model.classes to %lld, "
                    "or, if their labels count from different numbers, renumber those of one set",
                    test->path, (long long)(test->label_base + test->classes - 1), train->path,
                    (long long)(train->label_base + train->classes - 1), (long long)test->classes);
    if (!has_labels(train)) return OK;
    print_line(data_label_shift_warning(test, second->use, train, first->use));
    return OK;
}

/* Compares the first set, a training set, with the second, a test set: the shapes and types of
 * samples, ranges of values, class names and labels. Prints whether the sets fit together. */
static Status check_both(Checked *first, Checked *second)
{
    const char *train = first->set->path, *test = second->set->path;
    char *line = NULL, *differ = NULL;
    TRY(train_prepare_test_set(second->set, first->set));
    TRY(data_set_use_classes(second->set, &second->names, &first->names, train, &line));
    const bool differs = line != NULL;
    print_line(line);
    if (!data_has_boxes(first->set)) TRY(data_set_check_labels(second->set));
    TRY(check_labels(first, second));
    TRY(data_sets_compare_ranges(second->set, first->set, &differ));
    if (data_has_tokens(first->set))
        printf("%s and %s %s\n", train, test,
               tokenizer_match(second->set->tokenizer_hash, first->set->tokenizer_hash) ==
                       TOKENIZERS_UNKNOWN
                   ? "have tokens, but it is not known whether one tokenizer made both"
               : first->set->tokenizer_hash[0]
                   ? "go together: one tokenizer made the tokens of both"
                   : "have samples that fit, but neither names the tokenizer of its tokens");
    else if (!data_scaling_matches(&second->set->columns, &first->set->columns))
        printf("%s and %s have the same columns, but these are transformed or scaled "
               "differently\n",
               train, test);
    else if (differ)
        printf("%s\n%s and %s have samples of the same shape and type, but of different ranges\n",
               differ, train, test);
    else
        printf(
            "%s and %s go together: shapes, types, scales and ranges of samples are compatible%s\n",
            train, test,
            data_has_fields(first->set) ? ""
            : class_names_are_numbers(&first->names) || class_names_are_numbers(&second->names)
                ? ", and classes have no names to compare"
            : differs ? ", and classes are matched by their names"
                      : ", and so are the names of classes");
    mem_free(&differ);
    return OK;
}

static Status check_files(const Config *config, const DataWords *words)
{
    Checked c[2] = {{.set = mem_new(sizeof *c[0].set), .use = mem_new(sizeof *c[0].use)},
                    {.set = mem_new(sizeof *c[1].set), .use = mem_new(sizeof *c[1].use)}};
    const int count = words->count;
    Status st = OK;
    for (int i = 0; st == OK && i < count; ++i) st = check_one(&c[i], config, words, i);
    if (st == OK && count == 2) st = check_both(&c[0], &c[1]);
    for (int i = 0; i < 2; ++i) {
        class_names_free(&c[i].names);
        data_set_fini(c[i].set);
        mem_free(&c[i].set);
        mem_free(&c[i].use);
    }
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    Config *config;
    DataWords words;
    (void)options;
    TRY(data_words_read(argc, argv, 2, &words, &config));
    Status st = check_files(config, &words);
    config_free(&config);
    return st;
}

const Verb verb_data_check = {
    .name = "data check",
    .words = "FILE [TEST]|CONFIG.yaml [key=value ...]",
    .words_min = 1,
    .expects = "a data file, two, or a configuration",
    .help = "reads a whole data set and checks each label or token; compares a training set with "
            "a test set",
    .more = "TEST is the test set for a model that is trained on FILE: kinds, shapes, types, "
            "scales, ranges of values, labels and names of classes are compared. Keys of section "
            "data, as data.x=/name, give the names and layout of the arrays in the files; fields "
            "need data.variables. A "
            "configuration names the sets by data.train and data.test.",
    .traits = VERB_NO_TRAITS,
    .run = run,
};
