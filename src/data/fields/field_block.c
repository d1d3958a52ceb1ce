/* Makes the block of a set of fields: one allocation with everything that grows with the number of
 * files. While a set is being opened, the parts are separate allocations. At the end they are
 * copied into the block, in the order
 *
 *     files | arrays [files][stored] | paths, padded to a multiple of 8 bytes | segments
 *
 * The block begins at FieldSet.file, and can be sent to other ranks and processes as it is. */
#include "fields_private.h"

#include <string.h>

/* Sets the pointers to the parts of the set's block. */
static void find_parts(FieldSet *f, void *block)
{
    f->file = block;
    f->array = (void *)(f->file + f->files);
    f->text = (void *)(f->array + (int64_t)f->files * f->stored);
    f->segment = (void *)(f->text + f->text_bytes);
}

void field_block_drop_parts(FieldSet *f)
{
    mem_free(&f->file);
    mem_free(&f->array);
    mem_free(&f->text);
    mem_free(&f->segment);
}

void field_block_make(FieldSet *f)
{
    FieldSet parts = *f;
    const size_t files = (size_t)f->files * sizeof *f->file;
    const size_t arrays = (size_t)f->files * (size_t)f->stored * sizeof *f->array;
    const size_t segments = (size_t)f->segments * sizeof *f->segment;
    f->text_bytes = (parts.text_bytes + 7) / 8 * 8;
    f->block_bytes = (int64_t)(files + arrays + segments) + f->text_bytes;
    find_parts(f, mem_new((size_t)f->block_bytes));
    memcpy(f->file, parts.file, files);
    memcpy(f->array, parts.array, arrays);
    memcpy(f->text, parts.text, (size_t)parts.text_bytes);
    memcpy(f->segment, parts.segment, segments);
    field_block_drop_parts(&parts);
}

/* ---- the block as a part of the DataSet ---- */

void *data_set_block(const DataSet *set, size_t *bytes)
{
    *bytes = (size_t)set->field_set.block_bytes;
    return set->field_set.file;
}

void data_set_give_block(DataSet *set, void *block)
{
    if (set->field_set.block_bytes > 0) find_parts(&set->field_set, block);
}

void data_set_copy(DataSet *copy, const DataSet *set)
{
    size_t bytes;
    const void *block = data_set_block(set, &bytes);
    *copy = *set;
    if (bytes > 0) data_set_give_block(copy, memcpy(mem_new(bytes), block, bytes));
}

void data_set_fini(DataSet *set)
{
    FieldSet *f = &set->field_set;
    if (f->block_bytes > 0) mem_free(&f->file);
    f->file = NULL;
    f->array = NULL;
    f->text = NULL;
    f->segment = NULL;
    f->block_bytes = f->text_bytes = 0;
    f->files = f->segments = 0;
}
