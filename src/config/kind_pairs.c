/* The kind of model.rope_scaling: pairs of a key and a scalar, {rope_type: linear, factor: 4}. They
 * are stored as text, which another module interprets. */
#include "option.h"

#include <string.h>

static void pairs_free(void *field)
{
    ConfigPairs *pairs = field;
    for (int i = 0; i < pairs->count; ++i) {
        mem_free(&pairs->item[i].key);
        mem_free(&pairs->item[i].value);
    }
    mem_free(&pairs->item);
    pairs->count = 0;
}

static Status read_pair(Reading *r, ConfigPairs *pairs, const YamlNode *key, const YamlNode *value)
{
    TRY(read_text(r, key));
    TRY(read_text(r, value));
    pairs->item = mem_resize(pairs->item, (size_t)(pairs->count + 1) * sizeof *pairs->item);
    pairs->item[pairs->count++] = (ConfigAttr){.key = mem_text(key->text),
                                               .value = mem_text(value->text),
                                               .line = key->line,
                                               .column = key->column};
    return OK;
}

static Status pairs_read(Reading *r, void *field, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_MAP)
        return fail(ERR_CONFIG, "expected keys with their values, {rope_type: linear}, not %s",
                    yaml_node_kind_name(node));
    pairs_free(field);
    for (int i = 0; i < node->count; ++i) TRY(read_pair(r, field, node->key[i], node->item[i]));
    return OK;
}

static void pairs_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigPairs *pairs = option_value(o, config);
    fputc('{', out);
    for (int i = 0; i < pairs->count; ++i) {
        fputs(i ? ", " : "", out);
        print_text(out, pairs->item[i].key);
        fputs(": ", out);
        print_text(out, pairs->item[i].value);
    }
    fputc('}', out);
}

const OptionKind kind_pairs = {"{KEY: VALUE, ...}", true, pairs_read, pairs_print, pairs_free};
