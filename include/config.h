/* config: one YAML file and key=value overrides -> Config, through one option table. Strict: an unknown key, a
 * duplicate, a wrong type or range is ERR_CONFIG with file, line and column, before MPI does anything. The table also
 * makes the help text, the man page, the shell completion and the resolved file. Not collective. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "base.h"

typedef enum Stem { STEM_IMAGENET, STEM_SMALL } Stem;
typedef enum Precision { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16, PRECISION_TF32 } Precision;
typedef enum Positions { POSITIONS_LEARNED, POSITIONS_ROTARY } Positions;
typedef enum GptSize { GPT_OWN, GPT_124M, GPT_355M, GPT_774M, GPT_1558M } GptSize;
typedef enum Zero { ZERO_NONE, ZERO_STATE, ZERO_GRADIENTS, ZERO_PARAMS } Zero;
typedef enum ScheduleKind {
    SCHEDULE_1F1B,
    SCHEDULE_GPIPE,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZERO_BUBBLE,
    SCHEDULE_FILE
} ScheduleKind;
typedef enum Recompute { RECOMPUTE_NONE, RECOMPUTE_BLOCK, RECOMPUTE_AUTO } Recompute;
typedef enum Reproducible { REPRODUCIBLE_ANY_GRID, REPRODUCIBLE_SAME_GRID } Reproducible;
typedef enum DeviceKind { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA } DeviceKind;
typedef enum GraphsKind { GRAPHS_AUTO, GRAPHS_OFF } GraphsKind;
typedef enum OptimName { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LARS, OPTIM_LAMB } OptimName;
typedef enum LrSchedule {
    LR_CONSTANT,
    LR_MULTISTEP,
    LR_COSINE,
    LR_LINEAR,
    LR_POLYNOMIAL
} LrSchedule;
typedef enum Transport { TRANSPORT_AUTO, TRANSPORT_SHM, TRANSPORT_MPI, TRANSPORT_NCCL } Transport;
typedef enum DataLayout { LAYOUT_NCHW, LAYOUT_NHWC } DataLayout;
typedef enum LossName { LOSS_SOFTMAX, LOSS_MSE } LossName;
typedef enum ResumeMode { RESUME_AUTO, RESUME_NO, RESUME_FILE } ResumeMode;
enum { AUGMENT_FLIP = 1, AUGMENT_CROP = 2, AUGMENT_CUTOUT = 4 }; /* a bit each */

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
        char *name;                           /* zoo name; "" where layers are listed */
        int stem;                             /* Stem */
        int64_t classes;                      /* 0: as the data set says */
        double dropout;                       /* < 0: the model's own */
        ConfigList hidden;                    /* mlp: widths */
        int size, positions;                  /* gpt2: GptSize, Positions */
        int64_t depth, width, heads, context; /* gpt2; depth: model.layers: N; 0: as size says */
        int64_t vocab;                        /* 0: as the data set says */
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
    struct {
        int name, lr_schedule; /* OptimName, LrSchedule */
        double lr, momentum, beta1, beta2, eps, weight_decay, clip, trust, lr_end, power, gamma;
        bool nesterov, decay_all; /* decay_all: biases and norms decay, too */
        ConfigList milestones;    /* multistep: epochs */
        int64_t warmup_steps;
        double warmup_epochs;
    } optim;
    struct {
        int64_t dp;                             /* 0: ranks / (pp * tp) */
        int64_t pp, tp;                         /* pipeline stages; tensor-parallel ranks */
        int zero, pipeline_schedule, recompute; /* Zero, ScheduleKind, Recompute */
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

/* Out of the same table: the help of all keys, a man page in roff (verbs_roff is inserted under COMMANDS), a bash
 * completion script for the given verbs. */
void config_help(FILE *out);
void config_man(FILE *out, const char *verbs_roff);
void config_completion(FILE *out, const char *const *verbs, int count);

#endif
