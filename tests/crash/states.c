/* Makes the states in which a crash may leave a folder. Reads a trace that strace recorded of a run
 * (see crash.sh) and a copy of the run's folder from before, and makes the folder as it may be
 * found after a crash following each system call: with all pending changes, with none, with names
 * but not their data, with halves of writes, and with a random part of the changes.
 *
 * usage: states TRACE FOLDER BEFORE count
 *            prints the number of states
 *        states TRACE FOLDER BEFORE write N OUT
 *            makes state N in folder OUT; prints the least step that must be good in it
 *        states TRACE FOLDER BEFORE check OUT WEFT PART PARTS
 *            checks every PARTS-th state: `weft ckpt check` must find a checkpoint of that step, or
 *            of a newer one; prints the failures, and a count
 * FOLDER: the absolute path in the trace. BEFORE: a copy of it from before the run.
 */
#include "trace.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- replay ---- */

typedef struct Offset {
    int file;
    char *name;
    size_t at;
    bool append;
} Offset;

typedef struct Replay {
    const char *path;
    Folder folder;
    Offset *offset;
    int offsets;
} Replay;

static Offset *offset_of(Replay *r, int file, const char *name)
{
    for (int i = 0; i < r->offsets; ++i)
        if (r->offset[i].file == file && strcmp(r->offset[i].name, name) == 0) return &r->offset[i];
    r->offset = grow(r->offset, (size_t)(r->offsets + 1) * sizeof *r->offset);
    r->offset[r->offsets] = (Offset){.file = file, .name = copy_text(name)};
    return &r->offset[r->offsets++];
}

static bool play_open(Replay *r, const Call *call)
{
    char name[4096];
    const char *found = call->result < 0 ? NULL : name_in(r->path, call->result_path);
    if (!found || !*found || strstr(call->args, "O_DIRECTORY")) return false;
    snprintf(name, sizeof name, "%s", found);
    Inode *inode = name_get(&r->folder.now, name);
    bool made = !inode && strstr(call->args, "O_CREAT");
    if (!inode && !made) return false;
    if (made) {
        inode = inode_new();
        folder_name(&r->folder, name, inode);
    }
    Offset *offset = offset_of(r, (int)call->result, name);
    offset->at = 0;
    offset->append = strstr(call->args, "O_APPEND") != NULL;
    bool cuts = strstr(call->args, "O_TRUNC") && inode->now.count > 0;
    if (cuts) inode_write(inode, (Write){.size = 0});
    return made || cuts;
}

static bool play_write(Replay *r, const Call *call, Inode *inode, const char *name, bool placed)
{
    const char *at = call->args;
    Bytes data = next_string(&at);
    long number[1];
    if (call->result <= 0) return false;
    Offset *offset = offset_of(r, atoi(call->args), name);
    size_t place = offset->append ? inode->now.count : offset->at;
    if (placed) {
        last_numbers(call, number, 1);
        place = (size_t)number[0];
    } else
        offset->at = place + (size_t)call->result;
    if ((size_t)call->result > data.count)
        quit(call->name, "the trace has not all that was written");
    data.count = (size_t)call->result;
    inode_write(inode, (Write){.data = data, .offset = place, .size = WRITE_NO_SIZE});
    return true;
}

static bool play_size(const Call *call, Inode *inode, bool allocate)
{
    long number[2];
    last_numbers(call, number, allocate ? 2 : 1);
    size_t size = (size_t)(allocate ? number[0] + number[1] : number[0]);
    if (call->result < 0 || (allocate && size <= inode->now.count)) return false;
    inode_write(inode, (Write){.size = size});
    return true;
}

static bool play_rename(Replay *r, const Call *call, bool keeps)
{
    const char *at = call->args;
    char from[4096];
    Bytes old = next_string(&at), new = next_string(&at);
    if (call->result != 0) return false;
    old.at[old.count] = new.at[new.count] = '\0';
    const char *name = name_in(r->path, old.at);
    if (!name) return false;
    snprintf(from, sizeof from, "%s", name);
    Inode *inode = name_get(&r->folder.now, from);
    name = name_in(r->path, new.at);
    if (!inode || !name) return false;
    folder_name(&r->folder, name, inode);
    if (!keeps) folder_name(&r->folder, from, NULL);
    return true;
}

static bool play_unlink(Replay *r, const Call *call)
{
    const char *at = call->args;
    Bytes path = next_string(&at);
    if (call->result != 0) return false;
    path.at[path.count] = '\0';
    const char *name = name_in(r->path, path.at);
    if (!name || !name_get(&r->folder.now, name)) return false;
    folder_name(&r->folder, name, NULL);
    return true;
}

static bool play_file(Replay *r, const Call *call)
{
    char name[4096];
    const char *found = name_of_file(r->path, call);
    if (!found) return false;
    snprintf(name, sizeof name, "%s", found);
    bool sync = !strcmp(call->name, "fsync") || !strcmp(call->name, "fdatasync");
    if (sync && (!*name || !strcmp(name, "checkpoints"))) {
        if (*name) strcat(name, "/");
        folder_sync(&r->folder, name);
        return true;
    }
    Inode *inode = name_get(&r->folder.now, name);
    if (!inode) return false;
    if (sync) {
        inode_sync(inode);
        return true;
    }
    if (!strcmp(call->name, "pwrite64")) return play_write(r, call, inode, name, true);
    if (!strcmp(call->name, "write")) return play_write(r, call, inode, name, false);
    if (!strcmp(call->name, "ftruncate")) return play_size(call, inode, false);
    if (!strcmp(call->name, "fallocate")) return play_size(call, inode, true);
    if (!strcmp(call->name, "lseek"))
        offset_of(r, atoi(call->args), name)->at = (size_t)call->result;
    if (strstr(call->name, "writev")) quit(call->name, "is not known here");
    return false;
}

/* Plays a call. Returns whether it has changed the states after a crash. */
static bool play(Replay *r, const Call *call)
{
    if (!strcmp(call->name, "openat") || !strcmp(call->name, "creat")) return play_open(r, call);
    if (!strncmp(call->name, "rename", 6)) return play_rename(r, call, false);
    if (!strncmp(call->name, "link", 4)) return play_rename(r, call, true);
    if (!strncmp(call->name, "unlink", 6)) return play_unlink(r, call);
    return play_file(r, call);
}

/* ---- states ---- */

typedef enum Kind { KEPT, LOST, NAMES_ONLY, TORN, RANDOM, KINDS_FIXED = RANDOM } Kind;
/* states after each call: one of each fixed kind, and AT_RANDOM random ones */
enum { AT_RANDOM = 6, KINDS = KINDS_FIXED + AT_RANDOM, SECTOR = 512 };

static uint64_t state_of_chance;
static uint64_t chance(uint64_t below)
{
    state_of_chance += 0x9e3779b97f4a7c15u;
    uint64_t z = state_of_chance;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static Bytes bytes_of(const Inode *inode, Kind kind)
{
    Bytes out = {0};
    const Bytes *from = kind == KEPT ? &inode->now : &inode->synced;
    resize(&out, from->count);
    memcpy(out.at, from->at, from->count);
    for (int i = 0; i < inode->pending_count && kind >= TORN; ++i) {
        const Write *w = &inode->pending[i];
        size_t part = w->data.count / 2;
        if (kind == RANDOM) {
            if (chance(2)) continue;
            part = w->data.count;
            if (chance(4) == 0) part = chance(part / SECTOR + 1) * SECTOR;
        }
        apply(&out, w, part);
    }
    return out;
}

static void make_folders(const char *path)
{
    char checkpoints[4096];
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", path);
    if ((mkdir(path, 0777) != 0 && errno != EEXIST) ||
        (mkdir(checkpoints, 0777) != 0 && errno != EEXIST))
        quit(path, strerror(errno));
}

static void write_names(const Names *names, Kind kind, const char *out, bool checkpoints_alone)
{
    for (int i = 0; i < names->count; ++i) {
        const Naming *n = &names->of[i];
        char path[4096];
        bool checkpoint = strncmp(n->name, "checkpoints/", 12) == 0;
        if (!n->inode || (checkpoints_alone && !checkpoint)) continue;
        snprintf(path, sizeof path, "%s/%s", out, n->name);
        Bytes bytes = bytes_of(n->inode, kind);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(bytes.at, 1, bytes.count, file) != bytes.count || fclose(file) != 0)
            quit(path, strerror(errno));
        free(bytes.at);
    }
}

static void write_state(const Replay *r, Kind kind, const char *out, bool checkpoints_alone)
{
    make_folders(out);
    Names some = {0};
    const Names *names = kind == LOST ? &r->folder.synced : &r->folder.now;
    if (kind == RANDOM) {
        const Names *synced = &r->folder.synced;
        for (int i = 0; i < synced->count; ++i)
            name_set(&some, synced->of[i].name, synced->of[i].inode);
        uint64_t arrived = chance((uint64_t)r->folder.pending_count + 1);
        for (uint64_t i = 0; i < arrived; ++i)
            name_set(&some, r->folder.pending[i].name, r->folder.pending[i].inode);
        names = &some;
    }
    write_names(names, kind, out, checkpoints_alone);
    for (int i = 0; i < some.count; ++i) free(some.of[i].name);
    free(some.of);
}

static int step_in(const char *name)
{
    int step = 0, used = 0;
    bool is = sscanf(name, "checkpoints/step-%8d.h5%n", &step, &used) == 1 && used > 0;
    return is && !name[used] ? step : 0;
}

/* Returns the newest step whose checkpoint's name was synced. */
static int least_good(const Replay *r)
{
    int least = 0;
    for (int i = 0; i < r->folder.synced.count; ++i) {
        const Naming *n = &r->folder.synced.of[i];
        if (n->inode && step_in(n->name) > least) least = step_in(n->name);
    }
    return least;
}

static void empty(const char *path)
{
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0) quit(path, "cannot be removed");
}

/* Returns the file from which a run would resume, by the last line of `weft ckpt check`. */
static int newest_good(const char *weft, const char *out)
{
    char command[8300], line[4096];
    int step = 0;
    snprintf(command, sizeof command, "'%s' ckpt check '%s' 2>&1", weft, out);
    FILE *said = popen(command, "r");
    if (!said) quit(weft, strerror(errno));
    while (fgets(line, sizeof line, said)) {
        const char *resumes = strstr(line, "resumes from");
        const char *name = resumes ? strstr(resumes, "step-") : NULL;
        if (name) step = atoi(name + strlen("step-"));
    }
    pclose(said);
    return step;
}

typedef struct Task {
    /* "count", "write", "check" */
    const char *what, *out, *weft;
    long number, part, parts;
    long states, checked, bad;
} Task;

static void reach(Replay *r, Task *task, int call, Kind kind, long number)
{
    bool write = !strcmp(task->what, "write") && number == task->number;
    bool check = !strcmp(task->what, "check") && number % task->parts == task->part;
    if (!write && !check) return;
    state_of_chance = (uint64_t)number;
    int least = least_good(r);
    empty(task->out);
    write_state(r, kind < RANDOM ? kind : RANDOM, task->out, check);
    if (write) {
        printf("%d\n", least);
        exit(0);
    }
    int found = newest_good(task->weft, task->out);
    ++task->checked;
    if (found >= least && found > 0) return;
    ++task->bad;
    printf("state %ld, behind call %d (kind %d): step %d is good, and %d was written\n", number,
           call, (int)kind, found, least);
}

int main(int argc, char **argv)
{
    if (argc < 5) quit("usage", "states TRACE FOLDER BEFORE count|write|check ...");
    Trace trace = read_trace(argv[1]);
    Replay replay = {.path = argv[2]};
    Task task = {.what = argv[4], .parts = 1};
    if (!strstr(argv[2], "/runs/")) quit(argv[2], "is no folder of a run");
    if (!strcmp(task.what, "write") && argc == 7) task.number = atol(argv[5]), task.out = argv[6];
    if (!strcmp(task.what, "check") && argc == 9) {
        task.out = argv[5];
        task.weft = argv[6];
        task.part = atol(argv[7]);
        task.parts = atol(argv[8]);
    }
    load(&replay.folder, argv[3], "");
    for (int i = 0; i < trace.count; ++i) {
        if (!play(&replay, &trace.call[i])) continue;
        for (int kind = 0; kind < KINDS; ++kind, ++task.states)
            reach(&replay, &task, i, (Kind)kind, task.states);
    }
    if (!strcmp(task.what, "count")) printf("%ld\n", task.states);
    if (!strcmp(task.what, "check")) printf("%ld states, %ld bad\n", task.checked, task.bad);
    return task.bad > 0;
}
