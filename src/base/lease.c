/* The ownership of a folder by a process. The lease of a folder is the file owner-N with the
 * largest N, created with O_EXCL, which is atomic on a local disk, on NFS from version 3 and on
 * Lustre: of several processes that try to replace an owner, only one can create owner-(N+1). The
 * owner writes a heartbeat into its file, in place; it has lost the folder if the file was removed
 * or there is an owner-N with a larger N.
 *
 *   owner-6 (dead)   A, B: "is it still alive?"   A makes owner-7, removes owner-6
 *                                                 B cannot make it, and examines owner-7
 *
 * Clocks of two hosts are never compared: a waiting process only observes whether the file's
 * content changes. */
#include "lease_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* number of missed heartbeats after which an owner counts as dead */
    MISSED_BEATS_DEAD = 4,
    /* seconds for which the owner's file may be unreadable while another process watches it */
    UNREADABLE_MAX_S = 60,
    /* seconds for which a living earlier start of the same run may take to end */
    EARLIER_START_MAX_S = 10,
    /* seconds for which a listing of the folder may be out of date */
    LISTING_MAX_S = 5
};

struct Lease {
    /* folder: path of the folder; path: path of the file owner-N; owned */
    char *folder, *path;
    /* number: N of the file owner-N; beat: number of the last heartbeat */
    int64_t number, beat;
    /* file descriptor of the folder, kept open so that its inode is not reused */
    int folder_fd;
    /* identity of the folder */
    dev_t device;
    ino_t inode;
    /* facts about this process */
    LeaseFacts me;
    /* true: an earlier start of the same weft run or batch job has called lease_begun */
    bool follows_same_run;
    /* true: a failed heartbeat has been reported */
    bool has_warned;
    /* true: the thread of heartbeats must end; protected by lock */
    bool stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

/* ---- the files ---- */

static char *path_of(const char *folder, int64_t number)
{
    return mem_format("%s/owner-%" PRId64, folder, number);
}

/* Returns the number N in a file's name owner-N; 0: the name has another form. Numbers are limited,
 * so that number + 1 cannot overflow. */
static int64_t number_of(const char *name)
{
    int64_t number = strncmp(name, "owner-", 6) == 0 ? strtoll(name + 6, NULL, 10) : 0;
    char same[32];
    snprintf(same, sizeof same, "owner-%" PRId64, number);
    return number <= INT64_MAX / 2 && !strcmp(same, name) ? number : 0;
}

/* Finds the largest N of a file owner-N; 0: there is no such file. Returns 0, or the errno. */
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

static Status find_newest_or_fail(const char *folder, int64_t *number)
{
    int error = find_newest(folder, number);
    return error ? fail(ERR_IO, "%s: cannot be listed: %s", folder, strerror(error)) : OK;
}

/* Reads the file owner-`number`. It is opened anew each time, which makes NFS query its server.
 * Returns 0, or the errno; ENOENT: the file was removed, also if NFS reports that as ESTALE. The
 * text of an empty file is "": its owner has created the file, but not yet written to it. A
 * symbolic link is refused, because no owner makes one. text: LEASE_TEXT bytes. */
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

static Status fail_unreadable(const char *folder, int64_t number, int error)
{
    return fail(ERR_IO,
                "%s/owner-%" PRId64 ": cannot be read: %s; without it nobody can say whether "
                "another run is using this folder",
                folder, number, file_error(error));
}

/* Returns true if a lease's text has the id of another owner. */
static bool is_of_other(const Lease *l, const char *text)
{
    LeaseFacts owner;
    return lease_facts_read(&owner, text) && strcmp(owner.id, l->me.id) != 0;
}

typedef enum WriteResult { WRITTEN, WRITE_FAILED, WRITE_OTHER_OWNER } WriteResult;

/* Writes the next heartbeat. flags: O_CREAT | O_EXCL to create the file, else 0. ended: true if
 * this process records its end. WRITE_FAILED: *error is an errno. WRITE_OTHER_OWNER: the file
 * belongs to another owner, and was not changed. */
static WriteResult write_text(Lease *l, int flags, bool ended, int *error)
{
    char text[LEASE_TEXT], found[LEASE_TEXT];
    bool creates = flags & O_CREAT;
    *error = 0;
    l->me.beat = ++l->beat;
    l->me.ended = ended;
    lease_facts_write(&l->me, text);
    int file =
        creates ? file_create(l->path, O_WRONLY | flags) : file_open(l->path, O_RDWR | O_NOFOLLOW);
    if (file < 0) {
        *error = errno;
        return WRITE_FAILED;
    }
    ssize_t got = creates ? 0 : pread(file, found, sizeof found - 1, 0);
    found[got > 0 ? got : 0] = 0;
    bool other = is_of_other(l, found);
    ssize_t put = other ? (ssize_t)sizeof text : pwrite(file, text, sizeof text, 0);
    if (put != (ssize_t)sizeof text) *error = put < 0 ? errno : ENOSPC;
    if (close(file) != 0 && !*error) *error = errno;
    if (other) return WRITE_OTHER_OWNER;
    return *error ? WRITE_FAILED : WRITTEN;
}

static void remove_number(const char *folder, int64_t number)
{
    char *path = path_of(folder, number);
    unlink(path);
    mem_free(&path);
}

/* ---- checking the lease ---- */

/* Returns true if the folder's path leads to another folder than the owned one, or to no folder. */
static bool folder_moved(const Lease *l)
{
    struct stat st;
    if (stat(l->folder, &st) != 0) return errno == ENOENT || errno == ENOTDIR;
    return st.st_ino != l->inode || st.st_dev != l->device;
}

bool lease_is_held(const Lease *l)
{
    char text[LEASE_TEXT];
    int64_t number;
    if (!l) return true;
    if (folder_moved(l)) return false;
    int error = read_text(l->folder, l->number, text);
    if (error == ENOENT || (!error && is_of_other(l, text))) return false;
    return find_newest(l->folder, &number) != 0 || number <= l->number;
}

static _Noreturn void die_not_owner(const Lease *l)
{
    if (folder_moved(l))
        die_as(ERR_IO,
               "%s: the run's folder has been renamed, replaced or removed: the run ends here and "
               "writes nothing more; put it back, and start the same command again to continue",
               l->folder);
    char text[LEASE_TEXT] = "", owner_text[LEASE_OWNER_TEXT] = "an unknown owner";
    int64_t number = 0;
    LeaseFacts other;
    if (find_newest(l->folder, &number) == 0 && read_text(l->folder, number, text) == 0 &&
        is_of_other(l, text) && lease_facts_read(&other, text))
        lease_facts_describe(&other, owner_text);
    die_as(ERR_CONFIG,
           "%s: this run no longer owns the folder: %s was taken over by %s, or removed; it ends "
           "here and writes nothing more",
           l->folder, l->path, owner_text);
}

void lease_require(const Lease *l)
{
    if (!lease_is_held(l)) die_not_owner(l);
}

/* Writes a heartbeat. A failure, as on a full disk, is only a warning: lease_require still detects
 * a new owner. */
static void beat(Lease *l)
{
    int error;
    lease_require(l);
    WriteResult result = write_text(l, 0, false, &error);
    if (result == WRITE_OTHER_OWNER || error == ENOENT || error == ESTALE) die_not_owner(l);
    if (result == WRITE_FAILED && !l->has_warned)
        log_warn("%s: cannot be written: %s; a start on another host may take this folder over",
                 l->path, strerror(error));
    l->has_warned = result == WRITE_FAILED;
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

/* Starts the thread that writes heartbeats. If that fails, records the end of this owner in the
 * lease. */
static Status begin_thread(Lease *l)
{
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->wake);
    int error = thread_begin(&l->thread, beat_run, l), ignored;
    if (error) {
        (void)write_text(l, 0, true, &ignored);
        pthread_cond_destroy(&l->wake);
        pthread_mutex_destroy(&l->lock);
    }
    return error ? fail(ERR_MEMORY, "a thread cannot be started: %s", strerror(error)) : OK;
}

/* ---- becoming the owner ---- */

/* Sleeps for a time. ERR_STOPPED: a stop was requested meanwhile. */
static Status rest(double seconds)
{
    clock_sleep(seconds);
    return stop_wanted() ? fail(ERR_STOPPED, "stopped before the first step") : OK;
}

/* Waits for a heartbeat of an owner whose state cannot be queried. first_text: content of its file
 * when the watch begins. Counts only time in which a heartbeat could have been noticed: a slow read
 * counts as one interval between reads, because the file server may have been down for both hosts.
 * ERR_IO: no read has succeeded for UNREADABLE_MAX_S. */
static Status watch_owner(const char *folder, int64_t number, const char *first_text,
                          const LeaseFacts *owner, OwnerState *state)
{
    char text[LEASE_TEXT];
    double timeout_s = MISSED_BEATS_DEAD * owner->beat_s, silent_s = 0, unreadable_s = 0;
    double poll_s = owner->beat_s / 5 < 1 ? owner->beat_s / 5 : 1;
    while (silent_s < timeout_s) {
        double begin_s = clock_s();
        TRY(rest(poll_s));
        int error = read_text(folder, number, text);
        if (error == ENOENT) {
            *state = OWNER_FILE_REMOVED;
            return OK;
        }
        double took_s = clock_s() - begin_s;
        if (error) {
            unreadable_s += took_s;
            if (unreadable_s > UNREADABLE_MAX_S) return fail_unreadable(folder, number, error);
            continue;
        }
        unreadable_s = 0;
        if (strcmp(text, first_text) != 0) {
            LeaseFacts now;
            *state = lease_facts_read(&now, text) && now.ended ? OWNER_ENDED : OWNER_ALIVE;
            return OK;
        }
        silent_s += took_s < 2 * poll_s ? took_s : poll_s;
    }
    *state = OWNER_ENDED;
    return OK;
}

/* Watches an owner whose state cannot be queried, and logs that this process waits. */
static Status wait_for_heartbeat(const char *folder, int64_t number, const char *first_text,
                                 const LeaseFacts *owner, OwnerState *state)
{
    char owner_text[LEASE_OWNER_TEXT];
    lease_facts_describe(owner, owner_text);
    log_info("%s: its last owner, %s, cannot be queried from this host: waiting up to %.0f s for a "
             "heartbeat",
             folder, owner_text, MISSED_BEATS_DEAD * owner->beat_s);
    TRY(watch_owner(folder, number, first_text, owner, state));
    if (*state == OWNER_ENDED)
        log_warn("%s: taken over from %s, which has ended or gives no heartbeat", folder,
                 owner_text);
    return OK;
}

/* Waits for the end of an earlier start of the same run, whose process is alive on this host: ranks
 * may outlive their mpirun by some seconds. If it does not end, as in a file system that hangs, it
 * loses the folder nevertheless. */
static Status wait_for_earlier_start(const Lease *l, const LeaseFacts *owner, OwnerState *state)
{
    double end_s = clock_s() + EARLIER_START_MAX_S;
    while (lease_facts_owner_state(owner, &l->me) == OWNER_ALIVE && clock_s() < end_s)
        TRY(rest(0.05));
    *state = OWNER_ENDED;
    return OK;
}

/* Finds the state of the owner that has written owner-`number`, waits for a heartbeat if necessary,
 * and sets l->follows_same_run. ERR_CONFIG: the owner is alive. */
static Status find_owner_state(Lease *l, int64_t number, OwnerState *state)
{
    char text[LEASE_TEXT], owner_text[LEASE_OWNER_TEXT];
    LeaseFacts owner;
    *state = OWNER_FILE_REMOVED;
    int error = read_text(l->folder, number, text);
    if (error == ENOENT) return OK;
    if (error) return fail_unreadable(l->folder, number, error);
    /* a text that cannot be parsed has no interval of heartbeats, so this process's own interval is
     * used */
    if (!lease_facts_read(&owner, text)) owner = (LeaseFacts){.beat_s = l->me.beat_s};
    l->me.begun = l->follows_same_run = owner.begun && lease_facts_is_same_run(&owner, &l->me);
    *state = lease_facts_owner_state(&owner, &l->me);
    if (*state == OWNER_UNKNOWN) TRY(wait_for_heartbeat(l->folder, number, text, &owner, state));
    if (*state == OWNER_ALIVE && lease_facts_is_same_run(&owner, &l->me))
        TRY(wait_for_earlier_start(l, &owner, state));
    if (*state != OWNER_ALIVE) return OK;
    lease_facts_describe(&owner, owner_text);
    return fail(
        ERR_CONFIG,
        "%s: another run is using this folder (%s): wait for it, or choose another run.name",
        l->folder, owner_text);
}

/* Creates the file owner-`number`. *mine: true if this process has created it and there is no
 * larger number; false if another process was faster. */
static Status claim(Lease *l, int64_t number, bool *mine)
{
    int64_t largest;
    int error;
    *mine = false;
    mem_free(&l->path);
    l->number = number;
    l->path = path_of(l->folder, number);
    if (write_text(l, O_CREAT | O_EXCL, false, &error) != WRITTEN) {
        if (error == EEXIST) return OK;
        if (error == ENOSPC || error == EDQUOT) unlink(l->path);
        return fail(ERR_IO, "%s: cannot be written: %s", l->path, strerror(error));
    }
    /* the directory listing that gave the number may have been stale */
    TRY(find_newest_or_fail(l->folder, &largest));
    *mine = largest == number;
    if (!*mine) unlink(l->path);
    return OK;
}

/* Replaces the present owner, if there is one, as soon as it has ended. */
static Status become_owner(Lease *l)
{
    int64_t number, known_number = 0;
    for (;;) {
        OwnerState state = OWNER_ENDED;
        bool mine;
        TRY(find_newest_or_fail(l->folder, &number));
        if (number < known_number) number = known_number;
        if (number > 0) TRY(find_owner_state(l, number, &state));
        known_number = 0;
        if (state == OWNER_FILE_REMOVED) {
            TRY(rest(0.05));
            continue;
        }
        TRY(claim(l, number + 1, &mine));
        if (mine) {
            if (number > 0) remove_number(l->folder, number);
            return OK;
        }
        /* Another process was faster. The directory listing may be stale, so this number is
         * remembered. */
        known_number = number + 1;
    }
}

static Status open_folder(Lease *l)
{
    struct stat st;
    l->folder_fd = open(l->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->folder_fd < 0 || fstat(l->folder_fd, &st) != 0)
        return fail(ERR_IO, "%s: cannot be listed: %s", l->folder, strerror(errno));
    l->device = st.st_dev, l->inode = st.st_ino;
    return OK;
}

static void lease_free(Lease **lease)
{
    Lease *l = *lease;
    if (l->folder_fd >= 0) close(l->folder_fd);
    mem_free(&l->folder);
    mem_free(&l->path);
    mem_free(lease);
}

Status lease_take(Lease **lease, const char *folder, double beat_s)
{
    Lease *l = *lease = mem_new(sizeof *l);
    l->folder = mem_text(folder);
    lease_facts_of_process(&l->me, beat_s);
    Status status = open_folder(l);
    if (status == OK) status = become_owner(l);
    if (status == OK) status = begin_thread(l);
    if (status != OK) lease_free(lease);
    return status;
}

void lease_begun(Lease *l)
{
    pthread_mutex_lock(&l->lock);
    l->me.begun = true;
    beat(l);
    pthread_mutex_unlock(&l->lock);
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
    int error;
    if (lease_is_held(l)) (void)write_text(l, 0, true, &error);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    lease_free(lease);
}

/* ---- for other processes ---- */

/* Reads the newest lease. Returns 0, or the errno; ENOENT: there is no lease; EINVAL: its text
 * cannot be parsed; ESTALE: the listing of the folder keeps naming a file that does not exist. NFS
 * caches listings for some seconds; a file that was listed and is gone has a successor. */
static int read_newest(const char *folder, LeaseFacts *owner)
{
    double end_s = clock_s() + LISTING_MAX_S;
    char text[LEASE_TEXT];
    int64_t number;
    for (;;) {
        int error = find_newest(folder, &number);
        if (!error && number == 0) error = ENOENT;
        if (error) return error;
        error = read_text(folder, number, text);
        if (!error) return lease_facts_read(owner, text) ? 0 : EINVAL;
        if (error != ENOENT) return error;
        if (clock_s() > end_s) return ESTALE;
        clock_sleep(0.05);
    }
}

bool lease_owner_is(const char *folder, const char *id)
{
    LeaseFacts owner;
    return read_newest(folder, &owner) == 0 && !strcmp(owner.id, id);
}

LeaseStart lease_start_state(const char *folder, const char *run, int start)
{
    LeaseFacts owner;
    int error = read_newest(folder, &owner);
    if (error) return error == ENOENT ? LEASE_START_NOT_OWNER : LEASE_START_UNREADABLE;
    if (strcmp(owner.run, run) != 0 || owner.start != start) return LEASE_START_NOT_OWNER;
    return owner.ended ? LEASE_START_ENDED : LEASE_START_IS_OWNER;
}
