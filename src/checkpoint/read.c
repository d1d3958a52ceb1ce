/* Reading a checkpoint's tensors: with pread where they lie plainly in the file, through HDF5 where
 * another program made them chunked, compressed or of another type; verified by their checksums
 * either way. */
#include "stored.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are read and written in place as little-endian floats"
#endif

/* It is hashed while it is in the cache. */
static const size_t PIECE_BYTES = (size_t)512 << 10;

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
            return fail(ERR_IO, "%s: reading tensor %s failed: %s", file->path, tensor->path,
                        strerror(errno));
        if (got == 0)
            return fail(ERR_DATA, "%s: truncated in tensor %s; use an older checkpoint", file->path,
                        tensor->path);
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

static Status read_hdf5(StoredFile *file, const StoredTensor *tensor, float *plain, uint64_t *hash)
{
    *hash = hash_bytes(plain, 0);
    if (shape_count(tensor->shape) == 0) return OK;
    stored_lock(file);
    if (file->id < 0) {
        hid_t access = file_access();
        file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
        H5Pclose(access);
    }
    bool elsewhere;
    hid_t inside = hdf5_access_inside(&elsewhere);
    hid_t set = file->id < 0 ? -1 : H5Dopen2(file->id, tensor->path, inside);
    H5Pclose(inside);
    bool good =
        set >= 0 && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, plain) >= 0;
    if (set >= 0) H5Dclose(set);
    if (good) *hash = hash_bytes(plain, (size_t)shape_count(tensor->shape) * sizeof *plain);
    if (good) return OK;
    return fail(ERR_DATA,
                "%s: HDF5 cannot read tensor %s (damaged, or a filter that this HDF5 lacks)",
                file->path, tensor->path);
}

Status stored_read(StoredFile *file, const StoredTensor *tensor, float *plain)
{
    uint64_t hash;
    TRY(tensor->offset >= 0 ? read_plain(file, tensor, plain, &hash)
                            : read_hdf5(file, tensor, plain, &hash));
    if (!tensor->has_hash || hash == tensor->hash) return OK;
    return fail(
        ERR_DATA,
        "%s: the checksum of tensor %s is off: the file was altered or damaged; use an older "
        "checkpoint",
        file->path, tensor->path);
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
        if (out) fprintf(out, "%s\n", fail_message());
        if (status != OK) continue;
        status = one;
        first = mem_text(fail_message());
    }
    mem_free(&plain);
    if (status != OK) fail(status, "%s", first);
    mem_free(&first);
    return status;
}
