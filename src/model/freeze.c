/* Freezes the parameters and tables whose names match model.freeze, and divides parameters by their
 * names into the depth groups of optim.layer_decay. If the scale and the shift of a batch norm are
 * frozen, its running statistics do not change, and it normalises with them in training, too;
 * model.freeze_norm can change this. */
#include "build.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* ---- names ---- */

int param_layer_chars(const char *name)
{
    const char *dot = strrchr(name, '.');
    return (int)(dot ? dot - name : (long)strlen(name));
}

/* Returns whether the pattern matches a parameter's name or the name of the parameter's layer. */
static bool matches(const char *pattern, const char *name)
{
    char *layer = mem_format("%.*s", param_layer_chars(name), name);
    bool matched = fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, layer, 0) == 0;
    mem_free(&layer);
    return matched;
}

bool param_matches(const char *patterns, const char *name)
{
    char *copy = mem_text(patterns ? patterns : ""), *rest = copy, *pattern;
    bool listed = false;
    while (!listed && (pattern = strsep(&rest, ","))) listed = *pattern && matches(pattern, name);
    mem_free(&copy);
    return listed;
}

/* ---- freezing ---- */

/* Freezes the tables that match a pattern. Fails if a pattern matches neither a table nor a
 * parameter. */
static Status freeze_tables(Graph *g, const Config *config)
{
    char *copy = mem_text(config->model.freeze), *rest = copy, *pattern;
    Status st = OK;
    while (st == OK && (pattern = strsep(&rest, ","))) {
        bool matched = !*pattern;
        for (int i = 0; i < g->table_count && *pattern; ++i) {
            SparseTable *t = &g->table[i];
            if (fnmatch(pattern, t->name, 0) == 0 ||
                fnmatch(pattern, g->node[t->node].name, 0) == 0)
                matched = t->frozen = true;
        }
        for (int i = 0; i < g->param_count && !matched; ++i)
            matched = !g->param[i].info.is_statistic && matches(pattern, g->param[i].name);
        if (!matched)
            st = config_fail_key(config, "model.freeze",
                                 "'%s' matches no layer with parameters and no parameter; "
                                 "`weft plan --json` lists the names, such as %s",
                                 pattern, g->param_count ? g->param[0].name : "none");
    }
    mem_free(&copy);
    return st;
}

static bool has_statistics(const Graph *g, const Node *node)
{
    for (int k = 0; k < node->spec.w_count; ++k)
        if (g->param[node->param[k]].info.is_statistic) return true;
    return false;
}

/* Applies model.freeze_norm to a batch norm. all: if its scale and shift are frozen, its running
 * statistics are frozen, too. affine: they are not frozen. none: scale and shift are trained, even
 * if model.freeze names them. */
static void freeze_norm(Graph *g, Node *node, FreezeNorm norm)
{
    bool affine_frozen = true;
    for (int k = 0; k < node->spec.w_count; ++k) {
        Param *p = &g->param[node->param[k]];
        if (p->info.is_statistic) continue;
        if (norm == FREEZE_NORM_NONE) p->frozen = false;
        affine_frozen = affine_frozen && p->frozen;
    }
    node->spec.fixed_stats = affine_frozen && norm == FREEZE_NORM_ALL;
    for (int k = 0; k < node->spec.w_count; ++k) {
        Param *p = &g->param[node->param[k]];
        if (p->info.is_statistic) p->frozen = node->spec.fixed_stats;
    }
}

Status graph_freeze(Graph *g, const Config *config)
{
    const char *list = config->model.freeze;
    if (!list || !*list) return OK;
    TRY(freeze_tables(g, config));
    for (int i = 0; i < g->param_count; ++i)
        g->param[i].frozen =
            !g->param[i].info.is_statistic && param_matches(list, g->param[i].name);
    for (int i = 0; i < g->node_count; ++i)
        if (has_statistics(g, &g->node[i]))
            freeze_norm(g, &g->node[i], (FreezeNorm)config->model.freeze_norm);
    /* Tied parameters share a value: if one of them is frozen, all are. */
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].tied_param >= 0 && g->param[i].frozen)
            g->param[g->param[i].tied_param].frozen = true;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].tied_param >= 0)
            g->param[i].frozen = g->param[g->param[i].tied_param].frozen;
    return OK;
}

/* ---- depth groups ---- */

/* Returns the length of the name of the block to which a parameter belongs. A name consists of
 * words with dots between them; the block's name ends with the first word that is a number:
 * "layer1.0" for "layer1.0.bn1.bias". Returns 0 if no word is a number. */
static int block_chars(const char *name)
{
    for (const char *word = name; *word;) {
        size_t chars = strcspn(word, "."), digits = 0;
        while (digits < chars && isdigit((unsigned char)word[digits])) ++digits;
        if (chars > 0 && digits == chars) return (int)(word + chars - name);
        word += chars + (word[chars] == '.');
    }
    return 0;
}

/* Layers between two blocks are in the group of the block before them. Layers after the last block
 * are the head. */
int graph_depth_groups(const Graph *g, int *depth_group)
{
    bool blocks = false;
    const char *last = NULL;
    int group = 0, last_chars = 0, last_block = -1;
    for (int i = 0; i < g->param_count; ++i) blocks |= block_chars(g->param[i].name) > 0;
    for (int i = 0; i < g->param_count; ++i) {
        const char *name = g->param[i].name;
        int chars = blocks ? block_chars(name) : param_layer_chars(name);
        bool same = last && chars == last_chars && strncmp(name, last, (size_t)chars) == 0;
        if (chars > 0 && !same) {
            if (i > 0) ++group;
            last = name;
            last_chars = chars;
        }
        if (chars > 0) last_block = i;
        depth_group[i] = group;
    }
    int count = group + 1;
    for (int i = last_block + 1; i < g->param_count; ++i) depth_group[i] = count;
    if (last_block >= 0 && last_block + 1 < g->param_count) ++count;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].tied_param >= 0) depth_group[i] = depth_group[g->param[i].tied_param];
    return count;
}
