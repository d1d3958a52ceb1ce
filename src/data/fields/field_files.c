/* Keeps two tables of open files: descriptors for pread, and files of HDF5 with their variables.
 * When a table is full, the file whose last use is longest ago is closed; a file that a thread is
 * reading stays open. Descriptors are opened outside of the lock, since that may take
 * milliseconds. */
#include "field_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum {
    /* largest number of open descriptors, unless more threads are reading */
    OPEN_MOST = 128,
    /* largest number of files that HDF5 has open */
    HDF5_MOST = 64,
    /* bytes of HDF5's caches of chunks, of all variables of all open files together; CACHE_LEAST
     * may make them larger */
    CACHES_BYTES = 1 << 30,
    /* smallest and largest number of bytes of the cache of one variable of one file */
    CACHE_LEAST = 1 << 20,
    CACHE_MOST = 32 << 20,
    /* hash slots of such a cache, a prime number as HDF5 recommends */
    CACHE_SLOTS = 1009
};

typedef struct OpenFile {
    /* number of the file in the set; -1: the entry is free */
    int file;
    /* its descriptor; -1: the file is being opened, or the entry is free */
    int fd;
    /* true: a thread is opening the file */
    bool opening;
    /* number of threads that are reading the file */
    int holds;
    /* FieldFiles.uses at the last use of the file */
    int64_t used;
} OpenFile;

typedef struct Hdf5File {
    /* number of the file in the set; -1: the entry is free */
    int file;
    hid_t id;
    /* open variables; -1: not open */
    hid_t dataset[FIELD_VARIABLES];
    /* FieldFiles.hdf5_uses at the last use of the file */
    int64_t used;
} Hdf5File;

struct FieldFiles {
    const FieldSet *f;
    /* protects `open`, `room` and `uses` */
    pthread_mutex_t mutex;
    /* signalled when a file has been opened, or could not be */
    pthread_cond_t opened;
    /* owned: table of descriptors, [room] */
    OpenFile *open;
    int room;
    /* number of uses of descriptors so far */
    int64_t uses;
    /* owned: table of files of HDF5, [hdf5_room]; protected by hdf5_lock */
    Hdf5File *hdf5;
    int hdf5_room;
    /* number of uses of files of HDF5 so far; protected by hdf5_lock */
    int64_t hdf5_uses;
};

FieldFiles *field_files_new(const FieldSet *f)
{
    FieldFiles *files = mem_new(sizeof *files);
    files->f = f;
    pthread_mutex_init(&files->mutex, NULL);
    pthread_cond_init(&files->opened, NULL);
    files->hdf5_room = f->files < HDF5_MOST ? f->files : HDF5_MOST;
    files->hdf5 = mem_new((size_t)files->hdf5_room * sizeof *files->hdf5);
    for (int i = 0; i < files->hdf5_room; ++i) files->hdf5[i].file = -1;
    return files;
}

/* ---- descriptors ---- */

/* Returns the index in `open` of a file that is open or being opened; -1: the file is not open. */
static int find(const FieldFiles *files, int file)
{
    for (int i = 0; i < files->room; ++i)
        if (files->open[i].file == file) return i;
    return -1;
}

/* Returns the index in `open` of an entry for a new file: a new entry or, if the table is full, the
 * entry of the file whose last use is longest ago. *close_fd: descriptor of this file, which the
 * caller closes; -1: none. */
static int free_entry(FieldFiles *files, int *close_fd)
{
    int best = -1;
    *close_fd = -1;
    for (int i = 0; i < files->room && files->room >= OPEN_MOST; ++i) {
        const OpenFile *o = &files->open[i];
        if (o->holds == 0 && (best < 0 || o->used < files->open[best].used)) best = i;
    }
    if (best >= 0) {
        *close_fd = files->open[best].fd;
        return best;
    }
    files->open = mem_resize(files->open, (size_t)(files->room + 1) * sizeof *files->open);
    return files->room++;
}

/* Opens the file of entry `hold`, for which other threads may wait. The caller holds the mutex; it
 * is released while the file is opened. */
static Status open_entry(FieldFiles *files, int hold, const char *path, int *fd)
{
    pthread_mutex_unlock(&files->mutex);
    *fd = file_open(path, O_RDONLY);
    const int error = errno;
    if (*fd >= 0) posix_fadvise(*fd, 0, 0, POSIX_FADV_RANDOM);
    pthread_mutex_lock(&files->mutex);
    OpenFile *o = &files->open[hold];
    o->fd = *fd;
    o->opening = false;
    if (*fd < 0) *o = (OpenFile){.file = -1, .fd = -1};
    pthread_cond_broadcast(&files->opened);
    if (*fd >= 0) return OK;
    return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, file_error(error));
}

Status field_files_hold(FieldFiles *files, int file, int *fd, int *hold)
{
    int unused = -1;
    Status st = OK;
    pthread_mutex_lock(&files->mutex);
    while ((*hold = find(files, file)) >= 0 && files->open[*hold].opening)
        pthread_cond_wait(&files->opened, &files->mutex);
    if (*hold < 0) {
        *hold = free_entry(files, &unused);
        files->open[*hold] = (OpenFile){.file = file, .fd = -1, .opening = true, .holds = 1};
        st = open_entry(files, *hold, field_path(files->f, file), fd);
    } else {
        *fd = files->open[*hold].fd;
        ++files->open[*hold].holds;
    }
    files->open[*hold].used = ++files->uses;
    pthread_mutex_unlock(&files->mutex);
    if (unused >= 0) close(unused);
    return st;
}

void field_files_release(FieldFiles *files, int hold)
{
    pthread_mutex_lock(&files->mutex);
    --files->open[hold].holds;
    pthread_mutex_unlock(&files->mutex);
}

/* ---- files of HDF5 ---- */

static void hdf5_close(const FieldSet *f, Hdf5File *h)
{
    if (h->file < 0) return;
    for (int i = 0; i < f->variables; ++i)
        if (h->dataset[i] >= 0) H5Dclose(h->dataset[i]);
    H5Fclose(h->id);
    h->file = -1;
}

static Status hdf5_find(FieldFiles *files, int file, Hdf5File **found)
{
    Hdf5File *best = &files->hdf5[0];
    for (int i = 0; i < files->hdf5_room; ++i) {
        Hdf5File *h = *found = &files->hdf5[i];
        h->used = h->file < 0 ? 0 : h->used;
        if (h->file == file) return OK;
        if (h->used < best->used) best = h;
    }
    hdf5_close(files->f, best);
    *found = best;
    TRY(h5_open(&best->id, field_path(files->f, file)));
    best->file = file;
    for (int i = 0; i < files->f->variables; ++i) best->dataset[i] = -1;
    return OK;
}

/* Returns the size in bytes of the cache of one variable of one file. */
static size_t cache_bytes(const FieldFiles *files)
{
    const int bytes = CACHES_BYTES / (files->hdf5_room * files->f->variables);
    return (size_t)(bytes < CACHE_LEAST ? CACHE_LEAST : bytes > CACHE_MOST ? CACHE_MOST : bytes);
}

Status field_files_dataset(FieldFiles *files, int file, int variable, hid_t *dataset)
{
    const char *name = files->f->variable[variable].name;
    Hdf5File *h;
    bool is_external;
    TRY(hdf5_find(files, file, &h));
    h->used = ++files->hdf5_uses;
    *dataset = h->dataset[variable];
    if (*dataset >= 0) return OK;
    hid_t access = hdf5_access_without_links(&is_external);
    H5Pset_chunk_cache(access, CACHE_SLOTS, cache_bytes(files), 0.75);
    *dataset = h->dataset[variable] = H5Dopen2(h->id, name, access);
    H5Pclose(access);
    if (*dataset >= 0) return OK;
    return fail(ERR_DATA, "%s: %s cannot be opened: %s", field_path(files->f, file), name,
                h5_error_text());
}

void field_files_free(FieldFiles **files)
{
    FieldFiles *all = *files;
    if (!all) return;
    hdf5_lock();
    for (int i = 0; i < all->hdf5_room; ++i) hdf5_close(all->f, &all->hdf5[i]);
    hdf5_unlock();
    for (int i = 0; i < all->room; ++i)
        if (all->open[i].fd >= 0) close(all->open[i].fd);
    pthread_cond_destroy(&all->opened);
    pthread_mutex_destroy(&all->mutex);
    mem_free(&all->hdf5);
    mem_free(&all->open);
    mem_free(files);
}
