/* An existing checkpoint file, opened for reading: its table of tensors, its attributes, and its
 * tensors' values with their checksums verified. HDF5 runs in a separate process, except for files
 * that this process has just written. HDF5 reads metadata, and the values of tensors that are not
 * contiguous fp32 or ids. All other values are read with pread, at the offsets that HDF5
 * returns. */
#ifndef WEFT_CHECKPOINT_STORED_H
#define WEFT_CHECKPOINT_STORED_H

#include "checkpoint.h"
#include "data.h"

#include <hdf5.h>

/* CHECKPOINT_FORMAT: version of the format. HASH_CHARS: bytes of a hash as text, 16 digits and a
 * zero byte. */
enum { CHECKPOINT_FORMAT = 1, HASH_CHARS = 17 };
#define CHECKPOINT_FORMAT_NAME "weft-checkpoint"

typedef struct StoredTensor {
    /* path of the tensor, for example "/params/conv1.weight"; owned */
    char *path;
    Shape shape;
    /* path of the average that is read instead (stored_use_averages); NULL: the tensor at `path` is
     * read; owned */
    char *source;
    /* file offset of the values, or -1 if HDF5 must unpack them because they are chunked,
     * compressed or not fp32 */
    int64_t offset;
    /* XXH64 of the tensor's bytes, fp32 or 64-bit ids; valid if has_hash is true */
    uint64_t hash;
    /* true if the file has a checksum of the tensor; other programs may write tensors without
     * one */
    bool has_hash;
    /* true: the values are 64-bit ids, as in CheckpointTensor */
    bool ids;
    /* true: the tensor is a block of a data set's rows, as in CheckpointTensor */
    bool block;
} StoredTensor;

/* Status and message of one part of HDF5's reading: the list of tensors, or the attributes. */
typedef struct StoredPart {
    Status status;
    /* message of the failure; owned */
    char *why;
} StoredPart;

typedef struct StoredFile {
    /* borrowed */
    const char *path;
    /* descriptor for pread; -1 if closed */
    int fd;
    /* size of the file in bytes */
    int64_t bytes;
    /* inode number of the file, which is equal on all hosts of a shared file system */
    uint64_t inode;
    /* HDF5's handle; below 0 if HDF5 has not opened the file */
    hid_t id;
    /* true once stored_lock was called */
    bool locked;
    /* status of the list of tensors */
    StoredPart list;
    /* status of the attributes */
    StoredPart attributes;
    /* number of tensors; 0 if they could not be listed */
    int count;
    /* the tensors, sorted by path, [count]; owned */
    StoredTensor *tensor;
    /* the attributes; owned */
    CheckpointMeta meta;
} StoredFile;

/* Opens `path` for pread and reads its table and attributes through HDF5 in a separate process.
 * Failures of the table and of the attributes are returned by stored_list and stored_meta.
 * ERR_NOINPUT: the file cannot be opened. ERR_IO: it cannot be read for now. ERR_DATA: the file is
 * empty, truncated, not HDF5, no checkpoint of weft's, or of another version of the format, or it
 * crashed the separate process. Release with stored_close in every case. */
Status stored_open(StoredFile *file, const char *path);
/* Does the same as stored_open without a separate process, for a file that this process has just
 * written. */
Status stored_open_trusted(StoredFile *file, const char *path);
/* Parses the answer of the process that stored_open starts. If the answer says that the file could
 * not be opened, returns that failure. ERR_DATA: the answer is impossible. */
Status stored_take(StoredFile *file, const char *answer, size_t bytes);
/* Opens `path` for pread only, without table and attributes. ERR_NOINPUT: it cannot be opened.
 * ERR_DATA: it is empty. Release with stored_close in every case. */
Status stored_open_plain(StoredFile *file, const char *path);
void stored_close(StoredFile *file);
/* Returns the status of listing the tensors. */
Status stored_list(const StoredFile *file);
/* Returns the tensor at `path`; NULL if the file has no such tensor. */
const StoredTensor *stored_find(const StoredFile *file, const char *path);
/* Returns the tensor of a parameter or running statistic; NULL if the file has no such tensor. */
const StoredTensor *stored_param(const StoredFile *file, const Param *param);
/* Returns true if `path` is the path of an average (CHECKPOINT_EMA). `path` may be NULL. */
bool stored_is_average(const char *path);
/* Makes reads of parameters and running statistics return the averages in /ema that have the same
 * name and shape. Returns the number of such averages. */
int stored_use_averages(StoredFile *file);
/* Copies the attributes to *meta, owned by the caller; *meta is empty on error. */
Status stored_meta(const StoredFile *file, CheckpointMeta *meta);
/* Reads a tensor into `plain`, shape_count floats. ERR_DATA: the checksum is wrong; the message
 * names file and tensor. While MPI runs, only rank 0 may read a tensor whose offset is -1, and only
 * rank 0 may call stored_open (isolated_begin). Callable from any thread. */
Status stored_read(StoredFile *file, const StoredTensor *tensor, float *plain);
/* Reads and verifies all tensors, and returns the first error. If `out` is not NULL, prints a line
 * for each bad tensor; if `out` is NULL, stops at the first error. */
Status stored_verify(StoredFile *file, FILE *out);
/* Returns a buffer for the largest tensor. Owner: the caller. */
float *stored_buffer(const StoredFile *file);

/* Returns HDF5's file access property list for checkpoint files, which the caller closes. It
 * switches file locks off from HDF5 1.10.7 on, because network file systems often lack them, and
 * selects the format of HDF5 1.8, which has a checksum on every piece of metadata. */
hid_t hdf5_file_access(void);
/* Call it before HDF5 first uses `file`: this thread holds hdf5_lock (data.h) until
 * stored_close. */
void stored_lock(StoredFile *file);

#endif
