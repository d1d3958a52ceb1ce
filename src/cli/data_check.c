/* weft data check: is a data set whole? Reads it through. Of two sets it says how they go together,
 * as a training set and a test set. */
#include "private.h"

#include "train.h"

#include <string.h>

/* A data set and what is known of it. */
typedef struct Checked {
    DataSet *set;
    ClassNames names;
    LabelUse *use;
} Checked;

static Status check_one(Checked *c, const Config *config, const char *path)
{
    DataSet *set = c->set;
    TRY(data_set_open(set, config, path));
    TRY(data_set_check(set, config->model.classes));
    if (!data_kind(set)->next_token && set->classes > 0) {
        TRY(data_set_count_labels(set, c->use));
        TRY(data_set_class_names(set, &c->names));
        char *odd = data_set_odd_labels(set, config, c->use);
        if (odd) log_warn("%s", odd);
        mem_free(&odd);
    }
    printf("%s: good, %lld samples\n", path, (long long)set->samples);
    return OK;
}

/* Compares two sets: their samples, names of classes, and classes of which only the second set has
 * samples. */
static Status check_both(Checked *first, Checked *second)
{
    char *line = NULL;
    TRY(train_take_test_set(second->set, first->set));
    TRY(data_set_use_classes(second->set, &second->names, &first->names, first->set->path, &line));
    if (line) printf("%s\n", line);
    mem_free(&line);
    TRY(data_set_check_labels(second->set));
    printf("%s and %s go together: samples, types and scales are alike%s\n", first->set->path,
           second->set->path,
           first->names.count == 0 || second->names.count == 0
               ? ", and classes have no names to compare"
               : ", and so are the names of classes");
    return OK;
}

static Status check_files(const Config *config, char *const *path, int count)
{
    Checked c[2] = {{.set = mem_new(sizeof *c[0].set), .use = mem_new(sizeof *c[0].use)},
                    {.set = mem_new(sizeof *c[1].set), .use = mem_new(sizeof *c[1].use)}};
    Status st = OK;
    for (int i = 0; st == OK && i < count; ++i) st = check_one(&c[i], config, path[i]);
    if (st == OK && count == 2) st = check_both(&c[0], &c[1]);
    for (int i = 0; i < 2; ++i) {
        class_names_free(&c[i].names);
        mem_free(&c[i].set);
        mem_free(&c[i].use);
    }
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    Config *config = NULL;
    (void)options;
    int count = argc > 1 && !strchr(argv[1], '=') ? 2 : 1;
    if (argc > 2 && count == 2 && !strchr(argv[2], '='))
        return fail(ERR_USAGE, "%s: expected one data file, or two", argv[2]);
    TRY(config_load(&config, NULL, argc - count, argv + count));
    Status st = check_files(config, argv, count);
    config_free(&config);
    return st;
}

const Verb verb_data_check = {
    .name = "data check",
    .words = "FILE [TEST] [key=value ...]",
    .least = 1,
    .expects = "a data file, or two",
    .help = "reads a data set through and checks every label or token; of two, do they go together",
    .more = "TEST is a set to evaluate a model on that learns FILE: kinds, shapes, types, scales "
            "and the names of classes are compared. Keys of section data, as data.x=/name, say how "
            "the files name and order their arrays.",
    .run = run,
};
