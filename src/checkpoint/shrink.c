/* Removes channels of the model from a checkpoint: the elements that belong to removed channels are
 * left out of every parameter, its average and its optimizer state. */
#include "mismatches.h"
#include "make.h"
#include "stored.h"

#include <math.h>
#include <string.h>

typedef struct Shrink {
    const CheckpointShrink *what;
    /* true for units that are removed, [unit_count]; borrowed */
    const bool *removed;
    /* true: any unit is removed */
    bool any_removed;
    StoredFile file;
    CheckpointMeta meta;
    /* index in Graph.param of the parameter to which each tensor of the file belongs, [file.count];
     * owned */
    int *param;
    /* the tensors as they are saved, [file.count]; owned */
    CheckpointTensor *tensor;
    /* buffer for the largest tensor; owned */
    float *plain;
} Shrink;

/* Returns the parameter's name in "/params/NAME", "/buffers/NAME", "/ema/NAME" or
 * "/optim/SLOT/NAME", or NULL for any other path. */
static const char *param_name(const char *path)
{
    const size_t front = sizeof CHECKPOINT_EMA - 1;
    if (strncmp(path, CHECKPOINT_EMA, front) == 0) return path + front;
    const char *slot = strncmp(path, "/optim/", 7) ? NULL : strchr(path + 7, '/');
    return slot ? slot + 1 : checkpoint_leaf(path);
}

static int find_param(const Graph *g, const char *name)
{
    for (int i = 0; name && i < g->param_count; ++i)
        if (g->param[i].tied_param < 0 && !strcmp(g->param[i].name, name)) return i;
    return -1;
}

/* Finds each tensor's parameter, and checks that all parameters of the model are in the file. */
static Status match(Shrink *s)
{
    Mismatches mismatches;
    const Graph *g = s->what->units->graph;
    mismatches_begin(&mismatches);
    s->param = mem_new((size_t)(s->file.count + 1) * sizeof *s->param);
    for (int i = 0; i < s->file.count; ++i) {
        const StoredTensor *t = &s->file.tensor[i];
        int p = s->param[i] = find_param(g, param_name(t->path));
        if (p < 0)
            mismatches_surplus(&mismatches, t->path);
        else if (!shape_equal(t->shape, g->param[p].shape))
            mismatches_size(&mismatches, t->path, t->shape, g->param[p].shape);
    }
    for (int p = 0; p < g->param_count; ++p)
        if (g->param[p].tied_param < 0 && !stored_param(&s->file, &g->param[p]))
            mismatches_missing(&mismatches, g->param[p].name);
    return mismatches_end(&mismatches, s->file.path, "does not fit the model of its configuration");
}

static Status get_param(void *user, int param, float *plain)
{
    Shrink *s = user;
    const Graph *g = s->what->units->graph;
    int value_owner = g->param[param].tied_param >= 0 ? g->param[param].tied_param : param;
    return stored_read(&s->file, stored_param(&s->file, &g->param[value_owner]), plain);
}

/* Checks that the new model has the shapes of the gathered tensors. */
static Status check_after(const Shrink *s, const Graph *after)
{
    const Units *c = s->what->units;
    for (int p = 0; p < after->param_count; ++p)
        if (!shape_equal(after->param[p].shape, units_param_shape(c, p, s->removed)))
            return fail(ERR_BUG, "shrink: %s has another shape than its values",
                        after->param[p].name);
    return OK;
}

static Status read_tensor(void *user, int i, float *plain)
{
    Shrink *s = user;
    TRY(stored_read(&s->file, &s->file.tensor[i], s->plain));
    units_param_gather(s->what->units, s->param[i], s->removed, s->plain, plain);
    return OK;
}

static Status save(Shrink *s, const Config *config)
{
    s->tensor = mem_new((size_t)(s->file.count + 1) * sizeof *s->tensor);
    for (int i = 0; i < s->file.count; ++i)
        s->tensor[i] =
            (CheckpointTensor){.path = s->file.tensor[i].path,
                               .shape = units_param_shape(s->what->units, s->param[i], s->removed)};
    CheckpointMeta meta = s->meta;
    const CheckpointSource source = {
        .count = s->file.count, .tensor = s->tensor, .user = s, .read = read_tensor};
    meta.config = config_text(config);
    meta.version = NULL;
    /* the best values and the losses were measured with the larger model, and are unknown for the
     * smaller one */
    if (s->any_removed) {
        meta.best_metric = meta.lr.best = meta.stop_best = NAN;
        meta.loss_count = meta.lr.bad_evaluations = meta.stop_bad_evaluations = 0;
    }
    s->plain = stored_buffer(&s->file);
    Status st = checkpoint_make(s->what->out, &meta, &source);
    mem_free(&meta.config);
    return st;
}

static Status shrink(Shrink *s, Config *config, bool *removed, Graph **after)
{
    const Units *c = s->what->units;
    PruneOptions options = {.method = s->what->method,
                            .sparsity = s->what->sparsity,
                            .round_to = s->what->round,
                            .get = get_param,
                            .user = s};
    TRY(stored_open(&s->file, s->what->from));
    TRY(stored_list(&s->file));
    TRY(stored_meta(&s->file, &s->meta));
    TRY(match(s));
    TRY(checkpoint_check_layers(s->file.path, &s->meta, config, c->graph));
    TRY(prune_choose(c, &options, removed));
    for (int u = 0; u < c->unit_count; ++u) s->any_removed = s->any_removed || removed[u];
    prune_set_widths(c, removed, config);
    TRY(graph_build_ids(after, config, c->graph->input, c->graph->ids, c->graph->classes));
    TRY(check_after(s, *after));
    /* fails here, before anything is written, if a tensor cannot be read */
    TRY(stored_verify(&s->file, NULL));
    return save(s, config);
}

Status checkpoint_shrink(const CheckpointShrink *options, Config *config, bool *removed,
                         Graph **after)
{
    Shrink s = {.what = options, .removed = removed};
    *after = NULL;
    Status st = shrink(&s, config, removed, after);
    if (st != OK) graph_free(after);
    checkpoint_meta_fini(&s.meta);
    stored_close(&s.file);
    mem_free(&s.param);
    mem_free(&s.tensor);
    mem_free(&s.plain);
    return st;
}
