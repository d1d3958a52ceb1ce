/* A model of a disk: writes and changes of names that wait for a sync, next to the content that has
 * been synced. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void quit(const char *what, const char *why)
{
    fprintf(stderr, "states: %s: %s\n", what, why);
    exit(2);
}

void *grow(void *old, size_t bytes)
{
    void *new = realloc(old, bytes ? bytes : 1);
    if (!new) quit("memory", "none");
    return new;
}

char *copy_text(const char *text)
{
    size_t length = strlen(text) + 1;
    return memcpy(grow(NULL, length), text, length);
}

void resize(Bytes *bytes, size_t count)
{
    bytes->at = grow(bytes->at, count);
    if (count > bytes->count) memset(bytes->at + bytes->count, 0, count - bytes->count);
    bytes->count = count;
}

void apply(Bytes *to, const Write *w, size_t part)
{
    if (w->size != WRITE_NO_SIZE) resize(to, w->size);
    if (part == 0) return;
    if (w->offset + part > to->count) resize(to, w->offset + part);
    memcpy(to->at + w->offset, w->data.at, part);
}

Inode *inode_new(void)
{
    Inode *inode = grow(NULL, sizeof *inode);
    return memset(inode, 0, sizeof *inode);
}

void inode_write(Inode *inode, Write w)
{
    apply(&inode->now, &w, w.data.count);
    inode->pending =
        grow(inode->pending, (size_t)(inode->pending_count + 1) * sizeof *inode->pending);
    inode->pending[inode->pending_count++] = w;
}

void inode_sync(Inode *inode)
{
    resize(&inode->synced, inode->now.count);
    memcpy(inode->synced.at, inode->now.at, inode->now.count);
    inode->pending_count = 0;
}

void name_set(Names *names, const char *name, Inode *inode)
{
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->of[i].name, name) == 0) {
            names->of[i].inode = inode;
            return;
        }
    names->of = grow(names->of, (size_t)(names->count + 1) * sizeof *names->of);
    names->of[names->count++] = (Naming){copy_text(name), inode};
}

Inode *name_get(const Names *names, const char *name)
{
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->of[i].name, name) == 0) return names->of[i].inode;
    return NULL;
}

void folder_name(Folder *folder, const char *name, Inode *inode)
{
    name_set(&folder->now, name, inode);
    folder->pending =
        grow(folder->pending, (size_t)(folder->pending_count + 1) * sizeof *folder->pending);
    folder->pending[folder->pending_count++] = (Naming){copy_text(name), inode};
}

void folder_sync(Folder *folder, const char *prefix)
{
    int left = 0;
    for (int i = 0; i < folder->pending_count; ++i) {
        const char *slash = strrchr(folder->pending[i].name, '/');
        size_t length = slash ? (size_t)(slash - folder->pending[i].name) + 1 : 0;
        bool here = length == strlen(prefix) && !strncmp(folder->pending[i].name, prefix, length);
        if (here)
            name_set(&folder->synced, folder->pending[i].name, folder->pending[i].inode);
        else
            folder->pending[left++] = folder->pending[i];
    }
    folder->pending_count = left;
}

static Bytes read_file(const char *path)
{
    Bytes bytes = {0};
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) quit(path, strerror(errno));
    resize(&bytes, (size_t)info.st_size);
    if (fread(bytes.at, 1, bytes.count, file) != bytes.count) quit(path, "is short");
    fclose(file);
    return bytes;
}

void load(Folder *folder, const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    if (!dir) quit(path, strerror(errno));
    for (struct dirent *d; (d = readdir(dir));) {
        char full[4096], name[512];
        struct stat info;
        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..")) continue;
        snprintf(full, sizeof full, "%s/%s", path, d->d_name);
        snprintf(name, sizeof name, "%s%s", prefix, d->d_name);
        if (stat(full, &info) != 0) quit(full, strerror(errno));
        if (S_ISDIR(info.st_mode)) {
            strcat(name, "/");
            load(folder, full, name);
            continue;
        }
        Inode *inode = inode_new();
        inode->now = read_file(full);
        inode_sync(inode);
        name_set(&folder->now, name, inode);
        name_set(&folder->synced, name, inode);
    }
    closedir(dir);
}
