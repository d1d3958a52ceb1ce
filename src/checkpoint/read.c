/* Reads a checkpoint's tensors: with pread if they are contiguous fp32 or ids in the file, or
 * through HDF5 in a separate process if another program has made them chunked, compressed or of
 * another float type. Checksums are verified in both cases. */
#include "base/escape.h"
#include "stored.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are read and written in place as little-endian floats"
#endif

/* small enough that a piece is hashed while it is in the cache */
static const size_t PIECE_BYTES = (size_t)512 << 10;

/* Returns the path in the file from which the tensor is read. */
static const char *stored_name(const StoredTensor *tensor)
{
    return tensor->source ? tensor->source : tensor->path;
}

static Status read_pieces(const StoredFile *file, const StoredTensor *tensor, float *plain,
                          HashPieces *hash)
{
    size_t bytes = (size_t)shape_count(tensor->shape) * sizeof *plain, done = 0;
    while (done < bytes) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        ssize_t got =
            pread(file->fd, (char *)plain + done, piece, (off_t)tensor->offset + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail(ERR_IO, "%s: reading tensor %s failed: %s", file->path, stored_name(tensor),
                        strerror(errno));
        if (got == 0)
            return fail(ERR_DATA, "%s: truncated in tensor %s; use an older checkpoint", file->path,
                        stored_name(tensor));
        hash_add(hash, (char *)plain + done, (size_t)got);
        done += (size_t)got;
    }
    return OK;
}

static Status read_plain(const StoredFile *file, const StoredTensor *tensor, float *plain,
                         uint64_t *hash)
{
    HashPieces *pieces = hash_begin();
    Status status = read_pieces(file, tensor, plain, pieces);
    *hash = hash_end(&pieces);
    return status;
}

/* ---- tensors that only HDF5 can read ---- */

static bool read_values(hid_t set, int64_t count, float *plain)
{
    hid_t space = set < 0 ? -1 : H5Dget_space(set);
    bool same = space >= 0 && H5Sget_simple_extent_npoints(space) == count;
    if (space >= 0) H5Sclose(space);
    return same && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, plain) >= 0;
}

/* Runs in the separate process. input: an int64 with the number of elements, then the file's path,
 * then the tensor's path. Writes the values to `answer`, or nothing if there is an error. */
static void unpack(const void *input, size_t input_bytes, FILE *answer)
{
    int64_t count;
    const char *path = (const char *)input + sizeof count, *name = path + strlen(path) + 1;
    (void)input_bytes;
    memcpy(&count, input, sizeof count);
    float *plain = mem_new((size_t)count * sizeof *plain);
    /* not used: at an external link H5Dopen2 fails, and the answer stays empty */
    bool is_external;
    hdf5_lock();
    hid_t access = hdf5_file_access(), inside = hdf5_access_without_links(&is_external);
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, access);
    hid_t set = id < 0 ? -1 : H5Dopen2(id, name, inside);
    if (read_values(set, count, plain)) fwrite(plain, sizeof *plain, (size_t)count, answer);
}

static Status unpack_isolated(const char *path, const char *name, int64_t count, char **values,
                              size_t *bytes)
{
    const int64_t whole = count * (int64_t)sizeof(float);
    IsolatedJob job = hdf5_unpack_limits(whole, whole);
    job.answer_bytes = (size_t)whole;
    job.work = unpack;
    size_t path_bytes = strlen(path) + 1, name_bytes = strlen(name) + 1;
    char *input = mem_new(sizeof count + path_bytes + name_bytes);
    memcpy(input, &count, sizeof count);
    memcpy(input + sizeof count, path, path_bytes);
    memcpy(input + sizeof count + path_bytes, name, name_bytes);
    Status status =
        isolated_run(&job, path, input, sizeof count + path_bytes + name_bytes, values, bytes);
    mem_free(&input);
    return status;
}

/* Reads through HDF5. The separate process protects against manipulated files, because HDF5's
 * filters and chunk indices trust the file's bytes. */
static Status read_hdf5(const StoredFile *file, const StoredTensor *tensor, float *plain,
                        uint64_t *hash)
{
    const int64_t count = shape_count(tensor->shape);
    const size_t bytes = (size_t)count * sizeof *plain;
    char *values = NULL;
    size_t got = 0;
    *hash = hash_bytes(plain, 0);
    if (count == 0) return OK;
    TRY(unpack_isolated(file->path, stored_name(tensor), count, &values, &got));
    if (got == bytes) {
        memcpy(plain, values, bytes);
        *hash = hash_bytes(plain, bytes);
    }
    mem_free(&values);
    if (got == bytes) return OK;
    return fail(ERR_DATA,
                "%s: HDF5 cannot read tensor %s (damaged, or a filter that this HDF5 lacks)",
                file->path, stored_name(tensor));
}

Status stored_read(StoredFile *file, const StoredTensor *tensor, float *plain)
{
    uint64_t hash;
    TRY(tensor->offset >= 0 ? read_plain(file, tensor, plain, &hash)
                            : read_hdf5(file, tensor, plain, &hash));
    if (!tensor->has_hash || hash == tensor->hash) return OK;
    return fail(ERR_DATA,
                "%s: the checksum of tensor %s does not match: the file was altered or damaged; "
                "use an older checkpoint",
                file->path, stored_name(tensor));
}

float *stored_buffer(const StoredFile *file)
{
    int64_t largest = 1;
    for (int i = 0; i < file->count; ++i)
        if (shape_count(file->tensor[i].shape) > largest)
            largest = shape_count(file->tensor[i].shape);
    return mem_new((size_t)largest * sizeof(float));
}

Status stored_verify(StoredFile *file, FILE *out)
{
    float *plain = stored_buffer(file);
    char *first = NULL;
    Status status = OK;
    for (int i = 0; i < file->count && (status == OK || out); ++i) {
        Status one = stored_read(file, &file->tensor[i], plain);
        if (one == OK) continue;
        if (out) text_escape_print(out, "%s\n", fail_message());
        if (status != OK) continue;
        status = one;
        first = mem_text(fail_message());
    }
    mem_free(&plain);
    if (status != OK) fail(status, "%s", first);
    mem_free(&first);
    return status;
}
