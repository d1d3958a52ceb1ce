/* weft data check: is a data set whole? Reads it through. */
#include "private.h"

static Status run(int argc, char **argv, const void *options)
{
    Config *config = NULL;
    DataSet *set = mem_new(sizeof *set);
    (void)options;
    Status status = open_data(argc, argv, set, &config);
    if (status == OK) status = data_set_check(set, config->model.classes);
    if (status == OK) printf("%s: good, %lld samples\n", argv[0], (long long)set->samples);
    config_free(&config);
    mem_free(&set);
    return status;
}

const Verb verb_data_check = {
    .name = "data check",
    .words = "FILE [key=value ...]",
    .least = 1,
    .expects = "a data file",
    .help = "reads a data set through and checks every label or token",
    .more = "Keys of section data, as data.x=/name, say how the file names and orders its arrays.",
    .run = run,
};
