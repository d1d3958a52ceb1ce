/* A checkpoint file that is there to be read: its table of tensors, its attributes, and its
 * tensors' values with their checksums verified. HDF5 is asked for metadata only, in another
 * process; plain tensors are read with pread at the offsets it names. */
#ifndef WEFT_CHECKPOINT_STORED_H
#define WEFT_CHECKPOINT_STORED_H

#include "checkpoint.h"
#include "data.h"

#include <hdf5.h>

enum { CHECKPOINT_FORMAT = 1, HASH_CHARS = 17 };
#define CHECKPOINT_FORMAT_NAME "weft-checkpoint"

typedef struct StoredTensor {
    /* "/params/conv1.weight"; owned */
    char *path;
    Shape shape;
    /* of its bytes in the file; -1: chunked, compressed or not fp32: HDF5 unpacks them */
    int64_t offset;
    /* XXH64 of its plain fp32 bytes */
    uint64_t hash;
    /* false where another program wrote it without one */
    bool has_hash;
    /* as CheckpointTensor's */
    bool ids, block;
} StoredTensor;

/* what became of a part of what HDF5 was asked, and why */
typedef struct StoredPart {
    Status status;
    /* owned */
    char *why;
} StoredPart;

typedef struct StoredFile {
    /* borrowed */
    const char *path;
    /* -1: closed */
    int fd;
    /* of the file */
    int64_t bytes;
    /* alike on all hosts of a shared file system */
    uint64_t inode;
    /* < 0: not opened by HDF5 */
    hid_t id;
    /* stored_lock was called */
    bool locked;
    StoredPart list, attributes;
    /* 0 where it could not be listed */
    int count;
    /* owned, sorted by path */
    StoredTensor *tensor;
    /* owned */
    CheckpointMeta meta;
} StoredFile;

/* Opens path for pread and has its table and attributes read, by HDF5 in a process of its own.
 * ERR_NOINPUT: not there; ERR_IO: cannot be read for now; ERR_DATA: empty, not HDF5, truncated, not
 * a checkpoint of ours, or it has crashed that process. Release with stored_close in every case. */
Status stored_open(StoredFile *file, const char *path);
/* The same in this process: of a file that it has written a moment ago. */
Status stored_open_own(StoredFile *file, const char *path);
/* What stored_open does with the answer of that process. ERR_DATA where it makes no sense. */
Status stored_take(StoredFile *file, const char *answer, size_t bytes);
/* Opens for pread only. */
Status stored_open_plain(StoredFile *file, const char *path);
void stored_close(StoredFile *file);
/* Could all tensors be listed? */
Status stored_list(const StoredFile *file);
/* NULL: not there */
const StoredTensor *stored_find(const StoredFile *file, const char *path);
const StoredTensor *stored_param(const StoredFile *file, const Param *param);
/* meta: a copy, owned by the caller; nothing in it on error. */
Status stored_meta(const StoredFile *file, CheckpointMeta *meta);
/* plain: shape_count floats. A checksum that is off is ERR_DATA naming file and tensor. Where MPI
 * runs, what has no offset is for rank 0, as stored_open is (apart_begin). From any thread. */
Status stored_read(StoredFile *file, const StoredTensor *tensor, float *plain);
/* Reads and verifies all, in a buffer of its own. out, where given, gets a line for each bad
 * tensor, and the first error is returned after the last tensor; without it at the first. */
Status stored_verify(StoredFile *file, FILE *out);
/* for the largest tensor; owned by the caller */
float *stored_buffer(const StoredFile *file);

/* File access of every checkpoint file: no file locks (network file systems often lack them), and
 * the format of HDF5 1.8, which has a checksum on every piece of metadata. */
hid_t file_access(void);
/* Before the first call of HDF5 on file: this thread holds hdf5_lock (data.h) until
 * stored_close. */
void stored_lock(StoredFile *file);

#endif
