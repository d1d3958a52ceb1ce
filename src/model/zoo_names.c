/* Names of models: finding one, and what may be meant by a name that the zoo does not have. */
#include "config/foreign.h"
#include "model.h"

#include <ctype.h>
#include <string.h>

const ZooEntry *zoo_find(const char *name)
{
    for (int i = 0; zoo[i]; ++i)
        if (!strcmp(zoo[i]->name, name)) return zoo[i];
    return NULL;
}

/* Letters that a name begins with: "resnet" of "ResNet-152". */
static size_t stem_bytes(const char *name)
{
    size_t n = 0;
    while (isalpha((unsigned char)name[n])) ++n;
    return n;
}

static bool same_stem(const char *a, const char *b)
{
    size_t n = stem_bytes(a);
    return n >= 3 && n == stem_bytes(b) && !strncasecmp(a, b, n);
}

/* "resnet18, resnet34": all models that are of a name's family; name NULL: all there are. Owner:
 * the caller. */
static char *family_text(const char *name)
{
    char *all = mem_text("");
    for (int i = 0; zoo[i]; ++i) {
        if (name && !same_stem(name, zoo[i]->name)) continue;
        char *longer = mem_format("%s%s%s", all, *all ? ", " : "", zoo[i]->name);
        mem_free(&all);
        all = longer;
    }
    return all;
}

/* The name that differs in separators and case only, or else by a few letters; NULL: there is
 * none. */
static const char *nearest_name(const char *name, bool same)
{
    enum { MODELS = 64 };
    const char *names[MODELS];
    int count = 0;
    for (; zoo[count] && count < MODELS; ++count) {
        names[count] = zoo[count]->name;
        if (same && foreign_same(name, names[count])) return names[count];
    }
    return same ? NULL : text_nearest(name, names, count);
}

static Status unknown(const Config *config)
{
    const char *name = config->model.name, *near = nearest_name(name, true);
    char *family = family_text(name), *all = family_text(NULL);
    char *foreign = foreign_text("model.name", name);
    if (!near && !*family && !foreign) near = nearest_name(name, false);
    const bool several = strchr(family, ',') != NULL;
    const char *before = "; there are ", *what = all, *after = "";
    if (near)
        before = "; did you mean '", what = near, after = "'?";
    else if (foreign)
        before = ": ", what = foreign;
    else if (*family)
        before = several ? "; did you mean one of " : "; did you mean '", what = family,
        after = several ? "?" : "'?";
    config_fail_key(config, "model.name", "there is no model '%s'%s%s%s", name, before, what,
                    after);
    mem_free(&foreign);
    mem_free(&family);
    mem_free(&all);
    return ERR_CONFIG;
}

Status zoo_check(const Config *config)
{
    const char *name = config->model.name;
    return config->model.layer_count || !*name || zoo_find(name) ? OK : unknown(config);
}
