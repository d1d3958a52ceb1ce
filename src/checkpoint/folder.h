/* The files in a folder of checkpoints. */
#ifndef WEFT_CHECKPOINT_FOLDER_H
#define WEFT_CHECKPOINT_FOLDER_H

#include "checkpoint.h"

typedef struct FolderEntry {
    long long step;
    /* owned */
    char *path;
} FolderEntry;
typedef struct FolderList {
    /* number of step-<number>.h5 */
    int count;
    /* owned: step-<number>.h5, newest first */
    FolderEntry *entry;
    /* number of .part files, which unfinished saves left */
    int part_count;
    /* owned, including the paths; in no order */
    char **part;
    /* owned: path of best.h5, or NULL */
    char *best;
} FolderList;

/* Lists a folder; a folder that does not exist has no checkpoints. ERR_IO if it cannot be listed
 * completely. Release with folder_list_fini in every case. */
Status folder_list_init(FolderList *list, const char *dir);
void folder_list_fini(FolderList *list);
/* True for a FIFO, a folder or a device: whatever its name is, it is no checkpoint, and a run that
 * resumes skips it like a damaged file. */
bool folder_entry_special(const char *path);

#endif
