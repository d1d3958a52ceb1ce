/* Reads samples of a set of fields: for each channel one plane of rows and columns, unpacked and
 * normalised in double precision. A frame of a contiguous array is one pread of the levels that are
 * selected; chunked, compressed and transposed arrays go through HDF5 under its lock, whose chunk
 * cache then holds the chunks of a variable that were used last. Files are opened when they are
 * first used. */
#include "field_files.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct FieldReader {
    DataSet set;
    /* owned */
    FieldFiles *files;
};

/* The part of an array that is read at once: one time, a range of levels. */
typedef struct Block {
    int variable, file, first_level;
    /* first index and number of indices, in the order of the array's dimensions */
    hsize_t start[SHAPE_DIMS], count[SHAPE_DIMS];
    /* distance of neighbours in elements, by FieldDim */
    int64_t step[FIELD_DIMS];
    int64_t elements;
    /* offset in elements in a contiguous array; -1: the block is not contiguous */
    int64_t at;
} Block;

Status field_reader_new(FieldReader **reader, const DataSet *set)
{
    FieldReader *r = *reader = mem_new(sizeof *r);
    r->set = *set;
    r->files = field_files_new(&r->set.field_set);
    return OK;
}

void field_reader_free(FieldReader **reader)
{
    if (!*reader) return;
    field_files_free(&(*reader)->files);
    mem_free(reader);
}

/* ---- blocks ---- */

/* Finds the block of a variable at a frame of the set; static variables have one frame. */
static Block block_of(const FieldSet *f, int variable, int64_t frame)
{
    const FieldVariable *v = &f->variable[variable];
    Block b = {.variable = variable, .elements = 1};
    int64_t length[SHAPE_DIMS];
    int low = v->level[0], high = v->level[0], end;
    bool whole = true;
    b.file = v->is_static ? 0 : field_find_file(f, frame);
    for (int i = 1; i < v->levels; ++i) {
        if (v->level[i] < low) low = v->level[i];
        if (v->level[i] > high) high = v->level[i];
    }
    b.first_level = low;
    for (int i = 0; i < v->ndim; ++i) {
        const int dim = v->dim[i];
        length[i] = dim == FIELD_TIME && !v->is_static ? f->file[b.file].frames : v->size[dim];
        b.count[i] = (hsize_t)v->size[dim];
        if (dim == FIELD_TIME) b.count[i] = 1;
        if (dim == FIELD_TIME && !v->is_static)
            b.start[i] = (hsize_t)(frame - f->file[b.file].first);
        if (dim == FIELD_LEVEL) b.start[i] = (hsize_t)low, b.count[i] = (hsize_t)(high - low + 1);
    }
    for (int i = v->ndim - 1; i >= 0; --i) {
        b.step[v->dim[i]] = b.elements;
        b.elements *= (int64_t)b.count[i];
    }
    /* contiguous: behind a dimension of which a part is read, all others are read whole */
    for (end = v->ndim - 1; end >= 0 && b.count[end] == (hsize_t)length[end]; --end) {
    }
    for (int i = 0; i < end; ++i) whole &= b.count[i] == 1;
    b.at = 0;
    for (int i = 0; i < v->ndim; ++i) b.at = b.at * length[i] + (int64_t)b.start[i];
    if (!whole) b.at = -1;
    return b;
}

/* ---- reading a block ---- */

static Status read_hdf5(FieldReader *r, const Block *b, void *to)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[b->variable];
    const char *reason = "";
    hid_t dataset;
    herr_t rc = -1;
    hdf5_lock();
    Status st = field_files_dataset(r->files, b->file, b->variable, &dataset);
    if (st == OK) {
        hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(v->ndim, b->count, NULL);
        rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, b->start, NULL, b->count, NULL);
        if (rc >= 0)
            rc = H5Dread(dataset, element_native(field_array(f, b->file, b->variable)->type),
                         memory, space, H5P_DEFAULT, to);
        if (rc < 0) reason = h5_error_text();
        H5Sclose(memory);
        H5Sclose(space);
    }
    if (st == OK && rc < 0)
        st = fail(ERR_IO, "%s: %s cannot be read: %s", field_path(f, b->file), v->name, reason);
    hdf5_unlock();
    return st;
}

/* Reads `bytes` bytes of a variable from byte `at` of a file. */
static Status read_bytes(FieldReader *r, int file, int variable, int64_t at, int64_t bytes,
                         void *to)
{
    const FieldSet *f = &r->set.field_set;
    const char *name = f->variable[variable].name;
    int fd, hold;
    Status st = field_files_hold(r->files, file, &fd, &hold);
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
    field_files_release(r->files, hold);
    return st;
}

/* Reads all selected levels of a variable at a frame, as it is stored, to *raw, which the caller
 * owns, also after an error. */
static Status read_block(FieldReader *r, const Block *b, void **raw)
{
    const FieldArray *a = field_array(&r->set.field_set, b->file, b->variable);
    const int64_t each = (int64_t)element_bytes(a->type);
    *raw = mem_new((size_t)(b->elements * each));
    if (a->offset < 0 || b->at < 0) return read_hdf5(r, b, *raw);
    return read_bytes(r, b->file, b->variable, a->offset + b->at * each, b->elements * each, *raw);
}

/* Unpacks one level of a block to `to`, (rows, columns), missing values as NaN. */
static Status unpack(const FieldReader *r, const Block *b, const void *raw, int level, double *to)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[b->variable];
    const FieldArray *a = field_array(f, b->file, b->variable);
    const FieldPacking *p = &a->packing;
    const int64_t rows = v->size[FIELD_ROW], columns = v->size[FIELD_COLUMN];
    bool infinite = false;
    for (int64_t i = 0; i < rows; ++i, to += columns) {
        const int64_t at =
            (v->level[level] - b->first_level) * b->step[FIELD_LEVEL] + i * b->step[FIELD_ROW];
        element_doubles(a->type, to, (const char *)raw + (size_t)at * element_bytes(a->type),
                        b->step[FIELD_COLUMN], columns);
        for (int m = 0; m < p->missing_count; ++m)
            for (int64_t k = 0; k < columns; ++k)
                if (to[k] == p->missing[m]) to[k] = NAN;
        for (int64_t k = 0; k < columns; ++k) {
            to[k] = to[k] * p->scale + p->add;
            infinite |= isinf(to[k]) != 0;
        }
    }
    if (!infinite) return OK;
    return fail(ERR_DATA, "%s: %s has an infinite value; correct the data", field_path(f, b->file),
                v->name);
}

/* Reads `count` levels of a variable at a frame, in one piece: those of the channels, or the first
 * ones (channel NULL). */
static Status read_levels(FieldReader *r, int variable, int64_t frame, const FieldChannel *channel,
                          int count, double *plane)
{
    const FieldVariable *v = &r->set.field_set.variable[variable];
    const int64_t pixels = v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
    const Block b = block_of(&r->set.field_set, variable, frame);
    void *raw;
    Status st = read_block(r, &b, &raw);
    for (int i = 0; st == OK && i < count; ++i)
        st = unpack(r, &b, raw, channel ? channel[i].level : i, plane + i * pixels);
    mem_free(&raw);
    return st;
}

Status field_read_variable(FieldReader *r, int variable, int64_t frame, double *plane)
{
    return read_levels(r, variable, frame, NULL, r->set.field_set.variable[variable].levels, plane);
}

/* Makes planes of `pixels` numbers from as many numbers as they have, the last one first. */
static void spread(double *plane, int count, int64_t pixels)
{
    for (int i = count - 1; i >= 0; --i)
        for (int64_t k = pixels - 1; k >= 0; --k) plane[i * pixels + k] = plane[i];
}

Status field_read_planes(FieldReader *r, int variable, int64_t frame, int64_t ahead, double *plane)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[variable];
    if (v->made) {
        field_extra_fill(f, v, field_frame_time(f, frame) + (double)ahead * f->step_s, plane);
        return OK;
    }
    TRY(field_read_variable(r, variable, v->is_static ? 0 : frame + ahead, plane));
    if (v->is_scalar) spread(plane, v->levels, r->set.height * r->set.width);
    return OK;
}

/* ---- samples ---- */

/* Reads `count` channels, which are levels of one variable that weft makes. */
static void read_made(const FieldReader *r, int64_t frame, const FieldChannel *channel, int count,
                      double *plane)
{
    const FieldSet *f = &r->set.field_set;
    const FieldVariable *v = &f->variable[channel->variable];
    const int64_t pixels = v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
    const double ahead = (double)f->offset[FIELD_INPUT][channel->offset] * f->step_s;
    double *all = mem_new((size_t)(v->levels * pixels) * sizeof *all);
    field_extra_fill(f, v, field_frame_time(f, frame) + ahead, all);
    for (int i = 0; i < count; ++i)
        memcpy(plane + i * pixels, all + channel[i].level * pixels, (size_t)pixels * sizeof *plane);
    mem_free(&all);
}

/* Reads `count` channels, which are levels of one variable at one offset. */
static Status read_run(FieldReader *r, int64_t frame, FieldRole role, const FieldChannel *channel,
                       int count, double *plane)
{
    const FieldVariable *v = &r->set.field_set.variable[channel->variable];
    const int offset = r->set.field_set.offset[role][channel->offset];
    if (v->made) {
        read_made(r, frame, channel, count, plane);
        return OK;
    }
    TRY(read_levels(r, channel->variable, frame + offset, channel, count, plane));
    if (v->is_scalar) spread(plane, count, r->set.height * r->set.width);
    return OK;
}

static bool same_block(const FieldChannel *a, const FieldChannel *b)
{
    return a->variable == b->variable && a->offset == b->offset;
}

/* Reads all channels of a list to planes of `plane`, each (rows, columns), in double precision. */
static Status read_channels(FieldReader *r, int64_t frame, FieldRole role, const FieldChannel *list,
                            int count, double *plane)
{
    const FieldVariable *v = &r->set.field_set.variable[list[0].variable];
    const int64_t pixels = v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
    for (int i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && same_block(&list[i], &list[i + run]); ++run) {
        }
        TRY(read_run(r, frame, role, &list[i], run, plane + i * pixels));
    }
    return OK;
}

static void normalise(float *to, const double *from, int64_t n, double mean, double std,
                      float missing)
{
    const double factor = 1 / std;
    for (int64_t i = 0; i < n; ++i)
        to[i] = isnan(from[i]) ? missing : (float)((from[i] - mean) * factor);
}

static Status fill_inputs(FieldReader *r, int64_t frame, bool normalised, float *x)
{
    const DataSet *set = &r->set;
    const int64_t pixels = set->height * set->width;
    double *plane = mem_new((size_t)(set->channels * pixels) * sizeof *plane);
    const FieldSet *f = &set->field_set;
    Status st = read_channels(r, frame, FIELD_INPUT, f->input, f->inputs, plane);
    const bool stats = normalised && set->has_stats;
    for (int64_t i = 0; st == OK && i < set->channels; ++i)
        normalise(x + i * pixels, plane + i * pixels, pixels, stats ? (double)set->mean[i] : 0,
                  stats ? (double)set->std[i] : 1, normalised ? 0 : NAN);
    mem_free(&plane);
    return st;
}

static Status fill_targets(FieldReader *r, int64_t frame, bool normalised, float *target)
{
    const DataSet *set = &r->set;
    const FieldSet *f = &set->field_set;
    const int64_t pixels = set->y.dim[2] * set->y.dim[3];
    double *plane = mem_new((size_t)(f->targets * pixels) * sizeof *plane);
    double *from = mem_new((size_t)pixels * sizeof *from);
    const bool stats = normalised && set->has_stats;
    Status st = read_channels(r, frame, FIELD_TARGET, f->target, f->targets, plane);
    for (int i = 0; st == OK && i < f->targets; ++i) {
        double *p = plane + i * pixels;
        if (normalised && f->change_from[i] >= 0) {
            st = read_run(r, frame, FIELD_INPUT, &f->input[f->change_from[i]], 1, from);
            for (int64_t k = 0; st == OK && k < pixels; ++k) p[k] -= from[k];
        }
        normalise(target + i * pixels, p, pixels, stats ? (double)f->target_mean[i] : 0,
                  stats ? (double)f->target_std[i] : 1, NAN);
    }
    mem_free(&from);
    mem_free(&plane);
    return st;
}

Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target)
{
    const int64_t frame = field_sample_frame(&reader->set.field_set, sample);
    if (x) TRY(fill_inputs(reader, frame, normalised, x));
    return target ? fill_targets(reader, frame, normalised, target) : OK;
}
