/* A folder as a process sees it, and as a disk may hold it after a crash. In each struct, `now` is
 * what the process sees, `synced` is what is on the disk in any case, and `pending` are the changes
 * since the last sync, in their order, which a crash may lose. */
#ifndef WEFT_CRASH_FOLDER_H
#define WEFT_CRASH_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Bytes {
    char *at;
    size_t count;
} Bytes;

/* A change of a file's content. size: new length of the file, or WRITE_NO_SIZE. */
#define WRITE_NO_SIZE ((size_t)-1)
typedef struct Write {
    Bytes data;
    size_t offset, size;
} Write;

typedef struct Inode {
    Bytes now, synced;
    Write *pending;
    int pending_count;
} Inode;

/* A change of a name. From then on the name refers to `inode`; NULL: the name is removed. */
typedef struct Naming {
    char *name;
    Inode *inode;
} Naming;

typedef struct Names {
    Naming *of;
    int count;
} Names;

typedef struct Folder {
    Names now, synced;
    Naming *pending;
    int pending_count;
} Folder;

/* Prints a message and ends the program. */
void quit(const char *what, const char *why);
void *grow(void *old, size_t bytes);
char *copy_text(const char *text);

/* Resizes a buffer; new bytes are zero. */
void resize(Bytes *bytes, size_t count);
/* Applies the first `part` bytes of a write. */
void apply(Bytes *to, const Write *w, size_t part);
Inode *inode_new(void);
void inode_write(Inode *inode, Write w);
void inode_sync(Inode *inode);
void name_set(Names *names, const char *name, Inode *inode);
Inode *name_get(const Names *names, const char *name);
void folder_name(Folder *folder, const char *name, Inode *inode);
/* Syncs the names in one folder. prefix: "" for the run's own folder, or "checkpoints/". */
void folder_sync(Folder *folder, const char *prefix);
/* Reads a real folder, whose content counts as synced. */
void load(Folder *folder, const char *path, const char *prefix);

#endif
