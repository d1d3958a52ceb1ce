/* The kind of model.widths: numbers of channels of single layers, by the layers' names. The other
 * layers have the model's own widths. */
#include "option.h"

#include <string.h>

static const Option channels_row = {.kind = &kind_int, .min = 1, .max = INT32_MAX};

static void widths_free(void *field)
{
    ConfigWidths *widths = field;
    for (int i = 0; i < widths->count; ++i) mem_free(&widths->item[i].layer);
    mem_free(&widths->item);
    widths->count = 0;
}

static void add(ConfigWidths *widths, const char *layer, int64_t channels)
{
    widths->item = mem_resize(widths->item, (size_t)(widths->count + 1) * sizeof *widths->item);
    widths->item[widths->count++] = (ConfigWidth){mem_text(layer), channels};
}

static Status read_pair(Reading *r, ConfigWidths *widths, const YamlNode *key,
                        const YamlNode *value)
{
    int64_t channels;
    Reading reading = {.option = &channels_row, .config = r->config, .at = value};
    TRY(read_text(r, key));
    if (!*key->text) return fail(ERR_CONFIG, "a layer's name is empty");
    Status status = read_whole(&reading, value, &channels);
    r->at = reading.at;
    if (status != OK) return fail(ERR_CONFIG, "%s: %s", key->text, fail_message());
    add(widths, key->text, channels);
    return OK;
}

static Status widths_read(Reading *r, void *field, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_MAP)
        return fail(ERR_CONFIG, "expected layers with their channels, {conv1: 51}, not %s",
                    yaml_node_kind_name(node));
    widths_free(field);
    for (int i = 0; i < node->count; ++i) TRY(read_pair(r, field, node->key[i], node->item[i]));
    return OK;
}

static void widths_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigWidths *widths = option_value(o, config);
    if (widths->count == 0) fputs("{}", out);
    for (int i = 0; i < widths->count; ++i) {
        fputs("\n    ", out);
        print_text(out, widths->item[i].layer);
        fprintf(out, ": %lld", (long long)widths->item[i].channels);
    }
}

const OptionKind kind_widths = {"{LAYER: INT, ...}", true, widths_read, widths_print, widths_free};

void config_set_width(Config *config, const char *layer, int64_t channels)
{
    ConfigWidths *widths = &config->model.widths;
    for (int i = 0; i < widths->count; ++i) {
        if (strcmp(widths->item[i].layer, layer) != 0) continue;
        widths->item[i].channels = channels;
        return;
    }
    add(widths, layer, channels);
}

bool config_copy_widths(Config *config, const Config *from)
{
    const ConfigWidths *theirs = &from->model.widths;
    if (config->model.widths.count > 0 || theirs->count == 0) return false;
    for (int i = 0; i < theirs->count; ++i)
        add(&config->model.widths, theirs->item[i].layer, theirs->item[i].channels);
    return true;
}
