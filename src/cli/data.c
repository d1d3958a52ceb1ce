/* weft data: imports, what a file holds, and whether it is whole. */
#include "private.h"

#include "data.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 65536 };
static const double TEST_SHARE = 0.1;

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

/* What both imports of tokens take. */
typedef struct TokenFlags {
    const char *out, *test, *share, *bits, *vocab;
    bool force;
} TokenFlags;

static Status check_tokens(const TokenFlags *f, int argc, double *share)
{
    TRY(need_words(argc, 1, 1, "one file is wanted, and -o OUT"));
    if (!f->out) return fail(ERR_USAGE, "-o OUT is missing: the data set to write");
    if (f->share && !f->test)
        return fail(ERR_USAGE, "--test-share needs --test OUT: the data set to write it to");
    return flag_number("--test-share", f->share, 0, 1, share);
}

static Status wrote_tokens(Status status, const TokenFlags *f)
{
    if (status != OK) return status;
    log_info("wrote %s", f->out);
    if (f->test) log_info("wrote %s", f->test);
    return OK;
}

Status verb_import_text(int argc, char **argv)
{
    TokenFlags f = {0};
    double share = TEST_SHARE;
    const Flag flags[] = {{"-o", &f.out, NULL},
                          {"--test", &f.test, NULL},
                          {"--test-share", &f.share, NULL},
                          {"--force", NULL, &f.force}};
    TRY(flags_take(&argc, argv, flags, 4));
    TRY(check_tokens(&f, argc, &share));
    return wrote_tokens(data_import_text(argv[0], f.out, f.test, share, f.force), &f);
}

Status verb_import_tokens(int argc, char **argv)
{
    TokenFlags f = {0};
    double share = TEST_SHARE;
    int64_t bits = 0, vocab = 0;
    const Flag flags[] = {
        {"-o", &f.out, NULL},      {"--bits", &f.bits, NULL},        {"--vocab", &f.vocab, NULL},
        {"--test", &f.test, NULL}, {"--test-share", &f.share, NULL}, {"--force", NULL, &f.force}};
    TRY(flags_take(&argc, argv, flags, 6));
    TRY(check_tokens(&f, argc, &share));
    if (!f.bits) return fail(ERR_USAGE, "--bits is missing: 16 or 32 of a token in %s", argv[0]);
    TRY(flag_whole("--bits", f.bits, 1, 64, &bits));
    TRY(flag_whole("--vocab", f.vocab, 1, INT32_MAX, &vocab));
    return wrote_tokens(
        data_import_tokens(argv[0], (int)bits, vocab, f.out, f.test, share, f.force), &f);
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
