/* Ownership of a folder. Its lease is the file owner-N with the largest N, created with O_EXCL,
 * which is atomic on a local disk, on NFS from version 3 and on Lustre: of several processes that
 * want to replace one owner, only one can create owner-(N+1). The owner writes its file again at
 * every beat, in place; it has been replaced if it finds the file removed or a larger N.
 *
 *   owner-6 (dead)   A, B: "is it still alive?"   A makes owner-7, removes owner-6
 *                                                 B cannot make it, and examines owner-7
 *
 * Clocks of two hosts are never compared: a waiting process only observes whether the text
 * changes. */
#include "lease_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BEATS = 4, BLIND_S = 60 };

struct Lease {
    /* owned */
    char *folder, *path;
    int64_t number, beat;
    /* identity of the folder; it is kept open, so that its inode is not reused */
    int opened;
    dev_t device;
    ino_t inode;
    LeaseFacts me;
    bool follows_same_run, complained, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

/* ---- the files ---- */

static char *path_of(const char *folder, int64_t number)
{
    return mem_format("%s/owner-%" PRId64, folder, number);
}

/* Returns the number in a lease's name; 0: not such a name. Numbers are limited, so that a claim
 * can always count on. */
static int64_t number_of(const char *name)
{
    int64_t number = strncmp(name, "owner-", 6) == 0 ? strtoll(name + 6, NULL, 10) : 0;
    char same[32];
    snprintf(same, sizeof same, "owner-%" PRId64, number);
    return number <= INT64_MAX / 2 && !strcmp(same, name) ? number : 0;
}

/* Finds the largest number; 0: there is no lease. Returns 0 or errno. */
static int find_newest(const char *folder, int64_t *number)
{
    DIR *stream = opendir(folder);
    *number = 0;
    errno = stream ? 0 : errno;
    for (const struct dirent *item; stream && (errno = 0, item = readdir(stream));) {
        int64_t n = number_of(item->d_name);
        if (n > *number) *number = n;
    }
    int error = errno;
    if (stream) closedir(stream);
    return error;
}

static Status newest(const char *folder, int64_t *number)
{
    int error = find_newest(folder, number);
    return error ? fail(ERR_IO, "%s: cannot be listed: %s", folder, strerror(error)) : OK;
}

/* Reads a lease. It is opened anew each time, which makes NFS query its server. Returns 0, or
 * errno: ENOENT where the file was removed. An empty text belongs to a lease that is being created.
 * A symbolic link is refused, because no owner makes one. */
static int read_text(const char *folder, int64_t number, char *text)
{
    char *path = path_of(folder, number);
    int file = file_open(path, O_RDONLY | O_NOFOLLOW);
    int error = file < 0 ? errno : 0;
    ssize_t got = error ? 0 : pread(file, text, LEASE_TEXT - 1, 0);
    if (got < 0) error = errno;
    if (file >= 0) close(file);
    mem_free(&path);
    text[got > 0 ? got : 0] = 0;
    return error == ESTALE ? ENOENT : error;
}

static Status unreadable(const char *folder, int64_t number, int error)
{
    return fail(ERR_IO,
                "%s/owner-%" PRId64 ": cannot be read: %s; without it nobody can say whether "
                "another run is using this folder",
                folder, number, file_error(error));
}

static bool is_of_other(const Lease *l, const char *text)
{
    LeaseFacts owner;
    return lease_facts_read(&owner, text) && strcmp(owner.id, l->me.id) != 0;
}

/* Returns 0, or errno; ESTALE: the file is another owner's. */
static int write_text(Lease *l, int flags, bool ended)
{
    char text[LEASE_TEXT], found[LEASE_TEXT];
    bool creates = flags & O_CREAT;
    l->me.beat = ++l->beat;
    l->me.ended = ended;
    lease_facts_write(&l->me, text);
    int file =
        creates ? file_create(l->path, O_WRONLY | flags) : file_open(l->path, O_RDWR | O_NOFOLLOW);
    if (file < 0) return errno;
    ssize_t got = creates ? 0 : pread(file, found, sizeof found - 1, 0);
    found[got > 0 ? got : 0] = 0;
    int error = is_of_other(l, found) ? ESTALE : 0;
    if (!error && pwrite(file, text, sizeof text, 0) != (ssize_t)sizeof text) error = errno;
    if (close(file) != 0 && !error) error = errno;
    return error;
}

static void remove_number(const char *folder, int64_t number)
{
    char *path = path_of(folder, number);
    unlink(path);
    mem_free(&path);
}

/* ---- checking the lease ---- */

/* Returns whether the folder's path leads to another folder than the one that was taken, or to
 * none. */
static bool folder_moved(const Lease *l)
{
    struct stat st;
    if (stat(l->folder, &st) != 0) return errno == ENOENT || errno == ENOTDIR;
    return st.st_ino != l->inode || st.st_dev != l->device;
}

/* A file system that does not answer is no evidence of another owner. */
bool lease_holds(const Lease *l)
{
    char text[LEASE_TEXT];
    int64_t number;
    if (!l) return true;
    if (folder_moved(l)) return false;
    int error = read_text(l->folder, l->number, text);
    if (error == ENOENT || (!error && is_of_other(l, text))) return false;
    return find_newest(l->folder, &number) != 0 || number <= l->number;
}

static _Noreturn void die_taken(const Lease *l)
{
    if (folder_moved(l))
        die_as(ERR_IO,
               "%s: the run's folder has been renamed, replaced or removed: the run ends here and "
               "writes nothing more; put it back, and start the same command again to continue",
               l->folder);
    char text[LEASE_TEXT] = "", owner_text[LEASE_OWNER_TEXT] = "somebody";
    int64_t number = 0;
    LeaseFacts other;
    if (find_newest(l->folder, &number) == 0 && read_text(l->folder, number, text) == 0 &&
        is_of_other(l, text) && lease_facts_read(&other, text))
        lease_facts_say(&other, owner_text);
    die_as(ERR_CONFIG,
           "%s: this run no longer owns the folder: %s was taken over by %s, or removed; it ends "
           "here and writes nothing more",
           l->folder, l->path, owner_text);
}

void lease_hold(const Lease *l)
{
    if (!lease_holds(l)) die_taken(l);
}

/* Gives a sign of life. Failing to write it (a full disk) is not fatal: a new owner is noticed
 * anyway. */
static void beat(Lease *l)
{
    lease_hold(l);
    int error = write_text(l, 0, false);
    if (error == ENOENT || error == ESTALE) die_taken(l);
    if (error && !l->complained)
        log_warn("%s: cannot be written: %s; a start on another host may take this folder over",
                 l->path, strerror(error));
    l->complained = error != 0;
}

static void *beat_run(void *user)
{
    Lease *l = user;
    pthread_mutex_lock(&l->lock);
    while (!l->stop)
        if (!cond_wait_for(&l->wake, &l->lock, l->me.beat_s) && !l->stop) beat(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static Status begin_thread(Lease *l)
{
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->wake);
    int error = thread_begin(&l->thread, beat_run, l);
    return error ? fail(ERR_MEMORY, "a thread cannot be started: %s", strerror(error)) : OK;
}

/* ---- taking ---- */

static Status rest(double seconds)
{
    clock_rest(seconds);
    return stop_wanted() ? fail(ERR_STOPPED, "stopped before the first step") : OK;
}

/* Watches an owner for signs of life. Only the time between two successful reads counts, and at
 * most one gap of it where a read took long (a server that was down for both hosts). Fails where no
 * read succeeds for a minute. */
static Status watch(const char *folder, int64_t number, const char *first, const LeaseFacts *owner,
                    LeaseState *state)
{
    char text[LEASE_TEXT];
    double need_s = BEATS * owner->beat_s, gap_s = owner->beat_s / 5, seen_s = 0, blind_s = 0;
    if (gap_s > 1) gap_s = 1;
    char owner_text[LEASE_OWNER_TEXT];
    lease_facts_say(owner, owner_text);
    log_info("%s: its last owner, %s, cannot be queried from this host: waiting for a sign of life "
             "for %.0f s",
             folder, owner_text, need_s);
    *state = LEASE_OWNER_ENDED;
    while (seen_s < need_s) {
        double begin_s = clock_s();
        TRY(rest(gap_s));
        int error = read_text(folder, number, text);
        if (error == ENOENT) {
            *state = LEASE_MOVED;
            return OK;
        }
        if (error) {
            blind_s += clock_s() - begin_s;
            if (blind_s > BLIND_S) return unreadable(folder, number, error);
            continue;
        }
        blind_s = 0;
        if (strcmp(text, first) != 0) {
            LeaseFacts now;
            *state = lease_facts_read(&now, text) && now.ended ? LEASE_OWNER_ENDED : LEASE_ALIVE;
            return OK;
        }
        double took_s = clock_s() - begin_s;
        seen_s += took_s < 2 * gap_s ? took_s : gap_s;
    }
    return OK;
}

/* Determines the state of owner-N; ERR_CONFIG where it is alive. */
static Status judge(Lease *l, int64_t number, LeaseState *state)
{
    char text[LEASE_TEXT], owner_text[LEASE_OWNER_TEXT];
    LeaseFacts owner;
    *state = LEASE_MOVED;
    int error = read_text(l->folder, number, text);
    if (error == ENOENT) return OK;
    if (error) return unreadable(l->folder, number, error);
    if (!lease_facts_read(&owner, text)) owner = (LeaseFacts){.beat_s = l->me.beat_s};
    *state = lease_facts_judge(&owner, &l->me);
    l->follows_same_run = lease_facts_same_run(&owner, &l->me);
    lease_facts_say(&owner, owner_text);
    if (*state == LEASE_UNKNOWN) {
        TRY(watch(l->folder, number, text, &owner, state));
        if (*state == LEASE_OWNER_ENDED)
            log_warn("%s: taken over from %s, which gives no sign of life", l->folder, owner_text);
    }
    if (*state != LEASE_ALIVE) return OK;
    return fail(
        ERR_CONFIG,
        "%s: another run is using this folder (%s): wait for it, or choose another run.name",
        l->folder, owner_text);
}

/* Creates owner-number. *mine: this process created it, and there is no larger number. */
static Status claim(Lease *l, int64_t number, bool *mine)
{
    int64_t largest;
    *mine = false;
    mem_free(&l->path);
    l->number = number;
    l->path = path_of(l->folder, number);
    int error = write_text(l, O_CREAT | O_EXCL, false);
    if (error == EEXIST) return OK;
    if (error) {
        if (error == ENOSPC || error == EDQUOT) unlink(l->path);
        return fail(ERR_IO, "%s: cannot be written: %s", l->path, strerror(error));
    }
    /* the listing before may have been stale */
    TRY(newest(l->folder, &largest));
    *mine = largest == number;
    if (!*mine) unlink(l->path);
    return OK;
}

static Status take(Lease *l)
{
    int64_t number, least = 0;
    for (;;) {
        LeaseState state = LEASE_OWNER_ENDED;
        bool mine;
        TRY(newest(l->folder, &number));
        if (number < least) number = least;
        if (number > 0) TRY(judge(l, number, &state));
        least = 0;
        if (state == LEASE_MOVED) {
            TRY(rest(0.05));
            continue;
        }
        TRY(claim(l, number + 1, &mine));
        if (mine) {
            if (number > 0) remove_number(l->folder, number);
            return OK;
        }
        /* another process was faster, even if this host's listing does not show its file yet */
        least = number + 1;
    }
}

static Status open_folder(Lease *l)
{
    struct stat st;
    l->opened = open(l->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->opened < 0 || fstat(l->opened, &st) != 0)
        return fail(ERR_IO, "%s: cannot be listed: %s", l->folder, strerror(errno));
    l->device = st.st_dev, l->inode = st.st_ino;
    return OK;
}

static void lease_free(Lease **lease)
{
    Lease *l = *lease;
    if (l->opened >= 0) close(l->opened);
    mem_free(&l->folder);
    mem_free(&l->path);
    mem_free(lease);
}

Status lease_take(Lease **lease, const char *folder, double beat_s)
{
    Lease *l = *lease = mem_new(sizeof *l);
    l->folder = mem_text(folder);
    lease_facts_mine(&l->me, beat_s);
    Status status = open_folder(l);
    if (status == OK) status = take(l);
    if (status == OK) status = begin_thread(l);
    if (status != OK) lease_free(lease);
    return status;
}

bool lease_follows_same_run(const Lease *l)
{
    return l->follows_same_run;
}

const char *lease_id(const Lease *l)
{
    return l->me.id;
}

void lease_end(Lease **lease)
{
    Lease *l = *lease;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    if (lease_holds(l)) write_text(l, 0, true);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    lease_free(lease);
}

/* ---- for other processes ---- */

/* Reads the newest lease. Returns 0 or errno; ENOENT: there is none. */
static int read_newest(const char *folder, LeaseFacts *owner)
{
    char text[LEASE_TEXT];
    int64_t number;
    int error = find_newest(folder, &number);
    if (!error) error = number == 0 ? ENOENT : read_text(folder, number, text);
    return error ? error : lease_facts_read(owner, text) ? 0 : EINVAL;
}

bool lease_is(const char *folder, const char *id)
{
    LeaseFacts owner;
    return read_newest(folder, &owner) == 0 && !strcmp(owner.id, id);
}

LeaseOf lease_of(const char *folder, const char *run, int start)
{
    LeaseFacts owner;
    int error = read_newest(folder, &owner);
    if (error) return error == ENOENT ? LEASE_NOT_TAKEN : LEASE_UNREADABLE;
    if (strcmp(owner.run, run) != 0 || owner.start != start) return LEASE_NOT_TAKEN;
    return owner.ended ? LEASE_ENDED : LEASE_HELD;
}

void lease_new_id(char *id)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        double now = clock_s();
        uint64_t parts[2] = {(uint64_t)getpid(), 0};
        memcpy(&parts[1], &now, sizeof now);
        number = hash_bytes(parts, sizeof parts);
    }
    snprintf(id, LEASE_ID, "%016" PRIx64, number);
}
