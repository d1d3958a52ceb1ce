/* Opens a data set: turns what facts.c has found in the file, in a separate process, into what
 * training needs (kind, samples, classes, mean, deviation, scale). weft's own data sets are
 * understood by their root attributes, other files by the keys data.x, data.y and data.layout; in
 * those a one-dimensional array of integers is tokens. Only metadata is read, except that labels or
 * tokens are scanned if nothing gives the number of classes or the vocabulary. */
#include "facts.h"
#include "../data_private.h"
#include "layers.h"

#include <math.h>
#include <string.h>

/* state while a set is opened */
typedef struct Opening {
    DataSet *set;
    /* NULL: defaults */
    const Config *config;
    /* owned: what the file holds */
    SetFacts *facts;
} Opening;

Shape data_set_shape(const DataSet *set, int64_t micro_batch)
{
    return data_kind(set)->shape(set, micro_batch);
}

int64_t data_steps_per_epoch(int64_t samples, int64_t batch)
{
    return (samples + batch - 1) / batch;
}

const char *dims_text(const DataArray *a, char *out)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < a->ndim; ++i)
        used += (size_t)snprintf(out + used, DIMS_TEXT - used, "%s%lld", i ? "x" : "",
                                 (long long)a->dim[i]);
    return out;
}

/* Returns the failure that prevented this part from being read, or OK. */
static Status part_present(const Opening *o, FactsPart part)
{
    return (int)part < o->facts->parts ? OK : fail(o->facts->status, "%s", o->facts->why);
}

/* Finds the facts in a separate process; this one only checks the answer. */
static Status facts_find(const Opening *o)
{
    const Config *c = o->config;
    FactsRequest request = {0};
    TRY(facts_names(&request, o->set->path, c && c->data.x ? c->data.x : "/x",
                    c && c->data.y ? c->data.y : "/y"));
    return facts_request(&request, o->facts);
}

static bool like_channels(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

/* ERR_DATA: the layout is ambiguous. An array of 32 x 32 x 3 per sample is unlikely to be 32
 * channels of 32 x 3 pixels, unless the user says so. */
static Status layout_known(const Opening *o)
{
    const DataArray *x = &o->facts->x;
    char dims[DIMS_TEXT];
    if (!like_channels(x->dim[3]) || like_channels(x->dim[1])) return OK;
    if (o->config && (o->set->channels_last || config_says(o->config, "data.layout"))) return OK;
    return fail(ERR_DATA,
                "%s: %s has the shape %s, which may be %lld channels of %lldx%lld pixels or "
                "%lldx%lld pixels of %lld channels: set data.layout to nchw for the first, to nhwc "
                "for the second",
                o->set->path, x->name, dims_text(x, dims), (long long)x->dim[1],
                (long long)x->dim[2], (long long)x->dim[3], (long long)x->dim[1],
                (long long)x->dim[2], (long long)x->dim[3]);
}

/* Derives kind, channels, height and width from x's dimensions. */
static Status x_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *x = &set->x;
    char dims[DIMS_TEXT];
    if (set->encoded) {
        set->channels = 3;
        return OK;
    }
    bool last = o->config && o->config->data.layout == LAYOUT_NHWC;
    set->channels = set->height = set->width = 1;
    bool row = x->ndim == 1 && !element_is_float(x->type);
    if (data_kind(set)->next_token && !row)
        return fail(ERR_DATA, "%s: %s must be one row of integers, it is %s of %s", set->path,
                    x->name, dims_text(x, dims), element_name(x->type));
    if (row && !o->facts->weft) set->kind = DATA_TOKENS;
    if (data_kind(set)->next_token) return OK;
    if (x->ndim < 2 || (o->facts->weft && set->kind != (x->ndim == 2 ? DATA_TABLE : DATA_IMAGE)))
        return fail(ERR_DATA,
                    "%s: %s (%s) has the shape %s; images are (N,C,H,W), (N,H,W,C) or (N,H,W), "
                    "vectors (N,D), tokens integers (N); name another with data.x",
                    set->path, x->name, element_name(x->type), dims_text(x, dims));
    set->kind = x->ndim == 2 ? DATA_TABLE : DATA_IMAGE;
    if (last && o->facts->weft && x->ndim == 4)
        return config_fail_key(o->config, "data.layout",
                               "%s is a weft data set, which is always nchw; remove data.layout",
                               set->path);
    set->channels_last = last && x->ndim == 4;
    if (x->ndim == 4 && !o->facts->weft) TRY(layout_known(o));
    if (x->ndim != 3) set->channels = x->dim[set->channels_last ? 3 : 1];
    if (x->ndim == 2) return OK;
    set->height = x->dim[x->ndim == 3 || set->channels_last ? 1 : 2];
    set->width = x->dim[x->ndim == 3 || set->channels_last ? 2 : 3];
    return OK;
}

/* Decides by y's dimensions and type whether it holds labels or targets. */
static Status y_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *y = &set->y;
    char dims[DIMS_TEXT];
    bool mse = o->config && loss_info(o->config)->reads == LOSS_READS_TARGETS;
    if (y->dim[0] != set->samples)
        return fail(ERR_DATA,
                    "%s: %s has %lld samples, %s has %lld; both must have as many; make it again, "
                    "or name others with data.x and data.y",
                    set->path, set->x.name, (long long)set->samples, y->name, (long long)y->dim[0]);
    bool targets = mse || element_is_float(y->type);
    if (!targets && y->ndim == 2 && y->dim[1] != 1) {
        char *line = number_labels_line(set, y);
        Status st = line ? fail(ERR_DATA, "%s", line) : OK;
        mem_free(&line);
        TRY(st);
    }
    if (y->ndim > 2 || (!targets && y->ndim == 2 && y->dim[1] != 1))
        return fail(ERR_DATA,
                    "%s: %s has the shape %s; labels are integers (N), targets (N) or (N,K); name "
                    "another with data.y",
                    set->path, y->name, dims_text(y, dims));
    set->target_width = targets ? y->dim[1] : 0;
    return OK;
}

/* Finds the number of classes in the file's list. A list that only counts says nothing if labels do
 * not begin at 0. */
static Status named_find(const Opening *o, int64_t *named)
{
    ClassNames names;
    *named = o->facts->classes;
    if (o->set->label_base == 0) return OK;
    *named = o->facts->names;
    if (*named == 0) return OK;
    TRY(class_names_read(&names, o->set->path));
    if (class_names_count(&names)) *named = 0;
    class_names_free(&names);
    return OK;
}

static Status classes_find(Opening *o)
{
    DataSet *set = o->set;
    int64_t named, configured = o->config ? o->config->model.classes : 0;
    TRY(part_present(o, FACTS_CLASSES));
    if (set->target_width > 0) return OK;
    set->label_base = o->config ? o->config->data.label_base : 0;
    TRY(named_find(o, &named));
    if (named < 0 || named >= INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute classes is %lld", set->path, (long long)named);
    set->named = o->facts->classes > 0 ? o->facts->classes : 0;
    if (configured > 0 && named > configured)
        return config_fail_key(o->config, "model.classes",
                               "%s has %lld classes, model.classes is %lld; remove it, or make it "
                               "%lld",
                               set->path, (long long)named, (long long)configured,
                               (long long)named);
    set->classes = configured > 0 ? configured : named;
    if (set->classes > 0) return OK;
    LabelUse *use = mem_new(sizeof *use);
    set->classes = INT32_MAX;
    Status st = integers_scan(set, use);
    set->classes = use->most + 1;
    mem_free(&use);
    return st;
}

/* Finds the size of the vocabulary: as the configuration or the file says; 256 for bytes; else 1 +
 * the largest token. */
static Status vocab_find(Opening *o)
{
    DataSet *set = o->set;
    int64_t named = o->facts->vocab, configured = o->config ? o->config->model.vocab : 0;
    if (named < 0 || named > INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute vocab is %lld", set->path, (long long)named);
    if (configured > 0 && named > configured)
        return config_fail_key(o->config, "model.vocab",
                               "%s has %lld tokens, model.vocab is %lld; remove it, or make it at "
                               "least %lld",
                               set->path, (long long)named, (long long)configured,
                               (long long)named);
    set->vocab = configured > 0           ? configured
                 : named > 0              ? named
                 : set->x.type == ELEM_U8 ? 256
                                          : INT32_MAX;
    if (set->vocab < INT32_MAX) return OK;
    LabelUse *use = mem_new(sizeof *use);
    Status st = integers_scan(set, use);
    set->vocab = use->most + 1;
    mem_free(&use);
    return st;
}

int64_t data_context(const Config *config)
{
    enum { CONTEXT = 256, GPT2_CONTEXT = 1024 };
    if (config && config->model.context > 0) return config->model.context;
    return config && config->model.size != GPT_OWN ? GPT2_CONTEXT : CONTEXT;
}

/* Computes the samples of a token set; each is T tokens and the one after them. */
static Status tokens_shape(Opening *o)
{
    DataSet *set = o->set;
    int64_t total = set->x.dim[0];
    set->context = data_context(o->config);
    set->samples = (total - 1) / set->context;
    if (set->samples < 1)
        return fail(ERR_DATA,
                    "%s: holds %lld token%s, a sample is model.context (%lld) and the one after; "
                    "set a smaller model.context, or make a longer file",
                    set->path, (long long)total, total == 1 ? "" : "s", (long long)set->context);
    TRY(vocab_find(o));
    memcpy(set->tokenizer, o->facts->tokenizer, sizeof set->tokenizer);
    memcpy(set->tokenizer_hash, o->facts->tokenizer_hash, sizeof set->tokenizer_hash);
    set->classes = set->vocab;
    return OK;
}

/* Reads mean and deviation from the configuration's lists or the file's attributes. */
static Status stats_find(Opening *o)
{
    DataSet *set = o->set;
    const Config *c = o->config;
    int means = 0, stds = 0;
    if (c && !c->data.normalize) return OK;
    bool configured = c && (c->data.mean.count > 0 || c->data.std.count > 0);
    if (configured) {
        means = c->data.mean.count, stds = c->data.std.count;
        for (int i = 0; i < means && i < DATA_CHANNELS; ++i)
            set->mean[i] = (float)c->data.mean.value[i];
        for (int i = 0; i < stds && i < DATA_CHANNELS; ++i)
            set->std[i] = (float)c->data.std.value[i];
    } else {
        TRY(part_present(o, FACTS_STATS));
        means = o->facts->means, stds = o->facts->stds;
        memcpy(set->mean, o->facts->mean, sizeof set->mean);
        memcpy(set->std, o->facts->std, sizeof set->std);
    }
    if (means == 0 && stds == 0) return OK;
    bool good = means == stds && means <= DATA_CHANNELS && (means == 1 || means == set->channels);
    for (int i = 0; good && i < means; ++i)
        good = isfinite(set->mean[i]) && isfinite(set->std[i]) && set->std[i] > 0;
    if (!good && configured && !data_kind(set)->augments)
        return config_fail_key(
            c, c->data.mean.count ? "data.mean" : "data.std",
            "%s is a table of %lld columns, not a set of pictures, and data.mean "
            "has %d values: name pictures, or give a table one value for all "
            "columns or one for each (at most %d)",
            set->path, (long long)set->channels, means, DATA_CHANNELS);
    if (!good && configured)
        return config_fail_key(c, c->data.mean.count ? "data.mean" : "data.std",
                               "data.mean and data.std need one value each, or one for each of the "
                               "%lld channels of %s (at most %d), deviations above 0",
                               (long long)set->channels, set->path, DATA_CHANNELS);
    if (!good)
        return fail(ERR_DATA,
                    "%s: root attributes mean (%d values) and std (%d) do not fit its %lld "
                    "channels, or a deviation is not above 0; give data.mean and data.std",
                    set->path, means, stds, (long long)set->channels);
    set->has_stats = true;
    set->stats_count = means;
    return OK;
}

/* Checks the index of flat ids and finds the largest number of ids of a sample, which no attribute
 * gives. */
static Status ids_scan(DataSet *set)
{
    enum { PIECE = 1 << 16 };
    Reader *reader;
    uint64_t first = 0, last = 0, *piece = mem_new(PIECE * sizeof *piece);
    Status st = reader_new_array(&reader, set, &set->id_first);
    for (int64_t at = 0; st == OK && at < set->id_first.dim[0]; at += PIECE) {
        int64_t left = set->id_first.dim[0] - at, n = left < PIECE ? left : PIECE;
        st = reader_get_run(reader, at, n, piece);
        for (int64_t i = 0; st == OK && i < n; last = piece[i++]) {
            bool begins = (at + i) % set->fields == 0;
            if (piece[i] < last || piece[i] > (uint64_t)set->ids.dim[0])
                st = ids_fail(set, (at + i) / set->fields, (at + i) % set->fields);
            else if (begins && at + i > 0 && (int64_t)(piece[i] - first) > set->id_most)
                set->id_most = (int64_t)(piece[i] - first);
            if (begins) first = piece[i];
        }
    }
    mem_free(&piece);
    reader_free(&reader);
    return st;
}

/* Checks shape and types of a table's /sparse and /sparse_offset. */
static Status ids_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *ids = &o->facts->ids, *first = &o->facts->id_first;
    char dims[DIMS_TEXT];
    if (!ids->ndim) return OK;
    bool flat = ids->ndim == 1;
    int64_t places = flat ? first->dim[0] - 1 : ids->dim[0];
    set->ids = *ids;
    set->id_first = *first;
    set->id_rows = (uint64_t)o->facts->id_rows;
    set->id_most = o->facts->id_most;
    set->id_begins = o->facts->id_begins;
    set->id_words = o->facts->id_words;
    if (o->facts->id_rows < 0)
        return fail(ERR_DATA, "%s: root attribute id_rows is %lld", set->path,
                    (long long)o->facts->id_rows);
    if (element_is_float(ids->type) || ids->ndim > 2 || (flat && first->ndim != 1) ||
        (flat && (first->type != ELEM_U64 || places < 1 || places % set->samples != 0)) ||
        (!flat && places != set->samples))
        return fail(ERR_DATA,
                    "%s: /sparse is %s of %s%s; ids are integers (N,F) for the %lld samples, or in "
                    "one row with /sparse_offset, uint64 (N*F+1)",
                    set->path, dims_text(ids, dims), element_name(ids->type),
                    flat ? ", and /sparse_offset does not fit it" : "", (long long)set->samples);
    set->fields = flat ? places / set->samples : ids->dim[1];
    if (!flat) set->id_most = set->fields;
    if (flat && set->id_most == 0) TRY(ids_scan(set));
    if (set->id_most >= 0 && set->id_most <= DATA_IDS_MOST && set->fields <= DATA_IDS_MOST)
        return OK;
    return fail(ERR_DATA,
                "%s: a sample has %lld fields and up to %lld ids (attribute id_most); at most %d "
                "can be used",
                set->path, (long long)set->fields, (long long)set->id_most, DATA_IDS_MOST);
}

static Status contents_read(Opening *o)
{
    DataSet *set = o->set;
    TRY(part_present(o, FACTS_FORMAT));
    set->kind = o->facts->kind;
    TRY(part_present(o, FACTS_X));
    set->x = o->facts->x;
    set->index = o->facts->index;
    set->orient = o->facts->orient;
    set->encoded = o->facts->encoded;
    set->oriented = o->facts->oriented;
    set->turned = o->facts->turned;
    set->bicubic = o->facts->bicubic;
    set->columns = o->facts->columns;
    TRY(x_shape(o));
    if (data_kind(set)->next_token) return tokens_shape(o);
    set->samples = set->encoded ? set->index.dim[0] - 1 : set->x.dim[0];
    set->stored_height = set->encoded ? 0 : set->height;
    set->stored_width = set->encoded ? 0 : set->width;
    TRY(view_shape(set, o->config));
    if (set->encoded) TRY(index_check(set));
    TRY(ids_shape(o));
    double scale = o->config ? o->config->data.scale : 0.0;
    set->scale = (float)(scale != 0.0 ? scale : set->x.type == ELEM_U8 ? 1.0 / 255.0 : 1.0);
    TRY(part_present(o, FACTS_Y));
    set->y = o->facts->y;
    TRY(y_shape(o));
    TRY(classes_find(o));
    return stats_find(o);
}

Status data_set_open_file(DataSet *set, const Config *config, const char *path)
{
    memset(set, 0, sizeof *set);
    if (strlen(path) >= DATA_PATH) return facts_path_fail(path);
    snprintf(set->path, sizeof set->path, "%s", path);
    Opening o = {.set = set, .config = config, .facts = mem_new(sizeof *o.facts)};
    Status status = facts_find(&o);
    if (status == OK) status = contents_read(&o);
    mem_free(&o.facts);
    return status;
}

Status data_set_open(DataSet *set, const Config *config, const char *path)
{
    if (!path || !path[0])
        return fail(ERR_CONFIG, "no data set is named; set data.train (and data.test)");
    return strchr(path, '\n') ? files_open(set, config, path)
                              : data_set_open_file(set, config, path);
}
