/* Opens a data set: derives the DataSet (kind, samples, classes, mean, deviation, scale) from the
 * file's metadata, which facts.c reads in a separate process. The keys data.x and data.y name the
 * arrays. Without data.x, x is the array that weft's own data sets of the kind have
 * (DataKindInfo.array); in a file of another program it is /x. In such a file the dimensions and
 * the type of x give the kind: integers in one dimension, for example, are tokens. Three indices
 * are read completely: that of encoded pictures, to check it; that of ids, if the file does not
 * give id_most; and that of boxes, for the largest number of boxes in a picture. Labels or tokens
 * are scanned if nothing gives the number of classes or of tokens. */
#include "facts.h"
#include "../fields/fields_private.h"
#include "layers.h"

#include <math.h>
#include <string.h>

typedef struct Opening {
    /* set that is being opened; borrowed */
    DataSet *set;
    /* borrowed; NULL: defaults */
    const Config *config;
    /* metadata of the file; owned */
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

/* Returns OK if this part of the metadata has been read, else the error that prevented it. */
static Status check_part(const Opening *o, FactsPart part)
{
    return (int)part < o->facts->parts ? OK : fail(o->facts->status, "%s", o->facts->why);
}

static Status read_facts(const Opening *o)
{
    const Config *c = o->config;
    FactsRequest request = {0};
    TRY(facts_request_init(&request, o->set->path, c && c->data.x ? c->data.x : "/x",
                           c && c->data.y ? c->data.y : "/y"));
    return facts_request_run(&request, o->facts);
}

static bool usual_channels(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

/* Returns ERR_DATA if the layout is ambiguous and the user has not set data.layout. Samples of 32 x
 * 32 x 3, for example, are probably not 32 channels of 32 x 3 pixels. */
static Status check_layout(const Opening *o)
{
    const DataArray *x = &o->facts->x;
    char dims[DIMS_TEXT];
    if (!usual_channels(x->dim[3]) || usual_channels(x->dim[1])) return OK;
    if (o->config && (o->set->channels_last || config_key_is_set(o->config, "data.layout")))
        return OK;
    return fail(ERR_DATA,
                "%s: %s has the shape %s, which may be %lld channels of %lldx%lld pixels or "
                "%lldx%lld pixels of %lld channels: set data.layout to nchw for the first, to nhwc "
                "for the second",
                o->set->path, x->name, dims_text(x, dims), (long long)x->dim[1],
                (long long)x->dim[2], (long long)x->dim[3], (long long)x->dim[1],
                (long long)x->dim[2], (long long)x->dim[3]);
}

/* Derives kind, channels, height and width from the dimensions of x. ERR_DATA: they fit no kind, or
 * not the kind that the file gives. */
static Status derive_x_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *x = &set->x;
    char dims[DIMS_TEXT];
    if (set->encoded) {
        set->channels = 3;
        return OK;
    }
    bool nhwc = o->config && o->config->data.layout == LAYOUT_NHWC;
    set->channels = set->height = set->width = 1;
    bool has_tokens = x->ndim == 1 && !element_is_float(x->type);
    if (data_has_tokens(set) && !has_tokens)
        return fail(ERR_DATA, "%s: %s must be one row of integers, it is %s of %s", set->path,
                    x->name, dims_text(x, dims), element_name(x->type));
    if (has_tokens && !o->facts->by_weft) set->kind = DATA_TOKENS;
    if (data_has_tokens(set)) return OK;
    if (x->ndim < 2 || (o->facts->by_weft && data_has_images(set) != (x->ndim > 2)))
        return fail(
            ERR_DATA,
            "%s: %s (%s) has the shape %s; images are (N,C,H,W), (N,H,W,C) or (N,H,W), "
            "vectors (N,D), tokens integers (N); name another with data.x, or variables that "
            "are fields with data.variables",
            set->path, x->name, element_name(x->type), dims_text(x, dims));
    if (!o->facts->by_weft) set->kind = x->ndim == 2 ? DATA_TABLE : DATA_IMAGE;
    if (nhwc && o->facts->by_weft && x->ndim == 4)
        return config_fail_key(o->config, "data.layout",
                               "%s is a weft data set, which is always nchw; remove data.layout",
                               set->path);
    set->channels_last = nhwc && x->ndim == 4;
    if (x->ndim == 4 && !o->facts->by_weft) TRY(check_layout(o));
    if (x->ndim != 3) set->channels = x->dim[set->channels_last ? 3 : 1];
    if (x->ndim == 2) return OK;
    set->height = x->dim[x->ndim == 3 || set->channels_last ? 1 : 2];
    set->width = x->dim[x->ndim == 3 || set->channels_last ? 2 : 3];
    return OK;
}

/* Sets target_width; 0 means that y holds labels. The loss, and the type and dimensions of y,
 * decide whether y holds labels or targets. ERR_DATA: y can be neither, or does not have one row
 * for each sample. */
static Status derive_y_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *y = &set->y;
    char dims[DIMS_TEXT];
    bool loss_reads_targets = o->config && loss_info(o->config)->reads == LOSS_READS_TARGETS;
    if (y->dim[0] != set->samples)
        return fail(ERR_DATA,
                    "%s: %s has %lld samples, %s has %lld; both must have the same number; make it "
                    "again, or name others with data.x and data.y",
                    set->path, set->x.name, (long long)set->samples, y->name, (long long)y->dim[0]);
    bool targets = loss_reads_targets || element_is_float(y->type);
    bool label_rows = !targets && y->ndim == 2 && y->dim[1] != 1;
    if (label_rows) {
        char *line = number_labels_warning(set, y);
        Status st = line ? fail(ERR_DATA, "%s", line) : OK;
        mem_free(&line);
        TRY(st);
    }
    if (y->ndim > 2 || label_rows)
        return fail(ERR_DATA,
                    "%s: %s has the shape %s; labels are integers (N), targets (N) or (N,K); name "
                    "another with data.y",
                    set->path, y->name, dims_text(y, dims));
    set->target_width = targets ? y->dim[1] : 0;
    return OK;
}

/* Sets *classes to the number of classes that the file gives; 0: unknown. If label_base is not 0,
 * only a list with real names counts. The attribute `classes`, and a list of the numbers 0, 1, 2,
 * ..., may include the labels below label_base, which are not classes. */
static Status find_file_classes(const Opening *o, int64_t *classes)
{
    ClassNames names;
    *classes = o->facts->classes;
    if (o->set->label_base == 0) return OK;
    *classes = o->facts->names;
    if (*classes == 0) return OK;
    TRY(class_names_read(&names, o->set->path));
    if (class_names_are_numbers(&names)) *classes = 0;
    class_names_free(&names);
    return OK;
}

/* Sets the number of classes: that of model.classes, else that of the file, else 1 + the largest
 * class of a label. */
static Status find_classes(Opening *o)
{
    DataSet *set = o->set;
    int64_t in_file, configured = o->config ? o->config->model.classes : 0;
    TRY(check_part(o, FACTS_CLASSES));
    if (set->target_width > 0) return OK;
    set->label_base = o->config ? o->config->data.label_base : 0;
    TRY(find_file_classes(o, &in_file));
    if (in_file < 0 || in_file >= INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute classes is %lld", set->path, (long long)in_file);
    set->listed_classes = o->facts->classes > 0 ? o->facts->classes : 0;
    if (configured > 0 && in_file > configured)
        return config_fail_key(o->config, "model.classes",
                               "%s has %lld classes, model.classes is %lld; remove it, or make it "
                               "%lld",
                               set->path, (long long)in_file, (long long)configured,
                               (long long)in_file);
    set->classes = configured > 0 ? configured : in_file;
    if (set->classes > 0) return OK;
    LabelUse *use = mem_new(sizeof *use);
    /* integers_scan refuses labels whose class is not below set->classes. */
    set->classes = INT32_MAX;
    Status st = integers_scan(set, use);
    set->classes = use->most + 1;
    mem_free(&use);
    return st;
}

/* Sets the size of the vocabulary: that of model.vocab, else that of the file, else 256 if tokens
 * are of type uint8, else 1 + the largest token. */
static Status find_vocab(Opening *o)
{
    DataSet *set = o->set;
    int64_t in_file = o->facts->vocab, configured = o->config ? o->config->model.vocab : 0;
    if (in_file < 0 || in_file > INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute vocab is %lld", set->path, (long long)in_file);
    if (configured > 0 && in_file > configured)
        return config_fail_key(o->config, "model.vocab",
                               "%s has %lld tokens, model.vocab is %lld; remove it, or make it at "
                               "least %lld",
                               set->path, (long long)in_file, (long long)configured,
                               (long long)in_file);
    set->vocab = configured > 0           ? configured
                 : in_file > 0            ? in_file
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

/* Sets samples, vocabulary and tokenizer of a set of tokens. A sample is model.context tokens, and
 * the label of each token is the token after it. */
static Status open_tokens(Opening *o)
{
    DataSet *set = o->set;
    int64_t total = set->x.dim[0];
    set->context = data_context(o->config);
    set->samples = (total - 1) / set->context;
    if (set->samples < 1)
        return fail(ERR_DATA,
                    "%s: holds %lld token%s, a sample is model.context (%lld) tokens and the next; "
                    "set a smaller model.context, or make a longer file",
                    set->path, (long long)total, total == 1 ? "" : "s", (long long)set->context);
    TRY(find_vocab(o));
    memcpy(set->tokenizer, o->facts->tokenizer, sizeof set->tokenizer);
    memcpy(set->tokenizer_hash, o->facts->tokenizer_hash, sizeof set->tokenizer_hash);
    set->classes = set->vocab;
    return OK;
}

/* Copies mean and deviation from data.mean and data.std, or if these are not set, from the file's
 * attributes, and checks them. Copies nothing if data.normalize is false. */
static Status find_mean_and_std(Opening *o)
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
        TRY(check_part(o, FACTS_STATS));
        means = o->facts->means, stds = o->facts->stds;
        memcpy(set->mean, o->facts->mean, sizeof set->mean);
        memcpy(set->std, o->facts->std, sizeof set->std);
    }
    if (means == 0 && stds == 0) return OK;
    bool valid = means == stds && means <= DATA_CHANNELS && (means == 1 || means == set->channels);
    for (int i = 0; valid && i < means; ++i)
        valid = isfinite(set->mean[i]) && isfinite(set->std[i]) && set->std[i] > 0;
    if (!valid && configured && !data_has_images(set))
        return config_fail_key(
            c, c->data.mean.count ? "data.mean" : "data.std",
            "%s is a table of %lld columns, not a set of pictures, and data.mean "
            "has %d values: name pictures, or give a table one value for all "
            "columns or one for each (at most %d)",
            set->path, (long long)set->channels, means, DATA_CHANNELS);
    if (!valid && configured)
        return config_fail_key(c, c->data.mean.count ? "data.mean" : "data.std",
                               "data.mean and data.std need one value each, or one for each of the "
                               "%lld channels of %s (at most %d), deviations above 0",
                               (long long)set->channels, set->path, DATA_CHANNELS);
    if (!valid)
        return fail(ERR_DATA,
                    "%s: root attributes mean (%d values) and std (%d) do not fit its %lld "
                    "channels, or a deviation is not above 0; give data.mean and data.std",
                    set->path, means, stds, (long long)set->channels);
    set->has_stats = true;
    set->stats_count = means;
    return OK;
}

/* Checks the index of flat ids, and sets ids_per_sample_max, which must be 0 before the call, to
 * the largest number of ids of a sample. Called only for files without the attribute id_most. */
static Status scan_id_index(DataSet *set)
{
    enum { BUFFER_ROWS = 1 << 16 };
    Reader *reader;
    uint64_t sample_first = 0, last = 0, *index = mem_new(BUFFER_ROWS * sizeof *index);
    Status st = reader_new_array(&reader, set, &set->id_first);
    for (int64_t at = 0; st == OK && at < set->id_first.dim[0]; at += BUFFER_ROWS) {
        int64_t left = set->id_first.dim[0] - at, n = left < BUFFER_ROWS ? left : BUFFER_ROWS;
        st = reader_get_rows(reader, at, n, index);
        for (int64_t i = 0; st == OK && i < n; last = index[i++]) {
            bool begins_sample = (at + i) % set->fields == 0;
            if (index[i] < last || index[i] > (uint64_t)set->ids.dim[0])
                st = ids_fail(set, (at + i) / set->fields, (at + i) % set->fields);
            else if (begins_sample && at + i > 0 &&
                     (int64_t)(index[i] - sample_first) > set->ids_per_sample_max)
                set->ids_per_sample_max = (int64_t)(index[i] - sample_first);
            if (begins_sample) sample_first = index[i];
        }
    }
    mem_free(&index);
    reader_free(&reader);
    return st;
}

/* Checks the shapes and types of a table's /sparse and /sparse_offset, and sets the members of
 * DataSet that describe ids. */
static Status open_ids(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *ids = &o->facts->ids, *first = &o->facts->id_first;
    char dims[DIMS_TEXT];
    if (!ids->ndim) return OK;
    bool flat = ids->ndim == 1;
    /* samples * fields if ids are flat, else samples */
    int64_t rows = flat ? first->dim[0] - 1 : ids->dim[0];
    set->ids = *ids;
    set->id_first = *first;
    set->id_limit = (uint64_t)o->facts->id_limit;
    set->ids_per_sample_max = o->facts->ids_per_sample_max;
    set->field_first_hash = o->facts->field_first_hash;
    set->vocabulary_hash = o->facts->vocabulary_hash;
    if (o->facts->id_limit < 0)
        return fail(ERR_DATA, "%s: root attribute id_rows is %lld", set->path,
                    (long long)o->facts->id_limit);
    if (element_is_float(ids->type) || ids->ndim > 2 || (flat && first->ndim != 1) ||
        (flat && (first->type != ELEM_U64 || rows < 1 || rows % set->samples != 0)) ||
        (!flat && rows != set->samples))
        return fail(ERR_DATA,
                    "%s: /sparse is %s of %s%s; ids are integers (N,F) for the %lld samples, or in "
                    "one row with /sparse_offset, uint64 (N*F+1)",
                    set->path, dims_text(ids, dims), element_name(ids->type),
                    flat ? ", and /sparse_offset does not fit it" : "", (long long)set->samples);
    set->fields = flat ? rows / set->samples : ids->dim[1];
    if (!flat) set->ids_per_sample_max = set->fields;
    if (flat && set->ids_per_sample_max == 0) TRY(scan_id_index(set));
    if (set->ids_per_sample_max >= 0 && set->ids_per_sample_max <= DATA_SAMPLE_IDS_MAX &&
        set->fields <= DATA_SAMPLE_IDS_MAX)
        return OK;
    return fail(ERR_DATA,
                "%s: a sample has %lld fields and up to %lld ids (attribute id_most); at most %d "
                "can be used",
                set->path, (long long)set->fields, (long long)set->ids_per_sample_max,
                DATA_SAMPLE_IDS_MAX);
}

/* Returns ERR_DATA if a set of boxes has more than DATA_LABELS classes, or if its attribute
 * `classes` and its array /category_id give different numbers of classes. */
static Status check_box_classes(const Opening *o)
{
    const int64_t named = o->facts->classes, classes = o->set->box[BOX_ARRAY_CATEGORY_ID].dim[0];
    if (named == classes && classes <= DATA_LABELS) return OK;
    return fail(ERR_DATA,
                "%s: has %lld classes in /category_id, and attribute classes has %lld; at most %d "
                "can be used; import it again",
                o->set->path, (long long)classes, (long long)named, DATA_LABELS);
}

/* Sets all members of the set except its path, from the metadata and the configuration. */
static Status open_contents(Opening *o)
{
    DataSet *set = o->set;
    TRY(check_part(o, FACTS_FORMAT));
    set->kind = o->facts->kind;
    TRY(check_part(o, FACTS_X));
    set->x = o->facts->x;
    set->index = o->facts->index;
    set->orient = o->facts->orient;
    set->encoded = o->facts->encoded;
    set->rotates_on_read = o->facts->rotates_on_read;
    set->orient_requested = o->facts->orient_requested;
    set->bicubic = o->facts->bicubic;
    set->columns = o->facts->columns;
    TRY(derive_x_shape(o));
    if (data_has_tokens(set)) return open_tokens(o);
    set->samples = set->encoded ? set->index.dim[0] - 1 : set->x.dim[0];
    set->stored_height = set->encoded ? 0 : set->height;
    set->stored_width = set->encoded ? 0 : set->width;
    TRY(view_set_model_size(set, o->config));
    if (set->encoded) TRY(index_check(set));
    TRY(open_ids(o));
    double scale = o->config ? o->config->data.scale : 0.0;
    set->scale = (float)(scale != 0.0 ? scale : set->x.type == ELEM_U8 ? 1.0 / 255.0 : 1.0);
    TRY(check_part(o, FACTS_Y));
    set->y = o->facts->y;
    memcpy(set->box, o->facts->box, sizeof set->box);
    TRY(data_has_boxes(set) ? check_box_classes(o) : derive_y_shape(o));
    if (data_has_boxes(set)) TRY(boxes_find_most(set));
    TRY(find_classes(o));
    return find_mean_and_std(o);
}

Status data_set_open_file(DataSet *set, const Config *config, const char *path)
{
    memset(set, 0, sizeof *set);
    if (strlen(path) >= DATA_PATH) return facts_path_fail(path);
    snprintf(set->path, sizeof set->path, "%s", path);
    Opening o = {.set = set, .config = config, .facts = mem_new(sizeof *o.facts)};
    Status status = read_facts(&o);
    if (status == OK) status = open_contents(&o);
    mem_free(&o.facts);
    return status;
}

Status data_set_open(DataSet *set, const Config *config, const char *path)
{
    if (!path || !path[0])
        return fail(ERR_CONFIG, "no data set is named; set data.train (and data.test)");
    if (config && config->data.variables.count > 0) return field_set_open(set, config, path);
    return strchr(path, '\n') ? files_open(set, config, path)
                              : data_set_open_file(set, config, path);
}
