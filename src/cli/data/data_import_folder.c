/* weft data import folder: imports pictures into a data set, on any number of ranks. Handles
 * arguments, ranks and the progress line; the data module does the import. */
#include "../private.h"

#include "data/import.h"
#include "parallel.h"
#include "tensor.h"

#define REDRAW_S 0.1
#define LINE_S   10.0

typedef struct FolderOptions {
    const char *out, *list, *classes;
    int64_t ranks, side, threads;
    int store, broken;
    bool bicubic, orient, allow_empty, force;
} FolderOptions;

enum { STORE_DECODED, STORE_ENCODED };
enum { BROKEN_ERROR, BROKEN_SKIP };

static const Flag flags[] = {
    FLAG_OUT(FolderOptions, out, "the data set to write"),
    {"--store", FLAG_FIELD(FolderOptions, store), .value = "decoded|encoded", .fallback = "decoded",
     .help = "decoded: squares of pixels; encoded: the bytes of the files, which training decodes"},
    {"--short", FLAG_FIELD(FolderOptions, side), .value = "S", .lo = 8, .hi = 8192,
     .help = "with --store decoded: resize the short side to S and cut SxS pixels from the "
             "centre; 256 if it is not given"},
    {"--bicubic", FLAG_FIELD(FolderOptions, bicubic),
     .help = "resize with the bicubic filter instead of the bilinear one; both are antialiased"},
    {"--list", FLAG_FIELD(FolderOptions, list), .value = "FILE",
     .help = "file with lines path,label, instead of one folder for each class; paths are "
             "relative to DIR"},
    {"--classes", FLAG_FIELD(FolderOptions, classes), .value = "FILE|DATASET",
     .help = "classes and their order, from a data set or from a text file with one name per "
             "line; a class without pictures remains a class; a folder that is not in the list "
             "is an error"},
    {"--broken", FLAG_FIELD(FolderOptions, broken), .value = "error|skip", .fallback = "error",
     .help = "what to do with files that are not pictures; both name them"},
    {"--orient", FLAG_FIELD(FolderOptions, orient),
     .help = "rotate pictures according to their EXIF orientation"},
    {"--allow-empty", FLAG_FIELD(FolderOptions, allow_empty),
     .help = "allow classes without pictures"},
    {"--threads", FLAG_FIELD(FolderOptions, threads), .value = "T", .lo = 1, .hi = 4096,
     .help = "threads that decode, on each rank; by default the rank's share of the cores"},
    FLAG_RANKS(FolderOptions),
    FLAG_FORCE(FolderOptions, force),
};

/* Progress line of rank 0, which assumes that other ranks are as far as itself. */
typedef struct Shown {
    World *world;
    bool terminal, drawn;
    double began_s, last_s;
    /* pictures done by an earlier, interrupted import; -1: not known yet */
    int64_t before;
} Shown;

static Status agree(void *user, Status mine)
{
    return status_agree(((Shown *)user)->world, mine);
}

static void send(void *user, void *bytes, size_t count)
{
    world_bcast(((Shown *)user)->world, bytes, count, 0);
}

static void progress(void *user, int64_t done, int64_t total, int64_t broken)
{
    Shown *shown = user;
    double now_s = clock_s(), period_s = shown->terminal ? REDRAW_S : LINE_S;
    if (shown->world->rank > 0) return;
    if (shown->before < 0) {
        shown->before = done;
        shown->began_s = shown->last_s = now_s;
    }
    bool last = done == total;
    if (now_s - shown->last_s < period_s && !last) return;
    if (last && !shown->drawn && now_s - shown->began_s < LINE_S) return;
    double seconds = now_s - shown->began_s, ranks = (double)shown->world->size;
    double rate = seconds > 0 ? (double)(done - shown->before) * ranks / seconds : 0;
    double left_s = rate > 0 ? (double)(total - done) * ranks / rate : 0;
    char bad[40] = "", left[32];
    if (broken) snprintf(bad, sizeof bad, "  %.0f broken", (double)broken * ranks);
    printf("%s%.0f/%.0f pictures  %.0f images/s%s  %s left%s", shown->terminal ? "\r" : "",
           (double)done * ranks, (double)total * ranks, rate, bad, text_seconds(left_s, left),
           shown->terminal ? "\033[K" : "\n");
    if (last && shown->terminal) putchar('\n');
    fflush(stdout);
    shown->drawn = !last;
    shown->last_s = now_s;
}

static Status import_on(World *world, const FolderOptions *o, const char *dir)
{
    Shown shown = {.world = world, .before = -1, .terminal = log_redraws(stdout)};
    ImportHost host = {world->rank, world->size, &shown, agree, send, progress};
    FolderImport import = {
        .dir = dir,
        .list = o->list,
        .classes = o->classes,
        .out = o->out,
        .encoded = o->store == STORE_ENCODED,
        .orient = o->orient,
        .skip_broken = o->broken == BROKEN_SKIP,
        .allow_empty = o->allow_empty,
        .force = o->force,
        .side = o->store == STORE_ENCODED ? 0
                : o->side < 8             ? 256
                                          : (int)o->side,
        .filter = o->bicubic ? IMAGE_BICUBIC : IMAGE_BILINEAR,
        .threads = (int)(o->threads > 0 ? o->threads : threads_share(world->node_size)),
    };
    return data_import_folder(&import, &host);
}

static Status run(int argc, char **argv, const void *options)
{
    const FolderOptions *o = options;
    World world;
    (void)argc;
    if (o->store == STORE_ENCODED && o->side >= 8)
        return fail(ERR_USAGE,
                    "--short %lld: --store encoded keeps the files as they are; leave "
                    "--short out, and resize in training (data.resize)",
                    (long long)o->side);
    /* a separate process reads the names, and it must be made before MPI starts */
    if (o->classes && launch_rank() == 0) hdf5_begin();
    if (launched()) terminal_settle();
    TRY(world_init(&world, NULL, NULL));
    Status status = import_on(&world, o, argv[0]);
    world_fini(&world);
    return status;
}

const Verb verb_data_import_folder = {
    .name = "data import folder",
    .words = "DIR",
    .least = 1,
    .most = 1,
    .expects = "one folder, and -o OUT",
    .help = "imports JPEG, PNG and WebP pictures from folders, or from a list",
    .more = "Each folder in DIR is a class. Classes and files are sorted by their bytes, and "
            "hidden names are skipped. The type of a file is found from its contents. Every "
            "picture is decoded once, so that broken ones are found now. Finished work stays in "
            "OUT.part, and the same command continues from there. Under mpirun or srun all ranks "
            "decode. OUT has the same bytes for any number of ranks and threads.",
    VERB_FLAGS(FolderOptions, flags),
    .traits = VERB_LASTS,
    .run = run,
};
