/* `weft ckpt export`: writes a checkpoint's parameters and running statistics as safetensors, under
 * the names of the model's family (families.c). */
#include "families.h"
#include "safetensors.h"
#include "../stored.h"

#include <string.h>

/* Source of one entry of the output. */
typedef struct Source {
    /* the checkpoint's tensor; NULL if the entry is a counter (num_batches_tracked) */
    const StoredTensor *tensor;
    /* row of `tensor` with which the entry begins */
    int64_t first_row;
    /* true: the entry is the transposed tensor */
    bool transposed;
} Source;

typedef struct Export {
    StoredFile file;
    const Family *family;
    SafeOut out;
    /* buffer for the largest tensor; owned */
    float *plain;
    /* the tensor whose values are in `plain`; NULL at first; borrowed */
    const StoredTensor *in_plain;
} Export;

static const Family *guess(const StoredFile *file)
{
    for (const Family *f = families; f->weft_mark; ++f) {
        char *path = mem_format("/params/%s", f->weft_mark);
        bool found = stored_find(file, path) != NULL;
        mem_free(&path);
        if (found) return f;
    }
    return &families[family_count - 1];
}

/* Adds an entry; takes ownership of `name`. A copy of *source is attached to the entry, because
 * safe_write sorts entries. */
static SafeEntry *add(Export *e, char *name, const Source *source)
{
    SafeOut *out = &e->out;
    out->entry = mem_resize(out->entry, (size_t)(out->count + 1) * sizeof *out->entry);
    Source *source_copy = mem_new(sizeof *source_copy);
    *source_copy = *source;
    out->entry[out->count] = (SafeEntry){.name = name, .source = source_copy};
    return &out->entry[out->count++];
}

static char *foreign_name(const Export *e, const char *name)
{
    bool bare = family_listed(e->family->bare, name);
    return mem_format("%s%s", bare ? "" : e->family->prefix, name);
}

/* Adds an entry for each part of a packed tensor (FamilyPack). If there are three parts, they are
 * query, key and value: the query's part has as many rows as the packed weight has columns, and key
 * and value share the other rows equally. If there are two parts, they have equally many rows. */
static Status add_parts(Export *e, const StoredTensor *t, const FamilyPack *pack, const char *at)
{
    const char *name = checkpoint_leaf(t->path);
    int parts = 0;
    while (parts < PACKED && pack->part[parts]) ++parts;
    char *matrix = mem_format("/params/%.*s%sweight", (int)(at - name), name, pack->in_weft);
    const StoredTensor *whole = stored_find(&e->file, matrix);
    mem_free(&matrix);
    int64_t rows = t->shape.dim[0], columns = whole ? whole->shape.dim[1] : 0, row = 0;
    int64_t first = parts == 3 ? columns : rows / 2;
    if (!whole || rows <= first || (rows - first) % (parts - 1))
        return fail(ERR_DATA, "%s: tensor %s cannot be divided into the family's separate tensors",
                    e->file.path, t->path);
    for (int k = 0; k < parts; ++k) {
        char *part = mem_format("%.*s%s%s", (int)(at - name), name, pack->part[k],
                                at + strlen(pack->in_weft));
        SafeEntry *entry = add(e, foreign_name(e, part), &(Source){t, row, false});
        mem_free(&part);
        entry->ndim = t->shape.ndim;
        entry->dim[0] = k == 0 ? first : (rows - first) / (parts - 1);
        entry->dim[1] = t->shape.dim[1];
        row += entry->dim[0];
    }
    return OK;
}

static void add_whole(Export *e, const StoredTensor *t)
{
    const char *name = checkpoint_leaf(t->path);
    bool transposed = family_listed(e->family->transposed, name) && t->shape.ndim == 2;
    SafeEntry *entry = add(e, foreign_name(e, name), &(Source){t, 0, transposed});
    entry->ndim = t->shape.ndim;
    for (int d = 0; d < t->shape.ndim; ++d)
        entry->dim[d] = t->shape.dim[transposed ? t->shape.ndim - 1 - d : d];
}

/* If `name` is a running mean, adds num_batches_tracked, the counter that PyTorch keeps for each
 * batch norm. The counter's value is the checkpoint's step. */
static void add_counter(Export *e, const char *name)
{
    static const char mean[] = ".running_mean";
    size_t length = strlen(name), tail = sizeof mean - 1;
    if (length <= tail || strcmp(name + length - tail, mean) != 0) return;
    SafeEntry *entry =
        add(e, mem_format("%.*s.num_batches_tracked", (int)(length - tail), name), &(Source){0});
    entry->counter = true;
    entry->value = e->file.meta.step;
}

static Status list(Export *e)
{
    for (int i = 0; i < e->file.count; ++i) {
        const StoredTensor *t = &e->file.tensor[i];
        const char *name = checkpoint_leaf(t->path), *at = NULL;
        const FamilyPack *pack = e->family->pack;
        if (!name) continue;
        while (pack->in_weft && !(at = strstr(name, pack->in_weft))) ++pack;
        if (at)
            TRY(add_parts(e, t, pack, at));
        else
            add_whole(e, t);
        add_counter(e, name);
    }
    return e->out.count ? OK : fail(ERR_DATA, "%s: holds no parameter", e->file.path);
}

static Status get(void *user, int i, float *plain)
{
    Export *e = user;
    const SafeEntry *entry = &e->out.entry[i];
    const Source *source = entry->source;
    const StoredTensor *t = source->tensor;
    if (e->in_plain != t) TRY(stored_read(&e->file, t, e->plain));
    e->in_plain = t;
    int64_t columns = t->shape.ndim > 1 ? shape_count(t->shape) / t->shape.dim[0] : 1, n = 1;
    for (int d = 0; d < entry->ndim; ++d) n *= entry->dim[d];
    if (!source->transposed) {
        memcpy(plain, e->plain + source->first_row * columns, (size_t)n * sizeof *plain);
        return OK;
    }
    for (int64_t r = 0; r < t->shape.dim[0]; ++r)
        for (int64_t c = 0; c < columns; ++c)
            plain[c * t->shape.dim[0] + r] = e->plain[r * columns + c];
    return OK;
}

Status checkpoint_export_check(const char *from, const char *form)
{
    static const char tables[] = "/tables/";
    const size_t front = sizeof tables - 1;
    StoredFile file;
    Status st = stored_open(&file, from);
    if (st == OK) st = stored_list(&file);
    for (int i = 0; st == OK && i < file.count; ++i) {
        const char *path = file.tensor[i].path;
        if (strncmp(path, tables, front) != 0) continue;
        st = fail(ERR_DATA,
                  "%s: has sparse tables, such as %.*s, which an export as %s takes none of: read "
                  "them in "
                  "the file itself, with HDF5",
                  from, (int)(strrchr(path, '/') - path - (int)front), path + front, form);
    }
    stored_close(&file);
    return st;
}

Status checkpoint_export(CheckpointExport *export)
{
    Export e = {0};
    CheckpointMeta meta = {0};
    Status st = stored_open(&e.file, export->from);
    if (st == OK) st = stored_list(&e.file);
    /* only for the status: add_counter reads e.file.meta */
    if (st == OK) st = stored_meta(&e.file, &meta);
    checkpoint_meta_fini(&meta);
    if (st == OK) {
        if (export->exports_averages) export->averaged = stored_use_averages(&e.file);
        e.family = guess(&e.file);
        export->family = e.family->help;
        e.out.user = &e;
        e.out.get = get;
        st = list(&e);
    }
    if (st == OK) {
        e.plain = stored_buffer(&e.file);
        st = safe_write(export->out, &e.out);
    }
    export->tensors = e.out.count;
    for (int i = 0; i < e.out.count; ++i) {
        char *name = (char *)(uintptr_t)e.out.entry[i].name;
        Source *source = (Source *)(uintptr_t)e.out.entry[i].source;
        mem_free(&name);
        mem_free(&source);
    }
    mem_free(&e.out.entry);
    mem_free(&e.plain);
    stored_close(&e.file);
    return st;
}
