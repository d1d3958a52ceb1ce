/* Reads and writes the journal of an import: the file OUT.part.journal, in which each block of
 * samples has a page. The page of a block that is done holds its record. A record is valid if its
 * check matches its content and its key matches the block's files, offset and settings. So an
 * import can be resumed on any number of ranks; it decodes only the blocks without a valid record,
 * for example those with changed files. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

int64_t sample_offset(const FolderWork *work, int64_t i)
{
    int64_t side = work->import->side;
    return work->offset ? work->offset[i] : i * 3 * side * side;
}

/* Returns a hash of everything that determines the bytes and the record of a block. */
static uint64_t block_key(const FolderWork *work, int64_t block)
{
    const FolderImport *import = work->import;
    char versions[256], settings[400];
    image_versions(versions, sizeof versions);
    /* The "1" is the version of the record's format. */
    snprintf(settings, sizeof settings, "1 %s %s%d %d %d %d %lld %lld", versions,
             import->labels ? "whole " : "", import->encoded, import->side, (int)import->filter,
             import->orient, (long long)work->data_offset,
             (long long)sample_offset(work, block * FOLDER_BLOCK));
    uint64_t key = XXH3_64bits(settings, strlen(settings));
    for (int64_t i = 0; i < block_samples(work, block); ++i) {
        const FolderFile *file = &work->files.file[block * FOLDER_BLOCK + i];
        const char *path = files_path(&work->files, block * FOLDER_BLOCK + i);
        key = XXH3_64bits_withSeed(path, strlen(path) + 1, key);
        int64_t facts[2] = {file->bytes, file->modified_ns};
        key = XXH3_64bits_withSeed(facts, sizeof facts, key);
    }
    return key;
}

static uint64_t record_check(const FolderRecord *record)
{
    return XXH3_64bits(&record->key, sizeof *record - sizeof record->check);
}

static Status open_journal(FolderWork *work, bool create)
{
    work->journal_fd =
        create ? file_create(work->journal, O_RDWR) : file_open(work->journal, O_RDWR | O_NOFOLLOW);
    if (work->journal_fd >= 0) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", work->journal, file_error(errno));
}

Status journal_open(FolderWork *work, bool lock)
{
    TRY(open_journal(work, lock));
    if (lock && flock(work->journal_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fail(ERR_USAGE, "%s: another import is writing %s; wait for it, or end it",
                    work->journal, work->import->out);
    return OK;
}

Status journal_reopen(FolderWork *work)
{
    work->journal_lock = work->journal_fd;
    return open_journal(work, false);
}

Status journal_clear(FolderWork *work)
{
    if (ftruncate(work->journal_fd, 0) == 0 && fsync(work->journal_fd) == 0) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", work->journal, strerror(errno));
}

void journal_close(FolderWork *work)
{
    if (work->journal_fd >= 0) close(work->journal_fd);
    if (work->journal_lock >= 0) close(work->journal_lock);
    work->journal_fd = work->journal_lock = -1;
}

bool journal_read(const FolderWork *work, int64_t block, FolderRecord *record)
{
    ssize_t n = pread(work->journal_fd, record, sizeof *record, (off_t)(block * FOLDER_RECORD));
    return n == (ssize_t)sizeof *record && record->check == record_check(record) &&
           record->key == block_key(work, block);
}

Status journal_write(const FolderWork *work, int64_t block, FolderRecord *record)
{
    record->key = block_key(work, block);
    record->check = record_check(record);
    ssize_t n;
    do n = pwrite(work->journal_fd, record, sizeof *record, (off_t)(block * FOLDER_RECORD));
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *record) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", work->journal,
                n < 0 ? strerror(errno) : "the disk is full");
}
