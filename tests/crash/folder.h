/* A folder as a process sees it, and as a disk has it after a crash: what was synced, and what was
 * not yet, in order. */
#ifndef WEFT_CRASH_FOLDER_H
#define WEFT_CRASH_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Bytes {
    char *at;
    size_t count;
} Bytes;

/* A change of a file's bytes. size: WRITE_NO_SIZE, or the file's length from then on. */
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

/* A change of a name: it means this file from then on, or none (NULL). */
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

/* Ends the program. */
void quit(const char *what, const char *why);
void *grow(void *old, size_t bytes);
char *copy_text(const char *text);

/* New bytes are zeros. */
void resize(Bytes *bytes, size_t count);
/* Its first `part` bytes. */
void apply(Bytes *to, const Write *w, size_t part);
Inode *inode_new(void);
void inode_write(Inode *inode, Write w);
void inode_sync(Inode *inode);
void name_set(Names *names, const char *name, Inode *inode);
Inode *name_get(const Names *names, const char *name);
void folder_name(Folder *folder, const char *name, Inode *inode);
/* The names in one folder of the run's: "" or "checkpoints/". */
void folder_sync(Folder *folder, const char *prefix);
/* What was there before is on the disk. */
void load(Folder *folder, const char *path, const char *prefix);

#endif
