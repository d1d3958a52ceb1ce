/* Reads samples of a set of fields: for each channel one plane of rows and columns, unpacked and
 * normalised in double precision. A frame of a contiguous array (time, level, row, column) is read
 * by one pread, from the first to the last selected level; a patch needs a pread for each level or
 * each row. Chunks are read by chunks/field_chunks.c. HDF5 reads, under its lock, all other arrays
 * and the slabs that have very many pieces. */
#include "../chunks/field_chunks.h"
#include "field_patch.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* largest number of preads for a slab of a contiguous array; a slab in more pieces (field_slab.h)
 * is read through HDF5 */
enum { PIECES_MOST = 4096 };

struct FieldReader {
    /* copy of the set; its block is borrowed */
    DataSet set;
    /* owned */
    FieldFiles *files;
    FieldChunks *chunks;
};

Status field_reader_new(FieldReader **reader, const DataSet *set)
{
    FieldReader *r = *reader = mem_new(sizeof *r);
    r->set = *set;
    r->files = field_files_new(&r->set.field_set);
    r->chunks = field_chunks_new(&r->set, r->files);
    return OK;
}

void field_reader_free(FieldReader **reader)
{
    if (!*reader) return;
    field_chunks_free(&(*reader)->chunks);
    field_files_free(&(*reader)->files);
    mem_free(reader);
}

void field_reader_share(FieldReader *reader, const FieldMemory *memory)
{
    field_chunks_share(reader->chunks, memory);
}

int64_t field_reader_unpacked(const FieldReader *reader)
{
    return field_chunks_unpacked(reader->chunks);
}

/* ---- reading a slab ---- */

static Status read_hdf5(FieldReader *r, const FieldSlab *s, void *to)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[s->variable];
    const char *reason = "";
    hsize_t start[SHAPE_DIMS], count[SHAPE_DIMS];
    hid_t dataset;
    herr_t rc = -1;
    for (int i = 0; i < v->ndim; ++i) {
        start[i] = (hsize_t)s->start[i];
        count[i] = (hsize_t)s->count[i];
    }
    hdf5_lock();
    Status st = field_files_dataset(r->files, s->file, s->variable, &dataset);
    if (st == OK) {
        hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(v->ndim, count, NULL);
        rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (rc >= 0)
            rc = H5Dread(dataset, element_native(field_array(f, s->file, s->variable)->type),
                         memory, space, H5P_DEFAULT, to);
        if (rc < 0) reason = h5_error_text();
        H5Sclose(memory);
        H5Sclose(space);
    }
    if (st == OK && rc < 0)
        st = fail(ERR_IO, "%s: %s cannot be read: %s", field_path(f, s->file), v->name, reason);
    hdf5_unlock();
    return st;
}

Status field_read_bytes(FieldFiles *files, const FieldSet *f, int file, int variable, int64_t at,
                        int64_t bytes, void *to)
{
    const char *name = f->variable[variable].name;
    int fd, hold;
    Status st = field_files_hold(files, file, &fd, &hold);
    TRY(st);
    for (char *p = to; st == OK && bytes > 0;) {
        const ssize_t n = pread(fd, p, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0)
            st = fail(ERR_DATA,
                      "%s: %s: the file became shorter while it was being read; make or copy it "
                      "again",
                      field_path(f, file), name);
        else if (n < 0)
            st = fail(ERR_IO, "%s: reading %s failed: %s", field_path(f, file), name,
                      strerror(errno));
        p += n, at += n, bytes -= n;
    }
    field_files_release(files, hold);
    return st;
}

/* Reads the stored values of a slab to *raw, in this processor's byte order. The caller owns *raw,
 * also after an error. */
static Status read_slab(FieldReader *r, const FieldSlab *s, void **raw)
{
    const FieldSet *f = &r->set.field_set;
    const FieldArray *a = field_array(f, s->file, s->variable);
    bool done = false;
    int64_t bytes;
    *raw = mem_new((size_t)s->elements * element_bytes(a->type));
    const int64_t pieces = field_slab_pieces(f, s, &bytes);
    if (a->offset < 0) TRY(field_chunks_read(r->chunks, s, *raw, &done));
    if (done) return OK;
    if (a->offset < 0 || pieces > PIECES_MOST) return read_hdf5(r, s, *raw);
    for (int64_t i = 0; i < pieces; ++i)
        TRY(field_read_bytes(r->files, f, s->file, s->variable,
                             a->offset + field_slab_piece(f, s, i), bytes,
                             (char *)*raw + i * bytes));
    return OK;
}

/* Reads one slab of a variable at a frame, and unpacks `count` of its levels to `plane`: the levels
 * of channel[0] to channel[count - 1] or, if `channel` is NULL, the first `count` selected
 * levels. */
static Status read_levels(FieldReader *r, int variable, int64_t frame, const FieldRect *window,
                          const FieldChannel *channel, int count, double *plane)
{
    const FieldSet *f = &r->set.field_set;
    const FieldSlab s = field_slab(f, variable, frame, window);
    const int64_t pixels = window->rows * window->columns;
    void *raw;
    Status st = read_slab(r, &s, &raw);
    for (int i = 0; st == OK && i < count; ++i)
        st = field_slab_unpack(f, &s, raw, channel ? channel[i].level : i, plane + i * pixels);
    mem_free(&raw);
    return st;
}

Status field_read_window(FieldReader *r, int variable, int64_t frame, const FieldRect *window,
                         double *plane)
{
    const int levels = r->set.field_set.variable[variable].levels;
    return read_levels(r, variable, frame, window, NULL, levels, plane);
}

Status field_read_variable(FieldReader *r, int variable, int64_t frame, double *plane)
{
    const FieldVariable *v = &r->set.field_set.variable[variable];
    const FieldRect whole = {.rows = v->size[FIELD_ROW], .columns = v->size[FIELD_COLUMN]};
    return field_read_window(r, variable, frame, &whole, plane);
}

/* Expands `count` numbers to `count` planes of `pixels` numbers each, in place: all pixels of plane
 * i get the value that plane[i] had before. The last plane is filled first, so that no number is
 * overwritten before it is used. */
static void spread(double *plane, int count, int64_t pixels)
{
    for (int i = count - 1; i >= 0; --i)
        for (int64_t k = pixels - 1; k >= 0; --k) plane[i * pixels + k] = plane[i];
}

Status field_read_planes(FieldReader *r, int variable, int64_t frame, int64_t ahead, double *plane)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[variable];
    if (v->extra_kind) {
        field_extra_fill(f, v, field_frame_time(f, frame) + (double)ahead * f->step_s, plane);
        return OK;
    }
    TRY(field_read_variable(r, variable, v->is_static ? 0 : frame + ahead, plane));
    if (v->is_scalar) spread(plane, v->levels, r->set.height * r->set.width);
    return OK;
}

/* ---- samples ---- */

/* Computes `count` channels of the inputs, which are levels of one extra variable. */
static void read_extra(const FieldReader *r, const FieldPlace *place, const FieldChannel *channel,
                       int count, double *plane)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[channel->variable];
    const FieldRect *w = &place->input;
    const int64_t columns = v->size[FIELD_COLUMN], pixels = v->size[FIELD_ROW] * columns;
    const double ahead = (double)f->offset[FIELD_INPUT][channel->offset] * f->step_s;
    double *all = mem_new((size_t)(v->levels * pixels) * sizeof *all);
    field_extra_fill(f, v, field_frame_time(f, place->frame) + ahead, all);
    for (int i = 0; i < count; ++i)
        for (int64_t k = 0; k < w->rows; ++k, plane += w->columns)
            memcpy(plane, all + channel[i].level * pixels + (w->row + k) * columns + w->column,
                   (size_t)w->columns * sizeof *plane);
    mem_free(&all);
}

/* Reads a group of `count` channels, which are levels of one variable at one offset. */
static Status read_group(FieldReader *r, const FieldPlace *place, FieldRole role,
                         const FieldChannel *channel, int count, double *plane)
{
    const FieldVariable *v = &r->set.field_set.variable[channel->variable];
    const int offset = r->set.field_set.offset[role][channel->offset];
    const FieldRect *window = role == FIELD_TARGET ? &place->target : &place->input;
    const FieldRect one = {.rows = 1, .columns = 1};
    if (v->extra_kind) {
        read_extra(r, place, channel, count, plane);
        return OK;
    }
    TRY(read_levels(r, channel->variable, place->frame + offset, v->is_scalar ? &one : window,
                    channel, count, plane));
    if (v->is_scalar) spread(plane, count, window->rows * window->columns);
    return OK;
}

static bool read_together(const FieldChannel *a, const FieldChannel *b)
{
    return a->variable == b->variable && a->offset == b->offset;
}

/* Reads all channels of a list to planes of `pixels` values, in double precision. */
static Status read_channels(FieldReader *r, const FieldPlace *place, FieldRole role,
                            const FieldChannel *list, int count, int64_t pixels, double *plane)
{
    for (int i = 0, group; i < count; i += group) {
        for (group = 1; i + group < count && read_together(&list[i], &list[i + group]); ++group) {
        }
        TRY(read_group(r, place, role, &list[i], group, plane + i * pixels));
    }
    return OK;
}

/* Computes (from - mean) / std for n values; NaN becomes `missing`. */
static void normalise(float *to, const double *from, int64_t n, double mean, double std,
                      float missing)
{
    const double factor = 1 / std;
    for (int64_t i = 0; i < n; ++i)
        to[i] = isnan(from[i]) ? missing : (float)((from[i] - mean) * factor);
}

/* Reads the inputs to `plane`, in double precision and in the variables' units, and to x, unless x
 * is NULL. If `normalised` is true, values in x are normalised and missing values are 0; if not,
 * values are in the variables' units and missing values are NaN. */
static Status fill_inputs(FieldReader *r, const FieldPlace *place, bool normalised, double *plane,
                          float *x)
{
    const DataSet *set = &r->set;
    const FieldSet *f = &set->field_set;
    const int64_t pixels = place->input.rows * place->input.columns;
    const bool stats = normalised && set->has_stats;
    TRY(read_channels(r, place, FIELD_INPUT, f->input, f->inputs, pixels, plane));
    for (int64_t i = 0; x && i < set->channels; ++i)
        normalise(x + i * pixels, plane + i * pixels, pixels, stats ? (double)set->mean[i] : 0,
                  stats ? (double)set->std[i] : 1, normalised ? 0 : NAN);
    return OK;
}

/* Reads the targets; missing values are NaN. If `normalised` is true, targets are normalised, and
 * they are changes if data.predict says so; if not, they are values in the variables' units.
 * inputs: planes of the inputs in these units, from which changes are counted; NULL: the inputs
 * that are needed are read here. */
static Status fill_targets(FieldReader *r, const FieldPlace *place, bool normalised,
                           const double *inputs, float *target)
{
    const DataSet *set = &r->set;
    const FieldSet *f = &set->field_set;
    const int64_t pixels = place->target.rows * place->target.columns;
    double *plane = mem_new((size_t)(f->targets * pixels) * sizeof *plane);
    double *read = mem_new((size_t)pixels * sizeof *read);
    const bool stats = normalised && set->has_stats;
    Status st = read_channels(r, place, FIELD_TARGET, f->target, f->targets, pixels, plane);
    for (int i = 0; st == OK && i < f->targets; ++i) {
        double *p = plane + i * pixels;
        const int input = normalised ? f->change_from[i] : -1;
        const double *from = inputs && input >= 0 ? inputs + input * pixels : read;
        if (input >= 0 && !inputs)
            st = read_group(r, place, FIELD_INPUT, &f->input[input], 1, read);
        for (int64_t k = 0; st == OK && input >= 0 && k < pixels; ++k) p[k] -= from[k];
        field_patch_leave_out(place, p);
        normalise(target + i * pixels, p, pixels, stats ? (double)f->target_mean[i] : 0,
                  stats ? (double)f->target_std[i] : 1, NAN);
    }
    mem_free(&read);
    mem_free(&plane);
    return st;
}

Status field_read_at(FieldReader *reader, int64_t epoch, int64_t sample, bool normalised, float *x,
                     float *target)
{
    const FieldPlace place = field_place(&reader->set.field_set, epoch, sample);
    const int64_t pixels = place.input.rows * place.input.columns;
    double *inputs = NULL;
    Status st = OK;
    if (x) {
        inputs = mem_new((size_t)(reader->set.channels * pixels) * sizeof *inputs);
        st = fill_inputs(reader, &place, normalised, inputs, x);
    }
    if (st == OK && target) st = fill_targets(reader, &place, normalised, inputs, target);
    mem_free(&inputs);
    return st;
}

Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target)
{
    return field_read_at(reader, 0, sample, normalised, x, target);
}
