/* config: makes a Config from a YAML file and key=value overrides, with one table of options. An
 * unknown key, a duplicate, a wrong type or a value out of range is ERR_CONFIG with file, line and
 * column, before MPI starts. The same table makes the help, the man page, the shell completion and
 * the resolved configuration. Verbs and their flags are rows of tables, too (config/verb.h). Not
 * collective. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "base.h"
#include "config/values.h"
#include "config/verb.h"

/* Values of model.size, W(constant, "word"). They are defined here because the module data needs
 * them to cut token sets into samples of the model's context, and data may not include model.h. */
#define GPT_WORDS(W)                                                                               \
    W(GPT_OWN, "own")                                                                              \
    W(GPT_124M, "124m") W(GPT_355M, "355m") W(GPT_774M, "774m") W(GPT_1558M, "1558m")
typedef enum GptSize { GPT_WORDS(LIST_CONSTANT) } GptSize;
/* Value of the field checkpoint.resume if the key has a path instead of a word. */
enum { RESUME_FILE = -1 };

/* Section optim: the update rule, its constants and the curve of the learning rate; options.c has
 * the help of each key. name and lr_schedule are row numbers in tables of the optim module. */
typedef struct OptimConfig {
    int name, lr_schedule;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip, trust, lr_end, power, gamma;
    /* constants of ftrl */
    double l1, l2, beta;
    /* factor of the L1 penalty on the scales of batch norms: slim times the sign of a scale is
     * added to the scale's gradient; 0: none */
    double slim;
    /* plateau: patience: number of evaluations without improvement; threshold: relative improvement
     * that counts */
    int64_t patience;
    double threshold;
    /* nesterov: true for Nesterov momentum. decay_all: true if weight decay also applies to biases
     * and norms. */
    bool nesterov, decay_all;
    /* muon: LrAdjust */
    int lr_adjust;
    /* lbfgs: number of pairs (step, change of the gradient) that are kept */
    int64_t history;
    /* multistep: epochs at which the learning rate falls */
    ConfigList milestones;
    /* wsd: fraction of the steps after the warm-up in which the rate falls; DecayShape */
    double decay_fraction;
    int decay_shape;
    /* onecycle: fraction of the steps in which the rate rises; lr divided by the first rate; the
     * first rate divided by the last; AnnealStrategy */
    double pct_start, div_factor, final_div_factor;
    int anneal_strategy;
    int64_t warmup_steps;
    double warmup_epochs;
    /* at the start of the warm-up: learning rate of biases, and momentum; -1: not set */
    double warmup_bias_lr, warmup_momentum;
    /* factor on the learning rate from each depth group to the next one closer to the input */
    double layer_decay;
    int group_count;
    /* owned */
    struct OptimGroup *group;
} OptimConfig;
/* One entry of optim.groups: parameters that have other optimizer options. */
typedef struct OptimGroup {
    int match_count;
    /* patterns on parameter names (fnmatch), owned; empty: any name */
    char **match;
    /* a bit for each ParamRole (optim.h); 0: any role */
    int roles;
    /* factor on the learning rate of each step; 0: not given */
    double lr_scale;
    /* all options of the group, set by groups_resolve, before which only those of `given` are set;
     * owns nothing */
    OptimConfig resolved;
    /* bit i: the group sets the key with index i within section optim */
    uint64_t given;
    /* position of the entry in the file, counted from 1; 0: from the command line */
    int line, column;
} OptimGroup;

/* All keys by section; options.c has the help of each key. A key whose value is a word is an int: a
 * constant of the enum named in the comment, which is in the header of the module to which the key
 * belongs. */
typedef struct Config {
    /* path of the file or name of the text, for messages; owned, as is every char * below */
    char *path;
    /* source and line of each key, an entry for each row of the option table; owned; private to the
     * config module; may be NULL */
    struct ConfigPlace *place;
    struct {
        /* the run's folder is dir/name */
        char *name, *dir;
        int64_t seed;
        /* true: an earlier run in the folder is moved away (fresh); trace.json is written (trace);
         * the trace's spans are also given to NVIDIA's profilers (nvtx); training waits for the
         * hook (hook_wait); the place of each rank is printed (map) */
        bool fresh, trace, nvtx, hook_wait, map;
        /* shell command; "": none */
        char *hook;
        /* a bit for each event of run.hook_on (train.h); 0: all events */
        int hook_on;
        /* time limit of the hook in seconds */
        double hook_s;
        /* order_log: folder to which servers write the order in which they answer ranks; replay:
         * folder from which servers read this order to repeat it */
        char *order_log, *replay;
        /* file of weft bench machine; "": none */
        char *machine;
        /* seconds after which the run stops; 0: no limit */
        double max_time;
        /* seconds between the heartbeats that the run writes to its folder */
        double heartbeat_s;
    } run;
    struct {
        /* name of a model of the zoo; "" if model.layers lists layers */
        char *name;
        /* Stem */
        int stem;
        /* number of classes; 0: the number in the data set */
        int64_t classes;
        /* dropout probability; below 0: the model's default */
        double dropout;
        /* widths of the perceptron of mlp, wide_deep and deepfm, and of dlrm's top */
        ConfigList hidden;
        /* mlp, unet, fieldresnet, columns: a constant of the enum Act minus 1; activation_layer
         * returns the name of its layer */
        int activation;
        /* widths of dlrm's bottom */
        ConfigList bottom;
        /* unet: channels of each level; Up and Down; residual: true if a block adds its input to
         * its output. norm: FieldNorm of unet, fieldresnet and columns. pad_mode: modes of padding
         * of unet and fieldresnet, "a", or "a,b" for rows and columns */
        ConfigList channels;
        int norm, up, down;
        bool residual;
        char *pad_mode;
        /* attention: heads of attention on the smallest level of unet; film: width of the
         * perceptron of unet and fieldresnet that computes scales and shifts of channels from
         * scalars; 0: none */
        int64_t attention, film;
        /* detectors: factors on the repeats of blocks and on channels; 0: the model's own */
        double depth_multiple, width_multiple;
        /* detectors: widths and heights of anchors in pixels; empty: the model's own */
        ConfigList anchors;
        /* names of the layers that the loss reads, "a,b"; "": the last layer, or the model's own
         * choice */
        char *outputs;
        /* gpt2: GptSize */
        int size;
        /* gpt2: Positions */
        int positions;
        /* gpt2, llama, unet, fieldresnet, columns: number of blocks, from model.layers: N; 0: the
         * model's default */
        int64_t depth;
        /* width of the vectors, or of the first layers of some models; 0: the model's default */
        int64_t width;
        /* gpt2, llama: attention heads; 0: the model's default */
        int64_t heads;
        /* tokens in a sample; 0: the model's default */
        int64_t context;
        /* llama: heads of keys and values; 0: as many as heads */
        int64_t kv_heads;
        /* llama: width of the feed-forward layers; 0: 8/3 of width */
        int64_t ffn;
        /* llama: base of the rotary angles */
        double rotary_base;
        /* llama: added to the mean square in rms_norm */
        double rms_eps;
        /* true (llama): the head uses the embedding's weight */
        bool tied;
        /* true (llama): queries, keys and values have biases */
        bool qkv_bias;
        /* llama: how rotary angles are scaled for longer contexts */
        ConfigPairs rope_scaling;
        /* llama: number of keys that a query attends to; 0: all */
        int64_t window;
        /* llama: first block with this window, counted from 0 */
        int64_t window_from;
        /* number of tokens in the vocabulary, or of rows of each table; 0: the number that the data
         * set gives */
        int64_t vocab;
        int layer_count;
        /* model.layers as a list; owned */
        ConfigLayer *layer;
        /* channels of layers by name; each layer at most once */
        ConfigWidths widths;
        /* checkpoint from which parameters are taken; NULL if not set */
        char *init_from;
        /* patterns "a,b" of layers or tensors that keep their initial values; "": the classifier if
         * its size differs */
        char *init_fresh;
        /* replacements "old:new,..." of prefixes of the names in the file */
        char *init_rename;
        /* true: the moving average of the parameters is loaded if the file has it */
        bool init_ema;
        /* patterns "a,b" of layers or parameters that are not trained */
        char *freeze;
        /* FreezeNorm */
        int freeze_norm;
    } model;
    struct {
        /* HDF5 files, or patterns of files, separated by '\n'; NULL if not set */
        char *train, *test;
        /* names of the data sets in the files; default /x and /y */
        char *x, *y;
        /* DataLayout of x in the file */
        int layout;
        /* label of the first class in the file */
        int64_t label_base;
        /* AUGMENT_ bits (data/config_words.h) */
        int augment;
        int64_t crop_pad, cutout_size;
        /* side lengths in pixels; 0: the step is skipped, except that center_crop is then the
         * random crop's side, and resize of encoded pictures 8/7 of the crop */
        int64_t resize, random_resized_crop, random_crop, center_crop;
        /* random resized crop. crop_scale: smallest and largest fraction of the area; crop_ratio:
         * smallest and largest ratio of width to height */
        ConfigList crop_scale, crop_ratio;
        /* sets of boxes. letterbox: side in pixels of the square that contains a whole picture, 0:
         * the stored side; mosaic: probability that four pictures are joined into one input;
         * affine_scale: smallest and largest factor, or empty; affine_shift: largest shift in each
         * direction, as a fraction of the side */
        int64_t letterbox;
        double mosaic, affine_shift;
        ConfigList affine_scale;
        /* ImageFilter */
        int filter;
        /* strengths of changes of brightness, contrast, saturation and hue, or empty */
        ConfigList color_jitter;
        /* erasing: probability; mixup, cutmix: parameter of the Beta distribution; 0: off */
        double erasing, mixup, cutmix;
        /* true: values are normalized by mean and std below, or by the file's attributes if these
         * are empty */
        bool normalize;
        /* factor on raw values, before normalizing; 0: 1/255 for uint8, else 1 */
        double scale;
        ConfigList mean, std;
        /* sets of fields: variables and their roles, offsets in time, FieldPredict */
        ConfigVariables variables;
        ConfigWindow window;
        int predict;
        /* sets of fields: times of the training set and of the test set */
        ConfigTimes train_time, test_time;
        ConfigPatch patch;
        /* DataRefresh */
        int refresh;
        /* file with mean and deviation of each variable; "": they are measured */
        char *stats;
        /* sets of fields: name of the variable with the weight, 0 to 1, of each pixel of the
         * targets; "": all weights are 1 */
        char *mask;
        /* DataShuffle */
        int shuffle;
        /* prefetch: micro-batches prepared ahead; workers: threads that prepare them, 0:
         * automatic */
        int64_t prefetch, workers;
    } data;
    struct {
        /* length of the training, in epochs or in steps; the other of the two is 0 */
        int64_t epochs, steps;
        /* batch: samples of a step over all ranks; micro_batch: samples of a micro-batch, 0:
         * automatic */
        int64_t batch, micro_batch;
        /* true: batch_norm takes statistics over the micro-batches that all replicas process at the
         * same time */
        bool sync_batch_norm;
        /* Precision, Reproducible, DeviceKind, LossName */
        int precision, reproducible, device, loss;
        /* number of slices of each sum that a tensor-parallel group can divide: a power of two; 0:
         * automatic */
        int64_t sum_slices;
        /* GraphsKind */
        int cuda_graphs;
        /* "off", "time", or the path of a file that records algorithms */
        char *cuda_tune;
        /* CpuSet */
        int cpu;
        double label_smoothing, huber_delta, charbonnier_eps, focal_gamma;
        /* weight of each class; empty: all 1 */
        ConfigList class_weights;
        /* sets of fields: number of times that the model is applied, each time to its own
         * outputs */
        int64_t rollout;
        /* fp16: initial loss scale, a power of two; number of steps without overflow after which it
         * doubles */
        double loss_scale;
        int64_t loss_scale_steps;
        /* threads of each rank; 0: the smallest number of cores that any rank may use */
        int64_t threads;
        /* epochs between evaluations; 0: only at the end */
        int64_t eval_every;
        /* consecutive evaluations without improvement after which training ends, 0: never; smallest
         * improvement that counts */
        int64_t early_stop;
        double early_stop_delta;
        /* decay of the moving average of the parameters, 0: no average; number r of updates over
         * which the decay rises: after update t it is ema (1 - exp(-t / r)) */
        double ema, ema_ramp;
        /* Auc */
        int auc;
        /* true: rows are weighted by the cosine of their latitude in metrics of fields
         * (eval_latitude) and in losses on fields (latitude_weights) */
        bool eval_latitude, latitude_weights;
        /* number of targets of fields that are drawn after an evaluation */
        int64_t eval_pictures;
        /* true: the gradient noise scale is measured */
        bool grad_noise;
        /* steps between lines of metrics.jsonl */
        int64_t log_every;
        /* seconds without progress of any rank after which the job ends; 0: no limit */
        double hang_s;
        /* bytes that a rank may use; 0: its device's free memory, or its share of the host's
         * memory */
        double memory;
        /* OnBad */
        int on_bad;
        /* a loss is a spike if it is this number of standard deviations above the mean of recent
         * losses; 0: never */
        double spike;
        /* steps between checks that the state is finite and that replicas are equal; 0: only before
         * evaluations, checkpoints and hooks */
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
        /* TableMode; steps between sync points; delay of mode stale in steps */
        int mode;
        int64_t geo_steps, staleness;
        /* Zero, ScheduleKind (schedules.def), Recompute */
        int zero, pipeline_schedule, recompute;
        /* "auto", or the path of a map of places (topo.h); "": the launcher's order */
        char *rank_map;
        /* path of the schedule if pipeline_schedule is SCHEDULE_FILE */
        char *schedule_path;
        /* chunks of each stage, at least 1 once the configuration is loaded */
        int64_t chunks;
        /* names "a,b" of the first layers of all chunks except the first; "": chosen by cost */
        char *cuts;
        /* Transport; CommWay */
        int transport, sums;
        /* size of a gradient bucket, in MB (10^6 bytes) */
        double bucket_mb;
    } grid;
    struct {
        /* steps, epochs and seconds between checkpoints; 0: this measure is not used */
        int64_t every_steps, every_epochs;
        double every_s;
        /* number of newest checkpoints to keep; 0: all */
        int64_t keep;
        /* row number in `metrics` of src/train/eval/best.c */
        int best_metric;
        /* true: checkpoints are written while training continues (background); the checkpoint of
         * the best evaluation is kept (best) */
        bool background, best;
        /* ResumeMode */
        int resume;
        /* path of the checkpoint if resume is RESUME_FILE */
        char *resume_path;
    } checkpoint;
} Config;

/* A word that a key accepts, as defined by the module to which the key belongs. */
typedef struct ConfigWord {
    /* "adamw" */
    const char *word;
    /* help, one line */
    const char *help;
    /* keys of the same section that this word uses: "beta1 beta2 eps"; or NULL */
    const char *uses;
    /* the word's own defaults of keys, "momentum=0.95", if they differ from the option table; or
     * NULL */
    const char *defaults;
} ConfigWord;
typedef struct ConfigWords {
    /* the key: "optim.name"; for the roles of a group "optim.groups.roles" */
    const char *key;
    /* Returns word i; word 0 is the default of a key that takes one word, except for model.name.
     * After the last word .word is NULL. */
    ConfigWord (*word)(int i);
    /* if word is NULL: all words, "auto|shm|mpi", without help */
    const char *text;
} ConfigWords;
/* True if the word uses this key of its section. A word without a definition (.word NULL) uses
 * every key. */
bool word_uses(ConfigWord word, const char *leaf);
/* Registers the modules' words, before anything is parsed. lists must live as long as the program.
 * A second list of the same key replaces the first. A key whose words are not registered accepts
 * only its default. */
void config_use_words(const ConfigWords *lists, int count);
/* Checks the registered words. ERR_BUG names a word that has no help, uses a key that is not in its
 * section, or has a default of a key that it does not use. */
Status config_words_check(void);
/* Registers a check of another module. It is called when all keys have been read, before the rules
 * across keys set further defaults, and its error is reported together with those of keys. NULL: no
 * check. */
void config_use_check(Status (*check)(const Config *config));

/* Reads path, applies `count` overrides ("train.batch=64"), sets defaults and checks the rules
 * across keys. path NULL: only defaults and overrides. ERR_NOINPUT or ERR_IO: the file cannot be
 * opened or read; ERR_CONFIG: a value or rule is violated. On error *config is NULL. The caller
 * owns *config. */
Status config_load(Config **config, const char *path, int count, char *const *overrides);
/* Does the same with text in memory (NULL: none). name: name of the text in messages. */
Status config_parse(Config **config, const char *name, const char *text, int count,
                    char *const *overrides);
void config_free(Config **config);
/* Fails with ERR_CONFIG and "file:line:column: " before the message, or "command line: " if line is
 * 0, for modules that find an error in a ConfigAttr. */
Status config_fail(const Config *config, int line, int column, const char *fmt, ...)
    BASE_PRINTF(4, 5);
/* Fails with ERR_CONFIG; the message names a key ("train.batch") and where it was set. */
Status config_fail_key(const Config *config, const char *key, const char *fmt, ...)
    BASE_PRINTF(3, 4);

/* True if the file or the command line sets this key. */
bool config_key_is_set(const Config *config, const char *key);

/* Returns the resolved configuration as YAML, which config_load reads back to an equal Config. The
 * caller owns the text. */
char *config_text(const Config *config);
/* Returns the value of a key as YAML, "[a, b]". The caller owns it. */
char *config_key_text(const Config *config, const char *key);
/* Compares two texts of config_text; returns true if they differ. The first difference is then
 * written to from_x and from_y (`bytes` bytes each) as "section.key: value", or "no section.key"
 * for a text without the key; of a list, its first entry that differs, "section.key: - value". */
bool config_difference(const char *x, const char *y, char *from_x, char *from_y, size_t bytes);

/* Sets the channels of a layer in model.widths. */
void config_set_width(Config *config, const char *layer, int64_t channels);
/* Copies model.widths of another configuration, unless config has its own. Returns true if it
 * copied any. */
bool config_copy_widths(Config *config, const Config *from);

/* Prints the help of all keys. */
void config_help(FILE *out);
/* Prints lines "TABLE<tab>ROW<tab>MEANING": all keys (table "key"), and for each key that takes
 * words its words (table: the key). */
void config_tables(FILE *out);
/* Prints the man page in roff, with verbs_roff under COMMANDS. */
void config_man(FILE *out, const char *verbs_roff);
/* Prints a completion script for bash. */
void config_completion(FILE *out, const Verb *const *verbs, int count);

#endif
