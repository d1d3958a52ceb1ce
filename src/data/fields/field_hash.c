/* Hashes of a set of fields: of its content, and of the places of its arrays in their files. */
#include "fields_private.h"

#include <string.h>
#include <xxhash.h>

/* samples that are hashed, spread evenly: up to SAMPLES_MOST, fewer if they have more than
 * BYTES_MOST bytes, but at least SAMPLES_LEAST */
enum { SAMPLES_MOST = 1024, SAMPLES_LEAST = 16, BYTES_MOST = 64 << 20 };

static void hash_list(XXH3_state_t *state, const FieldSet *f, const FieldChannel *list, int count)
{
    for (int i = 0; i < count; ++i) {
        const FieldVariable *v = &f->variable[list[i].variable];
        XXH3_64bits_update(state, v->name, strlen(v->name) + 1);
        XXH3_64bits_update(state, v->units, strlen(v->units) + 1);
        if (v->made) XXH3_64bits_update(state, &v->made, sizeof v->made);
        XXH3_64bits_update(state, &list[i], sizeof list[i]);
        XXH3_64bits_update(state, &v->level[list[i].level], sizeof *v->level);
    }
}

/* Hashes names, levels and offsets of all channels, and the times of all segments. */
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
        if (classes->ignores) XXH3_64bits_update(state, &classes->ignore, sizeof classes->ignore);
    }
    if (f->target_std[0] == 0) return;
    XXH3_64bits_update(state, f->target_mean, (size_t)f->targets * sizeof *f->target_mean);
    XXH3_64bits_update(state, f->target_std, (size_t)f->targets * sizeof *f->target_std);
}

/* Hashes the mask at a sample's first target. */
static Status hash_mask(XXH3_state_t *state, const DataSet *set, FieldReader *reader,
                        int64_t sample)
{
    const FieldSet *f = &set->field_set;
    const size_t pixels = (size_t)(set->y.dim[2] * set->y.dim[3]);
    if (f->mask < 0) return OK;
    double *mask = mem_new(pixels * sizeof *mask);
    const Status st = field_read_variable(
        reader, f->mask, field_sample_frame(f, sample) + f->offset[FIELD_TARGET][0], mask);
    XXH3_64bits_update(state, mask, pixels * sizeof *mask);
    mem_free(&mask);
    return st;
}

Status field_hash(XXH3_state_t *state, const DataSet *set)
{
    const int64_t bytes = set->x.sample_bytes + set->y.sample_bytes;
    int64_t count = BYTES_MOST / bytes;
    FieldReader *reader;
    TRY(field_reader_new(&reader, set));
    float *x = mem_new((size_t)set->x.sample_bytes);
    /* targets, or labels */
    void *y = mem_new((size_t)set->y.sample_bytes);
    Status st = OK;
    if (count < SAMPLES_LEAST) count = SAMPLES_LEAST;
    if (count > SAMPLES_MOST) count = SAMPLES_MOST;
    if (count > set->samples) count = set->samples;
    hash_description(state, &set->field_set);
    for (int64_t i = 0; st == OK && i < count; ++i) {
        const int64_t sample = count > 1 ? i * (set->samples - 1) / (count - 1) : 0;
        if (set->field_set.classes.count > 0) st = field_read_sample_labels(reader, set, sample, y);
        if (st == OK)
            st = field_read(reader, sample, false, x, set->field_set.classes.count > 0 ? NULL : y);
        XXH3_64bits_update(state, x, (size_t)set->x.sample_bytes);
        XXH3_64bits_update(state, y, (size_t)set->y.sample_bytes);
        if (st == OK) st = hash_mask(state, set, reader, sample);
    }
    mem_free(&x);
    mem_free(&y);
    field_reader_free(&reader);
    return st;
}

Status field_hash_layout(DataSet *set, int file, uint64_t *layout)
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
