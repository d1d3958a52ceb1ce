/* Opens several files as one set (data.train: [a.h5, b.h5]); lists and describes the files of a
 * set. Samples are numbered in the order of the list. Files may differ only in the number of
 * samples, in their storage and in their classes (class_map.c). The set has the mean and the
 * deviation of the first file. Files of tokens are refused, since a sample could lie in two files,
 * and so are sets of boxes. */
#include "../data_private.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static DataFileArray file_array(const DataArray *a)
{
    return (DataFileArray){a->dim[0], a->offset, a->chunk_rows};
}

static void file_array_apply(DataArray *a, const DataFileArray *p)
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
    file_array_apply(&file->x, &f->x);
    file_array_apply(&file->y, &f->y);
    file_array_apply(&file->index, &f->index);
    file_array_apply(&file->orient, &f->orient);
    file_array_apply(&file->ids, &f->ids);
    file_array_apply(&file->id_first, &f->id_first);
    file->map = f->map;
    file->listed_classes = f->listed_classes;
}

int data_set_files(const DataSet *set)
{
    if (data_has_fields(set)) return set->field_set.files;
    return set->file_count ? set->file_count : 1;
}

const char *data_set_path(const DataSet *set, int i)
{
    if (data_has_fields(set)) return field_path(&set->field_set, i);
    return set->file_count ? set->file[i].path : set->path;
}

/* Returns the uncompressed size in bytes of the variables in a file, with all their levels and
 * frames. */
static double field_bytes(const FieldSet *f, int file)
{
    double bytes = 0;
    for (int v = 0; v < f->stored; ++v) {
        const FieldVariable *variable = &f->variable[v];
        double frames = variable->is_static ? 1 : (double)f->file[file].frames;
        double values = frames * variable->levels *
                        (double)(variable->size[FIELD_ROW] * variable->size[FIELD_COLUMN]);
        bytes += values * (double)element_bytes(field_array(f, file, v)->type);
    }
    return bytes;
}

/* Returns how much of a set of fields an epoch reads, as a fraction of its bytes. It is the
 * fraction of frames that are selected. If patches are cut at random places, it is multiplied by
 * the largest fraction of the area that the patches of a sample's frames can cover. */
static double fields_read(const FieldSet *f)
{
    double frames = 0, selected = 0, area = 1;
    for (int i = 0; i < f->files; ++i) frames += (double)f->file[i].frames;
    for (int i = 0; i < f->segments; ++i)
        if (f->segment[i].samples > 0) selected += (double)f->segment[i].frames;
    const FieldPatch *patch = &f->patch;
    if (patch->size[0] > 0 && patch->tiles[0] == 0)
        area = (double)(patch->size[0] * patch->size[1]) / (double)patch->field_size[0] /
               (double)patch->field_size[1] * (f->offsets[FIELD_INPUT] + f->offsets[FIELD_TARGET]);
    return selected / frames * fmin(area, 1);
}

double data_set_file_bytes(const DataSet *set)
{
    const bool fields = data_has_fields(set);
    double bytes = 0;
    for (int i = 0; i < data_set_files(set); ++i) {
        struct stat st;
        if (stat(data_set_path(set, i), &st) != 0) return 0;
        double file = (double)st.st_size;
        bytes += fields ? fmin(file, field_bytes(&set->field_set, i)) : file;
    }
    return fields ? bytes * fields_read(&set->field_set) : bytes;
}

/* DESCRIBED_MOST: largest number of files that data_set_describe reads; DESCRIBED_BYTES: size of
 * the description of a file */
enum { DESCRIBED_MOST = 64, DESCRIBED_BYTES = 256 };

typedef struct Describing {
    const DataSet *set;
    /* files: number of the set's files; count: number of files that are described */
    int files, count;
    /* hash of the descriptions so far */
    uint64_t hash;
} Describing;

static Status describe_file(void *user, int64_t i, void *item)
{
    const Describing *d = user;
    const int64_t file = d->count > 1 ? i * (d->files - 1) / (d->count - 1) : 0;
    file_describe(data_set_path(d->set, (int)file), item, DESCRIBED_BYTES);
    return OK;
}

static Status hash_description(void *user, int64_t i, const void *item)
{
    Describing *d = user;
    (void)i;
    d->hash = hash_seeded(item, strlen(item), d->hash);
    return OK;
}

void data_set_describe(const DataSet *set, char *out, size_t room)
{
    const int files = data_set_files(set);
    Describing d = {
        .set = set, .files = files, .count = files < DESCRIBED_MOST ? files : DESCRIBED_MOST};
    if (files == 1) {
        file_describe(data_set_path(set, 0), out, room);
        return;
    }
    /* Cannot fail, since describe_file and hash_description always return OK. */
    worker_pool_ahead(d.count, DESCRIBED_BYTES, describe_file, hash_description, &d);
    snprintf(out, room, "%d files with hash %016llx", files, (unsigned long long)d.hash);
}

int index_at_most(const int64_t *first, size_t stride, int count, int64_t value)
{
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        const char *at = (const char *)first + (size_t)middle * stride;
        if (*(const int64_t *)(const void *)at <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int files_find_sample(const DataSet *set, int64_t sample)
{
    return index_at_most(&set->file[0].first_sample, sizeof *set->file, set->file_count, sample);
}

/* Returns whether the samples of both arrays have the same type and shape. */
static bool samples_are_alike(const DataArray *a, const DataArray *b)
{
    if (a->type != b->type || a->ndim != b->ndim) return false;
    for (int i = 1; i < a->ndim; ++i)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static Status differ_fail(const DataSet *set, const DataSet *other, const char *what)
{
    return fail(ERR_DATA, "%s: %s differ from those of %s, so the two cannot be one set",
                other->path, what, set->path);
}

/* Returns ERR_DATA if the file `other` cannot be added to the set. */
static Status check_file(const DataSet *set, const DataSet *other)
{
    char x[DIMS_TEXT], other_x[DIMS_TEXT];
    if (set->kind != other->kind || set->encoded != other->encoded)
        return differ_fail(set, other, "its samples");
    if (data_has_boxes(set))
        return fail(ERR_DATA,
                    "%s: is a set of boxes, which must be one file; import all pictures "
                    "into one",
                    other->path);
    if (!samples_are_alike(&set->x, &other->x))
        return fail(ERR_DATA,
                    "%s: its samples are %s of %s, those of %s are %s of %s: they cannot be one "
                    "set",
                    other->path, dims_text(&other->x, other_x), element_name(other->x.type),
                    set->path, dims_text(&set->x, x), element_name(set->x.type));
    if (!samples_are_alike(&set->y, &other->y))
        return differ_fail(set, other, "its labels or targets");
    bool ids_match = data_ids_match(data_set_ids(other), data_set_ids(set));
    if (set->fields != other->fields || set->id_limit != other->id_limit || !ids_match ||
        (set->fields > 0 && !samples_are_alike(&set->ids, &other->ids)))
        return fail(ERR_DATA,
                    "%s: has %lld fields of ids below %llu, %s has %lld below %llu (0: any), or "
                    "their vocabularies differ, or their ids have another type or shape: they "
                    "cannot be one set; import them in one call, so that they share vocabularies",
                    other->path, (long long)other->fields, (unsigned long long)other->id_limit,
                    set->path, (long long)set->fields, (unsigned long long)set->id_limit);
    TRY(data_columns_check(other, set));
    if (set->rotates_on_read != other->rotates_on_read)
        return differ_fail(set, other, "its pictures' orientations");
    return OK;
}

/* Matches the classes of the file `other` with those of the set by name, or by number if a list has
 * no names. names: class names of the set so far. ERR_DATA: they do not match. */
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

static void raise_to(int64_t *a, int64_t b)
{
    if (b > *a) *a = b;
}

/* Adds the file `other` to the set. If it is the first file, the set's shapes already include
 * it. */
static void set_add_file(DataSet *set, const DataSet *other)
{
    DataFile *f = &set->file[set->file_count++];
    memcpy(f->path, other->path, sizeof f->path);
    f->samples = other->samples;
    f->map = other->map;
    f->listed_classes = other->listed_classes;
    f->x = file_array(&other->x);
    f->y = file_array(&other->y);
    f->index = file_array(&other->index);
    f->orient = file_array(&other->orient);
    f->ids = file_array(&other->ids);
    f->id_first = file_array(&other->id_first);
    if (set->file_count == 1) return;
    f->first_sample = set->samples;
    set->samples += other->samples;
    set->x.dim[0] += other->x.dim[0];
    set->y.dim[0] += other->y.dim[0];
    set->ids.dim[0] += other->ids.dim[0];
    if (set->id_first.ndim) set->id_first.dim[0] += other->id_first.dim[0] - 1;
    raise_to(&set->ids_per_sample_max, other->ids_per_sample_max);
    if (set->encoded) set->index.dim[0] += other->samples;
    if (set->rotates_on_read) set->orient.dim[0] += other->samples;
    raise_to(&set->x.chunk_rows, other->x.chunk_rows);
    if (other->x.offset < 0) set->x.offset = -1;
}

/* Opens one file of the list and adds it to the set. other: scratch memory. */
static Status open_and_add(DataSet *set, const Config *config, const char *path, DataSet *other,
                           ClassNames *names)
{
    bool first = set->file_count == 0;
    TRY(data_set_open_file(first ? set : other, config, path));
    if (first) *other = *set;
    if (data_has_tokens(other))
        return fail(ERR_DATA,
                    "%s: holds tokens, and token files cannot be joined to one set: import the "
                    "texts as one file",
                    path);
    if (!first) TRY(check_file(set, other));
    if (!first) TRY(join_classes(set, other, names));
    set_add_file(set, other);
    return OK;
}

Status files_open(DataSet *set, const Config *config, const char *paths)
{
    char *list = mem_text(paths), *rest = list, *path;
    DataSet *other = mem_new(sizeof *other);
    ClassNames names = {0};
    Status st = OK;
    set->file_count = 0;
    while (st == OK && (path = strsep(&rest, "\n"))) {
        if (set->file_count == DATA_FILES)
            st = fail(ERR_CONFIG, "a list of more than %d files cannot be one set", DATA_FILES);
        else
            st = open_and_add(set, config, path, other, &names);
    }
    class_names_free(&names);
    mem_free(&other);
    mem_free(&list);
    return st;
}
