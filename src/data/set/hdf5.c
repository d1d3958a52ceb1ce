/* Has the data module's helpers for HDF5: the lock; limits for a process that unpacks a file;
 * functions that open files and arrays, and whose messages say what to do; and the check that all
 * bytes of a data set are in one file. HDF5's own printing of errors is off; weft's messages quote
 * HDF5's where that helps. h5_open and all functions that use HDF5's objects are called under
 * hdf5_lock. With HDF5 1.10.7 or newer, files are read without file locks, which shared file
 * systems often lack. */
#include "../data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

/* fork waits until no thread is inside HDF5. The child then begins with a new lock, which is
 * free. */
static void lock_before_fork(void)
{
    pthread_mutex_lock(&lock);
}
static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void lock_init(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

static void lock_init_once(void)
{
    lock_init();
    pthread_atfork(lock_before_fork, unlock_in_parent, lock_init);
    /* Filter plugins are code, so HDF5 loads them only from folders that the user has named. */
    const char *plugins = getenv("HDF5_PLUGIN_PATH");
    if (!plugins || !*plugins) H5PLset_loading_state(0);
}

void hdf5_lock(void)
{
    pthread_once(&lock_once, lock_init_once);
    pthread_mutex_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void hdf5_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Initialising HDF5 takes one to two milliseconds. If it is done here, processes that are forked
 * later need not spend this time. */
void hdf5_begin(void)
{
    hdf5_lock();
    H5open();
    hdf5_unlock();
    isolated_begin();
}

IsolatedJob hdf5_unpack_limits(int64_t bytes, int64_t kept_bytes)
{
    enum {
        /* memory for a chunk of 1 GB, packed and unpacked, and for rows of the chunk */
        MEMORY_MB = 4096,
        /* slowest accepted rate; a file that unpacks more slowly is considered malicious */
        UNPACK_MB_S_MIN = 10,
        /* seconds for all other work */
        SPARE_S = 30
    };
    const int seconds = SPARE_S + (int)(bytes / ((int64_t)UNPACK_MB_S_MIN << 20));
    return (IsolatedJob){.subject = "HDF5, in the process that unpacks it,",
                         .memory_bytes = ((size_t)MEMORY_MB << 20) + (size_t)kept_bytes,
                         .busy_s = seconds,
                         .clock_s = 10 * seconds};
}

enum { ERROR_TEXT = 200 };

/* Callback for each entry of HDF5's error stack: copies the description of the innermost entry. */
static herr_t copy_innermost(unsigned n, const H5E_error2_t *error, void *out)
{
    if (n == 0 && error->desc) snprintf(out, ERROR_TEXT, "%s", error->desc);
    return 0;
}

const char *h5_error_text(void)
{
    static _Thread_local char text[ERROR_TEXT];
    snprintf(text, sizeof text, "HDF5 gives no reason");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_innermost, text);
    return text;
}

bool data_is_hdf5(const char *path)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char head[sizeof signature - 1] = "";
    /* file_open does not wait for the other end of a pipe, and pread on a pipe fails. */
    int fd = file_open(path, O_RDONLY);
    bool is_hdf5 = fd >= 0 && pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
                   !memcmp(head, signature, sizeof head);
    if (fd >= 0) close(fd);
    return is_hdf5;
}

/* Returns advice, chosen by the end of the file's name, on how to convert the file to a data set;
 * NULL: there is none. */
static const char *import_advice(const char *path)
{
    static const char by_python[] = "write its arrays with h5py, as docs/formats.md shows";
    static const char parameters[] = "a model's parameters are for `weft ckpt import`, arrays for "
                                     "h5py, as docs/formats.md shows";
    static const char pictures[] =
        "`weft data import folder DIR` makes one of pictures in DIR, where each folder is a class";
    static const char unpack[] = "unpack it, and use `weft data import folder`";
    static const struct {
        const char *ending, *advice;
    } row[] = {
        {".csv", "use `weft data import csv`"},
        {".tsv", "use `weft data import csv`"},
        {"-ubyte", "use `weft data import idx`"},
        {".idx", "use `weft data import idx`"},
        {".txt", "use `weft data import text`"},
        {".bin", "use `weft data import cifar` or `weft data import tokens`"},
        {".jpg", pictures},
        {".jpeg", pictures},
        {".png", pictures},
        {".webp", pictures},
        {".zip", unpack},
        {".tar", unpack},
        {".tgz", unpack},
        {".nc",
         "a NetCDF file of the classic format becomes one of HDF5 with `nccopy -k nc4 OLD NEW`"},
        {".grib", "convert it to NetCDF-4, as with `cdo -f nc4 copy OLD NEW.nc`"},
        {".grb", "convert it to NetCDF-4, as with `cdo -f nc4 copy OLD NEW.nc`"},
        {".npy", by_python},
        {".npz", by_python},
        {".pt", parameters},
        {".pth", parameters},
        {".safetensors", parameters},
        {".pkl", by_python},
        {".mat", by_python},
        {".parquet", by_python},
        {".arrow", by_python},
        {".tfrecord", by_python},
    };
    size_t length = strlen(path);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0) length -= 3;
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        size_t n = strlen(row[i].ending);
        if (length > n && strncasecmp(path + length - n, row[i].ending, n) == 0)
            return row[i].advice;
    }
    return NULL;
}

/* Checks that `path` is a file that can be read and is not empty. */
static Status check_file(const char *path)
{
    struct stat st;
    int fd = file_open(path, O_RDONLY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return fail(ERR_NOINPUT,
                    "%s: no such file; check the path, or make a data set with `weft data import`",
                    path);
    if (fd < 0 && errno == EISDIR)
        return fail(ERR_NOINPUT,
                    "%s: is a folder; name an HDF5 file in it, or make one of a folder of pictures "
                    "with `weft data import folder %s -o FILE.h5`",
                    path, path);
    if (fd < 0 && errno == ENXIO)
        return fail(ERR_NOINPUT, "%s: %s; name an HDF5 file", path, file_error(errno));
    if (fd < 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s; check its permissions", path,
                    strerror(errno));
    int rc = fstat(fd, &st);
    close(fd);
    if (rc != 0) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    if (st.st_size == 0)
        return fail(ERR_DATA, "%s: is empty (0 bytes); make or copy the data set again", path);
    return OK;
}

Status h5_open(hid_t *file, const char *path)
{
    *file = -1;
    TRY(check_file(path));
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, false, true);
#endif
    *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    const char *reason = *file < 0 ? h5_error_text() : "";
    H5Pclose(access);
    if (*file >= 0) return OK;
    const char *advice = data_is_hdf5(path) ? NULL : import_advice(path);
    if (advice) return fail(ERR_DATA, "%s: is not an HDF5 file; %s", path, advice);
    if (strstr(reason, "signature") || strstr(reason, "superblock"))
        return fail(ERR_DATA,
                    "%s: is not an HDF5 file; convert it with `weft data import`, or check the "
                    "path",
                    path);
    if (strstr(reason, "truncated"))
        return fail(ERR_DATA, "%s: is truncated (%s); copy or make it again", path, reason);
    return fail(ERR_DATA,
                "%s: is damaged or cannot be read by this HDF5 (%s); copy or make it again", path,
                reason);
}

/* Callback for HDF5's external links: refuses to follow the link, and sets *is_external. */
static herr_t link_refuse(const char *from, const char *group, const char *to, const char *object,
                          unsigned *flags, hid_t access, void *is_external)
{
    (void)from, (void)group, (void)to, (void)object, (void)flags, (void)access;
    *(bool *)is_external = true;
    return -1;
}

int64_t hdf5_access_without_links(bool *is_external)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    *is_external = false;
    H5Pset_elink_cb(access, link_refuse, is_external);
    return access;
}

Status hdf5_link_fail(const char *path, const char *what)
{
    return fail(ERR_DATA,
                "%s: %s lies in another file, behind an external link, which is not supported; "
                "copy all into one file: h5repack --merge %s NEW.h5",
                path, what, path);
}

/* NAMES_LISTED_MAX: largest number of names in a message; NAMES_KEPT_MAX: largest number of names
 * among which a similar one is looked for */
enum { NAMES_LISTED_MAX = 12, NAMES_KEPT_MAX = 256 };
/* Names of a file's data sets. */
typedef struct NameList {
    /* names for the message, such as "/x, /y" */
    char text[600];
    /* listed: number of names in text; total: number of data sets in the file */
    int listed, total;
    /* the first NAMES_KEPT_MAX names, without a slash before them; owned */
    char *name[NAMES_KEPT_MAX];
} NameList;

/* Callback of H5Ovisit: adds the name of a data set to the list. */
static herr_t list_name(hid_t object, const char *name, const H5O_info_t *info, void *user)
{
    NameList *list = user;
    (void)object;
    if (info->type != H5O_TYPE_DATASET) return 0;
    size_t used = strlen(list->text);
    if (list->total < NAMES_KEPT_MAX) list->name[list->total] = mem_text(name);
    if (++list->total > NAMES_LISTED_MAX || used + strlen(name) + 4 > sizeof list->text) return 0;
    snprintf(list->text + used, sizeof list->text - used, "%s/%s", list->listed++ ? ", " : "",
             name);
    return 0;
}

/* Returns ERR_DATA, with the message that the file has no data set of this name, and which data
 * sets it has. */
static Status name_fail(const char *path, const char *name, const NameList *list, const char *key)
{
    const char *more = list->total > list->listed ? ", ..." : "";
    const int kept = list->total < NAMES_KEPT_MAX ? list->total : NAMES_KEPT_MAX;
    if (key && strcmp(key, "data.variables") == 0) {
        const char *near = text_nearest(name, (const char *const *)list->name, kept);
        return fail(ERR_DATA, "%s: has no variable %s%s%s%s; it has %s%s; name it in %s", path,
                    name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
                    list->text, more, key);
    }
    if (!key)
        return fail(ERR_DATA,
                    "%s: holds no data set %s, which a weft data set of its kind has; there is "
                    "%s%s; import it again",
                    path, name, list->text, more);
    if (list->total == 1)
        return fail(ERR_DATA, "%s: holds no data set %s; there is only %s; to use that: %s=%s",
                    path, name, list->text, key, list->text);
    const char *end = strrchr(path, '.');
    return fail(ERR_DATA, "%s: holds no data set %s; there is %s%s; name the right one: %s=/NAME%s",
                path, name, list->text, more, key,
                end && strcmp(end, ".nc") == 0 ? ", or variables that are fields: data.variables"
                                               : "");
}

/* Returns whether a file has an object of this name that HDF5 cannot open. */
static bool is_unreadable(hid_t file, const char *name)
{
    if (H5Lexists(file, name, H5P_DEFAULT) <= 0) return false;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    if (object >= 0) H5Oclose(object);
    return object < 0;
}

Status h5_dataset(hid_t *dataset, hid_t file, const char *path, const char *name, const char *key)
{
    bool is_external;
    hid_t access = hdf5_access_without_links(&is_external);
    *dataset = H5Dopen2(file, name, access);
    H5Pclose(access);
    if (*dataset >= 0) return OK;
    if (is_external) return hdf5_link_fail(path, name);
    if (is_unreadable(file, name)) {
        unsigned version[3];
        H5get_libversion(&version[0], &version[1], &version[2]);
        return fail(ERR_DATA,
                    "%s: HDF5 %u.%u.%u cannot open %s; if a newer HDF5 has written the file, write "
                    "it for older versions (h5py: libver=('earliest', 'v110'))",
                    path, version[0], version[1], version[2], name);
    }
    NameList list = {0};
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, list_name, &list);
    Status st = list.total > 0
                    ? name_fail(path, name, &list, key)
                    : fail(ERR_DATA, "%s: holds no data set %s, nor any other; name another file",
                           path, name);
    for (int i = 0; i < list.total && i < NAMES_KEPT_MAX; ++i) mem_free(&list.name[i]);
    return st;
}

Status hdf5_check_in_one_file(int64_t file, int64_t dataset, const char *path, const char *what)
{
    H5O_info_t root_info, dataset_info;
    hid_t create = H5Dget_create_plist(dataset);
    bool virtual = H5Pget_layout(create) == H5D_VIRTUAL;
    bool external = H5Pget_external_count(create) > 0;
    H5Pclose(create);
    if (H5Oget_info(file, &root_info) < 0 || H5Oget_info(dataset, &dataset_info) < 0)
        return fail(ERR_DATA, "%s: %s cannot be read: %s; copy or make the file again", path, what,
                    h5_error_text());
    if (root_info.fileno != dataset_info.fileno) return hdf5_link_fail(path, what);
    if (virtual || external)
        return fail(ERR_DATA,
                    "%s: the data of %s lies in other files (%s), which is not supported; copy all "
                    "into one file: h5repack -l CONTI %s NEW.h5",
                    path, what, external ? "external storage" : "a virtual data set", path);
    return OK;
}

bool h5_has(hid_t file, const char *name)
{
    return H5Lexists(file, name, H5P_DEFAULT) > 0 && H5Oexists_by_name(file, name, H5P_DEFAULT) > 0;
}
