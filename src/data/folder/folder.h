/* Import of folders of pictures, in parts: finding the files (folder_scan.c, folder_list.c),
 * decoding them into OUT.part (folder_work.c), recording progress (folder_journal.c), and writing
 * the file around the samples (folder_import.c). */
#ifndef WEFT_DATA_FOLDER_H
#define WEFT_DATA_FOLDER_H

#include "../data_private.h"
#include "folder_files.h"

/* state of a sample; open: not imported yet */
typedef enum FolderState { FOLDER_OPEN, FOLDER_GOOD, FOLDER_BROKEN } FolderState;
typedef struct FolderSample {
    int32_t height, width;
    uint8_t orientation, state, unused[2];
} FolderSample;

typedef struct FolderRecord {
    /* hash of all that follows, and block_key; a record that does not match both is ignored */
    uint64_t check, key;
    uint64_t sum[3], squares[3], pixels;
    FolderSample sample[FOLDER_BLOCK];
} FolderRecord;
_Static_assert(sizeof(FolderRecord) <= FOLDER_RECORD, "a record is a page of the journal");

/* state shared by the threads of a rank; file list and offsets are equal on all ranks */
typedef struct FolderWork {
    const FolderImport *import;
    const ImportHost *host;
    FolderFiles files;
    PartFile part;
    /* offset of the samples in OUT.part, and their bytes */
    int64_t data_offset, data_bytes;
    /* owned: encoded samples: offset of each behind data_offset, count + 1 */
    int64_t *offset;
    int64_t blocks;
    /* owned: path OUT.part.journal. Rank 0 opens it twice; the first descriptor holds the lock. */
    char *journal;
    int journal_fd, journal_lock;
} FolderWork;
static inline int64_t block_samples(const FolderWork *work, int64_t block)
{
    int64_t left = work->files.count - block * FOLDER_BLOCK;
    return left < FOLDER_BLOCK ? left : FOLDER_BLOCK;
}
/* Returns the offset of a sample's bytes behind data_offset. */
int64_t sample_offset(const FolderWork *work, int64_t i);

/* ---- the journal ---- */
/* Opens the journal. first: rank 0, which creates it if necessary and locks it; ERR_USAGE: another
 * import has the lock. */
Status journal_open(FolderWork *work, bool first);
/* Opens the journal again on rank 0 and keeps the lock: on a network file system only a new open is
 * sure to show what other ranks have written. */
Status journal_reopen(FolderWork *work);
/* Records, on disk as well, that no block is done. */
Status journal_clear(FolderWork *work);
void journal_close(FolderWork *work);
/* Returns whether the block is done; if so, fills record. */
bool journal_read(const FolderWork *work, int64_t block, FolderRecord *record);
/* Records that a block is done. Its samples must be on disk already. */
Status journal_write(const FolderWork *work, int64_t block, FolderRecord *record);

/* Decodes this rank's blocks that are not in the journal. A broken picture is only recorded.
 * ERR_STOPPED: a stop was requested. */
Status folder_decode_blocks(FolderWork *work);
/* Decodes one file as folder_decode_blocks does. ERR_DATA: it is not a usable picture. */
Status folder_try(const FolderWork *work, int64_t i);

#endif
