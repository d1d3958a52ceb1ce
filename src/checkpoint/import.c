/* A checkpoint made of another program's tensors. Which parameters they are the names say
 * (families.c); whether they fit a model is asked when a run takes them. */
#include "families.h"
#include "make.h"
#include "prefix.h"
#include "safe_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One tensor of the checkpoint, and what it is made of. */
typedef struct Made {
    /* owned: "/params/conv1.weight" */
    char *path;
    Shape shape;
    /* borrowed: rows of one below the other's */
    const SafeTensor *part[PACKED];
    /* how many there must be */
    int parts;
    bool transposed;
} Made;

typedef struct Import {
    SafeSet set;
    const Family *family;
    /* owned, both; made [set.count] at most */
    Made *made;
    CheckpointTensor *tensor;
    int count;
    /* owned: of the largest tensor there */
    float *plain;
} Import;

static const char *without_prefix(const Family *family, const char *name)
{
    size_t chars = strlen(family->prefix);
    return strncmp(name, family->prefix, chars) ? name : name + chars;
}

static const Family *guess(const SafeSet *set)
{
    for (const Family *f = families; f->mark_there; ++f)
        for (int i = 0; i < set->count; ++i)
            if (!strcmp(without_prefix(f, set->tensor[i].name), f->mark_there)) return f;
    return &families[family_count - 1];
}

static Status refuse(const Import *m, const SafeTensor *t, const char *why)
{
    char shape[128];
    return fail(ERR_DATA, "%s: tensor %s (%s %s) %s", m->set.path, t->name, safe_type_name(t->type),
                safe_shape_text(t, shape), why);
}

/* Which part of which packed tensor is it? *whole: that one's name, owned by the caller; NULL: of
 * none. */
static int pack_of(const Family *family, const char *name, char **whole, int *parts)
{
    *whole = NULL;
    *parts = 1;
    for (const FamilyPack *p = family->pack; p->here; ++p)
        for (int k = 0; k < PACKED && p->part[k]; ++k) {
            const char *at = strstr(name, p->part[k]);
            if (!at) continue;
            *whole =
                mem_format("%.*s%s%s", (int)(at - name), name, p->here, at + strlen(p->part[k]));
            for (*parts = 0; *parts < PACKED && p->part[*parts];) ++*parts;
            return k;
        }
    return 0;
}

/* The one that is made of several, or a new one. Takes path. */
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

static const char TWICE[] = "is there twice, with its family's prefix and without";

static Status take(Import *m, const SafeTensor *t)
{
    static const char *const statistics[] = {"*.running_mean", "*.running_var", NULL};
    const char *name = without_prefix(m->family, t->name);
    if (family_listed(m->family->skip, name)) return OK;
    if (m->family->tied_head && !strcmp(name, m->family->tied_head)) return OK;
    if (!safe_is_float(t))
        return refuse(m, t, "is not of floats that weft knows: F16, BF16, F32, F64");
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return refuse(m, t,
                      "has a name that is none in a checkpoint: empty, '.', '..' or with '/'");
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

/* Of its parts: as many as must be, and of one width. */
static Status shape_made(const Import *m, Made *made)
{
    int64_t dim[SHAPE_DIMS] = {1, 1, 1, 1}, rows = 0;
    const SafeTensor *first = made->part[0];
    for (int k = 0; k < made->parts; ++k) {
        const SafeTensor *t = made->part[k];
        if (!t)
            return fail(ERR_DATA, "%s: %s needs %d tensors there, and one of them is missing",
                        m->set.path, made->path, made->parts);
        if (t->ndim != first->ndim ||
            (t->ndim > 1 && t->elements / t->dim[0] != first->elements / first->dim[0]))
            return refuse(m, t, "has another width than those that it belongs to");
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
        const SafeTensor *t = made->part[k];
        TRY(safe_read(&m->set, t, made->transposed ? m->plain : plain));
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
                    (double)plain[i], variance ? "variance" : "finite number");
    }
    return OK;
}

/* The head of a family whose head is the embedding may be there once more, and must be the same. */
static Status check_head(Import *m)
{
    const SafeTensor *own = NULL, *tied = NULL;
    for (int i = 0; i < m->set.count && m->family->tied_head; ++i) {
        const char *name = without_prefix(m->family, m->set.tensor[i].name);
        if (!strcmp(name, m->family->tied_head)) own = &m->set.tensor[i];
        if (!strcmp(name, m->family->tied_to)) tied = &m->set.tensor[i];
    }
    if (!own || !tied) return OK;
    if (own->elements != tied->elements || !safe_is_float(own))
        return refuse(m, own, "is not the embedding again: this family's head is tied to it");
    size_t bytes = (size_t)own->elements * sizeof(float);
    float *a = mem_new(bytes), *b = mem_new(bytes);
    Status st = safe_read(&m->set, own, a);
    if (st == OK) st = safe_read(&m->set, tied, b);
    if (st == OK && memcmp(a, b, bytes) != 0)
        st = refuse(m, own, "is not the embedding again: this family's head is tied to it");
    mem_free(&a);
    mem_free(&b);
    return st;
}

/* What the file holds, as weft has it; nothing of it has been written yet. */
static Status prepare(Import *m)
{
    int64_t largest = 1, largest_made = 1;
    m->made = mem_new((size_t)m->set.count * sizeof *m->made);
    for (int i = 0; i < m->set.count; ++i) {
        TRY(take(m, &m->set.tensor[i]));
        if (m->set.tensor[i].elements > largest) largest = m->set.tensor[i].elements;
    }
    if (m->count == 0) return fail(ERR_DATA, "%s: holds no parameter", m->set.path);
    TRY(check_unique(m));
    for (int i = 0; i < m->count; ++i) {
        TRY(shape_made(m, &m->made[i]));
        if (shape_count(m->made[i].shape) > largest_made)
            largest_made = shape_count(m->made[i].shape);
    }
    TRY(check_head(m));
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
    CheckpointMeta meta = {.best_metric = NAN, .grid = "1x1x1"};
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
    Import m = {0};
    Status st = safe_open(&m.set, import->from, import->key);
    if (st == OK) {
        prefix_strip(&m.set);
        m.family = guess(&m.set);
        import->family = m.family->help;
        st = prepare(&m);
    }
    if (st == OK) st = save(&m, import->out);
    import->values = 0;
    for (int i = 0; i < m.count; ++i) {
        if (!strncmp(m.made[i].path, "/params/", 8)) import->values += shape_count(m.made[i].shape);
        mem_free(&m.made[i].path);
    }
    mem_free(&m.made);
    mem_free(&m.tensor);
    mem_free(&m.plain);
    safe_close(&m.set);
    return st;
}
