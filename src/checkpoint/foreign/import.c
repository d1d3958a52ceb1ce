/* `weft ckpt import`: makes a checkpoint from another program's tensors. Names determine which
 * parameters the tensors become (families.c). If there is a description of the model, the tensors
 * are checked against it here; otherwise they are checked when a run loads the checkpoint. */
#include "../mismatches.h"
#include "hf_model.h"
#include "../make.h"
#include "prefix.h"
#include "rename.h"
#include "foreign_set.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One tensor of the checkpoint, and its sources. */
typedef struct Made {
    /* path of the tensor, for example "/params/conv1.weight"; owned */
    char *path;
    Shape shape;
    /* tensors of the file; their rows, one tensor after the other, become the rows of this tensor;
     * borrowed */
    const ForeignTensor *part[PACKED];
    /* number of parts that the tensor needs */
    int parts;
    /* true: the tensor is stored transposed in the file */
    bool transposed;
} Made;

typedef struct Import {
    const CheckpointImport *what;
    ForeignSet set;
    const Family *family;
    /* path of the description, or NULL; owned */
    char *description;
    /* content of the description */
    HfModel model;
    /* resolved configuration of the described model; NULL without a description; owned */
    char *config;
    /* true: the head is tied to the embedding, so that a head in the file is left out */
    bool tied;
    /* tensors of the checkpoint, [count], with room for set.count; owned */
    Made *made;
    /* the same tensors in the form for checkpoint_make, [count]; owned */
    CheckpointTensor *tensor;
    int count;
    /* buffer for the largest tensor of the file; owned */
    float *plain;
} Import;

static const char *without_prefix(const Family *family, const char *name)
{
    size_t chars = strlen(family->prefix);
    return strncmp(name, family->prefix, chars) ? name : name + chars;
}

static const Family *guess(const ForeignSet *set)
{
    for (const Family *f = families; f->foreign_mark; ++f)
        for (int i = 0; i < set->count; ++i)
            if (!strcmp(without_prefix(f, set->tensor[i].name), f->foreign_mark)) return f;
    return &families[family_count - 1];
}

static Status refuse(const Import *m, const ForeignTensor *t, const char *why)
{
    char shape[128];
    return fail(ERR_DATA, "%s: tensor %s (%s %s) %s", m->set.path, t->name,
                foreign_type_name(t->type), foreign_shape_text(t, shape), why);
}

/* Returns the index of the part that has this name in a packed tensor; 0 for a tensor that is no
 * part. *whole: name of the packed tensor, owned by the caller; NULL if the tensor is no part.
 * *parts: number of parts. */
static int pack_of(const Family *family, const char *name, char **whole, int *parts)
{
    *whole = NULL;
    *parts = 1;
    for (const FamilyPack *p = family->pack; p->in_weft; ++p)
        for (int k = 0; k < PACKED && p->part[k]; ++k) {
            const char *at = strstr(name, p->part[k]);
            if (!at) continue;
            *whole =
                mem_format("%.*s%s%s", (int)(at - name), name, p->in_weft, at + strlen(p->part[k]));
            for (*parts = 0; *parts < PACKED && p->part[*parts];) ++*parts;
            return k;
        }
    return 0;
}

/* Returns the packed tensor with this path if a part of it was added already, else a new tensor.
 * Takes ownership of `path`. */
static Made *find_made(Import *m, char *path, bool packed)
{
    for (int i = 0; packed && i < m->count; ++i) {
        if (strcmp(m->made[i].path, path) != 0) continue;
        mem_free(&path);
        return &m->made[i];
    }
    m->made[m->count] = (Made){.path = path};
    return &m->made[m->count++];
}

/* Returns whether a tensor of a checkpoint can have this name. */
static bool is_name(const char *name)
{
    for (const char *c = name; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127 || *c == '/') return false;
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static const char TWICE[] = "appears twice, with its family's prefix and without";

static Status add_source(Import *m, const ForeignTensor *t)
{
    static const char *const statistics[] = {"*.running_mean", "*.running_var", NULL};
    const char *name = without_prefix(m->family, t->name);
    if (family_listed(m->family->skip, name)) return OK;
    if (m->tied && !strcmp(name, m->family->tied_head)) return OK;
    if (!foreign_is_float(t))
        return refuse(m, t,
                      "is not of floats that weft knows: F16, BF16, F32, F64; --drop leaves out "
                      "what is no parameter");
    if (!is_name(name))
        return refuse(m, t,
                      "has a name that is none in a checkpoint: empty, '.', '..', or with '/' or a "
                      "control character; --rename or --drop");
    if (t->ndim < 1 || t->ndim > SHAPE_DIMS || t->elements == 0)
        return refuse(m, t, "has other than 1 to 4 dimensions, or no values");
    char *whole = NULL;
    int parts, k = pack_of(m->family, name, &whole, &parts);
    const char *group = family_listed(statistics, name) ? "buffers" : "params";
    Made *made = find_made(m, mem_format("/%s/%s", group, whole ? whole : name), parts > 1);
    mem_free(&whole);
    if (made->part[k]) return refuse(m, t, TWICE);
    made->parts = parts;
    made->part[k] = t;
    made->transposed = family_listed(m->family->transposed, name);
    if (made->transposed && t->ndim != 2) return refuse(m, t, "is no matrix");
    return OK;
}

/* Computes the shape from the parts. All parts must be present and have rows of the same size. */
static Status shape_made(const Import *m, Made *made)
{
    int64_t dim[SHAPE_DIMS] = {1, 1, 1, 1}, rows = 0;
    const ForeignTensor *first = made->part[0];
    for (int k = 0; k < made->parts; ++k) {
        const ForeignTensor *t = made->part[k];
        if (!t)
            return fail(ERR_DATA, "%s: %s needs %d tensors of the file, and one of them is missing",
                        m->set.path, made->path, made->parts);
        if (t->ndim != first->ndim ||
            (t->ndim > 1 && t->elements / t->dim[0] != first->elements / first->dim[0]))
            return refuse(m, t, "has another width than the other parts of the same tensor");
        rows += t->dim[0];
    }
    for (int d = 0; d < first->ndim; ++d) dim[d] = first->dim[d];
    dim[0] = rows;
    made->shape = made->transposed ? shape_of(2, dim[1], dim[0], 1, 1)
                                   : shape_of(first->ndim, dim[0], dim[1], dim[2], dim[3]);
    return OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Made *)a)->path, ((const Made *)b)->path);
}

static Status check_unique(Import *m)
{
    qsort(m->made, (size_t)m->count, sizeof *m->made, by_path);
    for (int i = 1; i < m->count; ++i)
        if (!strcmp(m->made[i].path, m->made[i - 1].path))
            return refuse(m, m->made[i].part[0], TWICE);
    return OK;
}

static void transpose(const float *from, float *to, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

static Status read_made(Import *m, const Made *made, float *plain)
{
    for (int k = 0; k < made->parts; ++k) {
        const ForeignTensor *t = made->part[k];
        TRY(foreign_read(&m->set, t, made->transposed ? m->plain : plain));
        if (made->transposed) transpose(m->plain, plain, t->dim[0], t->dim[1]);
        plain += t->elements;
    }
    return OK;
}

static Status check_values(const Import *m, const Made *made, const float *plain)
{
    size_t length = strlen(made->path);
    bool variance = length > 12 && !strcmp(made->path + length - 12, ".running_var");
    int64_t n = shape_count(made->shape);
    for (int64_t i = 0; i < n; ++i) {
        if (isfinite(plain[i]) && !(variance && plain[i] < 0)) continue;
        return fail(ERR_DATA, "%s: %s holds %g, which is no %s", m->set.path, made->path,
                    (double)plain[i], variance ? "variance" : "finite number in single precision");
    }
    return OK;
}

/* Sets *equal to true if the two tensors have the same values. */
static Status compare(Import *m, const ForeignTensor *a, const ForeignTensor *b, bool *equal)
{
    *equal = a->elements == b->elements && foreign_is_float(a) && foreign_is_float(b);
    if (!*equal) return OK;
    size_t bytes = (size_t)a->elements * sizeof(float);
    float *x = mem_new(bytes + 1), *y = mem_new(bytes + 1);
    Status st = foreign_read(&m->set, a, x);
    if (st == OK) st = foreign_read(&m->set, b, y);
    *equal = st == OK && memcmp(x, y, bytes) == 0;
    mem_free(&x);
    mem_free(&y);
    return st;
}

/* Sets m->tied. If the family or the description says that the head is tied to the embedding, a
 * head in the file must have the embedding's values. Without a description, the head of a family
 * that may untie it counts as tied if it has the embedding's values. */
static Status check_head(Import *m)
{
    const Family *family = m->family;
    const ForeignTensor *head = NULL, *embedding = NULL;
    bool equal = false;
    m->tied = family->tied_head && (!family->may_untie || (m->description && m->model.tied));
    for (int i = 0; i < m->set.count && family->tied_head; ++i) {
        const char *name = without_prefix(family, m->set.tensor[i].name);
        if (!strcmp(name, family->tied_head)) head = &m->set.tensor[i];
        if (!strcmp(name, family->tied_to)) embedding = &m->set.tensor[i];
    }
    if (!head || !embedding || (m->description && !m->tied)) return OK;
    TRY(compare(m, head, embedding, &equal));
    if (m->tied && !equal)
        return refuse(m, head,
                      m->description ? "is not the embedding again, and the description says "
                                       "that the two are tied"
                                     : "is not the embedding again: this family's head is tied to "
                                       "it");
    if (!m->tied && equal) {
        m->tied = true;
        log_info("%s: %s is %s again: taken as tied (model.tied: true)", m->set.path, head->name,
                 embedding->name);
    }
    return OK;
}

/* ---- the model's description ---- */

static Status find_description(Import *m)
{
    char *copy = mem_text(m->what->from);
    char *path = mem_format("%s/config.json", dirname(copy));
    mem_free(&copy);
    if (m->what->description) {
        m->description = mem_text(m->what->description);
    } else if (access(path, F_OK) == 0 || errno != ENOENT) {
        m->description = mem_text(strncmp(path, "./", 2) ? path : path + 2);
    }
    mem_free(&path);
    return m->description
               ? file_check_not_input(m->what->out, (const char *const *)&m->description, 1)
               : OK;
}

/* Reads the description. If neither the family nor the description's model type is one of
 * transformers' models that weft has, a config.json that happens to be in the folder is ignored
 * with a message. */
static Status describe(Import *m)
{
    HfFields fields = {0};
    TRY(find_description(m));
    if (!m->description) {
        if (m->family->foreign_mark)
            log_info("%s: its folder has no config.json (--hf-config names one): heads, angles and "
                     "windows are not checked; the CONFIG with which you use the checkpoint sets "
                     "them",
                     m->set.path);
        return OK;
    }
    Status st = hf_open(&fields, m->description);
    const bool other = st == OK && !m->family->foreign_mark && !hf_model_known(&fields);
    if (other && !m->what->description) {
        log_info("%s: is not read: the tensors are not of a family with descriptions",
                 m->description);
        mem_free(&m->description);
    } else if (st == OK) {
        st = hf_model_read(&m->model, &fields, m->family);
    }
    hf_close(&fields);
    return st;
}

/* Checks that the tensors fit the described model. */
static Status check_tensors(Import *m, const Graph *graph)
{
    Mismatches mismatches;
    bool *used = mem_new((size_t)m->count + 1);
    mismatches_begin(&mismatches);
    for (int p = 0; p < graph->param_count; ++p) {
        const Param *param = &graph->param[p];
        int k = 0;
        if (param->tied_param >= 0) continue;
        while (k < m->count && strcmp(checkpoint_leaf(m->made[k].path), param->name) != 0) ++k;
        if (k == m->count) {
            mismatches_missing(&mismatches, param->name);
            continue;
        }
        used[k] = true;
        if (!shape_equal(m->made[k].shape, param->shape))
            mismatches_size(&mismatches, param->name, m->made[k].shape, param->shape);
    }
    for (int k = 0; k < m->count; ++k)
        if (!used[k]) mismatches_surplus(&mismatches, m->made[k].path);
    mem_free(&used);
    char *why =
        mem_format("its tensors are not those of the model that %s describes", m->description);
    Status st = mismatches_end(&mismatches, m->set.path, why);
    mem_free(&why);
    return st;
}

/* Builds the described model, checks the tensors against it, and sets m->config to the model's
 * configuration. */
static Status check_model(Import *m)
{
    Config *config = NULL;
    Graph *graph = NULL;
    if (!m->description) return OK;
    Status st = config_parse(&config, m->description, m->model.text, 0, NULL);
    if (st == OK)
        st = graph_build(&graph, config, desc_plain(shape_of(2, 1, 1, 1, 1), DTYPE_I32),
                         m->model.vocab);
    if (st == ERR_CONFIG) {
        char *why = mem_text(fail_message());
        st = fail(ERR_DATA, "%s: describes a model that weft does not have: %s", m->description,
                  why);
        mem_free(&why);
    }
    if (st == OK) st = check_tensors(m, graph);
    if (st == OK) m->config = config_text(config);
    graph_free(&graph);
    config_free(&config);
    return st;
}

/* Lists the tensors of the checkpoint and checks them before anything is written. */
static Status prepare(Import *m)
{
    int64_t largest = 1, largest_made = 1;
    TRY(check_head(m));
    m->made = mem_new((size_t)m->set.count * sizeof *m->made);
    for (int i = 0; i < m->set.count; ++i) {
        TRY(add_source(m, &m->set.tensor[i]));
        if (m->set.tensor[i].elements > largest) largest = m->set.tensor[i].elements;
    }
    if (m->count == 0) return fail(ERR_DATA, "%s: holds no parameter", m->set.path);
    TRY(check_unique(m));
    for (int i = 0; i < m->count; ++i) {
        TRY(shape_made(m, &m->made[i]));
        if (shape_count(m->made[i].shape) > largest_made)
            largest_made = shape_count(m->made[i].shape);
    }
    TRY(check_model(m));
    m->plain = mem_new((size_t)largest * sizeof *m->plain);
    float *plain = mem_new((size_t)largest_made * sizeof *plain);
    Status st = OK;
    for (int i = 0; st == OK && i < m->count; ++i) {
        st = read_made(m, &m->made[i], plain);
        if (st == OK) st = check_values(m, &m->made[i], plain);
    }
    mem_free(&plain);
    return st;
}

static Status read_tensor(void *user, int i, float *plain)
{
    Import *m = user;
    return read_made(m, &m->made[i], plain);
}

static Status save(Import *m, const char *out)
{
    CheckpointMeta meta = {.best_metric = NAN, .grid = "1x1x1", .config = m->config};
    m->tensor = mem_new((size_t)m->count * sizeof *m->tensor);
    for (int i = 0; i < m->count; ++i)
        m->tensor[i] = (CheckpointTensor){.path = m->made[i].path, .shape = m->made[i].shape};
    snprintf(meta.init_from, sizeof meta.init_from, "%.900s (%s), %d tensors", m->set.path,
             m->family->name, m->count);
    const CheckpointSource source = {
        .count = m->count, .tensor = m->tensor, .user = m, .read = read_tensor};
    return checkpoint_make(out, &meta, &source);
}

Status checkpoint_import(CheckpointImport *import)
{
    Import m = {.what = import};
    Status st = foreign_open(&m.set, import->from, import->key);
    for (int i = 0; st == OK && i < m.set.files; ++i)
        st = file_check_not_input(import->out, (const char *const *)&m.set.file[i].path, 1);
    if (st == OK) st = foreign_rename(&m.set, import->rename, import->rename_count);
    if (st == OK) st = foreign_drop(&m.set, import->drop, import->drop_count);
    if (st == OK) st = prefix_strip(&m.set);
    if (st == OK) {
        m.family = guess(&m.set);
        import->family = m.family->help;
        st = describe(&m);
    }
    if (st == OK) st = prepare(&m);
    if (st == OK) st = save(&m, import->out);
    import->values = 0;
    import->context = m.model.context;
    import->model = st == OK && m.model.text ? mem_text(m.model.text) : NULL;
    for (int i = 0; i < m.count; ++i) {
        if (!strncmp(m.made[i].path, "/params/", 8)) import->values += shape_count(m.made[i].shape);
        mem_free(&m.made[i].path);
    }
    hf_model_fini(&m.model);
    mem_free(&m.description);
    mem_free(&m.config);
    mem_free(&m.made);
    mem_free(&m.tensor);
    mem_free(&m.plain);
    foreign_close(&m.set);
    return st;
}

Status checkpoint_rows_check(void)
{
    for (int i = 0; i < family_count; ++i) TRY(family_check(&families[i], i == family_count - 1));
    for (int i = 0; i < foreign_format_count; ++i) {
        const ForeignFormat *f = foreign_formats[i];
        const bool whole = f->name && f->help && f->begins && f->add;
        TRY(row_check("file format", f->name,
                      whole ? NULL : ".name, .help, .begins or .add is not given"));
    }
    return OK;
}

const char *checkpoint_format_name(int i, const char **help)
{
    if (i >= foreign_format_count) return NULL;
    *help = foreign_formats[i]->help;
    return foreign_formats[i]->name;
}

const char *checkpoint_family_name(int i, const char **help)
{
    if (i >= family_count) return NULL;
    *help = families[i].help;
    return families[i].name;
}
