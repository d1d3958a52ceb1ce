/* Checks the rules across keys, after all keys have been read. If two keys exclude each other, a
 * key on the command line replaces a key in the file; two such keys in the file, or two on the
 * command line, are an error. */
#include "option.h"
#include "schedules.def"

#include <libgen.h>
#include <math.h>
#include <string.h>

static ConfigPlace *place_of(const Config *config, const char *key)
{
    return &config->place[option_find(key)];
}

static bool is_set(const Config *config, const char *key)
{
    return place_of(config, key)->source != SOURCE_DEFAULT;
}

/* Sets a key back to its default, as if no source had set it. */
static Status reset_key(Config *config, const char *key)
{
    ConfigPlace *place = place_of(config, key);
    mem_free(&place->word);
    place->source = SOURCE_DEFAULT;
    return option_set_default(&options[option_find(key)], config);
}

/* If both keys are set: fails if they are from the same source; otherwise resets the key that is
 * set in the file. */
static Status keep_one(Config *config, const char *a, const char *b)
{
    Source from_a = place_of(config, a)->source, from_b = place_of(config, b)->source;
    if (from_a == SOURCE_DEFAULT || from_b == SOURCE_DEFAULT) return OK;
    if (from_a == from_b)
        return config_fail_key(config, b, "%s is set, too: keep one of the two", a);
    return reset_key(config, from_a < from_b ? a : b);
}

/* Checks numbers of section train. If neither train.epochs nor train.steps is set, sets
 * train.epochs to 1. */
static Status check_train(Config *config)
{
    int64_t batch = config->train.batch, micro = config->train.micro_batch;
    if (config->train.epochs == 0 && config->train.steps == 0) config->train.epochs = 1;
    if (micro && batch % micro) {
        int64_t divisor = micro < batch ? micro : batch;
        while (batch % divisor) --divisor;
        return config_fail_key(
            config, "train.micro_batch",
            "%lld does not divide train.batch (%lld): choose a divisor, such as %lld",
            (long long)micro, (long long)batch, (long long)divisor);
    }
    const int64_t slices = config->train.sum_slices;
    if ((slices & (slices - 1)) != 0)
        return config_fail_key(config, "train.sum_slices",
                               "%lld is no power of two: choose 1, 2, 4, 8, 16, 32 or 64",
                               (long long)slices);
    int exponent;
    if (frexp(config->train.loss_scale, &exponent) != 0.5)
        return config_fail_key(
            config, "train.loss_scale",
            "%g is no power of two, so scaling would round: choose 65536 or 1024",
            config->train.loss_scale);
    return OK;
}

/* Fails if the word to which the key `chooser` is set (optim.name: sgd) does not use the key
 * `key`. */
static Status check_key_is_used(const Config *config, const char *chooser, const char *key)
{
    const Option *option = &options[option_find(chooser)];
    ConfigWord word = option_word(option, *(const int *)option_value(option, config));
    const char *leaf = option_leaf(&options[option_find(key)]);
    if (word_uses(word, leaf)) return OK;
    char *users = option_users(option, leaf, " and ");
    Status status = config_fail_key(config, key, "is used only by %s: set %s: %.*s", users, chooser,
                                    (int)strcspn(users, " "), users);
    mem_free(&users);
    return status;
}

/* Fails if `key`, a number or a list that only some losses use, is set, and the chosen loss does
 * not use it. The default is accepted for all losses, because a resolved configuration sets all
 * keys. */
static Status check_loss_number(const Config *config, const char *key)
{
    const Option *loss = &options[option_find("train.loss")];
    const char *leaf = option_leaf(&options[option_find(key)]);
    if (word_uses(option_word(loss, config->train.loss), leaf)) return OK;
    if (config_key_is_default(config, key)) return OK;
    char *users = option_users(loss, leaf, " and ");
    Status status = config_fail_key(config, key, "needs %s: %s", loss->key, users);
    mem_free(&users);
    return status;
}

static Status check_loss_numbers(const Config *config)
{
    static const char *const keys[] = {"train.label_smoothing", "train.huber_delta",
                                       "train.charbonnier_eps", "train.focal_gamma",
                                       "train.class_weights"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) TRY(check_loss_number(config, keys[i]));
    return OK;
}

/* Sets the keys of a section to the defaults that they have for a word, except for keys that the
 * user has set. */
static Status set_word_defaults(Config *config, const char *section, ConfigWord word)
{
    for (int i = 0; i < option_count; ++i)
        if (option_is_in(&options[i], section) && !is_set(config, options[i].key))
            TRY(option_set_word_default(&options[i], config, word));
    return OK;
}

/* Sets the constants of update rules to the defaults that they have for the chosen rule, except for
 * constants that the user has set. */
static Status set_rule_defaults(Config *config)
{
    ConfigWord word = option_word(&options[option_find("optim.name")], config->optim.name);
    uint64_t given = 0;
    for (int i = 0; i < option_count; ++i)
        if (option_is_in(&options[i], "optim") && is_set(config, options[i].key))
            given |= optim_bit(&options[i]);
    return optim_set_defaults(config, &config->optim, word.defaults, given);
}

/* Fails if the command line sets a key that the chosen update rule or curve does not use. Keys that
 * the file sets are not checked, because the command line may have chosen another rule or curve
 * than the file. curve: the option optim.lr_schedule. */
static Status check_optim_keys(const Config *config, const Option *curve)
{
    for (int i = 0; i < option_count; ++i) {
        if (config->place[i].source != SOURCE_COMMAND) continue;
        if (options[i].constant) TRY(check_key_is_used(config, "optim.name", options[i].key));
        if (!option_is_in(&options[i], "optim")) continue;
        char *users = option_users(curve, option_leaf(&options[i]), " ");
        Status status = *users ? check_key_is_used(config, curve->key, options[i].key) : OK;
        mem_free(&users);
        TRY(status);
    }
    return OK;
}

static Status check_optim(Config *config)
{
    const ConfigList *milestones = &config->optim.milestones;
    const Option *curve = &options[option_find("optim.lr_schedule")];
    ConfigWord word = option_word(curve, config->optim.lr_schedule);
    TRY(set_rule_defaults(config));
    TRY(set_word_defaults(config, "optim", word));
    TRY(check_optim_keys(config, curve));
    if (config->optim.nesterov) TRY(check_key_is_used(config, "optim.name", "optim.nesterov"));
    if (config->optim.nesterov && config->optim.momentum == 0)
        return config_fail_key(config, "optim.nesterov", "needs optim.momentum above 0");
    if (word.word && word_uses(word, "milestones") && milestones->count == 0)
        return config_fail_key(config, "optim.lr_schedule",
                               "%s needs optim.milestones, such as [30, 60, 80]", word.word);
    for (int i = 1; i < milestones->count; ++i)
        if (milestones->value[i] <= milestones->value[i - 1])
            return config_fail_key(config, "optim.milestones", "must rise: %g comes after %g",
                                   milestones->value[i], milestones->value[i - 1]);
    return groups_resolve(config);
}

/* Fails unless the list of a key is a range, [smallest, largest]. */
static Status check_range(const Config *config, const char *key, const ConfigList *list)
{
    if (list->count == 2 && list->value[0] <= list->value[1]) return OK;
    return config_fail_key(config, key, "takes two numbers, the smallest and the largest");
}

static Status check_images(const Config *config)
{
    const ConfigList *jitter = &config->data.color_jitter;
    TRY(check_range(config, "data.crop_scale", &config->data.crop_scale));
    TRY(check_range(config, "data.crop_ratio", &config->data.crop_ratio));
    if (config->data.affine_scale.count)
        TRY(check_range(config, "data.affine_scale", &config->data.affine_scale));
    if (config->data.random_resized_crop && config->data.random_crop)
        return config_fail_key(config, "data.random_crop",
                               "cannot be combined with data.random_resized_crop: choose one");
    if (jitter->count != 0 && jitter->count != 4)
        return config_fail_key(config, "data.color_jitter",
                               "takes four numbers: [brightness, contrast, saturation, hue]");
    if (jitter->count == 4 && jitter->value[3] > 0.5)
        return config_fail_key(config, "data.color_jitter", "hue is at most 0.5, it is %g",
                               jitter->value[3]);
    return OK;
}

/* Fails if a key for sets of fields is set and data.variables is not, or if a key that is not for
 * sets of fields is set together with data.variables. A key counts as set if its value differs from
 * the default, because a resolved configuration sets all keys. */
static Status check_fields(const Config *config)
{
    const bool fields = config->data.variables.count > 0;
    const struct {
        const char *key;
        /* true: the key differs from its default */
        bool used;
        /* true: the key is only for sets of fields; false: it is not for sets of fields */
        bool for_fields;
    } key[] = {
        {"data.window", config->data.window.inputs.count + config->data.window.targets.count > 0,
         true},
        {"data.predict", config->data.predict != 0, true},
        {"data.train_time", config->data.train_time.from != NULL, true},
        {"data.test_time", config->data.test_time.from != NULL, true},
        {"data.stats", *config->data.stats != 0, true},
        {"data.mask", *config->data.mask != 0, true},
        {"train.latitude_weights", config->train.latitude_weights, true},
        {"data.mean", config->data.mean.count > 0, false},
        {"data.std", config->data.std.count > 0, false},
        {"data.scale", config->data.scale != 0, false},
    };
    for (size_t i = 0; i < sizeof key / sizeof *key; ++i) {
        if (!key[i].used || key[i].for_fields == fields) continue;
        if (key[i].for_fields)
            return config_fail_key(config, key[i].key, "is for fields: set data.variables, too");
        return config_fail_key(
            config, key[i].key,
            "is not for fields (data.variables), whose files say how they are "
            "packed, and whose mean and deviation are measured or in data.stats");
    }
    return OK;
}

/* Checks section data. Replaces empty paths by NULL. */
static Status check_data(Config *config)
{
    if (config->data.train && !*config->data.train) mem_free(&config->data.train);
    if (config->data.test && !*config->data.test) mem_free(&config->data.test);
    int mean = config->data.mean.count, std = config->data.std.count;
    if ((mean > 0) != (std > 0))
        return config_fail_key(config, mean ? "data.mean" : "data.std", "needs %s, too",
                               mean ? "data.std" : "data.mean");
    if (mean != std)
        return config_fail_key(config, "data.std", "has %d values and data.mean has %d", std, mean);
    TRY(check_fields(config));
    return check_images(config);
}

/* If run.name is not given, sets it to the name of the configuration file without its suffix, or to
 * "run" if that name has a blank or begins with '.'. Fails if run.name is not the name of a single
 * folder. */
static Status check_name(Config *config)
{
    if (!*config->run.name) {
        char *path = mem_text(config->path), *name = basename(path), *dot = strrchr(name, '.');
        if (dot && dot != name) *dot = 0;
        mem_free(&config->run.name);
        bool usable = *name && *name != '.' && *name != '/' && !strchr(name, ' ');
        config->run.name = mem_text(usable ? name : "run");
        mem_free(&path);
    }
    const char *name = config->run.name;
    if (strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return config_fail_key(config, "run.name",
                               "'%s' cannot be the name of a folder: no '/', not '.' or '..'",
                               name);
    return OK;
}

/* Sets the keys of section model to the defaults that they have for the model model.name, except
 * for keys that the user has set. */
static Status set_model_defaults(Config *config)
{
    const Option *name = &options[option_find("model.name")];
    ConfigWord word;
    for (int i = 0; (word = option_word(name, i)).word; ++i)
        if (strcmp(word.word, config->model.name) == 0) break;
    return set_word_defaults(config, "model", word);
}

/* Checks model.name and model.layers, and sets the model's defaults. A number of blocks
 * (model.layers: 12) needs model.name; a list of layers excludes it. */
static Status check_model(Config *config)
{
    if (config->model.layer_count > 0) TRY(keep_one(config, "model.name", "model.layers"));
    if (config->model.depth == 0 || *config->model.name) return set_model_defaults(config);
    char *users = option_users(&options[option_find("model.name")], "blocks", ", ");
    Status st = config_fail_key(config, "model.layers",
                                "a number of blocks needs a model by name: set model.name to one "
                                "of %s",
                                users);
    mem_free(&users);
    return st;
}

/* Checks that the parameters of a run come from at most one file (model.init_from or
 * checkpoint.resume), that model.init_fresh, model.init_rename and model.init_ema are set only with
 * model.init_from, that model.freeze_norm is set only with model.freeze, and that the items of
 * model.init_rename are OLD:NEW. Replaces an empty model.init_from by NULL. */
static Status check_init(Config *config)
{
    const char *item = config->model.init_rename;
    if (config->model.init_from && !*config->model.init_from) mem_free(&config->model.init_from);
    if (config->model.init_from && config->checkpoint.resume == RESUME_FILE)
        return config_fail_key(config, "model.init_from",
                               "starts from parameters, checkpoint.resume: %s from a whole run: "
                               "keep one of the two",
                               config->checkpoint.resume_path);
    if (!config->model.init_from && *config->model.init_fresh)
        return config_fail_key(config, "model.init_fresh", "needs model.init_from, too");
    if (!config->model.init_from && *item)
        return config_fail_key(config, "model.init_rename", "needs model.init_from, too");
    if (!config->model.init_from && !config->model.init_ema)
        return config_fail_key(config, "model.init_ema", "needs model.init_from, too");
    if (config->model.freeze_norm != 0 && !*config->model.freeze)
        return config_fail_key(config, "model.freeze_norm",
                               "needs model.freeze, too, which names layers");
    while (*item) {
        size_t chars = strcspn(item, ",");
        const char *colon = memchr(item, ':', chars);
        if (!colon || memchr(colon + 1, ':', (size_t)(item + chars - colon - 1)))
            return config_fail_key(config, "model.init_rename",
                                   "'%.*s' is not OLD:NEW, such as \"backbone.:\"", (int)chars,
                                   item);
        item += chars + (item[chars] == ',');
    }
    return OK;
}

#define CHUNKS(id, name, word, min, usual, max, help) {word, min, usual, max},
static const struct {
    const char *word;
    /* smallest number of chunks of a stage */
    int min;
    /* default number of chunks of a stage */
    int usual;
    /* largest number of chunks of a stage */
    int max;
} schedules[] = {SCHEDULES(CHUNKS)};

enum { SCHEDULES_BYTES = 256 };

/* Writes the names of the schedules that allow more chunks than their default, "a, b", to `out`,
 * and returns `out`. */
static const char *multi_chunk_schedules(char out[SCHEDULES_BYTES])
{
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < SCHEDULE_KINDS; ++i)
        if (schedules[i].max > schedules[i].usual && used < SCHEDULES_BYTES)
            used += (size_t)snprintf(out + used, SCHEDULES_BYTES - used, "%s%s", used ? ", " : "",
                                     schedules[i].word);
    return out;
}

/* Sets grid.chunks to the schedule's default, if it is not set, and checks its range. */
static Status check_chunks(Config *config)
{
    char text[SCHEDULES_BYTES];
    int64_t *chunks = &config->grid.chunks;
    int kind = config->grid.pipeline_schedule;
    if (*chunks == 0) *chunks = schedules[kind].usual;
    if (*chunks >= schedules[kind].min && *chunks <= schedules[kind].max) return OK;
    if (schedules[kind].max == 1)
        return config_fail_key(
            config, "grid.chunks", "%s has 1 chunk a stage, not %lld: %s take more",
            schedules[kind].word, (long long)*chunks, multi_chunk_schedules(text));
    return config_fail_key(config, "grid.chunks", "%s has %d chunks a stage, not %lld",
                           schedules[kind].word, schedules[kind].usual, (long long)*chunks);
}

static Status check_grid(Config *config)
{
    TRY(check_chunks(config));
    /* cuts: number of names in grid.cuts ("a,b") */
    int64_t cuts = *config->grid.cuts ? 1 : 0, chunks = config->grid.pp * config->grid.chunks;
    for (const char *c = config->grid.cuts; *c; ++c) cuts += *c == ',';
    if (cuts > 0 && cuts != chunks - 1)
        return config_fail_key(config, "grid.cuts",
                               "names %lld layer%s, but %lld stage%s of %lld chunk%s need %lld",
                               (long long)cuts, cuts == 1 ? "" : "s", (long long)config->grid.pp,
                               config->grid.pp == 1 ? "" : "s", (long long)config->grid.chunks,
                               config->grid.chunks == 1 ? "" : "s", (long long)chunks - 1);
    return OK;
}

/* Checks a number that only some values of grid.mode use. modes: these values, for the message.
 * used: true if grid.mode has one of them. If another mode is set on the command line and the
 * number in the file, the number is reset. The default is accepted in all modes, because a resolved
 * configuration sets all keys. */
static Status check_mode_number(Config *config, const char *key, bool used, const char *modes)
{
    if (used || config_key_is_default(config, key)) return OK;
    bool replaced = place_of(config, "grid.mode")->source > place_of(config, key)->source;
    return replaced ? reset_key(config, key)
                    : config_fail_key(config, key, "only grid.mode: %s uses it", modes);
}

static Status check_mode(Config *config)
{
    const char *words = option_words(&options[option_find("grid.mode")]);
    bool stale = config->grid.mode == words_find(words, "stale");
    bool sync_points = config->grid.mode != words_find(words, "sync");
    TRY(check_mode_number(config, "grid.staleness", stale, "stale"));
    TRY(check_mode_number(config, "grid.geo_steps", sync_points, "stale, geo or async"));
    if (!*config->run.order_log || !*config->run.replay) return OK;
    return keep_one(config, "run.order_log", "run.replay");
}

Status apply_rules(Config *config)
{
    TRY(keep_one(config, "train.epochs", "train.steps"));
    TRY(check_model(config));
    TRY(check_init(config));
    TRY(keep_one(config, "optim.warmup_steps", "optim.warmup_epochs"));
    TRY(check_name(config));
    TRY(check_train(config));
    TRY(check_optim(config));
    TRY(check_grid(config));
    TRY(check_mode(config));
    TRY(check_loss_numbers(config));
    return check_data(config);
}
