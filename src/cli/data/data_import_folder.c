/* weft data import folder: imports pictures into a data set, on any number of ranks. This file has
 * only the verb; the data module imports the pictures. */
#include "../private.h"

#include "import_ranks.h"

/* smallest value, and default, of --short */
enum { SHORT_MIN = 8, SHORT_DEFAULT = 256 };

typedef struct FolderOptions {
    const char *out, *list, *classes;
    /* side: value of --short; below SHORT_MIN if the flag is not given */
    int64_t ranks, side, threads;
    /* store: STORE_DECODED or STORE_ENCODED; broken: BROKEN_ERROR or BROKEN_SKIP */
    int store, broken;
    bool bicubic, orient, allow_empty, force;
} FolderOptions;

enum { STORE_DECODED, STORE_ENCODED };
enum { BROKEN_ERROR, BROKEN_SKIP };

static const Flag flags[] = {
    FLAG_OUT(FolderOptions, out, "the data set to write"),
    {"--store", FLAG_FIELD(FolderOptions, store), .value = "decoded|encoded",
     .default_text = "decoded",
     .help = "decoded: squares of pixels; encoded: the bytes of the files, which training decodes"},
    {"--short", FLAG_FIELD(FolderOptions, side), .value = "S", .lo = SHORT_MIN, .hi = 8192,
     .help = "with --store decoded: resize the short side to S and cut SxS pixels from the "
             "centre; 256 if it is not given"},
    {"--bicubic", FLAG_FIELD(FolderOptions, bicubic),
     .help = "resize with the bicubic filter instead of the bilinear one; both are antialiased"},
    {"--list", FLAG_FIELD(FolderOptions, list), .value = "FILE",
     .help = "file with lines path,label, instead of one folder for each class; paths are "
             "relative to DIR"},
    {"--classes", FLAG_FIELD(FolderOptions, classes), .value = "FILE|DATASET",
     .help =
         "classes and their order, from a data set, a YAML file or a text file with one name per "
         "line; a class without pictures remains a class; a folder that is not in the list "
         "is an error"},
    {"--broken", FLAG_FIELD(FolderOptions, broken), .value = "error|skip", .default_text = "error",
     .help = "what to do with files that are not pictures; their names are printed in both cases"},
    {"--orient", FLAG_FIELD(FolderOptions, orient),
     .help = "rotate pictures according to their EXIF orientation"},
    {"--allow-empty", FLAG_FIELD(FolderOptions, allow_empty),
     .help = "allow classes without pictures"},
    {"--threads", FLAG_FIELD(FolderOptions, threads), .value = "T", .lo = 1, .hi = 4096,
     .help = "threads that decode, on each rank; by default the rank's share of the cores"},
    FLAG_RANKS(FolderOptions),
    FLAG_FORCE(FolderOptions, force),
};

/* Arguments of import_folder. */
typedef struct FolderCall {
    const FolderOptions *options;
    /* folder with the pictures */
    const char *dir;
} FolderCall;

static Status import_folder(const ImportRanks *ranks, int threads, const void *user)
{
    const FolderCall *call = user;
    const FolderOptions *o = call->options;
    const FolderImport import = {
        .dir = call->dir,
        .list = o->list,
        .classes = o->classes,
        .out = o->out,
        .encoded = o->store == STORE_ENCODED,
        .orient = o->orient,
        .skip_broken = o->broken == BROKEN_SKIP,
        .allow_empty = o->allow_empty,
        .force = o->force,
        .side = o->store == STORE_ENCODED ? 0
                : o->side < SHORT_MIN     ? SHORT_DEFAULT
                                          : (int)o->side,
        .filter = o->bicubic ? IMAGE_BICUBIC : IMAGE_BILINEAR,
        .threads = threads,
    };
    return data_import_folder(&import, ranks);
}

static Status run(int argc, char **argv, const void *options)
{
    const FolderOptions *o = options;
    (void)argc;
    if (o->store == STORE_ENCODED && o->side >= SHORT_MIN)
        return fail(ERR_USAGE,
                    "--short %lld: --store encoded keeps the files as they are; leave "
                    "--short out, and resize in training (data.resize)",
                    (long long)o->side);
    const FolderCall call = {o, argv[0]};
    return import_on_ranks(import_folder, "pictures", o->classes != NULL, o->threads, &call);
}

const Verb verb_data_import_folder = {
    .name = "data import folder",
    .words = "DIR",
    .words_min = 1,
    .words_max = 1,
    .expects = "one folder, and -o OUT",
    .help = "imports JPEG, PNG and WebP pictures from folders, or from a list",
    .more = "Each folder in DIR is a class. Classes and files are sorted by their bytes, and "
            "hidden names are skipped. The type of a file is found from its contents. Every "
            "picture is decoded once, so that broken ones are found now. Finished work stays in "
            "OUT.part, and the same command continues from there. Under mpirun or srun all ranks "
            "decode. OUT has the same bytes for any number of ranks and threads.",
    VERB_FLAGS(FolderOptions, flags),
    .traits = VERB_LONG_RUNNING,
    .run = run,
};
