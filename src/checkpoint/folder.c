/* A folder of checkpoints: step-<number>.h5, newest is the largest number. Anything else there (best.h5, .part files of
 * a save that died) is never loaded. */
#include "stored.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Entry {
    long long step;
    char *path; /* owned */
} Entry;
typedef struct Listing {
    int count;
    Entry *entry; /* owned, newest first */
} Listing;

/* The step of "step-00001200.h5" + ending, or -1. */
static long long step_of(const char *name, const char *ending)
{
    if (strncmp(name, "step-", 5) != 0) return -1;
    size_t digits = strspn(name + 5, "0123456789");
    if (digits == 0 || digits > 18 || strcmp(name + 5 + digits, ending) != 0) return -1;
    return strtoll(name + 5, NULL, 10);
}

static int newest_first(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void listing_fini(Listing *listing)
{
    for (int i = 0; i < listing->count; ++i) mem_free(&listing->entry[i].path);
    mem_free(&listing->entry);
}

/* A folder that is not there has no checkpoints. */
static Status listing_init(Listing *listing, const char *dir, const char *ending)
{
    *listing = (Listing){0};
    DIR *stream = opendir(dir);
    if (!stream)
        return errno == ENOENT
                   ? OK
                   : fail(ERR_NOINPUT, "%s: cannot list the checkpoints: %s", dir, strerror(errno));
    for (struct dirent *item; (item = readdir(stream));) {
        long long step = step_of(item->d_name, ending);
        if (step < 0) continue;
        listing->entry =
            mem_resize(listing->entry, (size_t)(listing->count + 1) * sizeof *listing->entry);
        listing->entry[listing->count++] = (Entry){step, mem_format("%s/%s", dir, item->d_name)};
    }
    closedir(stream);
    if (listing->count > 0)
        qsort(listing->entry, (size_t)listing->count, sizeof *listing->entry, newest_first);
    return OK;
}

static Status verify(const char *path)
{
    StoredFile file;
    CheckpointMeta meta = {0};
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_meta(&file, &meta);
    if (status == OK) status = stored_verify(&file, NULL);
    checkpoint_meta_fini(&meta);
    stored_close(&file);
    return status;
}

Status checkpoint_newest(const char *dir, char **path)
{
    Listing listing;
    *path = NULL;
    TRY(listing_init(&listing, dir, ".h5"));
    Status status = OK;
    for (int i = 0; i < listing.count && !*path; ++i) {
        status = verify(listing.entry[i].path);
        if (status == OK)
            *path = mem_text(listing.entry[i].path);
        else if (status == ERR_DATA)
            log_warn("%s; passed over", fail_message());
        else
            break;
    }
    listing_fini(&listing);
    return status == ERR_DATA ? OK : status;
}

static Status remove_from(const char *dir, const char *ending, int64_t keep)
{
    Listing listing;
    Status status = listing_init(&listing, dir, ending);
    for (int64_t i = keep; i < listing.count && status == OK; ++i)
        if (unlink(listing.entry[i].path) != 0 && errno != ENOENT)
            status = fail(ERR_IO, "%s: cannot remove the old checkpoint: %s", listing.entry[i].path,
                          strerror(errno));
    listing_fini(&listing);
    return status;
}

Status checkpoint_prune(const char *dir, int64_t keep)
{
    if (keep <= 0) return OK;
    TRY(remove_from(dir, ".h5.part", 0));
    return remove_from(dir, ".h5", keep);
}
