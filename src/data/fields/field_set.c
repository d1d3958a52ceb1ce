/* Opens a set of fields in one or several files: first its variables (field_variables.c), then its
 * files (field_file.c), then samples and sizes. Also checks a file, and compares two files, before
 * field_extend.c lets a file join a set. */
#include "field_opening.h"

#include <stdlib.h>
#include <string.h>

const char *field_dim_name(int dim)
{
    static const char *const name[] = {"time", "level", "rows", "columns"};
    return name[dim];
}

int field_find_file(const FieldSet *f, int64_t frame)
{
    return index_at_most(&f->file[0].first_frame, sizeof *f->file, f->files, frame);
}

/* Reads the facts of the files of all paths and adds the files to the set. */
static Status open_files(Opening *o)
{
    FieldSet *f = o->f;
    f->file = mem_new((size_t)o->paths.count * sizeof *f->file);
    f->array = mem_new((size_t)o->paths.count * (size_t)f->stored * sizeof *f->array);
    for (int i = 0; i < o->paths.count; ++i) {
        f->file[i].path_at = f->text_bytes;
        f->text_bytes += (int64_t)strlen(o->paths.path[i]) + 1;
    }
    f->text = mem_new((size_t)f->text_bytes);
    for (int i = 0; i < o->paths.count; ++i) strcpy(f->text + f->file[i].path_at, o->paths.path[i]);
    return field_facts_each(&o->request, o->paths.path, o->paths.count, field_opening_add_file, o);
}

/* Finds the height and width of `count` channels, all inputs or all targets. ERR_DATA: they differ.
 * Channels of scalars and extra channels do not count. */
static Status find_size(const Opening *o, const FieldChannel *channel, int count, int64_t *height,
                        int64_t *width)
{
    const FieldVariable *first = &o->f->variable[channel[0].variable];
    *height = first->size[FIELD_ROW];
    *width = first->size[FIELD_COLUMN];
    for (int i = 1; i < count; ++i) {
        const FieldVariable *v = &o->f->variable[channel[i].variable];
        const int64_t rows = v->size[FIELD_ROW], columns = v->size[FIELD_COLUMN];
        if (v->is_scalar || v->extra_kind || (rows == *height && columns == *width)) continue;
        return fail(ERR_DATA,
                    "%s: %s has fields of %lldx%lld, but %s of %lldx%lld: all inputs "
                    "must have one size, and all targets%s",
                    o->set->path, first->name, (long long)*height, (long long)*width, v->name,
                    (long long)rows, (long long)columns,
                    rows * columns == 1 || *height * *width == 1
                        ? "; list a variable without rows and columns under scalars"
                        : "");
    }
    return OK;
}

void field_set_sizes(DataSet *set, int64_t height, int64_t width, int64_t target_height,
                     int64_t target_width)
{
    set->height = set->stored_height = height;
    set->width = set->stored_width = width;
    const int64_t x[] = {set->samples, set->channels, height, width};
    const int64_t y[] = {set->samples, set->field_set.targets, target_height, target_width};
    memcpy(set->x.dim, x, sizeof x);
    memcpy(set->y.dim, y, sizeof y);
    set->x.sample_bytes = x[1] * x[2] * x[3] * (int64_t)sizeof(float);
    set->y.sample_bytes = y[1] * y[2] * y[3] * (int64_t)sizeof(float);
    set->target_width = set->field_set.classes.count > 0 ? 0 : y[1] * y[2] * y[3];
}

/* Describes the arrays that the reader makes: inputs and targets as floats, labels as integers. */
static void set_arrays(DataSet *set, int64_t height, int64_t width)
{
    const FieldSet *f = &set->field_set;
    const DataArray like = {.type = ELEM_F32, .ndim = 4, .offset = -1};
    set->x = set->y = like;
    snprintf(set->x.name, sizeof set->x.name, "inputs");
    snprintf(set->y.name, sizeof set->y.name, "targets");
    field_set_sizes(set, set->height, set->width, height, width);
    if (f->classes.count > 0) {
        snprintf(set->y.name, sizeof set->y.name, "%s", f->variable[f->target[0].variable].name);
        set->y.type = ELEM_I32;
        set->classes = f->classes.count;
    }
    snprintf(set->x.storage, sizeof set->x.storage, "%d variables in %d file%s", f->stored,
             f->files, f->files == 1 ? "" : "s");
}

static Status open_set(Opening *o)
{
    DataSet *set = o->set;
    FieldSet *f = o->f;
    int64_t height, width;
    TRY(field_samples_find(set, o->config, o->times));
    TRY(field_opening_channels(o));
    TRY(field_labels_set(set, o->config));
    TRY(field_rollout_inputs(f, o->config));
    TRY(find_size(o, f->input, f->inputs, &set->height, &set->width));
    TRY(find_size(o, f->target, f->targets, &height, &width));
    field_meaning_list(set, o->config);
    set->channels = f->inputs;
    set->scale = 1;
    f->patch.field_size[0] = set->height;
    f->patch.field_size[1] = set->width;
    TRY(field_extra_check(set));
    if (f->target_rows.count == 0) f->target_rows = f->rows;
    if (f->target_rows.count != height) f->target_rows.count = 0;
    TRY(field_weights_check(f, o->config, height, width));
    const bool differ = height != set->height || width != set->width;
    if (o->config->data.predict == PREDICT_CHANGE && differ)
        return config_fail_key(
            o->config, "data.predict",
            "inputs are %lldx%lld and targets %lldx%lld: a change needs one size",
            (long long)set->height, (long long)set->width, (long long)height, (long long)width);
    if (f->steps > 1 && differ)
        return config_fail_key(o->config, "train.rollout",
                               "inputs are %lldx%lld and targets %lldx%lld: the outputs of a step "
                               "must have the size of its inputs",
                               (long long)set->height, (long long)set->width, (long long)height,
                               (long long)width);
    set_arrays(set, height, width);
    /* frames that share a chunk; the loader keeps their samples together */
    set->x.chunk_rows = o->chunk_frames > 1 ? o->chunk_frames : 0;
    return OK;
}

static void opening_free(Opening **opening)
{
    Opening *o = *opening;
    field_paths_free(&o->paths);
    mem_free(&o->times);
    mem_free(&o->first);
    mem_free(opening);
}

static Opening *opening_new(DataSet *set, const Config *config)
{
    Opening *o = mem_new(sizeof *o);
    memset(set, 0, sizeof *set);
    set->kind = DATA_FIELDS;
    *o = (Opening){
        .set = set, .f = &set->field_set, .config = config, .first = mem_new(sizeof *o->first)};
    return o;
}

/* Returns the configuration key whose value is `paths`; NULL: there is none. */
static const char *key_of(const Config *c, const char *paths)
{
    const bool is_train = c->data.train && strcmp(paths, c->data.train) == 0;
    const bool is_test = c->data.test && strcmp(paths, c->data.test) == 0;
    return is_train ? "data.train" : is_test ? "data.test" : NULL;
}

Status field_set_open(DataSet *set, const Config *config, const char *paths)
{
    FieldSet *f = &set->field_set;
    Opening *o = opening_new(set, config);
    Status st = field_opening_variables(o);
    o->request.mask = f->mask;
    if (st == OK) st = field_paths_find(&o->paths, paths, key_of(config, paths));
    o->request.hash_values = o->paths.count > 1;
    if (o->paths.count > 0) snprintf(set->path, sizeof set->path, "%s", o->paths.path[0]);
    if (st == OK) st = open_files(o);
    if (st == OK) st = open_set(o);
    if (st == OK)
        field_block_make(f);
    else
        field_block_drop_parts(f);
    opening_free(&o);
    return st;
}

Status field_files_compare(const Config *config, const char *first, const char *path)
{
    DataSet *set = mem_new(sizeof *set);
    Opening *o = opening_new(set, config);
    char *paths = mem_format("%s\n%s", first, path);
    Status st = field_opening_variables(o);
    o->request.mask = set->field_set.mask;
    if (st == OK) st = field_paths_find(&o->paths, paths, NULL);
    o->request.hash_values = true;
    if (st == OK) st = open_files(o);
    field_block_drop_parts(&set->field_set);
    mem_free(&paths);
    opening_free(&o);
    mem_free(&set);
    return st;
}

static Status take_nothing(void *user, int file, const FieldFacts *facts, const double *times)
{
    (void)user, (void)file, (void)facts, (void)times;
    return OK;
}

Status field_file_check(const Config *config, const char *path)
{
    DataSet *set = mem_new(sizeof *set);
    Opening *o = opening_new(set, config);
    char *paths[] = {mem_text(path)};
    Status st = field_opening_variables(o);
    o->request.mask = set->field_set.mask;
    if (st == OK) st = field_facts_each(&o->request, paths, 1, take_nothing, NULL);
    mem_free(&paths[0]);
    opening_free(&o);
    mem_free(&set);
    return st;
}
