/* Finds options in the table, sets defaults, and makes the text of ranges. */
#include "option.h"

#include <math.h>
#include <string.h>

int option_find(const char *key)
{
    for (int i = 0; i < option_count; ++i)
        if (!strcmp(options[i].key, key)) return i;
    return -1;
}

const char *option_leaf(const Option *option)
{
    return strchr(option->key, '.') + 1;
}

bool option_is_in(const Option *option, const char *section)
{
    size_t length = strlen(section);
    return !strncmp(option->key, section, length) && option->key[length] == '.';
}

void *option_field(const Option *option, Config *config)
{
    return option->offset == OPTION_NO_FIELD ? NULL : (char *)config + option->offset;
}

const void *option_value(const Option *option, const Config *config)
{
    return option->offset == OPTION_NO_FIELD ? NULL : (const char *)config + option->offset;
}

Status option_set_default(const Option *option, Config *config)
{
    YamlNode *node = NULL;
    if (option->kind->list && (*option->default_text == '[' || *option->default_text == '{'))
        TRY(yaml_parse(&node, option->key, option->default_text, strlen(option->default_text)));
    else
        node = yaml_node_word(option->default_text);
    Reading reading = {.option = option, .config = config, .is_default = true};
    Status status = option->kind->read(&reading, option_field(option, config), node);
    yaml_node_free(&node);
    return status;
}

static char *real_range(const Option *o, bool show_max, char out[RANGE_CHARS])
{
    if (o->lo == -INFINITY && o->hi == INFINITY) return out;
    if (o->hi == INFINITY)
        snprintf(out, RANGE_CHARS, o->lo_open ? "above %g" : "at least %g", o->lo);
    else if (o->lo_open)
        snprintf(out, RANGE_CHARS, o->hi_open ? "above %g and below %g" : "above %g, at most %g",
                 o->lo, o->hi);
    else if (o->hi == INT32_MAX)
        snprintf(out, RANGE_CHARS, show_max ? "from %.0f to %.0f" : "at least %.0f", o->lo, o->hi);
    else
        snprintf(out, RANGE_CHARS, o->hi_open ? "from %g to below %g" : "from %g to %g", o->lo,
                 o->hi);
    return out;
}

char *option_range(const Option *o, bool show_max, char out[RANGE_CHARS])
{
    *out = 0;
    if (o->kind == &kind_real || o->kind == &kind_bytes || o->kind == &kind_reals ||
        o->kind == &kind_ints)
        return real_range(o, show_max, out);
    if (o->kind != &kind_int) return out;
    if (o->min == o->max)
        snprintf(out, RANGE_CHARS, "only %lld", (long long)o->min);
    else if (o->max >= INT32_MAX && !show_max)
        snprintf(out, RANGE_CHARS, "at least %lld", (long long)o->min);
    else
        snprintf(out, RANGE_CHARS, "from %lld to %lld", (long long)o->min, (long long)o->max);
    return out;
}
