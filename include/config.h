/* config: one YAML file and key=value overrides -> Config, through one option table. Strict: an unknown key, a
 * duplicate, a wrong type or range is ERR_CONFIG with file, line and column, before MPI does anything. The table also
 * makes the help text, the man page, the shell completion and the resolved file. Verbs and their flags are rows of the same
 * kind. Not collective. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "base.h"

/* The words of keys, W(constant, "word"), in order; one list is the enum, the key's words and its names. */
#define STEM_WORDS(W) W(STEM_IMAGENET, "imagenet") W(STEM_SMALL, "small")
#define PRECISION_WORDS(W)                                                                         \
    W(PRECISION_FP32, "fp32")                                                                      \
    W(PRECISION_BF16, "bf16") W(PRECISION_FP16, "fp16") W(PRECISION_TF32, "tf32")
#define POSITIONS_WORDS(W) W(POSITIONS_LEARNED, "learned") W(POSITIONS_ROTARY, "rotary")
#define GPT_WORDS(W)                                                                               \
    W(GPT_OWN, "own")                                                                              \
    W(GPT_124M, "124m") W(GPT_355M, "355m") W(GPT_774M, "774m") W(GPT_1558M, "1558m")
#define ZERO_WORDS(W)                                                                              \
    W(ZERO_NONE, "0") W(ZERO_STATE, "1") W(ZERO_GRADIENTS, "2") W(ZERO_PARAMS, "3")
#define RECOMPUTE_WORDS(W)                                                                         \
    W(RECOMPUTE_NONE, "none") W(RECOMPUTE_BLOCK, "block") W(RECOMPUTE_AUTO, "auto")
#define REPRODUCIBLE_WORDS(W)                                                                      \
    W(REPRODUCIBLE_ANY_GRID, "any_grid") W(REPRODUCIBLE_SAME_GRID, "same_grid")
#define DEVICE_WORDS(W) W(DEVICE_AUTO, "auto") W(DEVICE_CPU, "cpu") W(DEVICE_CUDA, "cuda")
#define GRAPHS_WORDS(W) W(GRAPHS_AUTO, "auto") W(GRAPHS_OFF, "off")
#define TRANSPORT_WORDS(W)                                                                         \
    W(TRANSPORT_AUTO, "auto")                                                                      \
    W(TRANSPORT_SHM, "shm") W(TRANSPORT_MPI, "mpi") W(TRANSPORT_NCCL, "nccl")
#define LR_ADJUST_WORDS(W) W(LR_ADJUST_ORIGINAL, "original") W(LR_ADJUST_MATCH_RMS, "match_rms")
#define ROLE_WORDS(W)                                                                              \
    W(PARAM_WEIGHT, "weight")                                                                      \
    W(PARAM_BIAS, "bias")                                                                          \
    W(PARAM_NORM, "norm") W(PARAM_EMBEDDING, "embedding") W(PARAM_HEAD, "head")
#define LAYOUT_WORDS(W) W(LAYOUT_NCHW, "nchw") W(LAYOUT_NHWC, "nhwc")
#define LOSS_WORDS(W)   W(LOSS_SOFTMAX, "softmax") W(LOSS_MSE, "mse")
#define RESUME_WORDS(W) W(RESUME_AUTO, "auto") W(RESUME_NO, "no")
/* a bit each */
#define AUGMENT_WORDS(W) W(AUGMENT_FLIP, "flip") W(AUGMENT_CROP, "crop") W(AUGMENT_CUTOUT, "cutout")

typedef enum Stem { STEM_WORDS(WORD_CONSTANT) } Stem;
typedef enum Precision { PRECISION_WORDS(WORD_CONSTANT) } Precision;
typedef enum Positions { POSITIONS_WORDS(WORD_CONSTANT) } Positions;
typedef enum GptSize { GPT_WORDS(WORD_CONSTANT) } GptSize;
typedef enum Zero { ZERO_WORDS(WORD_CONSTANT) } Zero;
typedef enum Recompute { RECOMPUTE_WORDS(WORD_CONSTANT) } Recompute;
typedef enum Reproducible { REPRODUCIBLE_WORDS(WORD_CONSTANT) } Reproducible;
typedef enum DeviceKind { DEVICE_WORDS(WORD_CONSTANT) } DeviceKind;
typedef enum GraphsKind { GRAPHS_WORDS(WORD_CONSTANT) } GraphsKind;
typedef enum LrAdjust { LR_ADJUST_WORDS(WORD_CONSTANT) } LrAdjust;
/* What a parameter is to its layer. Embeddings are tables of vectors, of tokens or of positions; the head is the weight of the
 * last layer before the loss. */
typedef enum ParamRole { ROLE_WORDS(WORD_CONSTANT) PARAM_ROLES } ParamRole;
typedef enum Transport { TRANSPORT_WORDS(WORD_CONSTANT) } Transport;
typedef enum DataLayout { LAYOUT_WORDS(WORD_CONSTANT) } DataLayout;
typedef enum LossName { LOSS_WORDS(WORD_CONSTANT) } LossName;
typedef enum ResumeMode { RESUME_WORDS(WORD_CONSTANT) RESUME_FILE } ResumeMode;
enum { AUGMENT_WORDS(WORD_NUMBER) };
enum { AUGMENT_WORDS(WORD_BIT) };

/* One `key: value` of a layer in model.layers, as text with its place, for the layers module to read. */
typedef struct ConfigAttr {
    char *key, *value; /* owned; a flow list [a, b] arrives as "a,b" */
    int line, column;
} ConfigAttr;
/* One entry of model.layers: `- conv2d: {channels: 32, kernel: 3}` or `- relu`. */
typedef struct ConfigLayer {
    char *kind; /* owned */
    int line, column;
    int attr_count;
    ConfigAttr *attr; /* owned */
} ConfigLayer;

typedef struct ConfigList { /* list of numbers */
    int count;
    double *value; /* owned */
} ConfigList;

/* optim: the rule, its constants, the curve of its rate. name and lr_schedule are rows of the optim module's tables. */
typedef struct OptimConfig {
    int name, lr_schedule;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip, trust, lr_end, power, gamma;
    bool nesterov, decay_all; /* decay_all: biases and norms decay, too */
    int lr_adjust;            /* muon: LrAdjust */
    ConfigList milestones;    /* multistep: epochs */
    int64_t warmup_steps;
    double warmup_epochs;
    int group_count;
    struct OptimGroup *group; /* owned */
} OptimConfig;
/* One entry of optim.groups: parameters that are updated in another way. */
typedef struct OptimGroup {
    int match_count;
    char **match;     /* owned: patterns on names (fnmatch); none: any name */
    int roles;        /* a bit for each ParamRole; 0: any */
    double lr_factor; /* on the rate of each step */
    OptimConfig own;  /* resolved: what the group says, else what optim says; it owns nothing */
    uint64_t given;   /* a bit for each key of optim that the group gives, by its place in it */
    int line, column;
} OptimGroup;

typedef struct Config {
    char *path; /* of the file, for messages; owned like every char * below */
    struct ConfigPlace
        *place; /* where each key was set; owned, the config module's own; may be NULL */
    struct {
        char *name, *dir; /* a run lives in dir/name */
        int64_t seed;
        bool fresh, trace, nvtx;
    } run;
    struct {
        char *name;          /* zoo name; "" where layers are listed */
        int stem;            /* Stem */
        int64_t classes;     /* 0: as the data set says */
        double dropout;      /* < 0: the model's own */
        ConfigList hidden;   /* mlp: widths */
        int size, positions; /* gpt2: GptSize, Positions */
        int64_t depth, width, heads,
            context;                 /* gpt2, llama; depth: model.layers: N; 0: as size says */
        int64_t kv_heads, ffn;       /* llama; 0: heads; 8/3 of the width */
        double rotary_base, rms_eps; /* llama */
        bool tied;                   /* llama: the head has the embedding's weight */
        int64_t vocab;               /* 0: as the data set says */
        int layer_count;
        ConfigLayer *layer; /* owned */
    } model;
    struct {
        char *train, *test; /* HDF5 files; NULL where not set */
        char *x, *y;        /* data set names inside, default /x and /y */
        int layout;         /* DataLayout of x in the file */
        int augment;        /* AUGMENT_ bits */
        int64_t crop_pad, cutout_size;
        bool normalize; /* by mean and std below, else by the file's attributes */
        double scale;   /* multiplies raw values first; 0: 1/255 for uint8, else 1 */
        ConfigList mean, std;
        int64_t prefetch; /* micro-batches kept ready */
    } data;
    struct {
        int64_t epochs, steps;      /* one of them; the other 0 */
        int64_t batch, micro_batch; /* global samples a step; samples a micro-batch (0: chosen) */
        int precision, reproducible, device,
            loss;        /* Precision, Reproducible, DeviceKind, LossName */
        int cuda_graphs; /* GraphsKind */
        double label_smoothing;
        double loss_scale; /* fp16: the first one, a power of two */
        int64_t loss_scale_steps;
        int64_t threads;    /* per rank; 0: this rank's share of the cores */
        int64_t eval_every; /* epochs between evaluations; 0: only at the end */
        int64_t log_every;  /* steps between metrics lines */
        double memory;      /* bytes a rank may use; 0: what the machine has */
    } train;
    OptimConfig optim;
    struct {
        int64_t dp;                             /* 0: ranks / (pp * tp) */
        int64_t pp, tp;                         /* pipeline stages; tensor-parallel ranks */
        int zero, pipeline_schedule, recompute; /* Zero, ScheduleKind (schedules.def), Recompute */
        char *schedule_path;                    /* where SCHEDULE_FILE */
        int64_t chunks;                         /* of each stage, at least 1 */
        char *cuts;       /* first layer of each chunk but the first, by name: "a,b"; "": by cost */
        int transport;    /* Transport */
        double bucket_mb; /* gradient bucket, MB */
    } grid;
    struct {
        int64_t every_steps, keep;
        double every_s;
        bool best;
        int resume;        /* ResumeMode */
        char *resume_path; /* where RESUME_FILE */
    } checkpoint;
} Config;

/* A word that a key takes, said by the module that has the thing. */
typedef struct ConfigWord {
    const char *word; /* "adamw" */
    const char *help; /* one line */
    const char
        *uses; /* keys of the same section that it has a use for: "beta1 beta2 eps"; or NULL */
    const char *defaults; /* and their defaults where they are others: "momentum=0.95"; or NULL */
} ConfigWord;
typedef struct ConfigWords {
    const char *key; /* "optim.name" */
    /* The word that stands for i, the default first; .word NULL behind the last. */
    ConfigWord (*word)(int i);
} ConfigWords;
/* Which words the modules have, before anything is parsed. lists is borrowed for good. Of a key without words only the default is
 * known. Again: those of the same keys are replaced. */
void config_use_words(const ConfigWords *lists, int count);

/* Reads path and applies `count` overrides ("train.batch=64") over it, then the defaults and the rules across keys.
 * path may be NULL (defaults and overrides only). On error *config is released and NULL. Owner: the caller. */
Status config_load(Config **config, const char *path, int count, char *const *overrides);
/* The same from text in memory; name stands for the file in messages. */
Status config_parse(Config **config, const char *name, const char *text, int count,
                    char *const *overrides);
void config_free(Config **config);
/* ERR_CONFIG with "file:line:column: " before the message, for modules that find a fault in a ConfigAttr or key later. */
Status config_fail(const Config *config, int line, int column, const char *fmt, ...)
    BASE_PRINTF(4, 5);
/* ERR_CONFIG that names a key ("train.batch") and where it was set. */
Status config_fail_key(const Config *config, const char *key, const char *fmt, ...)
    BASE_PRINTF(3, 4);

/* The whole configuration as resolved, as YAML that config_load reads back to an equal Config. Text owned by caller. */
char *config_text(const Config *config);
/* Do two such texts differ? Then a and b get the first line that does, as "section.key: value", or "no section.key" where
 * one lacks it, each of room bytes. */
bool config_difference(const char *x, const char *y, char *a, char *b, size_t room);

/* ---- verbs and their flags ---- */

typedef enum FlagKind {
    FLAG_SWITCH,
    FLAG_TEXT,
    FLAG_WHOLE,
    FLAG_NUMBER,
    FLAG_CHOICE,
    FLAG_LIST
} FlagKind;
typedef struct FlagList { /* words between commas; none is empty */
    int count;
    char **word; /* owned by the options: verb_options_fini */
} FlagList;
/* One flag of a verb. Parsing, checks, messages, help, man page and completion are loops over these rows. */
typedef struct Flag {
    const char *name; /* "--steps", "-o" */
    FlagKind kind;
    size_t offset;     /* in the verb's options. FLAG_FIELD sets this and the kind */
    const char *value; /* stands for the value: "S"; of a choice its words: "cpu|cuda" */
    const char *help;  /* what it is for; messages quote it up to the first ';' */
    const char
        *fallback; /* the default, as a user would write it; NULL: none, see verb_options_init */
    double lo, hi; /* range of numbers; hi at most FLAG_WHOLE_MOST */
    bool lo_open;  /* lo itself is outside */
    bool required;
    const char *needs; /* the flag without which this one means nothing; NULL: none */
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
    VERB_CONFIG = 1,  /* the first word is CONFIG, the others are key=value */
    VERB_DATA = 2,    /* data.train must be set */
    VERB_THREADS = 4, /* computes with OpenMP */
    /* works for long: a signal asks it to stop (stop_begin), and output that cannot be written is no reason to fail */
    VERB_LASTS = 8
};
/* One verb, or one importer. */
typedef struct Verb {
    const char *name;  /* "train", "data import idx" */
    const char *words; /* behind the name, beside flags: "CONFIG [key=value ...]"; or "" */
    /* How many words, where `expects` is set; most 0: any number. */
    int least, most;
    /* "two checkpoint files"; NULL: the verb checks its words. */
    const char *expects;
    const char *help; /* one line */
    const char *more; /* further lines for `weft NAME --help`; NULL: none */
    const Flag *flag; /* VERB_FLAGS sets these three */
    int flag_count;
    size_t options_bytes;
    int traits; /* VERB_ bits */
    /* The words that are no flags, and the options (a const Options *) that the flags filled. */
    Status (*run)(int argc, char **argv, const void *options);
} Verb;
#define VERB_FLAGS(Options, rows)                                                                  \
    .flag = (rows), .flag_count = sizeof(rows) / sizeof *(rows), .options_bytes = sizeof(Options)

/* Fills options (zeroed, verb->options_bytes) with the defaults and what the words say. The *argc words that are no flags stay,
 * in order; those behind "--" are none. Without a default a number that is not given is below its range: lo - 1, or NaN; a choice
 * is -1, a text NULL, a list empty. Texts are borrowed from argv. ERR_USAGE. Release with verb_options_fini. */
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
/* Text from this column on, to column 100; further lines begin at the same column. Ends the line. */
void print_wrapped(FILE *out, int column, const char *text);

/* Out of the table of keys: the help of all keys, a man page in roff (verbs_roff is inserted under COMMANDS). With the verbs: a
 * completion script for bash. */
void config_help(FILE *out);
void config_man(FILE *out, const char *verbs_roff);
void config_completion(FILE *out, const Verb *const *verbs, int count);

#endif
