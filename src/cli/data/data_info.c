/* weft data info: prints the contents of a data set. */
#include "../private.h"

typedef struct InfoOptions {
    bool json;
} InfoOptions;

static const Flag flags[] = {
    {"--json", FLAG_FIELD(InfoOptions, json), .help = "one JSON object"},
};

/* Prints the sets. JSON for two sets is one object with the keys "train" and "test". */
static Status print_sets(const DataWords *words, const Config *config, bool json)
{
    static const char *const name[] = {"train", "test"};
    DataSet *set = mem_new(sizeof *set);
    Status status = OK;
    for (int i = 0; status == OK && i < words->count; ++i) {
        status = data_words_open(words, i, config, set);
        if (status != OK) break;
        if (json && words->count > 1) printf("%s\"%s\": ", i ? ", " : "{", name[i]);
        status = data_set_print(set, stdout, json);
        data_set_fini(set);
    }
    if (status == OK && json && words->count > 1) puts("}");
    mem_free(&set);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    const InfoOptions *o = options;
    Config *config;
    DataWords words;
    TRY(data_words_read(argc, argv, 1, &words, &config));
    Status status = print_sets(&words, config, o->json);
    config_free(&config);
    return status;
}

const Verb verb_data_info = {
    .name = "data info",
    .words = "FILE|CONFIG.yaml [key=value ...]",
    .words_min = 1,
    .expects = "a data file, or a configuration",
    .help = "prints the contents of a data set",
    .more = "Keys of section data, as data.x=/name, give the names and layout of the arrays in "
            "the file; fields need data.variables. A configuration names the sets by data.train "
            "and data.test.",
    VERB_FLAGS(InfoOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
