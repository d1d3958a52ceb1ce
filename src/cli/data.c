/* weft data: imports, what a file holds, and whether it is whole. */
#include "private.h"

#include "data.h"

#include <string.h>

enum { CLASSES_MAX = 65536 };

static Status need_words(int argc, int least, int most, const char *what)
{
    if (argc >= least && argc <= most) return OK;
    return fail(ERR_USAGE, "%s; --help says more", what);
}

/* "a,b,c" -> words; *copy holds their text. Both owned by the caller. */
static int split_names(const char *text, char **copy, const char ***names)
{
    int count = 0;
    *copy = mem_text(text);
    *names = NULL;
    for (char *walk = *copy, *word; walk && (word = strsep(&walk, ",")) && count < CLASSES_MAX;) {
        *names = mem_resize(*names, (size_t)(count + 1) * sizeof **names);
        (*names)[count++] = word;
    }
    return count;
}

Status verb_import_idx(int argc, char **argv)
{
    const char *out = NULL, *classes = NULL, **names = NULL;
    char *copy = NULL;
    bool force = false;
    const Flag flags[] = {
        {"-o", &out, NULL}, {"--classes", &classes, NULL}, {"--force", NULL, &force}};
    TRY(flags_take(&argc, argv, flags, 3));
    TRY(need_words(argc, 2, 2, "an images file and a labels file are wanted"));
    if (!out) return fail(ERR_USAGE, "-o OUT is missing: the data set to write");
    int count = split_names(classes, &copy, &names);
    Status status = data_import_idx(argv[0], argv[1], names, count, out, force);
    if (status == OK) log_info("wrote %s", out);
    mem_free(&names);
    mem_free(&copy);
    return status;
}

Status verb_import_cifar(int argc, char **argv)
{
    const char *out = NULL;
    bool fine = false, force = false;
    const Flag flags[] = {{"-o", &out, NULL}, {"--fine", NULL, &fine}, {"--force", NULL, &force}};
    TRY(flags_take(&argc, argv, flags, 3));
    TRY(need_words(argc, 1, INT32_MAX, "one or more batch files are wanted"));
    if (!out) return fail(ERR_USAGE, "-o OUT is missing: the data set to write");
    TRY(data_import_cifar((const char *const *)argv, argc, fine, out, force));
    log_info("wrote %s", out);
    return OK;
}

/* FILE [key=value ...]: the data keys name what the file calls its arrays. */
static Status open_file(int argc, char **argv, DataSet *set, Config **config)
{
    TRY(need_words(argc, 1, INT32_MAX, "a data file is wanted"));
    TRY(config_load(config, NULL, argc - 1, argv + 1));
    Status status = data_set_open(set, *config, argv[0]);
    if (status != OK) config_free(config);
    return status;
}

Status verb_data_info(int argc, char **argv)
{
    Config *config = NULL;
    bool json = false;
    const Flag flags[] = {{"--json", NULL, &json}};
    DataSet *set = mem_new(sizeof *set);
    Status status = flags_take(&argc, argv, flags, 1);
    if (status == OK) status = open_file(argc, argv, set, &config);
    if (status == OK) data_set_print(set, stdout, json);
    config_free(&config);
    mem_free(&set);
    return status;
}

Status verb_data_check(int argc, char **argv)
{
    Config *config = NULL;
    DataSet *set = mem_new(sizeof *set);
    Status status = flags_take(&argc, argv, NULL, 0);
    if (status == OK) status = open_file(argc, argv, set, &config);
    if (status == OK) status = data_set_check(set, config->model.classes);
    if (status == OK) printf("%s: good, %lld samples\n", argv[0], (long long)set->samples);
    config_free(&config);
    mem_free(&set);
    return status;
}
