/* The data that verbs work on. A verb opens a data file with the keys that describe it, or parses
 * --input, which gives only the shape of samples. The shape is enough for a plan, and benchmarks
 * generate samples of that shape. This file also reads the configuration in a checkpoint. */
#include "private.h"

#include "checkpoint.h"
#include "model.h"
#include "train.h"

#include <string.h>
#include <unistd.h>

/* Parses "13" (numbers) or "13+26" (numbers and fields of ids). Returns false if the text has
 * neither form. */
static bool read_table_row(const char *text, Input *input)
{
    int64_t numbers = 0, fields = 0;
    const char *plus = strchr(text, '+');
    char *first = mem_format("%.*s", (int)strcspn(text, "+"), text);
    bool good = sizes_read(first, 1, &numbers) && (!plus || sizes_read(plus + 1, 1, &fields));
    mem_free(&first);
    input->shape = shape_of(2, 1, numbers, 1, 1);
    input->fields = fields;
    return good;
}

Status input_parse(const char *text, Input *input)
{
    int64_t size[3];
    *input = (Input){.tokens = strcmp(text, "tokens") == 0};
    if (input->tokens || read_table_row(text, input)) return OK;
    if (!sizes_read(text, 3, size))
        return fail(ERR_USAGE,
                    "--input %s: expected channels x height x width, like 3x224x224, tokens, or "
                    "numbers and fields of ids, like 13+26",
                    text);
    input->shape = shape_of(4, (int64_t)1, size[0], size[1], size[2]);
    return OK;
}

static Status describe_tokens(DataSet *set, const Config *config)
{
    int64_t size_vocab = config->model.size == GPT_OWN ? 0 : GPT2_VOCAB;
    set->kind = DATA_TOKENS;
    set->context = data_context(config);
    set->vocab = set->classes = config->model.vocab ? config->model.vocab : size_vocab;
    if (set->vocab > 0) return OK;
    return fail(ERR_USAGE,
                "--input tokens: the number of different tokens is unknown; set model.vocab");
}

/* Describes samples for a model that maps fields to fields. Targets have the size of the inputs.
 * classes: 0 if the targets are `targets` fields of numbers; otherwise there is one field of labels
 * of `classes` classes, and `targets` is 1. */
static void describe_fields(DataSet *set, int64_t targets, int64_t classes)
{
    const int64_t dim[] = {set->samples, targets, set->height, set->width};
    set->kind = DATA_FIELDS;
    set->field_set.targets = set->field_set.step_targets = (int)targets;
    set->field_set.classes.count = (int)classes;
    set->classes = classes;
    set->field_set.inputs = set->field_set.step_inputs = (int)set->channels;
    set->field_set.steps = 1;
    set->field_set.mask = -1;
    memcpy(set->y.dim, dim, sizeof dim);
    set->target_width = classes > 0 ? 0 : targets * set->height * set->width;
}

/* Describes samples that are images, fields or rows of a table. */
static Status describe_samples(DataSet *set, const Input *input, const Config *config)
{
    char text[64];
    const Shape x = input->shape;
    const LossInfo *loss = loss_info(config);
    const bool has_targets = loss->reads == LOSS_READS_TARGETS;
    /* number of classes or, if the loss reads targets, of values in a target */
    int64_t classes = config->model.classes > 0 ? config->model.classes : loss->classes;
    set->kind = x.ndim == 2 ? DATA_TABLE : DATA_IMAGE;
    set->channels = x.dim[1];
    set->height = x.dim[2];
    set->width = x.dim[3];
    set->fields = set->ids_per_sample_max = input->fields;
    const ZooEntry *model = config->model.layer_count == 0 ? zoo_find(config->model.name) : NULL;
    const bool fields = model && model->maps == MAPS_FIELDS;
    if (fields && !has_targets && classes > FIELD_CLASSES)
        return config_fail_key(config, "model.classes", "labels of pixels have up to %d classes",
                               FIELD_CLASSES);
    if (fields && (has_targets || loss->outputs == OUTPUTS_PER_CLASS))
        describe_fields(set, has_targets ? classes : 1, has_targets ? 0 : classes);
    else if (has_targets)
        set->target_width = classes;
    else
        set->classes = classes;
    if (classes > 0) return OK;
    return fail(ERR_USAGE, "--input %s: the number of %s is unknown; set model.classes",
                shape_text(x, text) + strlen("1x"), has_targets ? "values in a target" : "classes");
}

Status input_describe_set(DataSet *set, const Input *input, const Config *config, int64_t samples)
{
    *set = (DataSet){.path = "--input", .samples = samples};
    return input->tokens ? describe_tokens(set, config) : describe_samples(set, input, config);
}

Status input_open_train(DataSet *set, const Config *config)
{
    Status st = config->data.train ? data_set_open(set, config, config->data.train)
                                   : fail(ERR_NOINPUT, "its configuration names no data.train");
    if (st == OK) st = data_set_select_times(set, config, false);
    if (st == OK) st = data_set_check_size(set, config);
    if (st == OK) return OK;
    data_set_fini(set);
    return fail(st, "%s; or describe a sample by --input, as 3x224x224 or tokens", fail_message());
}

static bool is_configuration(const char *path)
{
    const char *end = strrchr(path, '.');
    return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

Status data_words_read(int argc, char **argv, int most, DataWords *words, Config **config)
{
    *words = (DataWords){0};
    *config = NULL;
    if (is_configuration(argv[0])) {
        TRY(config_load(config, argv[0], argc - 1, argv + 1));
        const Config *c = *config;
        if (c->data.train) words->path[words->count++] = c->data.train;
        words->is_test[words->count] = c->data.test != NULL;
        if (c->data.test) words->path[words->count++] = c->data.test;
        if (words->count > 0) return OK;
        Status st = config_fail_key(c, "data.train", "names no data");
        config_free(config);
        return st;
    }
    while (words->count < argc && (words->count == 0 || !strchr(argv[words->count], '='))) {
        if (words->count == most)
            return fail(ERR_USAGE, "%s: expected one data file%s", argv[most],
                        most > 1 ? ", or two" : "");
        words->path[words->count] = argv[words->count];
        ++words->count;
    }
    return config_load(config, NULL, argc - words->count, argv + words->count);
}

Status data_words_open(const DataWords *words, int i, const Config *config, DataSet *set)
{
    TRY(data_set_open(set, config, words->path[i]));
    return data_set_select_times(set, config, words->is_test[i]);
}

Status checkpoint_read_config(Config **config, const char *checkpoint, const char *config_file,
                              int count, char **overrides)
{
    CheckpointMeta meta = {0};
    if (config_file) {
        const World alone = world_alone();
        TRY(config_load(config, config_file, count, overrides));
        train_use_widths(*config, &alone, checkpoint);
        (*config)->train.rollout = 1;
        return OK;
    }
    TRY(checkpoint_read_meta(checkpoint, &meta));
    Status st = *meta.config ? config_parse(config, checkpoint, meta.config, count, overrides)
                             : fail(ERR_CONFIG,
                                    "%s: holds no configuration, so its model is unknown; give "
                                    "--config",
                                    checkpoint);
    if (st == OK) (*config)->train.rollout = 1;
    checkpoint_meta_fini(&meta);
    return st;
}
