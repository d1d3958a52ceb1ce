/* A file that is called NAME.part until it is complete and synced, and then gets its final name. */
#ifndef WEFT_CHECKPOINT_NEW_FILE_H
#define WEFT_CHECKPOINT_NEW_FILE_H

#include "base.h"

typedef struct NewFile {
    /* path of the .part file; owned */
    char *part;
    /* final path; borrowed until new_file_end */
    const char *path;
    /* descriptor of the .part file; -1: it is not open */
    int fd;
    /* number of bytes written so far */
    int64_t bytes;
} NewFile;
/* Creates path.part, and replaces an existing file of that name. ERR_IO: it cannot be written.
 * Release with new_file_end in every case. */
Status new_file_begin(NewFile *file, const char *path);
/* Appends bytes. ERR_IO. */
Status new_file_put(NewFile *file, const void *from, size_t bytes);
/* If st is OK, syncs the file and renames it. If st is an error, or if syncing or renaming fails,
 * removes the .part file. Returns st, or ERR_IO; if only syncing the folder fails, the file already
 * has its final name. */
Status new_file_end(NewFile *file, Status st);

#endif
