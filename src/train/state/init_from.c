/* Matches the tensors of model.init_from with the model's by name: "/params/NAME", "/buffers/NAME"
 * and blocks of "/tables/NAME". Prefixes of the file's names are first replaced according to
 * model.init_rename. Tensors that model.init_fresh names get new initial values, and the file's
 * tensors with these names are ignored. Without init_fresh the last layer with parameters gets new
 * initial values if its size differs, for example a classifier for other classes. */
#include "init_from.h"

#include <string.h>

/* largest number of names of each kind that a message lists */
enum { LISTED_MAX = 32 };

typedef struct Match {
    const Config *config;
    const CheckpointIo *io;
    /* tensors of the file, [count]; borrowed */
    const CheckpointStored *stored;
    int count;
    /* result: for each tensor of the model, the index in `stored` of the tensor that initialises
     * it; -1: it gets new initial values; borrowed */
    int *from;
    /* renamed paths of the file's tensors, [count]; NULL for tensors of the optimizer; owned */
    char **name;
    /* for each tensor of the file, true if the model has a tensor of this name that does not get
     * new initial values; [count]; owned */
    bool *used;
    /* name of a tensor, such as "fc.weight", of the layer that gets new initial values because its
     * size differs; NULL: there is no such layer */
    const char *last;
    /* length of the layer's name, with which `last` begins */
    int last_chars;
} Match;

/* Returns the name in a path: "conv1.weight", or for a sparse table "embedding/rows#0000"; NULL for
 * a tensor of the optimizer. */
static const char *leaf_of(const char *path)
{
    const char *leaf = checkpoint_leaf(path);
    return leaf || strncmp(path, "/tables/", 8) != 0 ? leaf : path + 8;
}

/* Returns true if the tensor belongs to the layer whose name is the first `chars` characters of
 * `layer`. */
static bool of_layer(const char *path, const char *layer, int chars)
{
    const char *leaf = leaf_of(path);
    return param_layer_chars(leaf) == chars && !strncmp(leaf, layer, (size_t)chars);
}

/* Returns true if a pattern matches the tensor; a table is matched by its layer's name. */
static bool pattern_matches(const char *patterns, const char *path)
{
    const char *leaf = leaf_of(path), *end = checkpoint_leaf(path) ? NULL : strchr(leaf, '/');
    char *table = end ? mem_format("%.*s", (int)(end - leaf), leaf) : NULL;
    bool matches = param_matches(patterns, table ? table : leaf);
    mem_free(&table);
    return matches;
}

/* Returns true if the tensor gets new initial values. */
static bool is_fresh(const Match *m, const char *path)
{
    if (pattern_matches(m->config->model.init_fresh, path)) return true;
    return m->last && of_layer(path, m->last, m->last_chars);
}

/* Returns the path after model.init_rename has replaced a prefix of the name. Owner: the caller. */
static char *renamed(const Config *config, const char *path)
{
    const char *leaf = leaf_of(path);
    char *copy = mem_text(config->model.init_rename), *rest = copy, *item, *name = NULL;
    while (!name && (item = strsep(&rest, ","))) {
        char *to = strchr(item, ':');
        size_t chars = to ? (size_t)(to - item) : 0;
        if (to && !strncmp(leaf, item, chars))
            name = mem_format("%.*s%s%s", (int)(leaf - path), path, to + 1, leaf + chars);
    }
    mem_free(&copy);
    return name ? name : mem_text(path);
}

/* Returns the index of the file's tensor that has this path after renaming, or -1. */
static int find(const Match *m, const char *path)
{
    for (int k = 0; k < m->count; ++k)
        if (m->name[k] && !strcmp(m->name[k], path)) return k;
    return -1;
}

/* Sets m->last to the last layer with parameters, if it has another size in the file. */
static void find_last(Match *m)
{
    int last = -1;
    if (*m->config->model.init_fresh) return;
    for (int i = 0; i < m->io->count; ++i)
        if (!strncmp(m->io->tensor[i].path, "/params/", 8)) last = i;
    if (last < 0) return;
    const char *leaf = leaf_of(m->io->tensor[last].path);
    int chars = param_layer_chars(leaf);
    for (int i = 0; i < m->io->count; ++i) {
        const CheckpointTensor *t = &m->io->tensor[i];
        int k = find(m, t->path);
        if (!of_layer(t->path, leaf, chars) || k < 0) continue;
        if (shape_equal(m->stored[k].shape, t->shape)) continue;
        m->last = leaf;
        m->last_chars = chars;
    }
}

/* Finds the file's tensor for each tensor of the model. Lists the model's tensors that are missing
 * in the file, have another size there, or get new initial values. */
static void match_tensors(Match *m, TextList *missing, TextList *sizes, TextList *anew)
{
    for (int i = 0; i < m->io->count; ++i) {
        const CheckpointTensor *t = &m->io->tensor[i];
        int k = find(m, t->path);
        char theirs[64], ours[64];
        if (is_fresh(m, t->path)) {
            text_list_add(anew, leaf_of(t->path));
        } else if (k < 0) {
            text_list_add(missing, leaf_of(t->path));
        } else if (!shape_equal(m->stored[k].shape, t->shape)) {
            m->used[k] = true;
            char *size =
                mem_format("%s (%s in the file, %s in the model)", leaf_of(t->path),
                           shape_text(m->stored[k].shape, theirs), shape_text(t->shape, ours));
            text_list_add(sizes, size);
            mem_free(&size);
        } else {
            m->used[k] = true;
            m->from[i] = k;
        }
    }
}

/* Checks that each pattern of model.init_fresh matches a tensor of the model or of the file. */
static Status check_patterns(const Match *m)
{
    char *copy = mem_text(m->config->model.init_fresh), *rest = copy, *pattern;
    Status st = OK;
    while (st == OK && (pattern = strsep(&rest, ","))) {
        bool met = !*pattern;
        for (int i = 0; i < m->io->count && !met; ++i)
            met = pattern_matches(pattern, m->io->tensor[i].path);
        for (int k = 0; k < m->count && !met; ++k)
            met = m->name[k] && pattern_matches(pattern, m->name[k]);
        if (!met)
            st = config_fail_key(m->config, "model.init_fresh",
                                 "'%s' matches no layer and no tensor of this model, nor of %s; "
                                 "`weft ckpt info` lists those of a checkpoint",
                                 pattern, m->config->model.init_from);
    }
    mem_free(&copy);
    return st;
}

/* Warns of prefixes in model.init_rename with which no name in the file begins. They are no error,
 * because they may be meant for another file. */
static void warn_of_prefixes(const Match *m)
{
    char *copy = mem_text(m->config->model.init_rename), *rest = copy, *item;
    while ((item = strsep(&rest, ","))) {
        bool met = !*item;
        for (int k = 0; k < m->count && !met; ++k)
            met = m->name[k] && !strncmp(leaf_of(m->stored[k].path), item, strcspn(item, ":"));
        if (!met)
            log_warn("model.init_rename: no name in %s begins as '%s' says",
                     m->config->model.init_from, item);
    }
    mem_free(&copy);
}

/* Checks that renaming does not give two tensors one name. */
static Status check_names(const Match *m)
{
    Status st = OK;
    warn_of_prefixes(m);
    for (int k = 0; st == OK && k < m->count; ++k) {
        int first = m->name[k] ? find(m, m->name[k]) : k;
        if (first != k)
            st = config_fail_key(m->config, "model.init_rename",
                                 "gives two tensors of %s, %s and %s, the same name, %s",
                                 m->config->model.init_from, leaf_of(m->stored[first].path),
                                 leaf_of(m->stored[k].path), leaf_of(m->name[k]));
    }
    return st;
}

/* Appends "; missing in the file: a, b", or nothing if the list is empty. */
static void append_list(FILE *out, const char *title, TextList *names)
{
    int count = names->count;
    char *text = text_list_end(names);
    if (count) fprintf(out, "; %s: %s", title, text);
    mem_free(&text);
}

static Status match_all(Match *m, char **anew)
{
    TextList missing, sizes, surplus, fresh, all;
    text_list_begin(&missing, LISTED_MAX);
    text_list_begin(&sizes, LISTED_MAX);
    text_list_begin(&surplus, LISTED_MAX);
    text_list_begin(&fresh, LISTED_MAX);
    text_list_begin(&all, LISTED_MAX);
    find_last(m);
    match_tensors(m, &missing, &sizes, &fresh);
    for (int k = 0; k < m->count; ++k)
        if (m->name[k] && !m->used[k] && !is_fresh(m, m->name[k]))
            text_list_add(&surplus, leaf_of(m->name[k]));
    int wrong = missing.count + sizes.count + surplus.count;
    append_list(all.out, "missing in the file", &missing);
    append_list(all.out, "of another size", &sizes);
    append_list(all.out, "not in this model", &surplus);
    *anew = text_list_end(&fresh);
    char *why = text_list_end(&all);
    Status st = OK;
    if (wrong)
        st = fail(ERR_DATA,
                  "%s: does not fit this model%s; model.init_rename changes names, "
                  "model.init_fresh lists layers that begin anew",
                  m->config->model.init_from, why);
    else if (m->last)
        log_warn("%s: %.*s has another size there, so it begins anew (model.init_fresh: [%.*s] "
                 "says so)",
                 m->config->model.init_from, m->last_chars, m->last, m->last_chars, m->last);
    mem_free(&why);
    if (st != OK) mem_free(anew);
    return st;
}

Status init_match(const Config *config, const CheckpointIo *io, const CheckpointStored *stored,
                  int count, int *from, char **anew)
{
    Match m = {.config = config, .io = io, .stored = stored, .count = count, .from = from};
    *anew = NULL;
    m.name = mem_new(((size_t)count + 1) * sizeof *m.name);
    m.used = mem_new((size_t)count + 1);
    for (int k = 0; k < count; ++k)
        if (leaf_of(stored[k].path)) m.name[k] = renamed(config, stored[k].path);
    Status st = check_names(&m);
    if (st == OK) st = check_patterns(&m);
    if (st == OK) st = match_all(&m, anew);
    for (int k = 0; k < count; ++k) mem_free(&m.name[k]);
    mem_free(&m.name);
    mem_free(&m.used);
    return st;
}
