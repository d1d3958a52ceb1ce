/* The kinds of keys about fields. The data module interprets their values. Examples:
 *   data.variables   {inputs: [t, {name: z, levels: [500, 850]}], static: [orography],
 *                    targets: [{name: mask, classes: 4}]}
 *   data.window      {inputs: [-6h, 0h], targets: [6h]}
 *   data.train_time, data.test_time   [2001-01-01, 2018-12-31] */
#include "option.h"

#include <math.h>
#include <string.h>

/* words of the roles, in the order of FieldRole (data module) */
static const char role_words[] = "inputs|static|targets|scalars|extra";
enum { ROLE_TARGETS = 2 };

/* ---- data.variables ---- */

static void variables_free(void *field)
{
    ConfigVariables *list = field;
    for (int i = 0; i < list->count; ++i) {
        mem_free(&list->item[i].name);
        mem_free(&list->item[i].levels.value);
        mem_free(&list->item[i].weights.value);
    }
    mem_free(&list->item);
    list->count = 0;
}

static Status read_levels(Reading *r, ConfigVariable *variable, const YamlNode *node)
{
    static const Option level = {.kind = &kind_real, .lo = -INFINITY, .hi = INFINITY};
    Reading reading = {.option = &level, .config = r->config};
    const int count = node->kind == YAML_LIST ? node->count : 1;
    r->at = node;
    if (count == 0 || node->kind == YAML_MAP)
        return fail(ERR_CONFIG, "levels: expected values of the level's coordinate, [500, 850]");
    variable->levels.value = mem_new((size_t)count * sizeof *variable->levels.value);
    for (int i = 0; i < count; ++i) {
        const YamlNode *item = node->kind == YAML_LIST ? node->item[i] : node;
        double *value = variable->levels.value;
        Status status = read_real(&reading, item, &value[i]);
        r->at = item;
        TRY(status);
        for (int k = 0; k < i; ++k)
            if (value[k] == value[i]) return fail(ERR_CONFIG, "level %g is given twice", value[i]);
        ++variable->levels.count;
    }
    return OK;
}

/* Reads one of two keys of a target that consists of labels: `classes`, the number of classes, or
 * `ignore`, the value that means "no label". */
static Status read_classes(Reading *r, ConfigVariable *variable, const char *key,
                           const YamlNode *node)
{
    static const Option classes = {.kind = &kind_int, .min = 2, .max = CONFIG_CLASSES_MOST};
    static const Option ignore = {.kind = &kind_real, .lo = -INFINITY, .hi = INFINITY};
    const bool is_classes = !strcmp(key, "classes");
    Reading reading = {.option = is_classes ? &classes : &ignore, .config = r->config};
    if (variable->role != ROLE_TARGETS)
        return fail(ERR_CONFIG, "%s is for targets: inputs are read as numbers", key);
    Status status = is_classes ? kind_int.read(&reading, &variable->classes, node)
                               : read_real(&reading, node, &variable->ignore);
    variable->has_ignore |= !is_classes;
    r->at = node;
    return status;
}

/* Reads the key `weights`, [2, 1], with a weight for each level or, if `list` is false, the key
 * `weight` with one weight for all levels. */
static Status read_weights(Reading *r, ConfigVariable *variable, const YamlNode *node, bool list)
{
    static const Option weight = {.kind = &kind_real, .lo = 0, .hi = 1e9};
    Reading reading = {.option = &weight, .config = r->config};
    ConfigList *weights = &variable->weights;
    r->at = node;
    if (weights->count > 0) return fail(ERR_CONFIG, "a variable has weight or weights, not both");
    if (variable->role != words_find(role_words, "targets"))
        return fail(ERR_CONFIG, "only targets have weights in the loss");
    if (list ? node->kind != YAML_LIST || node->count == 0 : node->kind != YAML_SCALAR)
        return fail(ERR_CONFIG, "expected %s",
                    list ? "weights: [1, 0.5], one for each level"
                         : "weight: 2, one for all levels");
    const int count = list ? node->count : 1;
    weights->value = mem_new((size_t)count * sizeof *weights->value);
    for (int i = 0; i < count; ++i) {
        const YamlNode *item = list ? node->item[i] : node;
        Status status = read_real(&reading, item, &weights->value[i]);
        r->at = item;
        TRY(status);
        ++weights->count;
    }
    return OK;
}

/* Reads a variable: NAME, or a mapping with the keys name, levels, weight or weights and, for
 * labels, classes and ignore. */
static Status read_variable(Reading *r, ConfigVariable *variable, const YamlNode *node)
{
    const YamlNode *name = node->kind == YAML_SCALAR ? node : NULL;
    r->at = node;
    if (node->kind == YAML_LIST)
        return fail(ERR_CONFIG, "expected a variable: NAME, or {name: NAME, levels: [...]}");
    for (int i = 0; node->kind == YAML_MAP && i < node->count; ++i) {
        const char *key = node->key[i]->text;
        if (!strcmp(key, "name"))
            name = node->item[i];
        else if (!strcmp(key, "levels"))
            TRY(read_levels(r, variable, node->item[i]));
        else if (!strcmp(key, "classes") || !strcmp(key, "ignore"))
            TRY(read_classes(r, variable, key, node->item[i]));
        else if (!strcmp(key, "weight") || !strcmp(key, "weights"))
            TRY(read_weights(r, variable, node->item[i], !strcmp(key, "weights")));
        else
            return fail(ERR_CONFIG,
                        "a variable has no key '%s': it has name and levels, and a target weight "
                        "and weights, or with labels classes and ignore",
                        key);
    }
    r->at = node;
    if (variable->has_ignore && variable->classes == 0)
        return fail(ERR_CONFIG, "ignore is for labels: give their number of classes, too");
    if (!name) return fail(ERR_CONFIG, "the variable has no name");
    TRY(read_text(r, name));
    if (!*name->text) return fail(ERR_CONFIG, "the variable's name is empty");
    variable->name = mem_text(name->text);
    variable->line = node->line;
    variable->column = node->column;
    return OK;
}

static bool same_levels(const ConfigList *a, const ConfigList *b)
{
    return a->count == b->count &&
           (a->count == 0 || !memcmp(a->value, b->value, (size_t)a->count * sizeof *a->value));
}

/* Reads the list of variables of one role, and appends them to `list`. */
static Status read_role(Reading *r, ConfigVariables *list, int role, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_LIST)
        return fail(ERR_CONFIG, "expected a list of variables: [t2m, u10], not %s",
                    yaml_node_kind_name(node));
    list->item = mem_resize(list->item, (size_t)(list->count + node->count) * sizeof *list->item);
    for (int i = 0; i < node->count; ++i) {
        ConfigVariable *variable = &list->item[list->count++];
        *variable = (ConfigVariable){.role = role};
        TRY(read_variable(r, variable, node->item[i]));
        for (const ConfigVariable *other = list->item; other < variable; ++other)
            if (other->role == role && !strcmp(other->name, variable->name) &&
                same_levels(&other->levels, &variable->levels))
                return fail(ERR_CONFIG, "'%s' is in the list already", variable->name);
    }
    return OK;
}

static Status variables_read(Reading *r, void *field, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_MAP)
        return fail(ERR_CONFIG,
                    "expected lists of variables, {inputs: [t2m], targets: [t2m]}, not %s",
                    yaml_node_kind_name(node));
    variables_free(field);
    for (int i = 0; i < node->count; ++i) {
        int role = words_find(role_words, node->key[i]->text);
        if (role < 0) return words_fail(r->option->key, role_words, node->key[i]->text);
        TRY(read_role(r, field, role, node->item[i]));
    }
    return OK;
}

static void print_numbers(FILE *out, const ConfigList *list)
{
    fputc('[', out);
    for (int i = 0; i < list->count; ++i) {
        if (i) fputs(", ", out);
        text_real(out, list->value[i]);
    }
    fputc(']', out);
}

static void print_variable(FILE *out, const ConfigVariable *variable)
{
    if (variable->levels.count == 0 && variable->classes == 0 && variable->weights.count == 0) {
        print_text(out, variable->name);
        return;
    }
    fputs("{name: ", out);
    print_text(out, variable->name);
    if (variable->levels.count > 0) {
        fputs(", levels: ", out);
        print_numbers(out, &variable->levels);
    }
    if (variable->classes > 0) fprintf(out, ", classes: %lld", (long long)variable->classes);
    if (variable->has_ignore) {
        fputs(", ignore: ", out);
        text_real(out, variable->ignore);
    }
    if (variable->weights.count == 1) {
        fputs(", weight: ", out);
        text_real(out, variable->weights.value[0]);
    } else if (variable->weights.count > 1) {
        fputs(", weights: ", out);
        print_numbers(out, &variable->weights);
    }
    fputc('}', out);
}

static void variables_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigVariables *list = option_value(o, config);
    char word[WORD_BYTES];
    const char *between = "";
    fputc('{', out);
    for (int role = 0; role < words_count(role_words); ++role) {
        int printed = 0;
        for (int i = 0; i < list->count; ++i) {
            if (list->item[i].role != role) continue;
            if (printed++ == 0)
                fprintf(out, "%s%s: [", between, words_at(role_words, role, word));
            else
                fputs(", ", out);
            print_variable(out, &list->item[i]);
        }
        if (printed == 0) continue;
        fputc(']', out);
        between = ", ";
    }
    fputc('}', out);
}

/* ---- data.window ---- */

static void window_free(void *field)
{
    ConfigWindow *window = field;
    mem_free(&window->inputs.value);
    mem_free(&window->targets.value);
    *window = (ConfigWindow){0};
}

/* Reads an offset. "-6h" is in seconds: sets *value to -21600 and *seconds to true. "-1" is in
 * steps. */
static Status read_offset(Reading *r, const YamlNode *node, double *value, bool *seconds)
{
    TRY(read_text(r, node));
    const char *text = node->text;
    const double sign = *text == '-' ? -1 : 1;
    if (*text == '-' || *text == '+') ++text;
    *seconds = text[strspn(text, "0123456789")] != 0;
    if (*seconds && !strpbrk(text, ":-") && text_read_seconds(text, value)) {
        *value *= sign;
        return OK;
    }
    int64_t steps;
    if (!*seconds && whole_read(&text, 0, INT32_MAX, &steps) && *text == 0) {
        *value = sign * (double)steps;
        return OK;
    }
    return fail(ERR_CONFIG, "'%s' is no offset in time (-6h, 30m, 1d) and no number of steps",
                node->text);
}

/* Reads the offsets of the inputs or of the targets into `list`, a list of `window`. */
static Status read_offsets(Reading *r, ConfigWindow *window, ConfigList *list, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_LIST || node->count == 0)
        return fail(ERR_CONFIG, "expected a list of offsets in time: [-6h, 0h]");
    list->value = mem_new((size_t)node->count * sizeof *list->value);
    for (int i = 0; i < node->count; ++i) {
        bool seconds;
        double *value = &list->value[i];
        TRY(read_offset(r, node->item[i], value, &seconds));
        if (*value != 0 && window->is_set && seconds != window->seconds)
            return fail(ERR_CONFIG, "'%s': give all offsets in time, or all in steps",
                        node->item[i]->text);
        if (*value != 0) window->is_set = true, window->seconds = seconds;
        if (i > 0 && *value <= value[-1])
            return fail(ERR_CONFIG, "'%s': offsets must rise", node->item[i]->text);
        ++list->count;
    }
    return OK;
}

static Status window_read(Reading *r, void *field, const YamlNode *node)
{
    ConfigWindow *window = field;
    r->at = node;
    if (node->kind != YAML_MAP)
        return fail(ERR_CONFIG,
                    "expected offsets in time, {inputs: [-6h, 0h], targets: [6h]}, "
                    "not %s",
                    yaml_node_kind_name(node));
    window_free(field);
    for (int i = 0; i < node->count; ++i) {
        const char *key = node->key[i]->text;
        ConfigList *list = !strcmp(key, "inputs")    ? &window->inputs
                           : !strcmp(key, "targets") ? &window->targets
                                                     : NULL;
        if (!list) return words_fail(r->option->key, "inputs|targets", key);
        TRY(read_offsets(r, window, list, node->item[i]));
    }
    return OK;
}

/* Prints offsets in the form in which they are read: seconds with the unit s, steps without a
 * unit. */
static void print_offsets(FILE *out, const char *key, const ConfigList *list, bool seconds)
{
    fprintf(out, "%s: [", key);
    for (int i = 0; i < list->count; ++i) {
        if (i) fputs(", ", out);
        text_real(out, list->value[i]);
        if (seconds) fputc('s', out);
    }
    fputc(']', out);
}

static void window_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigWindow *window = option_value(o, config);
    const bool inputs = window->inputs.count > 0, targets = window->targets.count > 0;
    fputc('{', out);
    if (inputs) print_offsets(out, "inputs", &window->inputs, window->seconds);
    if (inputs && targets) fputs(", ", out);
    if (targets) print_offsets(out, "targets", &window->targets, window->seconds);
    fputc('}', out);
}

/* ---- data.train_time, data.test_time ---- */

static void times_free(void *field)
{
    ConfigTimes *times = field;
    mem_free(&times->from);
    mem_free(&times->to);
}

static Status times_read(Reading *r, void *field, const YamlNode *node)
{
    ConfigTimes *times = field;
    r->at = node;
    if (node->kind != YAML_LIST || (node->count != 0 && node->count != 2))
        return fail(ERR_CONFIG, "expected first and last time, [2001-01-01, 2018-12-31], not %s",
                    yaml_node_kind_name(node));
    for (int i = 0; i < node->count; ++i) {
        TRY(read_text(r, node->item[i]));
        r->at = node->item[i];
        if (!*node->item[i]->text) return fail(ERR_CONFIG, "the time is empty");
    }
    times_free(times);
    if (node->count == 0) return OK;
    times->from = mem_text(node->item[0]->text);
    times->to = mem_text(node->item[1]->text);
    return OK;
}

static void times_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigTimes *times = option_value(o, config);
    fputc('[', out);
    if (times->from) {
        print_text(out, times->from);
        fputs(", ", out);
        print_text(out, times->to);
    }
    fputc(']', out);
}

const OptionKind kind_times = {"[TIME, TIME]", true, times_read, times_print, times_free};
const OptionKind kind_variables = {"{ROLE: [NAME, ...]}", true, variables_read, variables_print,
                                   variables_free};
const OptionKind kind_window = {"{ROLE: [OFFSET, ...]}", true, window_read, window_print,
                                window_free};
