/* Finds the slab of an array to read, and its pieces if the array is contiguous; unpacks its
 * numbers. Rows of a contiguous array are read with all their columns if they have at most
 * ROW_BYTES bytes. Neighbouring rows are then one piece, and reading the columns that are not
 * needed takes less time than one more call. */
#include "field_slab.h"

#include <math.h>
#include <string.h>

enum { ROW_BYTES = 64 << 10 };

/* Returns the first level of the smallest range that has all selected levels. *count: number of
 * levels of the range. */
static int levels_of(const FieldVariable *v, int *count)
{
    int low = v->level_index[0], high = v->level_index[0];
    for (int i = 1; i < v->levels; ++i) {
        if (v->level_index[i] < low) low = v->level_index[i];
        if (v->level_index[i] > high) high = v->level_index[i];
    }
    *count = high - low + 1;
    return low;
}

FieldSlab field_slab(const FieldSet *f, int variable, int64_t frame, const FieldRect *window)
{
    const FieldVariable *v = &f->variable[variable];
    FieldSlab s = {.variable = variable,
                   .file = v->is_static ? 0 : field_find_file(f, frame),
                   .window = *window,
                   .elements = 1};
    int levels;
    s.first_level = levels_of(v, &levels);
    const FieldArray *array = field_array(f, s.file, variable);
    const int64_t row_bytes = v->size[FIELD_COLUMN] * (int64_t)element_bytes(array->type);
    const bool whole_rows = array->offset >= 0 && row_bytes <= ROW_BYTES;
    for (int i = 0; i < v->ndim; ++i) {
        const int dim = v->dim[i];
        s.length[i] = s.count[i] = v->size[dim];
        switch (dim) {
        case FIELD_TIME:
            s.count[i] = 1;
            if (v->is_static) break;
            s.length[i] = f->file[s.file].frames;
            s.start[i] = frame - f->file[s.file].first_frame;
            break;
        case FIELD_LEVEL:
            s.start[i] = s.first_level;
            s.count[i] = levels;
            break;
        case FIELD_ROW:
            s.start[i] = window->row;
            s.count[i] = window->rows;
            break;
        default:
            if (whole_rows) break;
            s.start[i] = window->column;
            s.count[i] = window->columns;
            break;
        }
    }
    s.columns_before = whole_rows ? window->column : 0;
    for (int i = v->ndim - 1; i >= 0; --i) {
        s.step[v->dim[i]] = s.elements;
        s.elements *= s.count[i];
    }
    return s;
}

/* Returns the last dimension of which only a part of the indices is read; 0 if there is none. The
 * pieces differ in the indices of the dimensions before it. */
static int last_part(const FieldSet *f, const FieldSlab *s)
{
    int i = f->variable[s->variable].ndim - 1;
    while (i > 0 && s->count[i] == s->length[i]) --i;
    return i;
}

int64_t field_slab_pieces(const FieldSet *f, const FieldSlab *s, int64_t *bytes)
{
    const int last = last_part(f, s);
    int64_t pieces = 1;
    for (int i = 0; i < last; ++i) pieces *= s->count[i];
    *bytes =
        s->elements / pieces * (int64_t)element_bytes(field_array(f, s->file, s->variable)->type);
    return pieces;
}

int64_t field_slab_piece(const FieldSet *f, const FieldSlab *s, int64_t piece)
{
    const int ndim = f->variable[s->variable].ndim, last = last_part(f, s);
    int64_t index[SHAPE_DIMS], at = 0;
    for (int i = ndim - 1; i >= 0; --i) index[i] = s->start[i];
    for (int i = last - 1; i >= 0; --i) {
        index[i] += piece % s->count[i];
        piece /= s->count[i];
    }
    for (int i = 0; i < ndim; ++i) at = at * s->length[i] + index[i];
    return at * (int64_t)element_bytes(field_array(f, s->file, s->variable)->type);
}

Status field_slab_unpack(const FieldSet *f, const FieldSlab *s, const void *raw, int level,
                         double *to)
{
    const FieldVariable *v = &f->variable[s->variable];
    const FieldArray *a = field_array(f, s->file, s->variable);
    const FieldPacking *p = &a->packing;
    const int64_t rows = s->window.rows, columns = s->window.columns;
    bool infinite = false;
    for (int64_t i = 0; i < rows; ++i, to += columns) {
        const int64_t at = (v->level_index[level] - s->first_level) * s->step[FIELD_LEVEL] +
                           i * s->step[FIELD_ROW] + s->columns_before * s->step[FIELD_COLUMN];
        element_doubles(a->type, to, (const char *)raw + (size_t)at * element_bytes(a->type),
                        s->step[FIELD_COLUMN], columns);
        for (int m = 0; m < p->missing_count; ++m)
            for (int64_t k = 0; k < columns; ++k)
                if (to[k] == p->missing[m]) to[k] = NAN;
        for (int64_t k = 0; k < columns; ++k) {
            to[k] = to[k] * p->scale + p->add;
            infinite |= isinf(to[k]) != 0;
        }
    }
    if (!infinite) return OK;
    return fail(ERR_DATA, "%s: %s has an infinite value; correct the data", field_path(f, s->file),
                v->name);
}
