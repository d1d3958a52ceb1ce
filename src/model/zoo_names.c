/* Finds models by name, and suggests names of models for an unknown name. */
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

/* Returns the length of the name's family, which is the letters at its beginning: "ResNet" in
 * "ResNet-152". */
static size_t family_length(const char *name)
{
    size_t n = 0;
    while (isalpha((unsigned char)name[n])) ++n;
    return n;
}

static bool same_family(const char *a, const char *b)
{
    size_t n = family_length(a);
    return n >= 3 && n == family_length(b) && !strncasecmp(a, b, n);
}

/* Returns the names of all models or, if only_family is true, of the models in the family of
 * `name`: "resnet18, resnet34". The caller owns the text. */
static char *models_text(const char *name, bool only_family)
{
    char *all = mem_text("");
    for (int i = 0; zoo[i]; ++i) {
        if (only_family && !same_family(name, zoo[i]->name)) continue;
        char *longer = mem_format("%s%s%s", all, *all ? ", " : "", zoo[i]->name);
        mem_free(&all);
        all = longer;
    }
    return all;
}

/* Returns the name of the model that is nearest to `name`. If `exact` is true, the two may differ
 * only in separators and case; otherwise also in a few letters. NULL: there is none. */
static const char *nearest_name(const char *name, bool exact)
{
    enum { MODELS_MAX = 64 };
    const char *names[MODELS_MAX];
    int count = 0;
    for (; zoo[count] && count < MODELS_MAX; ++count) {
        names[count] = zoo[count]->name;
        if (exact && foreign_words_match(name, names[count])) return names[count];
    }
    return exact ? NULL : text_nearest(name, names, count);
}

/* Fails because the model is unknown. The message has the first of the following that exists: the
 * model that differs only in separators and case, advice about a name from another program, the
 * models of the same family, the nearest name, all models. */
static Status unknown_model_fail(const Config *config)
{
    const char *name = config->model.name, *near = nearest_name(name, true);
    char *family = models_text(name, true), *all = models_text(name, false);
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
    return config->model.layer_count || !*name || zoo_find(name) ? OK : unknown_model_fail(config);
}
