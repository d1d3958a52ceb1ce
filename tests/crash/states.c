/* What a folder may hold after a crash. Reads what strace recorded of a run (crash.sh says how) and a
 * copy of the run's folder from before, and makes the folder as it may be found after a crash behind
 * every system call: with all that was written, with nothing that was not synced, with names but not
 * their data, with halves of writes, and with some of it at random.
 *
 * usage: states TRACE FOLDER BEFORE count
 *            how many states there are
 *        states TRACE FOLDER BEFORE write N OUT
 *            state N as folder OUT; prints the least step that must be good in it
 *        states TRACE FOLDER BEFORE check OUT WEFT PART PARTS
 *            every PARTS-th state: `weft ckpt check` must find a checkpoint of that step, or of a
 *            newer one; prints the failures, and a count
 * FOLDER: as the trace has it, an absolute path. BEFORE is copied from it before the run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void quit(const char *what, const char *why)
{
    fprintf(stderr, "states: %s: %s\n", what, why);
    exit(2);
}

static void *grow(void *old, size_t bytes)
{
    void *new = realloc(old, bytes ? bytes : 1);
    if (!new) quit("memory", "none");
    return new;
}

static char *copy_text(const char *text)
{
    size_t length = strlen(text) + 1;
    return memcpy(grow(NULL, length), text, length);
}

/* ---- files ---- */

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

static void resize(Bytes *bytes, size_t count)
{
    bytes->at = grow(bytes->at, count);
    if (count > bytes->count) memset(bytes->at + bytes->count, 0, count - bytes->count);
    bytes->count = count;
}

/* Its first `part` bytes. */
static void apply(Bytes *to, const Write *w, size_t part)
{
    if (w->size != WRITE_NO_SIZE) resize(to, w->size);
    if (part == 0) return;
    if (w->offset + part > to->count) resize(to, w->offset + part);
    memcpy(to->at + w->offset, w->data.at, part);
}

static void inode_write(Inode *inode, Write w)
{
    apply(&inode->now, &w, w.data.count);
    inode->pending =
        grow(inode->pending, (size_t)(inode->pending_count + 1) * sizeof *inode->pending);
    inode->pending[inode->pending_count++] = w;
}

static void inode_sync(Inode *inode)
{
    resize(&inode->synced, inode->now.count);
    memcpy(inode->synced.at, inode->now.at, inode->now.count);
    inode->pending_count = 0;
}

static void name_set(Names *names, const char *name, Inode *inode)
{
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->of[i].name, name) == 0) {
            names->of[i].inode = inode;
            return;
        }
    names->of = grow(names->of, (size_t)(names->count + 1) * sizeof *names->of);
    names->of[names->count++] = (Naming){copy_text(name), inode};
}

static Inode *name_get(const Names *names, const char *name)
{
    for (int i = 0; i < names->count; ++i)
        if (strcmp(names->of[i].name, name) == 0) return names->of[i].inode;
    return NULL;
}

static void folder_name(Folder *folder, const char *name, Inode *inode)
{
    name_set(&folder->now, name, inode);
    folder->pending =
        grow(folder->pending, (size_t)(folder->pending_count + 1) * sizeof *folder->pending);
    folder->pending[folder->pending_count++] = (Naming){copy_text(name), inode};
}

/* The names in one folder of the run's: "" or "checkpoints/". */
static void folder_sync(Folder *folder, const char *prefix)
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

/* What was there before is on the disk. */
static void load(Folder *folder, const char *path, const char *prefix)
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
        Inode *inode = memset(grow(NULL, sizeof *inode), 0, sizeof *inode);
        inode->now = read_file(full);
        inode_sync(inode);
        name_set(&folder->now, name, inode);
        name_set(&folder->synced, name, inode);
    }
    closedir(dir);
}

/* ---- the trace ---- */

typedef struct Call {
    char *name, *args;
    long result;
    /* of the file that it returned, or "" */
    char *result_path;
} Call;

typedef struct Trace {
    Call *call;
    int count;
} Trace;

/* A call that another thread's line has cut in two. */
typedef struct Half {
    long process;
    char *text;
} Half;
enum { HALVES = 256 };

static void add_call(Trace *trace, char *text)
{
    char *open = strchr(text, '('), *equal = NULL;
    for (char *at = text; (at = strstr(at, ") ")); ++at) {
        char *value = at + 2 + strspn(at + 2, " ");
        if (value[0] == '=' && value[1] == ' ') equal = value;
    }
    if (!open || !equal) return;
    Call call = {.result = strtol(equal + 2, NULL, 10), .result_path = copy_text("")};
    char *path = strchr(equal, '<');
    if (path && call.result >= 0) {
        call.result_path = copy_text(path + 1);
        call.result_path[strcspn(call.result_path, ">")] = '\0';
    }
    *open = '\0';
    call.name = copy_text(text);
    call.args = copy_text(open + 1);
    trace->call = grow(trace->call, (size_t)(trace->count + 1) * sizeof *trace->call);
    trace->call[trace->count++] = call;
}

static Half *half_of(Half *halves, long process)
{
    for (int i = 0; i < HALVES; ++i)
        if (halves[i].text && halves[i].process == process) return &halves[i];
    return NULL;
}

static void keep_half(Half *halves, long process, const char *text)
{
    for (int i = 0; i < HALVES; ++i)
        if (!halves[i].text) {
            halves[i] = (Half){process, copy_text(text)};
            return;
        }
    quit("trace", "too many calls under way");
}

static void read_line(Trace *trace, Half *halves, char *line)
{
    char *text;
    long process = strtol(line, &text, 10);
    text += strspn(text, " ");
    char *cut = strstr(text, " <unfinished ...>");
    if (cut) {
        *cut = '\0';
        keep_half(halves, process, text);
    } else if (strncmp(text, "<... ", 5) == 0) {
        Half *half = half_of(halves, process);
        char *rest = strstr(text, " resumed>");
        if (!half || !rest) return;
        char *whole = grow(NULL, strlen(half->text) + strlen(rest) + 1);
        sprintf(whole, "%s%s", half->text, rest + strlen(" resumed>"));
        free(half->text);
        half->text = NULL;
        add_call(trace, whole);
        free(whole);
    } else
        add_call(trace, text);
}

static Trace read_trace(const char *path)
{
    static Half halves[HALVES];
    Trace trace = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (!file) quit(path, strerror(errno));
    while (getline(&line, &room, file) > 0) read_line(&trace, halves, line);
    free(line);
    fclose(file);
    return trace;
}

/* ---- arguments of a call ---- */

/* The next string of C, unescaped; *text goes behind it. */
static Bytes next_string(const char **text)
{
    Bytes out = {0};
    const char *at = strchr(*text, '"');
    if (!at) return out;
    out.at = grow(NULL, strlen(at));
    for (++at; *at && *at != '"'; ++at) {
        unsigned value = (unsigned char)*at;
        if (*at == '\\') {
            static const char letters[] = "nrtvf", codes[] = "\n\r\t\v\f";
            const char *letter = strchr(letters, *++at);
            int used = 0;
            if (*at == 'x') {
                if (sscanf(at + 1, "%2x", &value) != 1) quit("trace", "a wrong escape");
                at += 2;
            } else if (*at >= '0' && *at <= '7' && sscanf(at, "%3o%n", &value, &used) == 1)
                at += used - 1;
            else
                value =
                    letter && *letter ? (unsigned char)codes[letter - letters] : (unsigned char)*at;
        }
        out.at[out.count++] = (char)value;
    }
    *text = *at ? at + 1 : at;
    return out;
}

/* The path's name in the run's folder, or NULL. Relative paths are of the folder that holds it. */
static const char *name_in(const char *folder, const char *path)
{
    static char name[4096];
    size_t length = strlen(folder);
    const char *relative = strstr(folder, "/runs/") + 1;
    size_t short_length = strlen(relative);
    if (strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]))
        snprintf(name, sizeof name, "%s", path + length + (path[length] == '/'));
    else if (strncmp(path, relative, short_length) == 0 &&
             (path[short_length] == '/' || !path[short_length]))
        snprintf(name, sizeof name, "%s", path + short_length + (path[short_length] == '/'));
    else
        return NULL;
    return name;
}

/* Of the open file that is the first argument: "7</path>, ..." */
static const char *name_of_file(const char *folder, const Call *call)
{
    char path[4096];
    const char *open = strchr(call->args, '<');
    if (!open || strspn(call->args, "0123456789") == 0) return NULL;
    snprintf(path, sizeof path, "%s", open + 1);
    path[strcspn(path, ">")] = '\0';
    return name_in(folder, path);
}

/* The last `count` numbers of the arguments. */
static void last_numbers(const Call *call, long *out, int count)
{
    char *text = copy_text(call->args);
    text[strlen(text)] = '\0';
    char *end = strrchr(text, ')');
    if (end) *end = '\0';
    for (int i = count - 1; i >= 0; --i) {
        char *comma = strrchr(text, ',');
        if (!comma) quit("trace", call->args);
        out[i] = strtol(comma + 1, NULL, 10);
        *comma = '\0';
    }
    free(text);
}

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
        inode = memset(grow(NULL, sizeof *inode), 0, sizeof *inode);
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

/* Has it changed what a crash leaves? */
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
/* behind each call: one of each kind, and so many at random */
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

/* The newest step whose checkpoint's name was synced. */
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

/* What a run would begin from, by the last line of `weft ckpt check`. */
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

typedef struct Wish {
    /* "count", "write", "check" */
    const char *what, *out, *weft;
    long number, part, parts;
    long states, checked, bad;
} Wish;

static void reach(Replay *r, Wish *wish, int call, Kind kind, long number)
{
    bool write = !strcmp(wish->what, "write") && number == wish->number;
    bool check = !strcmp(wish->what, "check") && number % wish->parts == wish->part;
    if (!write && !check) return;
    state_of_chance = (uint64_t)number;
    int least = least_good(r);
    empty(wish->out);
    write_state(r, kind < RANDOM ? kind : RANDOM, wish->out, check);
    if (write) {
        printf("%d\n", least);
        exit(0);
    }
    int found = newest_good(wish->weft, wish->out);
    ++wish->checked;
    if (found >= least && found > 0) return;
    ++wish->bad;
    printf("state %ld, behind call %d (kind %d): step %d is good, and %d was written\n", number,
           call, (int)kind, found, least);
}

int main(int argc, char **argv)
{
    if (argc < 5) quit("usage", "states TRACE FOLDER BEFORE count|write|check ...");
    Trace trace = read_trace(argv[1]);
    Replay replay = {.path = argv[2]};
    Wish wish = {.what = argv[4], .parts = 1};
    if (!strstr(argv[2], "/runs/")) quit(argv[2], "is no folder of a run");
    if (!strcmp(wish.what, "write") && argc == 7) wish.number = atol(argv[5]), wish.out = argv[6];
    if (!strcmp(wish.what, "check") && argc == 9) {
        wish.out = argv[5];
        wish.weft = argv[6];
        wish.part = atol(argv[7]);
        wish.parts = atol(argv[8]);
    }
    load(&replay.folder, argv[3], "");
    for (int i = 0; i < trace.count; ++i) {
        if (!play(&replay, &trace.call[i])) continue;
        for (int kind = 0; kind < KINDS; ++kind, ++wish.states)
            reach(&replay, &wish, i, (Kind)kind, wish.states);
    }
    if (!strcmp(wish.what, "count")) printf("%ld\n", wish.states);
    if (!strcmp(wish.what, "check")) printf("%ld states, %ld bad\n", wish.checked, wish.bad);
    return wish.bad > 0;
}
