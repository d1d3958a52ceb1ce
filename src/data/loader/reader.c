/* Reads samples by number from the arrays of a set's files (source.h). In a set of tokens a sample
 * is `context` tokens of one long array, but reader_get_rows takes its position and count in
 * tokens. A small y that only HDF5 can read is read completely when the reader is created. Encoded
 * pictures are read by pread: first the picture's entry of the index, then its bytes. The index, 8
 * MB for a million pictures, is not kept in memory. Reading does not change a reader, so several
 * threads may read at the same time. */
#include "../fields/fields_private.h"
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct Reader {
    DataSet set;
    SourceFile file;
    /* the arrays of the same names in DataSet. source_open is not called for index and orient, nor
     * for x of encoded pictures, because only pread reads these */
    Source x, y, ids, id_first, index, orient;
    /* sets of several files: a reader for each file, owned with the readers; `file` and the sources
     * are then unused. NULL: one file */
    Reader **file_reader;
    /* sets of fields: the reader that is used instead of all members above except `set`; owned.
     * NULL: other kinds */
    FieldReader *fields;
};

/* Returns the number of bytes by which source_open chooses how to read an array: the size of a
 * sample. For flat ids and their index, in which a sample may have several entries, it is the size
 * of one entry. */
static int64_t request_bytes(const Reader *r, const DataArray *a)
{
    return a->sample_bytes * (data_has_tokens(&r->set) ? r->set.context : 1);
}

static Status encoded_open(const Reader *r)
{
    TRY(source_check_extent(&r->x));
    TRY(source_check_extent(&r->index));
    if (r->set.rotates_on_read) TRY(source_check_extent(&r->orient));
    posix_fadvise(r->file.fd, 0, 0, POSIX_FADV_RANDOM);
    return OK;
}

static Status x_open(Reader *r)
{
    int64_t bytes = request_bytes(r, &r->set.x);
    if (bytes > SOURCE_MAPPED_MAX) posix_fadvise(r->file.fd, 0, 0, POSIX_FADV_RANDOM);
    return source_open(&r->x, bytes);
}

static Status reader_open(Reader *r, bool x, bool y)
{
    r->file.fd = file_open(r->set.path, O_RDONLY);
    if (r->file.fd < 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", r->set.path, file_error(errno));
    if (x) TRY(r->set.encoded ? encoded_open(r) : x_open(r));
    if (x && r->set.fields > 0) TRY(source_open(&r->ids, request_bytes(r, &r->set.ids)));
    if (x && r->set.id_first.ndim)
        TRY(source_open(&r->id_first, request_bytes(r, &r->set.id_first)));
    if (y) TRY(source_open(&r->y, request_bytes(r, &r->set.y)));
    return y ? source_keep(&r->y) : OK;
}

/* Creates a reader for each file of a set of several files. */
static Status open_files(Reader *r, bool x, bool y)
{
    DataSet *file = mem_new(sizeof *file);
    Status st = OK;
    r->file_reader = mem_new((size_t)r->set.file_count * sizeof *r->file_reader);
    for (int i = 0; st == OK && i < r->set.file_count; ++i) {
        data_set_file(&r->set, i, file);
        st = reader_new_part(&r->file_reader[i], file, x, y);
    }
    mem_free(&file);
    return st;
}

/* Returns the reader of the file that holds sample number *sample of the set, and changes *sample
 * to its number in that file. */
static const Reader *reader_of(const Reader *r, int64_t *sample)
{
    if (!r->file_reader) return r;
    int file = files_find_sample(&r->set, *sample);
    *sample -= r->set.file[file].first_sample;
    return r->file_reader[file];
}

static Source source_of(Reader *r, const DataArray *array)
{
    return (Source){.array = array, .file = &r->file, .dataset = -1};
}

Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y)
{
    Reader *r = mem_new(sizeof *r);
    r->set = *set;
    r->file = (SourceFile){.path = r->set.path, .fd = -1, .hdf5 = -1};
    r->x = source_of(r, &r->set.x);
    r->y = source_of(r, &r->set.y);
    r->ids = source_of(r, &r->set.ids);
    r->id_first = source_of(r, &r->set.id_first);
    r->index = source_of(r, &r->set.index);
    r->orient = source_of(r, &r->set.orient);
    *reader = r;
    y = y && !data_has_tokens(set) && !data_has_boxes(set);
    Status st = data_has_fields(set) ? field_reader_new(&r->fields, set)
                : set->file_count    ? open_files(r, x, y)
                                     : reader_open(r, x, y);
    if (st != OK) reader_free(reader);
    return st;
}

Status reader_new_array(Reader **reader, const DataSet *set, const DataArray *array)
{
    DataSet *only_x = mem_new(sizeof *only_x);
    *only_x = *set;
    only_x->encoded = false;
    only_x->kind = DATA_TABLE;
    only_x->fields = 0;
    only_x->id_first.ndim = 0;
    only_x->x = *array;
    Status st = reader_new_part(reader, only_x, true, false);
    mem_free(&only_x);
    return st;
}

Status reader_new(Reader **reader, const DataSet *set)
{
    return reader_new_part(reader, set, true, true);
}

void reader_free(Reader **reader)
{
    Reader *r = *reader;
    if (!r) return;
    for (int i = 0; r->file_reader && i < r->set.file_count; ++i) reader_free(&r->file_reader[i]);
    mem_free(&r->file_reader);
    field_reader_free(&r->fields);
    hdf5_lock();
    source_close(&r->x);
    source_close(&r->y);
    source_close(&r->ids);
    source_close(&r->id_first);
    if (r->file.hdf5 >= 0) H5Fclose(r->file.hdf5);
    hdf5_unlock();
    if (r->file.fd >= 0) close(r->file.fd);
    mem_free(reader);
}

FieldReader *reader_fields(const Reader *reader)
{
    return reader->fields;
}

Status token_fail(const DataSet *set, int64_t position, const void *raw)
{
    char token[24];
    return fail(ERR_DATA,
                "%s: token %lld of %s is %s, but there are %lld in the vocabulary (0 to %lld); "
                "correct the data set or model.vocab",
                set->path, (long long)position, set->x.name,
                element_integer_text(set->x.type, raw, token), (long long)set->vocab,
                (long long)set->vocab - 1);
}

/* Reads a sample's label and converts it to its class, or reads its targets. label, target: one of
 * them is NULL. ERR_DATA: the label has no class. */
static Status y_read(const Reader *r, int64_t sample, int32_t *label, float *target)
{
    const DataArray *y = &r->set.y;
    /* memory for the stored label or targets (`raw`) if they have at most 8 bytes */
    uint64_t one;
    if (data_has_boxes(&r->set))
        return fail(ERR_DATA, "%s: is a set of boxes, whose samples have no label", r->set.path);
    uint8_t *raw =
        y->sample_bytes <= (int64_t)sizeof one ? (uint8_t *)&one : mem_new((size_t)y->sample_bytes);
    Status st = source_read(&r->y, sample, 1, raw);
    if (st == OK && target)
        element_scale_row(y->type, target, 1, raw, 1, r->set.target_width, 1.0f, 0.0f);
    if (st == OK && label) {
        int64_t class = label_class(&r->set, element_integer(y->type, raw));
        if (class < 0 || class >= r->set.classes) st = label_fail(&r->set, sample, raw);
        *label = (int32_t) class;
    }
    if (raw != (uint8_t *)&one) mem_free(&raw);
    return st;
}

Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target)
{
    if (reader->fields) return reader_get_fields(reader, 0, sample, x, label, target);
    const Reader *r = reader_of(reader, &sample);
    int64_t count = data_has_tokens(&r->set) ? r->set.context : 1;
    if (x) TRY(source_read(&r->x, sample * count, count, x));
    return label || target ? y_read(r, sample, label, target) : OK;
}

Status reader_get_fields(Reader *reader, int64_t epoch, int64_t sample, float *x, int32_t *label,
                         float *target)
{
    if (label) TRY(field_read_sample_labels(reader->fields, &reader->set, epoch, sample, label));
    return field_read_at(reader->fields, epoch, sample, true, x, target);
}

/* The samples may lie in more than one file of the set. */
Status reader_get_rows(Reader *reader, int64_t first, int64_t count, void *x)
{
    uint8_t *to = x;
    for (int64_t i = 0; reader->fields && i < count; ++i)
        TRY(field_read(reader->fields, first + i, true,
                       (void *)(to + i * reader->set.x.sample_bytes), NULL));
    if (reader->fields) return OK;
    while (count > 0) {
        int64_t at = first;
        const Reader *r = reader_of(reader, &at);
        int64_t left = r == reader ? count : r->set.samples - at, n = left < count ? left : count;
        TRY(source_read(&r->x, at, n, to));
        to += n * r->set.x.sample_bytes;
        first += n;
        count -= n;
    }
    return OK;
}

Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x)
{
    if (reader->fields) return field_read(reader->fields, sample, true, x, NULL);
    const Reader *r = reader_of(reader, &sample);
    return source_read_head(&r->x, sample, 1, bytes, x);
}

void reader_prefetch(const Reader *reader, int64_t sample)
{
    if (sample < 0 || sample >= reader->set.samples) return;
    const Reader *r = reader_of(reader, &sample);
    source_prefetch(&r->x, sample, request_bytes(r, &r->set.x));
    if (r->set.y.ndim) source_prefetch(&r->y, sample, r->set.y.sample_bytes);
    if (!r->set.id_first.ndim) source_prefetch(&r->ids, sample, r->set.ids.sample_bytes);
}

/* Reads a sample's part of the index of flat ids. Sets *begin to where the sample's ids begin in
 * the array of ids, and first[f] to where those of field f begin, counted from *begin. ERR_DATA:
 * the index falls, ends beyond the array, or gives the sample more than DataSet.ids_per_sample_max
 * ids. */
static Status read_id_index(const Reader *r, int64_t sample, int32_t *first, int64_t *begin)
{
    enum { BUFFER_FIELDS = 256 };
    const DataSet *set = &r->set;
    uint64_t index[BUFFER_FIELDS], last = 0, start = 0;
    for (int64_t f = 0; f <= set->fields; f += BUFFER_FIELDS) {
        int64_t left = set->fields + 1 - f, n = left < BUFFER_FIELDS ? left : BUFFER_FIELDS;
        TRY(source_read(&r->id_first, sample * set->fields + f, n, index));
        if (f == 0) last = start = index[0];
        for (int64_t i = 0; i < n; last = index[i++]) {
            if (index[i] < last || index[i] > (uint64_t)set->ids.dim[0] ||
                index[i] - start > (uint64_t)set->ids_per_sample_max)
                return ids_fail(set, sample, f + i);
            first[f + i] = (int32_t)(index[i] - start);
        }
    }
    *begin = (int64_t)start;
    return OK;
}

Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first)
{
    const Reader *r = reader_of(reader, &sample);
    const DataSet *set = &r->set;
    int64_t begin = sample, count = 1;
    if (set->id_first.ndim) {
        TRY(read_id_index(r, sample, first, &begin));
        count = first[set->fields];
    } else {
        for (int64_t f = 0; f <= set->fields; ++f) first[f] = (int32_t)f;
    }
    if (count > 0) TRY(source_read(&r->ids, begin, count, ids));
    element_ids(set->ids.type, ids, ids, first[set->fields]);
    return ids_range_check(set, sample, ids, first);
}

Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *capacity,
                          size_t *count, int *orientation)
{
    const Reader *r = reader_of(reader, &sample);
    /* offsets of the first bytes of this sample and of the next */
    uint64_t offset[2];
    uint8_t stored = 1;
    if (sample < 0 || sample >= r->set.samples)
        return fail(ERR_BUG, "%s: sample %lld requested, but there are %lld", r->set.path,
                    (long long)sample, (long long)r->set.samples);
    TRY(source_pread(&r->index, sample, sizeof offset, offset));
    if (r->set.rotates_on_read) TRY(source_pread(&r->orient, sample, 1, &stored));
    if (offset[0] > offset[1] || offset[1] > (uint64_t)r->set.x.dim[0])
        return index_fail(&r->set, sample);
    *count = (size_t)(offset[1] - offset[0]);
    if (*count > *capacity) {
        mem_free(bytes);
        *bytes = mem_new(*count);
        *capacity = *count;
    }
    *orientation = stored >= 1 && stored <= 8 ? stored : 1;
    return source_pread(&r->x, (int64_t)offset[0], *count, *bytes);
}

Status index_fail(const DataSet *set, int64_t sample)
{
    return fail(ERR_DATA,
                "%s: the index %s of sample %lld does not rise or points beyond its %lld bytes; "
                "make the file again",
                set->path, set->index.name, (long long)sample, (long long)set->x.dim[0]);
}

Status index_check(const DataSet *set)
{
    enum { BUFFER_ROWS = 1 << 16 };
    Reader *reader;
    int64_t total = set->index.dim[0], bad = -1;
    uint64_t last = 0, *offset = mem_new(BUFFER_ROWS * sizeof *offset);
    Status st = reader_new_array(&reader, set, &set->index);
    for (int64_t at = 0; st == OK && bad < 0 && at < total; at += BUFFER_ROWS) {
        int64_t n = total - at < BUFFER_ROWS ? total - at : BUFFER_ROWS;
        st = reader_get_rows(reader, at, n, offset);
        for (int64_t i = 0; st == OK && bad < 0 && i < n; last = offset[i++])
            if (offset[i] < last || offset[i] > (uint64_t)set->x.dim[0]) bad = at + i;
    }
    mem_free(&offset);
    reader_free(&reader);
    return st == OK && bad >= 0 ? index_fail(set, bad) : st;
}

char *sample_name(const DataSet *set, int64_t sample, char *out, size_t room)
{
    const char *path = set->path;
    if (set->file_count) {
        const DataFile *file = &set->file[files_find_sample(set, sample)];
        path = file->path;
        sample -= file->first_sample;
    }
    snprintf(out, room, "%s: sample %lld", path, (long long)sample);
    return out;
}
