/* Imports the binary files of CIFAR-10 and CIFAR-100 (Krizhevsky 2009). A record has one label byte
 * and 3 x 32 x 32 bytes, the red, the green and the blue plane. In CIFAR-100 it has two label
 * bytes, the coarse and the fine label, of which the fine one is imported. The samples have the
 * order of the files. Refuses files that are not complete records, and labels out of range. */
#include "../data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PIXEL_BYTES: number of bytes of an image; BLOCK: number of records that are read together */
enum { PIXEL_BYTES = 3 * 32 * 32, BLOCK = 256 };

static const char *const names_of_10[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                          "dog",      "frog",       "horse", "ship", "truck"};
static const char *const names_of_100[] = {
    "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
    "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
    "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
    "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
    "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
    "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
    "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
    "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
    "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
    "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
    "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
    "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
    "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
    "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
    "table",       "tank",          "telephone", "television", "tiger",        "tractor",
    "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
    "willow_tree", "wolf",          "woman",     "worm"};

typedef struct Format {
    int classes;
    /* number of label bytes before the pixels; the last of them is imported */
    int label_bytes;
} Format;

/* Computes the number of records from the file's size. ERR_DATA: the file is not complete
 * records. */
static Status count_records(const char *path, Format f, int64_t *records)
{
    struct stat st;
    int record = f.label_bytes + PIXEL_BYTES, other_record = 3 - f.label_bytes + PIXEL_BYTES;
    if (stat(path, &st) != 0) return fail(ERR_NOINPUT, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fail(ERR_NOINPUT, "%s: is not a file; give CIFAR's .bin files", path);
    *records = (int64_t)st.st_size / record;
    if (*records > 0 && st.st_size % record == 0) return OK;
    return fail(ERR_DATA, "%s: %lld bytes are not whole records of CIFAR-%d (%d bytes each)%s",
                path, (long long)st.st_size, f.classes, record,
                st.st_size > 0 && st.st_size % other_record == 0
                    ? (f.classes == 10 ? "; it looks like CIFAR-100: use --fine"
                                       : "; it looks like CIFAR-10: omit --fine")
                    : "; it is truncated, or is not the unpacked binary version: fetch it again");
}

static Status read_whole(int fd, const char *path, uint8_t *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = read(fd, to, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return fail(ERR_IO, "%s: reading failed: %s", path,
                        n < 0 ? strerror(errno) : "it became shorter");
        to += n, bytes -= (size_t)n;
    }
    return OK;
}

/* Splits `count` records at `raw` into labels and pixels. first: number of the first record, for
 * messages. */
static Status split_records(const char *path, Format f, const uint8_t *raw, int64_t first,
                            int64_t count, uint8_t *images, int32_t *labels)
{
    for (int64_t i = 0; i < count; ++i, raw += f.label_bytes + PIXEL_BYTES) {
        labels[i] = raw[f.label_bytes - 1];
        if (labels[i] >= f.classes)
            return fail(ERR_DATA,
                        "%s: record %lld has label %d, CIFAR-%d has 0 to %d; fetch it again", path,
                        (long long)(first + i), labels[i], f.classes, f.classes - 1);
        memcpy(images + i * PIXEL_BYTES, raw + f.label_bytes, PIXEL_BYTES);
    }
    return OK;
}

static Status copy_file(const char *path, Format f, int64_t records, ImageWriter *writer)
{
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, file_error(errno));
    size_t record = (size_t)(f.label_bytes + PIXEL_BYTES);
    uint8_t *raw = mem_new(BLOCK * record), *images = mem_new((size_t)BLOCK * PIXEL_BYTES);
    int32_t labels[BLOCK];
    Status st = OK;
    for (int64_t at = 0; st == OK && at < records; at += BLOCK) {
        int64_t n = records - at < BLOCK ? records - at : BLOCK;
        st = read_whole(fd, path, raw, (size_t)n * record);
        if (st == OK) st = split_records(path, f, raw, at, n, images, labels);
        if (st == OK) st = image_writer_add(writer, images, labels, n);
    }
    mem_free(&raw);
    mem_free(&images);
    close(fd);
    return st;
}

Status data_import_cifar(const char *const *files, int count, bool fine, const char *out,
                         bool force)
{
    Format f = fine ? (Format){100, 2} : (Format){10, 1};
    int64_t samples = 0, records = 0;
    ImageWriter *writer;
    if (count < 1) return fail(ERR_USAGE, "give at least one of CIFAR's .bin files");
    for (int i = 0; i < count; ++i) {
        TRY(count_records(files[i], f, &records));
        samples += records;
    }
    ImageLayout layout = {.samples = samples,
                          .channels = 3,
                          .height = 32,
                          .width = 32,
                          .classes = f.classes,
                          .class_names = fine ? names_of_100 : names_of_10};
    TRY(image_writer_new(&writer, out, force, layout));
    Status st = OK;
    for (int i = 0; st == OK && i < count; ++i) {
        st = count_records(files[i], f, &records);
        if (st == OK) st = copy_file(files[i], f, records, writer);
    }
    if (st == OK) return image_writer_finish(&writer);
    image_writer_drop(&writer);
    return st;
}

/* ---- the verb ---- */

typedef struct CifarOptions {
    const char *out;
    bool fine, force;
} CifarOptions;

static const Flag flags[] = {
    FLAG_OUT(CifarOptions, out, "the data set to write"),
    {"--fine", FLAG_FIELD(CifarOptions, fine),
     .help = "the files are those of CIFAR-100; its 100 fine labels are imported"},
    FLAG_FORCE(CifarOptions, force),
};

static Status run(int argc, char **argv, const void *options)
{
    const CifarOptions *o = options;
    TRY(data_import_cifar((const char *const *)argv, argc, o->fine, o->out, o->force));
    log_info("wrote %s", o->out);
    return OK;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_cifar = {
    .name = "data import cifar",
    .words = "FILE...",
    .words_min = 1,
    .expects = "one or more batch files",
    .help = "imports the binary files of CIFAR-10 or CIFAR-100",
    VERB_FLAGS(CifarOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
