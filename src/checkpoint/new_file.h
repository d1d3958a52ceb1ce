/* A file that gets its name when it is whole and synced: NAME.part until then. */
#ifndef WEFT_CHECKPOINT_NEW_FILE_H
#define WEFT_CHECKPOINT_NEW_FILE_H

#include "base.h"

typedef struct NewFile {
    /* owned */
    char *part;
    /* borrowed */
    const char *path;
    int fd;
    int64_t bytes;
} NewFile;
/* ERR_IO. Release with new_file_end in every case. */
Status new_file_begin(NewFile *file, const char *path);
Status new_file_put(NewFile *file, const void *from, size_t bytes);
/* st OK: syncs it and gives it its name. Else, and where that fails, nothing is left. Returns st,
 * or ERR_IO. */
Status new_file_end(NewFile *file, Status st);

#endif
