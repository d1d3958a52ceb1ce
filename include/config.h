/* config: one YAML file and key=value overrides -> Config, through one option table. Strict: an
 * unknown key, a duplicate, a wrong type or range is ERR_CONFIG with file, line and column, before
 * MPI does anything. The table also makes the help text, the man page, the shell completion and the
 * resolved file. Verbs and their flags are rows of the same kind. Not collective. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "base.h"

/* The words of model.size, W(constant, "word"). They stand here, not with the models, because the
 * length of a sample depends on them, and data, which cuts samples, is a module before model. */
#define GPT_WORDS(W)                                                                               \
    W(GPT_OWN, "own")                                                                              \
    W(GPT_124M, "124m") W(GPT_355M, "355m") W(GPT_774M, "774m") W(GPT_1558M, "1558m")
typedef enum GptSize { GPT_WORDS(LIST_CONSTANT) } GptSize;
/* checkpoint.resume: in place of a word's number, where the key has a path */
enum { RESUME_FILE = -1 };

/* One `key: value` of a layer in model.layers, as text with its place, for the layers module to
 * read. */
typedef struct ConfigAttr {
    /* owned; a flow list [a, b] arrives as "a,b" */
    char *key, *value;
    int line, column;
} ConfigAttr;
/* One entry of model.layers: `- conv2d: {channels: 32, kernel: 3}` or `- relu`. */
typedef struct ConfigLayer {
    /* owned */
    char *kind;
    int line, column;
    int attr_count;
    /* owned */
    ConfigAttr *attr;
} ConfigLayer;

/* A layer of another width than the model's own. */
typedef struct ConfigWidth {
    /* owned */
    char *layer;
    int64_t channels;
} ConfigWidth;
typedef struct ConfigWidths {
    int count;
    /* owned */
    ConfigWidth *item;
} ConfigWidths;

/* `key: value` pairs as text, for another module to read: model.rope_scaling */
typedef struct ConfigPairs {
    int count;
    /* owned */
    ConfigAttr *item;
} ConfigPairs;

/* list of numbers */
typedef struct ConfigList {
    int count;
    /* owned */
    double *value;
} ConfigList;

/* optim: the rule, its constants, the curve of its rate. name and lr_schedule are rows of the optim
 * module's tables. */
typedef struct OptimConfig {
    int name, lr_schedule;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip, trust, lr_end, power, gamma;
    /* ftrl */
    double l1, l2, beta;
    /* of the sign of each batch norm's scale, that is added to its gradient; 0: none */
    double slim;
    /* plateau: evaluations that are let pass; by which share of the best a value must be better */
    int64_t patience;
    double threshold;
    /* decay_all: biases and norms decay, too */
    bool nesterov, decay_all;
    /* muon: LrAdjust */
    int lr_adjust;
    /* multistep: epochs */
    ConfigList milestones;
    int64_t warmup_steps;
    double warmup_epochs;
    /* the rate of a tier in parts of the one's behind it; 1: all have the same */
    double layer_decay;
    int group_count;
    /* owned */
    struct OptimGroup *group;
} OptimConfig;
/* One entry of optim.groups: parameters that are updated in another way. */
typedef struct OptimGroup {
    int match_count;
    /* owned: patterns on names (fnmatch); none: any name */
    char **match;
    /* a bit for each ParamRole (optim.h); 0: any */
    int roles;
    /* on the rate of each step */
    double lr_scale;
    /* resolved: what the group says, else what optim says; it owns nothing */
    OptimConfig own;
    /* a bit for each key of optim that the group gives, by its place in it */
    uint64_t given;
    int line, column;
} OptimGroup;

/* A key that takes a word is an int, the word's number: a constant of the enum that its comment
 * names, which is in the header of the module that has the thing. */
typedef struct Config {
    /* of the file, for messages; owned like every char * below */
    char *path;
    /* where each key was set; owned, the config module's own; may be NULL */
    struct ConfigPlace *place;
    struct {
        /* a run lives in dir/name */
        char *name, *dir;
        int64_t seed;
        bool fresh, trace, nvtx, hook_wait;
        /* a command, "": none; a bit for each HookMoment (train.h), 0: all; what it may take */
        char *hook;
        /* folders of orders of requests: to be written, to be followed; "" */
        char *order_log, *replay;
        int hook_on;
        double hook_s;
        /* seconds after which it stops; 0: none */
        double max_time;
        /* between the owner's signs of life in the folder */
        double heartbeat_s;
    } run;
    struct {
        /* zoo name; "" where layers are listed */
        char *name;
        /* Stem */
        int stem;
        /* 0: as the data set says */
        int64_t classes;
        /* < 0: the model's own */
        double dropout;
        /* widths: of mlp's, wide_deep's and deepfm's perceptron, of dlrm's top; of its bottom */
        ConfigList hidden, bottom;
        /* gpt2: GptSize, Positions */
        int size, positions;
        int64_t depth, width, heads,
            context;                 /* gpt2, llama; depth: model.layers: N; 0: as size says */
        int64_t kv_heads, ffn;       /* llama; 0: heads; 8/3 of the width */
        double rotary_base, rms_eps; /* llama */
        bool tied;                   /* llama: the head has the embedding's weight */
        /* llama; qkv_bias: queries, keys and values have biases; rope_scaling: scaling of rotary
         * angles for longer contexts */
        bool qkv_bias;
        ConfigPairs rope_scaling;
        /* llama; window: number of keys that a query attends to, 0: all; window_from: first block
         * with it */
        int64_t window, window_from;
        int64_t vocab; /* 0: as the data set says */
        int layer_count;
        /* owned */
        ConfigLayer *layer;
        /* of layers by name, each once */
        ConfigWidths widths;
        /* where its parameters come from; NULL where not set */
        char *init_from;
        /* patterns "a,b" of what begins anew, "": the classifier where its size differs; prefixes
         * "old:new,..." of the file's names */
        char *init_fresh, *init_rename;
        /* patterns "a,b" of what is not trained; FreezeNorm */
        char *freeze;
        int freeze_norm;
    } model;
    struct {
        /* HDF5 files, several with a '\n' between two; NULL where not set */
        char *train, *test;
        /* data set names inside, default /x and /y */
        char *x, *y;
        /* DataLayout of x in the file */
        int layout;
        /* the label of class 0 */
        int64_t label_base;
        /* AUGMENT_ bits (data.h) */
        int augment;
        int64_t crop_pad, cutout_size;
        /* pixels; 0: not done */
        int64_t resize, random_resized_crop, random_crop, center_crop;
        /* of the area, and width by height, of a random resized crop: least and most */
        ConfigList crop_scale, crop_ratio;
        /* ImageFilter */
        int filter;
        /* brightness, contrast, saturation, hue; or none */
        ConfigList color_jitter;
        /* probability; alpha of a Beta distribution; 0: not done */
        double erasing, mixup, cutmix;
        /* by mean and std below, else by the file's attributes */
        bool normalize;
        /* multiplies raw values first; 0: 1/255 for uint8, else 1 */
        double scale;
        ConfigList mean, std;
        /* DataShuffle */
        int shuffle;
        /* micro-batches kept ready; threads that fill them, 0: as many as suit */
        int64_t prefetch, workers;
    } data;
    struct {
        /* one of them; the other 0 */
        int64_t epochs, steps;
        /* global samples a step; samples a micro-batch (0: chosen) */
        int64_t batch, micro_batch;
        bool sync_batch_norm;
        int precision, reproducible, device,
            loss;        /* Precision, Reproducible, DeviceKind, LossName */
        int cuda_graphs; /* GraphsKind */
        /* "off", "time", or a file with a record of algorithms */
        char *cuda_tune;
        int cpu; /* CpuSet */
        double label_smoothing;
        /* fp16: the first one, a power of two */
        double loss_scale;
        int64_t loss_scale_steps;
        /* per rank; 0: the least share of the cores that one has */
        int64_t threads;
        /* epochs between evaluations; 0: only at the end */
        int64_t eval_every;
        /* evaluations in turn without a better one; 0: it never ends so */
        int64_t early_stop;
        double early_stop_delta;
        /* Auc */
        int auc;
        /* steps between metrics lines */
        int64_t log_every;
        double hang_s;
        /* bytes a rank may use; 0: what the machine has */
        double memory;
        /* OnBad */
        int on_bad;
        /* deviations above the last losses; 0: no loss is a spike */
        double spike;
        /* steps between comparisons of replicas; 0: none */
        int64_t check_every;
    } train;
    OptimConfig optim;
    struct {
        /* 0: ranks / (pp * tp) */
        int64_t dp;
        /* pipeline stages; tensor-parallel ranks */
        int64_t pp, tp;
        /* the job's last ranks, which hold rows of sparse tables and compute nothing */
        int64_t servers;
        /* TableMode; steps between borders, where it has any; of stale */
        int mode;
        int64_t geo_steps, staleness;
        /* Zero, ScheduleKind (schedules.def), Recompute */
        int zero, pipeline_schedule, recompute;
        /* where SCHEDULE_FILE */
        char *schedule_path;
        /* of each stage, at least 1 */
        int64_t chunks;
        /* first layer of each chunk but the first, by name: "a,b"; "": by cost */
        char *cuts;
        /* Transport; CommWay */
        int transport, sums;
        /* gradient bucket, MB */
        double bucket_mb;
    } grid;
    struct {
        int64_t every_steps, every_epochs, keep;
        double every_s;
        /* number of a row of best_metrics (train.h) */
        int best_metric;
        bool background, best;
        /* ResumeMode */
        int resume;
        /* where RESUME_FILE */
        char *resume_path;
    } checkpoint;
} Config;

/* A word that a key takes, said by the module that has the thing. */
typedef struct ConfigWord {
    /* "adamw" */
    const char *word;
    /* one line */
    const char *help;
    /* keys of the same section that it has a use for: "beta1 beta2 eps"; or NULL */
    const char *uses;
    /* and their defaults where they are others: "momentum=0.95"; or NULL */
    const char *defaults;
} ConfigWord;
typedef struct ConfigWords {
    /* "optim.name"; of a group's roles "optim.groups.roles" */
    const char *key;
    /* The word that stands for i, the default first; .word NULL behind the last. */
    ConfigWord (*word)(int i);
    /* Where word is NULL: all of them, "auto|shm|mpi", of which there is no more to say. */
    const char *text;
} ConfigWords;
/* Has it a use for that key of its section? What nobody has said anything of may have one for
 * all. */
bool word_uses(ConfigWord word, const char *leaf);
/* Which words the modules have, before anything is parsed. lists is borrowed for good. Of a key
 * without words only the default is known. Again: those of the same keys are replaced. */
void config_use_words(const ConfigWords *lists, int count);
/* Adds a later module's check of the keys, which runs when all are read; its error is reported with
 * all other errors. NULL: there is none. */
void config_use_check(Status (*check)(const Config *config));

/* Reads path and applies `count` overrides ("train.batch=64") over it, then the defaults and the
 * rules across keys. path may be NULL (defaults and overrides only). On error *config is released
 * and NULL. Owner: the caller. */
Status config_load(Config **config, const char *path, int count, char *const *overrides);
/* The same from text in memory; name stands for the file in messages. */
Status config_parse(Config **config, const char *name, const char *text, int count,
                    char *const *overrides);
void config_free(Config **config);
/* ERR_CONFIG with "file:line:column: " before the message, for modules that find a fault in a
 * ConfigAttr or key later. */
Status config_fail(const Config *config, int line, int column, const char *fmt, ...)
    BASE_PRINTF(4, 5);
/* ERR_CONFIG that names a key ("train.batch") and where it was set. */
Status config_fail_key(const Config *config, const char *key, const char *fmt, ...)
    BASE_PRINTF(3, 4);

/* Does the file or the command line set this key? */
bool config_says(const Config *config, const char *key);

/* The whole configuration as resolved, as YAML that config_load reads back to an equal Config. Text
 * owned by caller. */
char *config_text(const Config *config);
/* Do two such texts differ? Then a and b get the first line that does, as "section.key: value", or
 * "no section.key" where one lacks it, each of room bytes. */
bool config_difference(const char *x, const char *y, char *a, char *b, size_t room);

/* Says the width of a layer, in place of what model.widths says. */
void config_set_width(Config *config, const char *layer, int64_t channels);
/* Gives config the model.widths of another one, where it has none of its own. Has it changed? */
bool config_take_widths(Config *config, const Config *from);

/* ---- verbs and their flags ---- */

typedef enum FlagKind {
    FLAG_SWITCH,
    FLAG_TEXT,
    FLAG_WHOLE,
    FLAG_NUMBER,
    FLAG_CHOICE,
    FLAG_LIST
} FlagKind;
/* words between commas; none is empty */
typedef struct FlagList {
    int count;
    /* owned by the options: verb_options_fini */
    char **word;
} FlagList;
/* One flag of a verb. Parsing, checks, messages, help, man page and completion are loops over these
 * rows. */
typedef struct Flag {
    /* "--steps", "-o" */
    const char *name;
    FlagKind kind;
    /* in the verb's options. FLAG_FIELD sets this and the kind */
    size_t offset;
    /* stands for the value: "S"; of a choice its words: "cpu|cuda" */
    const char *value;
    /* what it is for; messages quote it up to the first ';' */
    const char *help;
    /* the default, as a user would write it; NULL: none, see verb_options_init */
    const char *fallback;
    /* range of numbers; hi at most FLAG_WHOLE_MOST */
    double lo, hi;
    /* lo itself is outside */
    bool lo_open;
    bool required;
    /* the flag without which this one means nothing; NULL: none */
    const char *needs;
} Flag;
#define FLAG_WHOLE_MOST 0x1p53 /* of a whole number: a double holds all up to this one */
/* The kind follows from the type of the field, so that they cannot disagree. */
#define FLAG_FIELD(Options, field)                                                                 \
    .kind = _Generic(((Options *)0)->field,                                                        \
        bool: FLAG_SWITCH,                                                                         \
        const char *: FLAG_TEXT,                                                                   \
        int64_t: FLAG_WHOLE,                                                                       \
        double: FLAG_NUMBER,                                                                       \
        int: FLAG_CHOICE,                                                                          \
        FlagList: FLAG_LIST),                                                                      \
    .offset = offsetof(Options, field)

enum {
    /* the first word is CONFIG, the others are key=value */
    VERB_CONFIG = 1,
    /* data.train must be set */
    VERB_DATA = 2,
    /* computes with OpenMP */
    VERB_THREADS = 4,
    /* works for long: a signal asks it to stop (stop_begin), and output that cannot be written is
     * no reason to fail */
    VERB_LASTS = 8,
    /* starts ranks by itself: -n is its own */
    VERB_STARTS = 16
};
/* One verb, or one importer. */
typedef struct Verb {
    /* "train", "data import idx" */
    const char *name;
    /* behind the name, beside flags: "CONFIG [key=value ...]"; NULL: none, and run refuses any */
    const char *words;
    /* How many words, where `expects` is set; most 0: any number. */
    int least, most;
    /* "two checkpoint files"; NULL: the verb checks its words. */
    const char *expects;
    /* one line */
    const char *help;
    /* further lines for `weft NAME --help`; NULL: none */
    const char *more;
    /* VERB_FLAGS sets these three */
    const Flag *flag;
    int flag_count;
    size_t options_bytes;
    /* VERB_ bits */
    int traits;
    /* The words that are no flags, and the options (a const Options *) that the flags filled. */
    Status (*run)(int argc, char **argv, const void *options);
} Verb;
#define VERB_FLAGS(Options, rows)                                                                  \
    .flag = (rows), .flag_count = sizeof(rows) / sizeof *(rows), .options_bytes = sizeof(Options)

/* Fills options (zeroed, verb->options_bytes) with the defaults and what the words say. The *argc
 * words that are no flags stay, in order; those behind "--" are none. Without a default a number
 * that is not given is below its range: lo - 1, or NaN; a choice is -1, a text NULL, a list empty.
 * Texts are borrowed from argv. ERR_USAGE. Release with verb_options_fini. */
Status verb_options_init(const Verb *verb, int *argc, char **argv, void *options);
void verb_options_fini(const Verb *verb, void *options);
/* The row of a flag, or NULL. */
const Flag *flag_find(const Verb *verb, const char *name);
/* The whole number that *text begins with, if it is from lo to hi; *text moves behind it. */
bool whole_read(const char **text, int64_t lo, int64_t hi, int64_t *value);
/* "3x224x224": count whole numbers of at least 1 and nothing else. */
bool sizes_read(const char *text, int count, int64_t *size);

/* Usage, meaning and flags of a verb, at most 100 columns wide; the same for the man page. */
void verb_print_help(FILE *out, const Verb *verb);
void verb_print_man(FILE *out, const Verb *verb);
/* Text from this column on, to column 100; further lines begin at the same column. Ends the
 * line. */
void print_wrapped(FILE *out, int column, const char *text);

/* Out of the table of keys: the help of all keys, a man page in roff (verbs_roff is inserted under
 * COMMANDS). With the verbs: a completion script for bash. */
void config_help(FILE *out);
/* Tables as lines "TABLE<tab>ROW<tab>MEANING": every key ("key"), and the words of each key that
 * takes words (the key). */
void config_tables(FILE *out);
void config_man(FILE *out, const char *verbs_roff);
void config_completion(FILE *out, const Verb *const *verbs, int count);

#endif
