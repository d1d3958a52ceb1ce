/* weft data info: prints the contents of a data set. */
#include "../private.h"

typedef struct InfoOptions {
    bool json;
} InfoOptions;

static const Flag flags[] = {
    {"--json", FLAG_FIELD(InfoOptions, json), .help = "one JSON object"},
};

static Status run(int argc, char **argv, const void *options)
{
    const InfoOptions *o = options;
    Config *config = NULL;
    DataSet *set = mem_new(sizeof *set);
    Status status = open_data(argc, argv, set, &config);
    if (status == OK) status = data_set_print(set, stdout, o->json);
    config_free(&config);
    mem_free(&set);
    return status;
}

const Verb verb_data_info = {
    .name = "data info",
    .words = "FILE [key=value ...]",
    .words_min = 1,
    .expects = "a data file",
    .help = "prints the contents of a data set",
    .more = "Keys of section data, as data.x=/name, give the names and layout of the arrays in "
            "the file.",
    VERB_FLAGS(InfoOptions, flags),
    .traits = VERB_PLAIN,
    .run = run,
};
