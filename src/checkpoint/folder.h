/* What lies in a folder of checkpoints. */
#ifndef WEFT_CHECKPOINT_FOLDER_H
#define WEFT_CHECKPOINT_FOLDER_H

#include "checkpoint.h"

typedef struct FolderEntry {
    long long step;
    /* owned */
    char *path;
} FolderEntry;
typedef struct FolderList {
    /* step-<number>.h5, newest first */
    int count;
    /* owned */
    FolderEntry *entry;
    /* what unfinished saves left; in no order */
    int part_count;
    /* owned, each and all */
    char **part;
    /* owned: best.h5; NULL: there is none */
    char *best;
} FolderList;

/* A folder that is not there has no checkpoints. ERR_IO where it cannot be listed to its end.
 * Release with folder_list_fini in every case. */
Status folder_list_init(FolderList *list, const char *dir);
void folder_list_fini(FolderList *list);

#endif
