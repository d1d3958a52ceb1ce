/* weft data import coco, yolo and voc: import pictures with labelled boxes, on any number of ranks.
 * This file has only the verbs; the data module imports the pictures. */
#include "import_ranks.h"

/* smallest and largest value of --size */
enum { SIDE_MIN = 8, SIDE_MAX = 8192 };

typedef struct BoxOptions {
    const char *out, *list, *classes;
    /* side: value of --size; below SIDE_MIN if the flag is not given */
    int64_t ranks, side, threads;
    /* value of --broken: BROKEN_ERROR or BROKEN_SKIP */
    int broken;
    bool orient, allow_empty, force;
} BoxOptions;

enum { BROKEN_ERROR, BROKEN_SKIP };

/* clang-format off: flags that all formats have */
#define FLAGS_OF_ALL                                                                               \
    FLAG_OUT(BoxOptions, out, "the data set to write"),                                            \
        {"--size",                                                                                 \
         FLAG_FIELD(BoxOptions, side),                                                             \
         .value = "S",                                                                             \
         .lo = SIDE_MIN,                                                                           \
         .hi = SIDE_MAX,                                                                           \
         .help = "decode now: whole pictures in squares of SxS pixels, with a grey margin; "       \
                 "without it "                                                                     \
                 "the bytes of the files are stored, which training decodes at any size"},         \
        {"--broken", FLAG_FIELD(BoxOptions, broken), .value = "error|skip",                        \
         .default_text = "error",                                                                  \
         .help =                                                                                   \
             "what to do with pictures and boxes that cannot be used; their names are printed in " \
             "both cases"},                                                                        \
        {"--orient", FLAG_FIELD(BoxOptions, orient),                                               \
         .help = "rotate pictures according to their EXIF orientation, before boxes are placed"},  \
        {"--allow-empty", FLAG_FIELD(BoxOptions, allow_empty),                                     \
         .help = "allow classes without boxes"},                                                   \
        {"--threads",                                                                              \
         FLAG_FIELD(BoxOptions, threads),                                                          \
         .value = "T",                                                                             \
         .lo = 1,                                                                                  \
         .hi = 4096,                                                                               \
         .help = "threads that decode, on each rank; by default the rank's share of the cores"},   \
        FLAG_RANKS(BoxOptions), FLAG_FORCE(BoxOptions, force)
#define FLAG_CLASSES                                                                               \
    {                                                                                              \
        "--classes", FLAG_FIELD(BoxOptions, classes),                                              \
            .value = "FILE|DATASET",                                                               \
            .help = "classes and their order, from a data set, from the key `names` of a YAML "    \
                    "file such as YOLO's data.yaml, or from a text file with one name per line"    \
    }
/* clang-format on */

static const Flag coco_flags[] = {FLAGS_OF_ALL};
static const Flag yolo_flags[] = {FLAGS_OF_ALL, FLAG_CLASSES};
static const Flag voc_flags[] = {
    FLAGS_OF_ALL,
    FLAG_CLASSES,
    {"--list", FLAG_FIELD(BoxOptions, list), .value = "FILE",
     .help = "text with the names of the pictures to import, one a line, as in ImageSets/Main"},
};

/* Arguments of import_boxes. */
typedef struct BoxCall {
    const BoxFormat *format;
    const BoxOptions *options;
    /* words of the command line, [count]: the folder of pictures, and perhaps the labels */
    char **words;
    int count;
} BoxCall;

static Status import_boxes(const ImportRanks *ranks, int threads, const void *user)
{
    const BoxCall *call = user;
    const BoxOptions *o = call->options;
    const BoxImport import = {
        .format = call->format,
        .images = call->words[0],
        .labels = call->count > 1 ? call->words[1] : NULL,
        .list = o->list,
        .classes = o->classes,
        .out = o->out,
        .side = o->side < SIDE_MIN ? 0 : (int)o->side,
        .orient = o->orient,
        .skip_broken = o->broken == BROKEN_SKIP,
        .allow_empty = o->allow_empty,
        .force = o->force,
        .threads = threads,
    };
    return data_import_boxes(&import, ranks);
}

static Status run(const BoxFormat *format, int argc, char **argv, const BoxOptions *o)
{
    const BoxCall call = {format, o, argv, argc};
    return import_on_ranks(import_boxes, "pictures", o->classes != NULL, o->threads, &call);
}

static Status run_coco(int argc, char **argv, const void *options)
{
    return run(&box_format_coco, argc, argv, options);
}

static Status run_yolo(int argc, char **argv, const void *options)
{
    return run(&box_format_yolo, argc, argv, options);
}

static Status run_voc(int argc, char **argv, const void *options)
{
    return run(&box_format_voc, argc, argv, options);
}

#define CONTINUES                                                                                  \
    " Every picture is decoded once, so that broken ones are found now. Finished work stays in "   \
    "OUT.part, and the same command continues from there. Under mpirun or srun all ranks decode; " \
    "OUT has the same bytes for any number of ranks and threads."

const Verb verb_data_import_coco = {
    .name = "data import coco",
    .words = "IMAGES ANNOTATIONS",
    .words_min = 2,
    .words_max = 2,
    .expects = "a folder of pictures, a JSON file, and -o OUT",
    .help = "imports pictures with boxes from COCO's JSON",
    .more = "ANNOTATIONS is a file such as instances_train2017.json, plain or .gz; polygons are "
            "skipped. Images are stored in the order of their ids, and classes are numbered in "
            "the order of category ids." CONTINUES,
    VERB_FLAGS(BoxOptions, coco_flags),
    .traits = VERB_LONG_RUNNING,
    .run = run_coco,
};

const Verb verb_data_import_yolo = {
    .name = "data import yolo",
    .words = "IMAGES [LABELS]",
    .words_min = 1,
    .words_max = 2,
    .expects = "a folder of pictures, perhaps one of texts, and -o OUT",
    .help = "imports pictures with boxes from YOLO's texts",
    .more = "LABELS has a text for each picture, with the same path but .txt; a line is class, x, "
            "y, width, height, or class and the points of a polygon. Without LABELS, "
            "the folders are IMAGES/images and IMAGES/labels if there is a folder IMAGES/images; "
            "otherwise IMAGES, and the path in which its last part `images` is replaced by "
            "`labels`." CONTINUES,
    VERB_FLAGS(BoxOptions, yolo_flags),
    .traits = VERB_LONG_RUNNING,
    .run = run_yolo,
};

const Verb verb_data_import_voc = {
    .name = "data import voc",
    .words = "DIR",
    .words_min = 1,
    .words_max = 1,
    .expects = "one folder, and -o OUT",
    .help = "imports pictures with boxes from Pascal VOC's XML",
    .more = "DIR has Annotations, with XML files, and JPEGImages. Objects that are difficult are "
            "stored as crowds. Classes are sorted by name unless --classes gives them." CONTINUES,
    VERB_FLAGS(BoxOptions, voc_flags),
    .traits = VERB_LONG_RUNNING,
    .run = run_voc,
};
