/* Opens several files as one set (data.train: [a.h5, b.h5]). Samples are numbered in the order of
 * the list. Files may differ only in the number of samples, their storage and the order of classes;
 * mean and deviation are the first file's. Token files are refused, since a sample would have to
 * end where a file does. */
#include "../data_private.h"

#include <string.h>

static DataPlace place_of(const DataArray *a)
{
    return (DataPlace){a->dim[0], a->offset, a->chunk_rows};
}

static void place_put(DataArray *a, const DataPlace *p)
{
    a->dim[0] = p->rows;
    a->offset = p->offset;
    a->chunk_rows = p->chunk_rows;
}

void data_set_file(const DataSet *set, int i, DataSet *file)
{
    const DataFile *f = &set->file[i];
    *file = *set;
    file->file_count = 0;
    file->samples = f->samples;
    memcpy(file->path, f->path, sizeof file->path);
    place_put(&file->x, &f->x);
    place_put(&file->y, &f->y);
    place_put(&file->index, &f->index);
    place_put(&file->orient, &f->orient);
    place_put(&file->ids, &f->ids);
    place_put(&file->id_first, &f->id_first);
    file->map = f->map;
    file->named = f->named;
}

int files_find(const DataSet *set, int64_t sample)
{
    int low = 0, high = set->file_count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (set->file[middle].first <= sample)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool array_alike(const DataArray *a, const DataArray *b, int first_dim)
{
    if (a->type != b->type || a->ndim != b->ndim) return false;
    for (int i = first_dim; i < a->ndim; ++i)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static Status differs(const DataSet *set, const DataSet *other, const char *what)
{
    return fail(ERR_DATA, "%s: %s are not those of %s, so the two cannot be one set", other->path,
                what, set->path);
}

static Status files_alike(const DataSet *set, const DataSet *other)
{
    char x[DIMS_TEXT], y[DIMS_TEXT];
    if (set->kind != other->kind || set->encoded != other->encoded)
        return differs(set, other, "its samples");
    if (!array_alike(&set->x, &other->x, 1))
        return fail(ERR_DATA,
                    "%s: its samples are %s of %s, those of %s are %s of %s: they cannot be one "
                    "set",
                    other->path, dims_text(&other->x, x), element_name(other->x.type), set->path,
                    dims_text(&set->x, y), element_name(set->x.type));
    if (!array_alike(&set->y, &other->y, 1)) return differs(set, other, "its labels or targets");
    bool fit = data_ids_fit(data_set_ids(other), data_set_ids(set));
    if (set->fields != other->fields || set->id_rows != other->id_rows || !fit ||
        (set->fields > 0 && !array_alike(&set->ids, &other->ids, 1)))
        return fail(ERR_DATA,
                    "%s: has %lld fields of ids below %llu, %s has %lld below %llu (0: any), or "
                    "their vocabularies differ, or ids are stored otherwise: they cannot be one "
                    "set; import them in one call, so that they share vocabularies",
                    other->path, (long long)other->fields, (unsigned long long)other->id_rows,
                    set->path, (long long)set->fields, (unsigned long long)set->id_rows);
    TRY(data_columns_check(other, set));
    if (set->oriented != other->oriented) return differs(set, other, "its pictures' orientations");
    return OK;
}

/* Matches classes by their names, or by numbers if a file has no names. */
static Status join_classes(DataSet *set, DataSet *other, ClassNames *names)
{
    if (other->classes == 0) return OK;
    bool joined = false;
    TRY(files_join_classes(set, names, other, &joined));
    if (joined || set->classes == other->classes) return OK;
    return fail(ERR_DATA,
                "%s: has %lld classes, %s has %lld: they cannot be one set, unless model.classes "
                "says how many there are",
                other->path, (long long)other->classes, set->path, (long long)set->classes);
}

static void larger(int64_t *a, int64_t b)
{
    if (b > *a) *a = b;
}

static void files_add(DataSet *set, const DataSet *other)
{
    DataFile *f = &set->file[set->file_count++];
    memcpy(f->path, other->path, sizeof f->path);
    f->samples = other->samples;
    f->map = other->map;
    f->named = other->named;
    f->x = place_of(&other->x);
    f->y = place_of(&other->y);
    f->index = place_of(&other->index);
    f->orient = place_of(&other->orient);
    f->ids = place_of(&other->ids);
    f->id_first = place_of(&other->id_first);
    /* The first file's values are in set already. */
    if (set->file_count == 1) return;
    f->first = set->samples;
    set->samples += other->samples;
    set->x.dim[0] += other->x.dim[0];
    set->y.dim[0] += other->y.dim[0];
    set->ids.dim[0] += other->ids.dim[0];
    if (set->id_first.ndim) set->id_first.dim[0] += other->id_first.dim[0] - 1;
    larger(&set->id_most, other->id_most);
    if (set->encoded) set->index.dim[0] += other->samples;
    if (set->oriented) set->orient.dim[0] += other->samples;
    larger(&set->x.chunk_rows, other->x.chunk_rows);
    if (other->x.offset < 0) set->x.offset = -1;
}

static Status open_one(DataSet *set, const Config *config, const char *path, DataSet *other,
                       ClassNames *names)
{
    bool first = set->file_count == 0;
    TRY(data_set_open_file(first ? set : other, config, path));
    if (first) *other = *set;
    if (data_kind(other)->next_token)
        return fail(ERR_DATA,
                    "%s: holds tokens, and a list of token files cannot be one set: import the "
                    "texts as one file",
                    path);
    if (!first) TRY(files_alike(set, other));
    if (!first) TRY(join_classes(set, other, names));
    files_add(set, other);
    return OK;
}

Status files_open(DataSet *set, const Config *config, const char *paths)
{
    char *rest = mem_text(paths), *walk = rest, *path;
    DataSet *other = mem_new(sizeof *other);
    ClassNames names = {0};
    Status st = OK;
    set->file_count = 0;
    while (st == OK && (path = strsep(&walk, "\n"))) {
        if (set->file_count == DATA_FILES)
            st = fail(ERR_CONFIG, "a list of more than %d files cannot be one set", DATA_FILES);
        else
            st = open_one(set, config, path, other, &names);
    }
    class_names_free(&names);
    mem_free(&other);
    mem_free(&rest);
    return st;
}
