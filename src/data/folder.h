/* Importing pictures from folders, in parts: which files there are (folder_scan.c, folder_list.c),
 * decoding them into OUT.part (folder_work.c), what is done of it (folder_journal.c), and the file
 * around it (folder_import.c). */
#ifndef WEFT_DATA_FOLDER_H
#define WEFT_DATA_FOLDER_H

#include "data_private.h"
#include "folder_files.h"

/* What became of a sample. */
typedef enum FolderState { FOLDER_OPEN, FOLDER_GOOD, FOLDER_BROKEN } FolderState;
typedef struct FolderSample {
    int32_t height, width;
    uint8_t orientation, state, unused[2];
} FolderSample;

typedef struct FolderRecord {
    /* of all that follows; a record that was never written, or of another import, is of no use */
    uint64_t check, key;
    uint64_t sum[3], squares[3], pixels;
    FolderSample sample[FOLDER_BLOCK];
} FolderRecord;
_Static_assert(sizeof(FolderRecord) <= FOLDER_RECORD, "a record is a page of the journal");

/* Everything that ranks and threads of an import share. */
typedef struct FolderWork {
    const FolderImport *import;
    const ImportHost *host;
    FolderFiles files;
    PartFile part;
    /* where samples lie in OUT.part, and how many bytes they take */
    int64_t data_offset, data_bytes;
    /* owned: of encoded samples, count + 1 */
    int64_t *offset;
    int64_t blocks;
    /* owned: OUT.part.journal; rank 0 opens it twice, and the first holds its lock */
    char *journal;
    int journal_fd, journal_lock;
} FolderWork;
static inline int64_t block_samples(const FolderWork *work, int64_t block)
{
    int64_t left = work->files.count - block * FOLDER_BLOCK;
    return left < FOLDER_BLOCK ? left : FOLDER_BLOCK;
}
/* Where a sample's bytes begin, behind data_offset. */
int64_t sample_offset(const FolderWork *work, int64_t i);

/* ---- the journal ---- */
/* Rank 0 makes it where it is not there, and takes it for itself: ERR_USAGE where another import
 * has it. The others open it. */
Status journal_open(FolderWork *work, bool first);
/* On rank 0, whose lock stays: of a network's file system only a file that is opened now shows what
 * others have written. */
Status journal_reopen(FolderWork *work);
/* No block is done, on disk too. */
Status journal_clear(FolderWork *work);
void journal_close(FolderWork *work);
/* Is this block done? Then record is filled. */
bool journal_read(const FolderWork *work, int64_t block, FolderRecord *record);
/* Its samples must be on disk. */
Status journal_write(const FolderWork *work, int64_t block, FolderRecord *record);

/* Decodes what the journal does not have of this rank's blocks. ERR_STOPPED where it was asked to.
 * With a reason in fail_message a picture is only broken. */
Status folder_decode_blocks(FolderWork *work);
/* One file, as folder_decode_blocks does it: ERR_DATA where it is no picture that can be used. */
Status folder_try(const FolderWork *work, int64_t i);

#endif
