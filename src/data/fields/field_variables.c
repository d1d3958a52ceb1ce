/* Adds variables to a set of fields (those of data.variables, and the mask), and lists the channels
 * of a sample. */
#include "field_opening.h"

#include <string.h>

/* Returns the role, but FIELD_INPUT for FIELD_TARGET, because a name that is both an input and a
 * target is one variable. */
static int sort_of(int role)
{
    return role == FIELD_TARGET ? FIELD_INPUT : role;
}

static bool same_variable(const ConfigVariable *a, const ConfigVariable *b)
{
    return !strcmp(a->name, b->name) && sort_of(a->role) == sort_of(b->role) &&
           a->levels.count == b->levels.count &&
           (a->levels.count == 0 || !memcmp(a->levels.value, b->levels.value,
                                            (size_t)a->levels.count * sizeof *a->levels.value));
}

/* Adds the variable of an entry, unless an earlier entry has the same variable. */
static Status add_variable(Opening *o, const ConfigVariable *entry)
{
    FieldVariable *v = &o->f->variable[o->f->variables];
    int same = 0;
    while (same < o->f->variables && !same_variable(o->entry[same], entry)) ++same;
    if (entry->classes > 0) o->request.labels = same;
    if (same < FIELD_VARIABLES)
        o->request.roles[same] = (uint8_t)(o->request.roles[same] | 1 << entry->role);
    if (same < o->f->variables) return OK;
    if (o->f->variables == FIELD_VARIABLES)
        return config_fail_key(o->config, "data.variables", "more than %d variables",
                               FIELD_VARIABLES);
    if (strlen(entry->name) >= FIELD_NAME || entry->levels.count > FIELD_LEVELS)
        return config_fail_key(o->config, "data.variables",
                               "%.40s: names have up to %d characters, and a variable up to "
                               "%d levels",
                               entry->name, FIELD_NAME - 1, FIELD_LEVELS);
    snprintf(v->name, sizeof v->name, "%s", entry->name);
    if (entry->role == FIELD_EXTRA) TRY(field_extra_init(v, o->config, entry));
    if (entry->role != FIELD_EXTRA) {
        v->is_static = entry->role == FIELD_STATIC;
        v->is_scalar = entry->role == FIELD_SCALAR;
        memcpy(o->request.name[o->f->variables], v->name, sizeof v->name);
        o->request.is_static[o->f->variables] = v->is_static;
        o->request.is_scalar[o->f->variables] = v->is_scalar;
        o->request.count = o->f->stored = o->f->variables + 1;
    }
    o->entry[o->f->variables++] = entry;
    return OK;
}

/* Finds the variable that data.mask names, or adds it. */
static Status add_mask(Opening *o)
{
    FieldSet *f = o->f;
    const char *name = o->config->data.mask;
    f->mask = -1;
    o->listed = f->variables;
    if (!*name) return OK;
    for (int i = 0; i < f->variables && f->mask < 0; ++i)
        if (!strcmp(f->variable[i].name, name)) f->mask = i;
    if (f->mask >= 0) return OK;
    if (f->variables == FIELD_VARIABLES || strlen(name) >= FIELD_NAME)
        return config_fail_key(o->config, "data.mask",
                               "%.40s: a set has up to %d variables, whose names have up to %d "
                               "characters",
                               name, FIELD_VARIABLES, FIELD_NAME - 1);
    f->mask = f->variables++;
    o->request.count = f->stored = f->variables;
    snprintf(f->variable[f->mask].name, FIELD_NAME, "%s", name);
    memcpy(o->request.name[f->mask], f->variable[f->mask].name, FIELD_NAME);
    o->mask = (ConfigVariable){.name = o->config->data.mask, .role = FIELD_INPUT};
    o->entry[f->mask] = &o->mask;
    return OK;
}

/* Adds the variables that the files have, with the mask, before the extra variables. */
Status field_opening_variables(Opening *o)
{
    const ConfigVariables *list = &o->config->data.variables;
    int count[FIELD_ROLES] = {0};
    TRY(field_labels_check(o->config));
    o->request.labels = -1;
    for (int extra = 0; extra < 2; ++extra) {
        for (int i = 0; i < list->count; ++i) {
            if ((list->item[i].role == FIELD_EXTRA) != (extra == 1)) continue;
            TRY(add_variable(o, &list->item[i]));
            ++count[list->item[i].role];
        }
        if (!extra) TRY(add_mask(o));
    }
    if (count[FIELD_INPUT] > 0 && count[FIELD_TARGET] > 0) return OK;
    return config_fail_key(o->config, "data.variables", "needs inputs and targets");
}

/* Adds the channels of a role at one offset to a list. offset: index of the offset. constant: true:
 * adds only channels that are constant over space; false: adds only the other channels. */
static Status add_channels(const Opening *o, FieldRole role, bool constant, int offset,
                           FieldChannel *list, int *count)
{
    const ConfigVariables *entries = &o->config->data.variables;
    for (int i = 0; i < entries->count; ++i) {
        if (entries->item[i].role != (int)role) continue;
        int variable = 0;
        while (!same_variable(o->entry[variable], &entries->item[i])) ++variable;
        if (o->f->variable[variable].is_scalar != constant) continue;
        for (int k = 0; k < o->f->variable[variable].levels; ++k) {
            if (*count == FIELD_CHANNELS)
                return config_fail_key(o->config, "data.variables",
                                       "a sample has more than %d channels of inputs or targets",
                                       FIELD_CHANNELS);
            list[(*count)++] = (FieldChannel){(int16_t)variable, (int16_t)k, (int16_t)offset};
        }
        const int levels = o->f->variable[variable].levels;
        if (role == FIELD_TARGET)
            TRY(field_weights_set(o->f, o->config, &entries->item[i], *count - levels, *count));
    }
    return OK;
}

/* Finds the targets that are changes, and for each the input from which the change is counted. */
static Status find_changes(const Opening *o)
{
    FieldSet *f = o->f;
    const bool change = o->config->data.predict == PREDICT_CHANGE;
    bool found = false;
    for (int i = 0; i < f->targets; ++i) {
        f->change_from[i] = change ? (int16_t)field_last_input(f, i) : -1;
        found |= f->change_from[i] >= 0;
    }
    if (!change || found) return OK;
    return config_fail_key(o->config, "data.predict",
                           "change needs a target that is an input, too: add it to the inputs");
}

/* Inputs are listed offset after offset; then follow static channels, extra channels, and last the
 * scalars and extra channels that are constant over space. Targets are listed offset after
 * offset. */
Status field_opening_channels(const Opening *o)
{
    FieldSet *f = o->f;
    const int last = f->offsets[FIELD_INPUT] - 1;
    for (int i = 0; i <= last; ++i)
        TRY(add_channels(o, FIELD_INPUT, false, i, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_STATIC, false, 0, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_EXTRA, false, last, f->input, &f->inputs));
    for (int i = 0; i <= last; ++i)
        TRY(add_channels(o, FIELD_SCALAR, true, i, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_EXTRA, true, last, f->input, &f->inputs));
    for (int i = 0; i < f->offsets[FIELD_TARGET]; ++i)
        TRY(add_channels(o, FIELD_TARGET, false, i, f->target, &f->targets));
    return find_changes(o);
}
