/* Declares the import of folders of pictures. It has four steps: find the files (folder_scan.c,
 * folder_list.c), decode them into OUT.part (folder_decode.c), record progress (folder_journal.c),
 * and write HDF5's metadata and the smaller arrays around the samples (folder_import.c). */
#ifndef WEFT_DATA_FOLDER_H
#define WEFT_DATA_FOLDER_H

#include "../data_private.h"
#include "folder_files.h"

/* State of a sample. */
typedef enum FolderState {
    /* The picture is not decoded yet. */
    FOLDER_NEW,
    /* The picture was decoded. */
    FOLDER_GOOD,
    /* The file cannot be read or is not a usable picture. */
    FOLDER_BROKEN
} FolderState;
struct FolderSample;
/* Labels that an import stores instead of a class for each picture, as functions of the caller.
 * They are called on rank 0 only. i is an index into FolderFiles.file; left_out[i] is not 0 if the
 * import leaves picture i out. */
typedef struct FolderLabels {
    /* first argument of each function */
    void *user;
    /* kind of the data set */
    DataKind kind;
    /* Lists the pictures and the names of classes. */
    Status (*find)(void *user, FolderFiles *files);
    /* Returns the largest number of bytes that `put` writes. Called after `find`. */
    int64_t (*bytes)(void *user);
    /* Returns whether the labels fit the picture: OK, or ERR_DATA if the picture cannot be used.
     * Called once for each picture that was decoded, and again to log the reason of a refusal. */
    Status (*check)(void *user, int64_t i, const struct FolderSample *sample);
    /* Completes the labels. Called once, after the last `check` and before `put`. */
    Status (*complete)(void *user, const uint8_t *left_out);
    /* Writes the arrays of the labels; called under hdf5_lock. Returns false on failure. */
    bool (*put)(void *user, hid_t file, const uint8_t *left_out);
    /* Writes the name of picture i for messages, for example "image 17: ", to out of `room`
     * bytes. */
    void (*name)(void *user, int64_t i, char *out, size_t room);
    /* Logs what the import has written. samples: number of pictures in the set; left_out: number of
     * pictures left out; orientations: text about EXIF orientations that the message ends with, ""
     * or "; ...". */
    void (*report)(void *user, int64_t samples, int64_t left_out, const char *orientations);
} FolderLabels;

/* Result of decoding a sample, as the journal stores it. */
typedef struct FolderSample {
    /* rows and columns of the picture in its file, before rotation by its orientation */
    int32_t height, width;
    /* EXIF orientation */
    uint8_t orientation;
    /* a FolderState */
    uint8_t state;
    uint8_t unused[2];
} FolderSample;

/* Results of a block of samples, as the journal stores them. */
typedef struct FolderRecord {
    /* hash of all members after this one; a record with another hash is ignored */
    uint64_t check;
    /* block_key of the block; a record with another key is ignored */
    uint64_t key;
    /* sums of the pixels and of their squares, for each channel, over the good samples */
    uint64_t sum[3], squares[3];
    /* number of pixels of the good samples */
    uint64_t pixels;
    FolderSample sample[FOLDER_BLOCK];
} FolderRecord;
_Static_assert(sizeof(FolderRecord) <= FOLDER_RECORD, "a record is a page of the journal");

/* State of an import on one rank. The list of files and the offsets are the same on all ranks;
 * names of classes are on rank 0 only. */
typedef struct FolderWork {
    /* borrowed */
    const FolderImport *import;
    /* borrowed */
    const ImportRanks *ranks;
    FolderFiles files;
    PartFile part;
    /* offset of the array of samples in OUT.part */
    int64_t data_offset;
    /* size of the array of samples in bytes, before pictures are left out */
    int64_t data_bytes;
    /* encoded samples: offset of each sample from data_offset, in bytes, [count + 1], owned. NULL:
     * samples are stored decoded */
    int64_t *offset;
    /* number of blocks of FOLDER_BLOCK samples */
    int64_t blocks;
    /* path of OUT.part.journal; owned */
    char *journal;
    /* descriptor of the journal, open for reading and writing; -1: closed */
    int journal_fd;
    /* after journal_reopen: the journal's earlier descriptor, which holds the lock; else -1 */
    int journal_lock;
} FolderWork;
/* Returns the number of samples in a block: FOLDER_BLOCK, or less in the last block. */
static inline int64_t block_samples(const FolderWork *work, int64_t block)
{
    int64_t left = work->files.count - block * FOLDER_BLOCK;
    return left < FOLDER_BLOCK ? left : FOLDER_BLOCK;
}
/* Returns the offset of the bytes of sample i from data_offset. For i = files.count it is the size
 * of the array of samples. */
int64_t sample_offset(const FolderWork *work, int64_t i);

/* ---- the journal ---- */
/* Opens the journal. lock: true on rank 0, which then creates the journal if it is missing, and
 * locks it if the file system has locks. ERR_IO; ERR_USAGE: another import holds the lock. */
Status journal_open(FolderWork *work, bool lock);
/* Opens the journal again on rank 0 and keeps the lock. On a network file system only a new open is
 * sure to show the records that other ranks have written. */
Status journal_reopen(FolderWork *work);
/* Removes all records, and syncs the empty file to the disk. ERR_IO. */
Status journal_clear(FolderWork *work);
/* Closes both descriptors, and so releases the lock. */
void journal_close(FolderWork *work);
/* Reads the record of a block. Returns whether the journal has a valid one; if not, the content of
 * `record` is undefined. */
bool journal_read(const FolderWork *work, int64_t block, FolderRecord *record);
/* Writes the record of a block that is done, after setting its key and check. The block's samples
 * must be on disk already. ERR_IO. */
Status journal_write(const FolderWork *work, int64_t block, FolderRecord *record);

/* Decodes the blocks of this rank that are not in the journal. A picture that cannot be used is
 * recorded as broken and is no error. ERR_IO; ERR_STOPPED: a stop was requested. */
Status folder_decode_blocks(FolderWork *work);
/* Decodes file i as folder_decode_blocks does, but writes only to *sample. ERR_DATA: the file is
 * not a usable picture. ERR_IO: its size has changed during the import. */
Status folder_check_picture(const FolderWork *work, int64_t i, FolderSample *sample);
/* Returns ERR_IO, with the message that the file has changed during the import. */
Status fail_file_changed(const char *path);

#endif
