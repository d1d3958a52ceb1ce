/* Lists the files in a folder of checkpoints. */
#ifndef WEFT_CHECKPOINT_FOLDER_H
#define WEFT_CHECKPOINT_FOLDER_H

#include "checkpoint.h"

typedef struct FolderEntry {
    /* number in the file's name */
    long long step;
    /* path of the file; owned */
    char *path;
} FolderEntry;
typedef struct FolderList {
    /* number of files step-<number>.h5 */
    int count;
    /* files step-<number>.h5, the newest first, [count]; owned */
    FolderEntry *entry;
    /* number of .part files, which unfinished saves left */
    int part_count;
    /* paths of the .part files, in no order, [part_count]; owned, including the paths */
    char **part;
    /* path of best.h5, or NULL; owned */
    char *best;
} FolderList;

/* Lists a folder. A folder that does not exist has no checkpoints. ERR_IO: it cannot be listed
 * completely. Release with folder_list_fini in every case. */
Status folder_list_init(FolderList *list, const char *dir);
void folder_list_fini(FolderList *list);
/* Returns true if `path` is a FIFO, a folder or a device. Whatever its name is, it is no
 * checkpoint, and a run that resumes skips it like a damaged file. */
bool folder_entry_special(const char *path);

#endif
