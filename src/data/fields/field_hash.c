/* Hashes a set of fields: its content, and how its arrays are stored in a file. */
#include "fields_private.h"

#include <string.h>
#include <xxhash.h>

/* Up to SAMPLES_MOST samples are hashed, spread evenly over the set. Of large samples only about
 * BYTES_MOST bytes are hashed, but at least SAMPLES_LEAST samples, or all of a smaller set. */
enum { SAMPLES_MOST = 256, SAMPLES_LEAST = 16, BYTES_MOST = 16 << 20 };

static void hash_list(XXH3_state_t *state, const FieldSet *f, const FieldChannel *list, int count)
{
    for (int i = 0; i < count; ++i) {
        const FieldVariable *v = &f->variable[list[i].variable];
        XXH3_64bits_update(state, v->name, strlen(v->name) + 1);
        XXH3_64bits_update(state, v->units, strlen(v->units) + 1);
        if (v->extra_kind) XXH3_64bits_update(state, &v->extra_kind, sizeof v->extra_kind);
        XXH3_64bits_update(state, &list[i], sizeof list[i]);
        XXH3_64bits_update(state, &v->level_index[list[i].level], sizeof *v->level_index);
    }
}

/* Hashes the description of a set: name, units, level and offset of each channel; the input from
 * which each target's change is counted; the times of all segments; the classes of labels; mean and
 * deviation of the targets, if they are known. */
static void hash_description(XXH3_state_t *state, const FieldSet *f)
{
    hash_list(state, f, f->input, f->inputs);
    hash_list(state, f, f->target, f->targets);
    XXH3_64bits_update(state, f->offset, sizeof f->offset);
    XXH3_64bits_update(state, f->change_from, (size_t)f->targets * sizeof *f->change_from);
    for (int i = 0; i < f->segments; ++i) {
        const FieldSegment *s = &f->segment[i];
        XXH3_64bits_update(state, &s->frames, sizeof s->frames);
        XXH3_64bits_update(state, &s->start, sizeof s->start);
    }
    const FieldClasses *classes = &f->classes;
    if (classes->count > 0) {
        XXH3_64bits_update(state, &classes->count, sizeof classes->count);
        XXH3_64bits_update(state, classes->name, (size_t)classes->count * sizeof *classes->name);
        if (classes->has_ignore)
            XXH3_64bits_update(state, &classes->ignore, sizeof classes->ignore);
    }
    if (f->target_std[0] == 0) return;
    XXH3_64bits_update(state, f->target_mean, (size_t)f->targets * sizeof *f->target_mean);
    XXH3_64bits_update(state, f->target_std, (size_t)f->targets * sizeof *f->target_std);
}

/* State of field_hash. */
typedef struct Hashing {
    /* owned: a copy of the set, without patches; its block is borrowed */
    DataSet *set;
    XXH3_state_t *state;
    /* owned */
    FieldReader *reader;
    /* number of samples that are hashed */
    int64_t count;
} Hashing;

/* Returns the offset of the mask in an item, in bytes. An item has the inputs, the targets and the
 * mask of one sample; the mask is read at the time of the sample's first target. */
static size_t mask_at(const Hashing *h)
{
    return (size_t)(h->set->x.sample_bytes + h->set->y.sample_bytes + 7) / 8 * 8;
}

static size_t mask_bytes(const Hashing *h)
{
    if (h->set->field_set.mask < 0) return 0;
    return (size_t)(h->set->y.dim[2] * h->set->y.dim[3]) * sizeof(double);
}

/* Reads the item of the i-th sample that is hashed. */
static Status read_sample(void *user, int64_t i, void *item)
{
    const Hashing *h = user;
    const int64_t last = h->set->samples - 1;
    const int64_t sample = h->count > 1 ? i * last / (h->count - 1) : 0;
    void *y = (char *)item + h->set->x.sample_bytes;
    const bool labels = h->set->field_set.classes.count > 0;
    if (labels) TRY(field_read_sample_labels(h->reader, h->set, 0, sample, y));
    TRY(field_read(h->reader, sample, false, item, labels ? NULL : y));
    const FieldSet *f = &h->set->field_set;
    if (f->mask < 0) return OK;
    return field_read_variable(h->reader, f->mask,
                               field_sample_frame(f, sample) + f->offset[FIELD_TARGET][0],
                               (double *)((char *)item + mask_at(h)));
}

static Status hash_sample(void *user, int64_t i, const void *item)
{
    const Hashing *h = user;
    (void)i;
    XXH3_64bits_update(h->state, item, (size_t)(h->set->x.sample_bytes + h->set->y.sample_bytes));
    XXH3_64bits_update(h->state, (const char *)item + mask_at(h), mask_bytes(h));
    return OK;
}

Status field_hash(XXH3_state_t *state, const DataSet *set)
{
    Hashing h = {.set = mem_new(sizeof *h.set), .state = state};
    *h.set = *set;
    data_set_drop_patch(h.set);
    const int64_t bytes = h.set->x.sample_bytes + h.set->y.sample_bytes;
    h.count = BYTES_MOST / bytes;
    TRY(field_reader_new(&h.reader, h.set));
    if (h.count < SAMPLES_LEAST) h.count = SAMPLES_LEAST;
    if (h.count > SAMPLES_MOST) h.count = SAMPLES_MOST;
    if (h.count > h.set->samples) h.count = h.set->samples;
    hash_description(state, &set->field_set);
    Status st =
        worker_pool_ahead(h.count, mask_at(&h) + mask_bytes(&h), read_sample, hash_sample, &h);
    field_reader_free(&h.reader);
    mem_free(&h.set);
    return st;
}

Status field_refresh_layout(DataSet *set, int file, uint64_t *layout)
{
    FieldSet *f = &set->field_set;
    const char *path = field_path(f, file);
    hid_t opened = -1, dataset;
    HashPieces *hash = hash_begin();
    hdf5_lock();
    Status st = h5_open(&opened, path);
    for (int i = 0; st == OK && i < f->stored; ++i) {
        FieldArray *array = field_array(f, file, i);
        st = h5_dataset(&dataset, opened, path, f->variable[i].name, NULL);
        if (st != OK) break;
        const haddr_t now = H5Dget_offset(dataset);
        if (array->offset >= 0) array->offset = now > INT64_MAX ? -1 : (int64_t)now;
        h5_layout_hash(dataset, hash);
        H5Dclose(dataset);
    }
    if (opened >= 0) H5Fclose(opened);
    hdf5_unlock();
    *layout = hash_end(&hash);
    return st;
}
