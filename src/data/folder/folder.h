/* Import of folders of pictures in four steps: find the files (folder_scan.c, folder_list.c),
 * decode them into OUT.part (folder_decode.c), record progress (folder_journal.c), and write the
 * rest of the file around the samples (folder_import.c). */
#ifndef WEFT_DATA_FOLDER_H
#define WEFT_DATA_FOLDER_H

#include "../data_private.h"
#include "folder_files.h"

/* State of a sample. NEW: not decoded yet; BROKEN: not a usable picture. */
typedef enum FolderState { FOLDER_NEW, FOLDER_GOOD, FOLDER_BROKEN } FolderState;
struct FolderSample;
/* Labels that an import stores instead of a class for each picture. Its functions are called on
 * rank 0 only. left_out[i] is not 0 if picture i is left out. */
typedef struct FolderExtra {
    void *user;
    /* kind of the data set */
    DataKind kind;
    /* Lists the pictures and the names of classes. */
    Status (*find)(void *user, FolderFiles *files);
    /* Called once for each picture that decodes, and again for those refused whose reason is
     * logged. ERR_DATA: the picture cannot be used. */
    Status (*check)(void *user, int64_t i, const struct FolderSample *sample);
    /* Called once, when it is known which pictures are left out. */
    Status (*close)(void *user, const uint8_t *left_out);
    /* Writes the arrays of the labels, under hdf5_lock; false: failed. */
    bool (*put)(void *user, hid_t file, const uint8_t *left_out);
    /* Writes the name of picture i for messages, such as "image 17: ". */
    void (*name)(void *user, int64_t i, char *out, size_t room);
    /* Logs what was written. orientations: the part of the message about EXIF orientations, ";
     * ...", or empty. */
    void (*report)(void *user, int64_t samples, int64_t left_out, const char *orientations);
} FolderExtra;

/* Result for a sample, as stored in the journal. */
typedef struct FolderSample {
    /* size of the picture in its file, before rotation by its orientation */
    int32_t height, width;
    /* EXIF orientation */
    uint8_t orientation;
    /* a FolderState */
    uint8_t state;
    uint8_t unused[2];
} FolderSample;

/* Results for a block of samples, as stored in the journal. */
typedef struct FolderRecord {
    /* hash of all that follows; a record with another hash is ignored */
    uint64_t check;
    /* block_key of the block; a record with another key is ignored */
    uint64_t key;
    /* sums over the pixels of the good samples, per channel */
    uint64_t sum[3], squares[3];
    /* number of pixels in the sums */
    uint64_t pixels;
    FolderSample sample[FOLDER_BLOCK];
} FolderRecord;
_Static_assert(sizeof(FolderRecord) <= FOLDER_RECORD, "a record is a page of the journal");

/* State of an import on one rank. List of files and offsets are equal on all ranks. */
typedef struct FolderWork {
    const FolderImport *import;
    const ImportRanks *ranks;
    FolderFiles files;
    PartFile part;
    /* offset of the samples in OUT.part */
    int64_t data_offset;
    /* bytes of all samples */
    int64_t data_bytes;
    /* owned: for encoded samples the offset of each from data_offset, count + 1 entries; NULL: the
     * samples are decoded */
    int64_t *offset;
    /* number of blocks of FOLDER_BLOCK samples */
    int64_t blocks;
    /* owned: path OUT.part.journal */
    char *journal;
    /* descriptor for reading and writing; -1: closed */
    int journal_fd;
    /* after journal_reopen: the earlier descriptor, which has the lock; else -1 */
    int journal_lock;
} FolderWork;
/* Returns the number of samples in a block: FOLDER_BLOCK, or less in the last block. */
static inline int64_t block_samples(const FolderWork *work, int64_t block)
{
    int64_t left = work->files.count - block * FOLDER_BLOCK;
    return left < FOLDER_BLOCK ? left : FOLDER_BLOCK;
}
/* Returns the offset of a sample's bytes from data_offset. */
int64_t sample_offset(const FolderWork *work, int64_t i);

/* ---- the journal ---- */
/* Opens the journal. lock: true on rank 0, which creates the journal if necessary and locks it, if
 * the file system has locks. ERR_IO; ERR_USAGE: another import has the lock. */
Status journal_open(FolderWork *work, bool lock);
/* Opens the journal again on rank 0 and keeps the lock. On a network file system only a new open is
 * sure to show the records that other ranks have written. */
Status journal_reopen(FolderWork *work);
/* Removes all records, on disk as well. */
Status journal_clear(FolderWork *work);
void journal_close(FolderWork *work);
/* Returns whether the journal has a valid record of the block; if so, fills record. */
bool journal_read(const FolderWork *work, int64_t block, FolderRecord *record);
/* Writes the record of a block that is done, and sets its key and check. The block's samples must
 * be on disk already. */
Status journal_write(const FolderWork *work, int64_t block, FolderRecord *record);

/* Decodes this rank's blocks that are not in the journal. A broken picture is only recorded.
 * ERR_IO; ERR_STOPPED: a stop was requested. */
Status folder_decode_blocks(FolderWork *work);
/* Decodes file i as folder_decode_blocks does, but writes nothing except *sample. ERR_DATA: it is
 * not a usable picture. ERR_IO: it has changed during the import. */
Status folder_check_picture(const FolderWork *work, int64_t i, FolderSample *sample);
/* Fails with ERR_IO, because a file has changed since the import listed it. */
Status fail_file_changed(const char *path);

#endif
