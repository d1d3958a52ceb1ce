/* Opens a checkpoint. Its table and attributes are read through HDF5 (tensor_table.c), in a
 * separate process unless this process has just written the file. This file parses and checks the
 * answer, without HDF5. */
#include "stored.h"
#include "tensor_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* limits of the reading process: memory, seconds of processor time (BUSY_S) and of elapsed time
 * (CLOCK_S), size of its answer */
enum { MEMORY_BYTES = 1 << 30, BUSY_S = 30, CLOCK_S = 300, ANSWER_BYTES = 256 << 20 };

void stored_lock(StoredFile *file)
{
    if (!file->locked) hdf5_lock();
    file->locked = true;
}

hid_t hdf5_file_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, 0, 1);
#endif
    return access;
}

Status stored_open_plain(StoredFile *file, const char *path)
{
    struct stat st;
    *file = (StoredFile){.path = path, .id = -1};
    file->fd = file_open(path, O_RDONLY);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return fail(ERR_NOINPUT, "%s: cannot open the checkpoint: %s", path, file_error(errno));
    if (st.st_size == 0)
        return fail(ERR_DATA, "%s: the file is empty; use an older checkpoint", path);
    file->bytes = st.st_size;
    file->inode = st.st_ino;
    return OK;
}

/* ---- parsing the answer ---- */

/* The part of an answer that has not been parsed. */
typedef struct Answer {
    const char *at, *end;
    /* true: there was no error so far */
    bool good;
} Answer;

static void take(Answer *a, void *to, size_t bytes)
{
    a->good = a->good && (size_t)(a->end - a->at) >= bytes;
    if (!a->good)
        memset(to, 0, bytes);
    else
        memcpy(to, a->at, bytes);
    if (a->good) a->at += bytes;
}

/* Parses a text, or returns NULL if there is none. Control characters, which could move a
 * terminal's cursor, become '?'; line ends and tabs are kept if `lines` is true. Owner: the
 * caller. */
static char *take_text(Answer *a, bool lines)
{
    int64_t bytes;
    take(a, &bytes, sizeof bytes);
    a->good = a->good && bytes <= a->end - a->at;
    if (!a->good || bytes < 0) return NULL;
    char *text = mem_new((size_t)bytes + 1);
    take(a, text, (size_t)bytes);
    for (char *c = text; *c; ++c)
        if (((unsigned char)*c < ' ' && !(lines && (*c == '\n' || *c == '\t'))) || *c == 127)
            *c = '?';
    return text;
}

/* Parses the status and message of a part of the answer. */
static StoredPart take_part(Answer *a)
{
    StoredPart part;
    take(a, &part.status, sizeof part.status);
    part.why = take_text(a, true);
    a->good = a->good && part.why;
    return part;
}

static Status part_status(const StoredPart *part)
{
    return part->status == OK ? OK : fail(part->status, "%s", part->why);
}

static bool tensor_is_possible(const StoredFile *file, const StoredTensor *t)
{
    int64_t bytes = sizeof(float);
    if (!isolated_bool_is_valid(&t->has_hash) || !isolated_bool_is_valid(&t->ids) ||
        !isolated_bool_is_valid(&t->block))
        return false;
    if (!t->path || t->shape.ndim < 1 || t->shape.ndim > SHAPE_DIMS || t->offset < -1) return false;
    for (int i = 0; i < SHAPE_DIMS; ++i)
        if (t->shape.dim[i] < 0 || (i >= t->shape.ndim && t->shape.dim[i] != 1) ||
            __builtin_mul_overflow(bytes, t->shape.dim[i], &bytes))
            return false;
    return t->offset >= 0 ? t->offset <= file->bytes - bytes
                          : bytes / INFLATE_RATIO_MAX <= file->bytes;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const StoredTensor *)a)->path, ((const StoredTensor *)b)->path);
}

static void take_table(Answer *a, StoredFile *file)
{
    int count;
    take(a, &count, sizeof count);
    a->good =
        a->good && count >= 0 && (size_t)(a->end - a->at) / sizeof *file->tensor >= (size_t)count;
    if (!a->good) return;
    file->tensor = mem_new((size_t)count * sizeof *file->tensor);
    while (a->good && file->count < count) {
        StoredTensor *t = &file->tensor[file->count++];
        take(a, t, sizeof *t);
        t->path = take_text(a, false);
        t->source = NULL;
        a->good = a->good && tensor_is_possible(file, t);
    }
    if (a->good && count > 0) qsort(file->tensor, (size_t)count, sizeof *file->tensor, by_path);
}

static void take_columns(Answer *a, DataRanges *ranges)
{
    const int64_t columns = ranges->columns;
    ranges->column = NULL;
    ranges->columns = 0;
    a->good = a->good && columns >= 0 && columns <= DATA_COLUMNS_RANGED;
    if (!a->good || columns == 0) return;
    const size_t bytes = (size_t)columns * sizeof *ranges->column;
    ranges->column = mem_new(bytes);
    ranges->columns = columns;
    take(a, ranges->column, bytes);
}

static void take_meta(Answer *a, CheckpointMeta *meta)
{
    take(a, meta, sizeof *meta);
    meta->ranges.column = NULL;
    meta->config = take_text(a, true);
    meta->version = take_text(a, false);
    meta->classes = take_text(a, true);
    meta->algorithms = take_text(a, true);
    meta->data_files = take_text(a, true);
    take_columns(a, &meta->ranges);
    a->good = a->good && meta->config && meta->version && meta->step >= 0;
    a->good = a->good && meta->input.stat_count >= 0 && meta->input.stat_count <= DATA_CHANNELS;
    a->good =
        a->good && meta->input.target_count >= 0 && meta->input.target_count <= FIELD_CHANNELS;
    a->good = a->good && meta->loss_count >= 0 && meta->loss_count <= CHECKPOINT_LOSSES;
    meta->grid[sizeof meta->grid - 1] = 0;
    meta->best_of[sizeof meta->best_of - 1] = 0;
    meta->data_train[sizeof meta->data_train - 1] = 0;
    meta->data_test[sizeof meta->data_test - 1] = 0;
    meta->columns.lines[DATA_COLUMN_LINES - 1] = 0;
    meta->tokenizer_hash[sizeof meta->tokenizer_hash - 1] = 0;
    meta->init_from[sizeof meta->init_from - 1] = 0;
}

bool stored_is_average(const char *path)
{
    return path && strncmp(path, CHECKPOINT_EMA, sizeof CHECKPOINT_EMA - 1) == 0;
}

Status stored_take(StoredFile *file, const char *text, size_t bytes)
{
    Answer a = {text, text + bytes, true};
    StoredPart opened = take_part(&a);
    Status status = a.good ? part_status(&opened) : OK;
    mem_free(&opened.why);
    if (status != OK) return status;
    if (a.good) file->list = take_part(&a);
    if (a.good && file->list.status == OK) take_table(&a, file);
    if (a.good) file->attributes = take_part(&a);
    if (a.good && file->attributes.status == OK) take_meta(&a, &file->meta);
    file->meta.average_count = 0;
    for (int i = 0; i < file->count; ++i)
        file->meta.average_count += stored_is_average(file->tensor[i].path);
    if (a.good && a.at == a.end) return OK;
    return fail(ERR_DATA, "%s: HDF5's answer about it is impossible: the file is malicious",
                file->path);
}

/* ---- running HDF5 ---- */

static Status read_directly(const char *path, char **answer, size_t *bytes)
{
    FILE *out = open_memstream(answer, bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    tensor_table_read(path, strlen(path) + 1, out);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return OK;
}

static Status read_isolated(const char *path, char **answer, size_t *bytes)
{
    static const IsolatedJob job = {
        .subject = "HDF5, in the process that reads what the file holds,",
        .memory_bytes = MEMORY_BYTES,
        .busy_s = BUSY_S,
        .clock_s = CLOCK_S,
        .answer_bytes = ANSWER_BYTES,
        .work = tensor_table_read,
    };
    return isolated_run(&job, path, path, strlen(path) + 1, answer, bytes);
}

static Status open_by(StoredFile *file, const char *path,
                      Status (*read_table)(const char *, char **, size_t *))
{
    char *answer = NULL;
    size_t bytes = 0;
    TRY(stored_open_plain(file, path));
    Status status = read_table(path, &answer, &bytes);
    if (status == OK) status = stored_take(file, answer, bytes);
    mem_free(&answer);
    return status;
}

Status stored_open(StoredFile *file, const char *path)
{
    return open_by(file, path, read_isolated);
}

Status stored_open_trusted(StoredFile *file, const char *path)
{
    return open_by(file, path, read_directly);
}

void stored_close(StoredFile *file)
{
    for (int i = 0; i < file->count; ++i) {
        mem_free(&file->tensor[i].path);
        mem_free(&file->tensor[i].source);
    }
    mem_free(&file->tensor);
    mem_free(&file->list.why);
    mem_free(&file->attributes.why);
    checkpoint_meta_fini(&file->meta);
    file->count = 0;
    if (file->id >= 0) H5Fclose(file->id);
    if (file->locked) hdf5_unlock();
    file->locked = false;
    if (file->fd >= 0) close(file->fd);
    file->id = file->fd = -1;
}

Status stored_list(const StoredFile *file)
{
    return part_status(&file->list);
}

Status stored_meta(const StoredFile *file, CheckpointMeta *meta)
{
    *meta = (CheckpointMeta){0};
    TRY(part_status(&file->attributes));
    *meta = file->meta;
    meta->config = mem_text(file->meta.config);
    meta->version = mem_text(file->meta.version);
    meta->classes = mem_text(file->meta.classes);
    meta->algorithms = mem_text(file->meta.algorithms);
    meta->data_files = mem_text(file->meta.data_files);
    meta->ranges = data_ranges_copy(&file->meta.ranges);
    return OK;
}

static int path_of(const void *path, const void *tensor)
{
    return strcmp(path, ((const StoredTensor *)tensor)->path);
}

const StoredTensor *stored_find(const StoredFile *file, const char *path)
{
    if (file->count == 0) return NULL;
    return bsearch(path, file->tensor, (size_t)file->count, sizeof *file->tensor, path_of);
}

const StoredTensor *stored_param(const StoredFile *file, const Param *param)
{
    char *path = checkpoint_param_path(param);
    const StoredTensor *tensor = stored_find(file, path);
    mem_free(&path);
    return tensor;
}

/* ---- averages ---- */

/* Returns the parameter or running statistic whose average this is, or NULL. */
static StoredTensor *averaged(const StoredFile *file, const StoredTensor *average)
{
    static const char *const groups[] = {"params", "buffers"};
    const StoredTensor *t = NULL;
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !t; ++i) {
        char *path = mem_format("/%s/%s", groups[i], average->path + sizeof CHECKPOINT_EMA - 1);
        t = stored_find(file, path);
        mem_free(&path);
    }
    return t && shape_equal(t->shape, average->shape) ? &file->tensor[t - file->tensor] : NULL;
}

int stored_use_averages(StoredFile *file)
{
    int used = 0;
    for (int i = 0; i < file->count; ++i) {
        const StoredTensor *average = &file->tensor[i];
        StoredTensor *t = stored_is_average(average->path) ? averaged(file, average) : NULL;
        if (!t) continue;
        t->source = mem_text(average->path);
        t->offset = average->offset;
        t->hash = average->hash;
        t->has_hash = average->has_hash;
        ++used;
    }
    return used;
}

char *checkpoint_param_path(const Param *param)
{
    return mem_format("/%s/%s", param->info.is_statistic ? "buffers" : "params", param->name);
}

const char *checkpoint_leaf(const char *path)
{
    if (!strncmp(path, "/params/", 8)) return path + 8;
    return strncmp(path, "/buffers/", 9) ? NULL : path + 9;
}
