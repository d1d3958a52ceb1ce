/* config: makes a Config from a YAML file and key=value overrides, with one table of options. An
 * unknown key, a duplicate, a wrong type or a value out of range is ERR_CONFIG with file, line and
 * column, before MPI starts. The table of options also makes the help, the man page, the shell
 * completion and the resolved configuration. Verbs and their flags are rows of other tables
 * (config/verb.h). No function is collective. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "base.h"
#include "config/values.h"
#include "config/verb.h"

/* Values of model.size, W(constant, "word"). They are defined here and not in model.h because
 * model.size decides the default number of tokens in a sample, by which the data module cuts sets
 * of tokens into samples, and the data module may not include model.h. */
#define GPT_WORDS(W)                                                                               \
    W(GPT_OWN, "own")                                                                              \
    W(GPT_124M, "124m") W(GPT_355M, "355m") W(GPT_774M, "774m") W(GPT_1558M, "1558m")
typedef enum GptSize { GPT_WORDS(LIST_CONSTANT) } GptSize;
/* Value of the field checkpoint.resume if the key has a path instead of a word. */
enum { RESUME_FILE = -1 };

/* Section optim: the update rule, its constants and the curve of the learning rate.
 * src/config/options.c has the help of each key. Here and in Config, a key whose value is a word is
 * an int: a constant of the enum that the comment names, which the header of the key's module
 * declares. */
typedef struct OptimConfig {
    /* name: update rule, as its row number in rules.c; lr_schedule: curve of the learning rate, as
     * its row number in the table of curves. Both tables are in the optim module. */
    int name, lr_schedule;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip, trust, lr_end, power, gamma;
    /* constants of the rule ftrl */
    double l1, l2, beta;
    /* factor of the L1 penalty on the scales of batch norms: slim times the sign of a scale is
     * added to the scale's gradient; 0: no penalty */
    double slim;
    /* curve plateau: largest number of consecutive evaluations without improvement that does not
     * yet lower the rate */
    int64_t patience;
    /* curve plateau: smallest improvement that counts, relative to the best value */
    double threshold;
    /* nesterov: true for Nesterov momentum. decay_all: true if weight decay also applies to biases
     * and norms. */
    bool nesterov, decay_all;
    /* rule muon: how the learning rate of a matrix is scaled, an LrAdjust */
    int lr_adjust;
    /* rule lbfgs: number of pairs (step, change of the gradient) that are kept */
    int64_t history;
    /* curve multistep: epochs at which the learning rate falls, in ascending order */
    ConfigList milestones;
    /* curve wsd: length of the rate's final fall, as a fraction of all steps after the warm-up */
    double decay_fraction;
    /* curve wsd: shape of this fall, a DecayShape */
    int decay_shape;
    /* curve onecycle. pct_start: fraction of the steps in which the rate rises; div_factor: lr
     * divided by the first rate; final_div_factor: the first rate divided by the last rate;
     * anneal_strategy: shape of the rise and of the fall, an AnnealStrategy. */
    double pct_start, div_factor, final_div_factor;
    int anneal_strategy;
    /* length of the warm-up, in steps or in epochs; at least one of the two keys is 0 */
    int64_t warmup_steps;
    double warmup_epochs;
    /* values at the start of the warm-up. warmup_bias_lr: learning rate of biases; warmup_momentum:
     * momentum, or beta1 of rules that have it; -1: not set */
    double warmup_bias_lr, warmup_momentum;
    /* learning rate of a depth group divided by the rate of the next group closer to the output;
     * 1: all groups have one rate */
    double layer_decay;
    int group_count;
    /* optim.groups, [group_count]; owned */
    struct OptimGroup *group;
} OptimConfig;
/* One entry of optim.groups: parameters that have other optimizer options. */
typedef struct OptimGroup {
    int match_count;
    /* patterns (fnmatch) on parameter names, [match_count]; owned; none: any name matches */
    char **match;
    /* bit i is set if parameters of role i, a ParamRole (optim.h), match; 0: any role matches */
    int roles;
    /* factor on the learning rate of each step; 0: not given */
    double lr_scale;
    /* the group's options. While the file is read, only the options in `given` are set; once the
     * configuration is loaded, all are set. Owns nothing. */
    OptimConfig options;
    /* bit i is set if the group gives the key with index i within section optim */
    uint64_t given;
    /* position of the entry in the file, counted from 1; 0: from the command line */
    int line, column;
} OptimGroup;

/* All keys by section. src/config/options.c has the help of each key. For keys whose value is a
 * word see OptimConfig. */
typedef struct Config {
    /* path of the configuration file, or name of the text, for messages; owned. Every char * of
     * this struct is owned. */
    char *path;
    /* source and line of each key, one entry for each row of the option table; owned; private to
     * the config module; may be NULL */
    struct ConfigPlace *place;
    struct {
        /* the run's folder is dir/name */
        char *name, *dir;
        int64_t seed;
        /* fresh: true if an earlier run in the folder is moved away; trace: true if trace.json is
         * written; nvtx: true if NVIDIA's profilers, too, get the trace's spans; hook_wait: true if
         * training waits for the hook at the end of an epoch and after an evaluation; map: true if
         * the place of each rank is printed */
        bool fresh, trace, nvtx, hook_wait, map;
        /* shell command that rank 0 runs after events; "": none */
        char *hook;
        /* bit i is set if event i, a HookEvent (train.h), runs the hook; 0: all events do */
        int hook_on;
        /* time limit of the hook in seconds */
        double hook_s;
        /* order_log: folder to which servers write the order in which they answer ranks; replay:
         * folder from which servers read such an order, which they repeat; "": none */
        char *order_log, *replay;
        /* path of the file that `weft bench machine` has written; "": none */
        char *machine;
        /* seconds after which the run stops; 0: no limit */
        double max_time;
        /* seconds between the heartbeats that the run writes to its folder */
        double heartbeat_s;
    } run;
    struct {
        /* name of a model of the zoo; "" if model.layers lists layers */
        char *name;
        /* resnets: the first layers, a Stem */
        int stem;
        /* number of classes; 0: the number that the data set gives */
        int64_t classes;
        /* dropout probability; below 0: the model's default */
        double dropout;
        /* widths of the hidden layers of mlp, wide_deep and deepfm, and of dlrm's top network */
        ConfigList hidden;
        /* mlp, unet, fieldresnet, columns: the activation, an Act minus 1, since the key has no
         * word for ACT_NONE; activation_layer (layers.h) returns the layer kind that applies it */
        int activation;
        /* widths of the hidden layers of dlrm's bottom network */
        ConfigList bottom;
        /* unet: number of channels of each level, the largest level first */
        ConfigList channels;
        /* norm: normalisation in unet, fieldresnet and columns, a FieldNorm; up, down: how unet
         * doubles and halves the size, an Up and a Down */
        int norm, up, down;
        /* unet: true if a block adds its input to its output */
        bool residual;
        /* unet, fieldresnet: padding mode of convolutions, "a", or "a,b" if rows have mode a and
         * columns mode b */
        char *pad_mode;
        /* attention: number of attention heads on unet's smallest level; film: width of the
         * perceptron of unet and fieldresnet that computes a scale and a shift of each channel from
         * the inputs that are constant over space. 0: no such layer. */
        int64_t attention, film;
        /* detectors. depth_multiple: factor on the number of times that a block repeats;
         * width_multiple: factor on the number of channels. 0: the model's own factor. */
        double depth_multiple, width_multiple;
        /* detectors: width and height of each anchor in pixels; empty: the model's own anchors */
        ConfigList anchors;
        /* names of the layers that the loss reads, "a,b"; "": the last layer, or the model's own
         * choice */
        char *outputs;
        /* gpt2: published size, a GptSize */
        int size;
        /* gpt2: how positions enter the model, a Positions (model.h) */
        int positions;
        /* gpt2, llama, unet, fieldresnet, columns: number of blocks, the value N of `model.layers:
         * N`; 0: the model's default */
        int64_t depth;
        /* gpt2, llama, columns: numbers in the vectors between blocks; resnets, mobilenet_v2,
         * fieldresnet: channels of the first stage or layer; models of ids: numbers in a row of a
         * table. 0: the model's default. */
        int64_t width;
        /* gpt2, llama: number of attention heads of a block; 0: the model's default */
        int64_t heads;
        /* number of tokens in a sample; 0: the model's default */
        int64_t context;
        /* llama: number of heads of keys and of values; 0: the number of query heads */
        int64_t kv_heads;
        /* llama: width of the feed-forward layers; 0: 8/3 of width, rounded up to a multiple of
         * 64 */
        int64_t ffn;
        /* llama: base of the rotary angles */
        double rotary_base;
        /* llama: added to the mean square in rms_norm */
        double rms_eps;
        /* llama: true if the head uses the embedding's weight */
        bool tied;
        /* llama: true if queries, keys and values have biases */
        bool qkv_bias;
        /* llama: how rotary angles are scaled for longer contexts */
        ConfigPairs rope_scaling;
        /* llama: number of keys that a query attends to; 0: all */
        int64_t window;
        /* llama: first block that uses `window`, counted from 0 */
        int64_t window_from;
        /* number of tokens in the vocabulary; models of ids: number of rows of each table. 0: the
         * number that the data set gives. */
        int64_t vocab;
        int layer_count;
        /* model.layers if it is a list, [layer_count]; owned */
        ConfigLayer *layer;
        /* model.widths: number of channels of layers, by name; each layer occurs at most once */
        ConfigWidths widths;
        /* path of the checkpoint from which initial parameters are loaded; NULL if not set */
        char *init_from;
        /* patterns "a,b" on names of layers or tensors that are initialised anew instead of loaded;
         * "": the last layer, if its size differs from the file's */
        char *init_fresh;
        /* replacements "old:new,..." of prefixes of the tensors' names in the init_from file */
        char *init_rename;
        /* true: the moving average of the parameters is loaded from the init_from file if that has
         * it */
        bool init_ema;
        /* patterns "a,b" on names of layers or parameters that are not trained */
        char *freeze;
        /* part of a frozen batch norm that does not change, a FreezeNorm */
        int freeze_norm;
    } model;
    struct {
        /* train, test: paths or patterns of the HDF5 files of the training set and of the test set,
         * separated by '\n'; NULL if not set */
        char *train, *test;
        /* names of the HDF5 data sets in the files, of samples (x) and of labels or targets (y) */
        char *x, *y;
        /* order of the dimensions of x in the file, a DataLayout */
        int layout;
        /* number that the file's labels have for the first class */
        int64_t label_base;
        /* random changes of training images: AUGMENT_ bits (data/config_words.h) */
        int augment;
        /* crop_pad: padding on each side before the random crop; cutout_size: side of the square
         * that cutout blanks; both in pixels */
        int64_t crop_pad, cutout_size;
        /* side lengths in pixels; 0: no such operation. Two defaults replace 0: center_crop becomes
         * the side of the random crop, and for encoded pictures resize becomes 8/7 of the crop's
         * side. */
        int64_t resize, random_resized_crop, random_crop, center_crop;
        /* Bounds of random_resized_crop. crop_scale: smallest and largest fraction of the picture's
         * area that is cropped; crop_ratio: smallest and largest ratio of width to height */
        ConfigList crop_scale, crop_ratio;
        /* sets of boxes: side in pixels of the square that contains a whole picture; 0: the stored
         * side */
        int64_t letterbox;
        /* sets of boxes. mosaic: probability that four pictures are joined into one input;
         * affine_shift: largest shift of an input in each direction, as a fraction of its side. */
        double mosaic, affine_shift;
        /* sets of boxes: smallest and largest factor by which an input is enlarged; empty: none */
        ConfigList affine_scale;
        /* filter that resamples images, an ImageFilter */
        int filter;
        /* strengths of random changes of brightness, contrast, saturation and hue, or empty */
        ConfigList color_jitter;
        /* erasing: probability that a rectangle of a training image is blanked; mixup, cutmix:
         * parameter of the Beta distribution of the weights; 0: off */
        double erasing, mixup, cutmix;
        /* true: values are normalized by mean and std below, or by the file's attributes if these
         * are empty */
        bool normalize;
        /* factor on raw values, before normalizing; 0: 1/255 for uint8, else 1 */
        double scale;
        /* mean, std: mean and standard deviation of scaled values, one number for all channels or
         * one for each; empty: those of the file */
        ConfigList mean, std;
        /* sets of fields: variables and their roles */
        ConfigVariables variables;
        /* sets of fields: times of a sample's fields, as offsets from the sample's own time */
        ConfigWindow window;
        /* sets of fields: form in which targets are learnt, a FieldPredict */
        int predict;
        /* sets of fields: first and last time of the training set and of the test set */
        ConfigTimes train_time, test_time;
        /* sets of fields: size of the part of a field that is a training sample */
        ConfigPatch patch;
        /* when the patterns of `train` are expanded again to find new files, a DataRefresh */
        int refresh;
        /* sets of fields: path of the file with mean and deviation of each variable; "": they are
         * measured */
        char *stats;
        /* sets of fields: name of the variable with the weight, 0 to 1, of each pixel of the
         * targets; "": all weights are 1 */
        char *mask;
        /* order of the samples in an epoch, a DataShuffle */
        int shuffle;
        /* prefetch: number of micro-batches prepared ahead; workers: number of threads that prepare
         * them, 0: automatic */
        int64_t prefetch, workers;
    } data;
    struct {
        /* length of the training, in epochs or in steps; the one that does not give the length is
         * 0 */
        int64_t epochs, steps;
        /* batch: number of samples of a step over all ranks; micro_batch: number of samples of a
         * micro-batch, 0: automatic */
        int64_t batch, micro_batch;
        /* true: batch_norm takes statistics over the micro-batches that all replicas process at the
         * same time */
        bool sync_batch_norm;
        /* precision: a Precision; reproducible: a Reproducible; device: a DeviceKind; loss: number
         * of the loss among the layer kinds that are losses, from 0 (layers.h, loss_kind) */
        int precision, reproducible, device, loss;
        /* number of slices of a sum, a power of two; it applies to each sum that a tensor-parallel
         * group could divide. 0: automatic. */
        int64_t sum_slices;
        /* whether the work of a step on a GPU is captured and replayed, a GraphsKind */
        int cuda_graphs;
        /* "off", "time", or the path of a file with recorded algorithms, which the run uses */
        char *cuda_tune;
        /* instruction set of the CPU kernels, an InstructionSet */
        int cpu;
        double label_smoothing, huber_delta, charbonnier_eps, focal_gamma;
        /* weight of each class; empty: all 1 */
        ConfigList class_weights;
        /* sets of fields: number of times that the model is applied, each time to its own
         * outputs */
        int64_t rollout;
        /* fp16: initial loss scale, a power of two */
        double loss_scale;
        /* fp16: number of steps without overflow after which the loss scale doubles */
        int64_t loss_scale_steps;
        /* number of threads of each rank; 0: the smallest number of cores that any rank may use */
        int64_t threads;
        /* epochs between evaluations; 0: only at the end */
        int64_t eval_every;
        /* number of consecutive evaluations without improvement after which training ends; 0:
         * never */
        int64_t early_stop;
        /* smallest improvement that counts for early_stop */
        double early_stop_delta;
        /* ema: final decay of the moving average of the parameters; 0: no average. ema_ramp: number
         * of updates over which the decay rises: after update t it is ema (1 - exp(-t /
         * ema_ramp)). */
        double ema, ema_ramp;
        /* how evaluations compute the area under the ROC curve, an Auc */
        int auc;
        /* sets of fields: true if each row of pixels is weighted by the cosine of its latitude, in
         * metrics (eval_latitude) and in losses (latitude_weights) */
        bool eval_latitude, latitude_weights;
        /* sets of fields: number of targets of which pictures are made after each evaluation */
        int64_t eval_pictures;
        /* true: the gradient noise scale is measured */
        bool grad_noise;
        /* steps between lines of metrics.jsonl */
        int64_t log_every;
        /* seconds without progress of any rank after which the job ends; 0: no limit */
        double hang_s;
        /* largest number of bytes that a rank may use; 0: its device's free memory, or its share of
         * the host's memory */
        double memory;
        /* reaction of a run to a bad step, an OnBad */
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
        /* number of replicas; 0: (ranks - servers) / (pp * tp) */
        int64_t dp;
        /* pp: number of pipeline stages; tp: number of ranks of a tensor-parallel group */
        int64_t pp, tp;
        /* number of servers: the job's last ranks, which hold the rows of sparse tables and compute
         * nothing */
        int64_t servers;
        /* when updates of parameters and tables are applied, an UpdateMode */
        int mode;
        /* geo_steps: number of steps between sync points, in all modes but sync; staleness: delay
         * of updates in mode stale, in steps */
        int64_t geo_steps, staleness;
        /* zero: a Zero; pipeline_schedule: a ScheduleKind (schedules.def); recompute: a
         * Recompute */
        int zero, pipeline_schedule, recompute;
        /* "auto", or the path of a map of places (topo.h); "": the launcher's order */
        char *rank_map;
        /* path of the schedule if pipeline_schedule is SCHEDULE_FILE */
        char *schedule_path;
        /* number of chunks of each stage, at least 1 once the configuration is loaded */
        int64_t chunks;
        /* names "a,b" of the first layer of each chunk except the first chunk; "": chosen by
         * cost */
        char *cuts;
        /* transport: mechanism for sums and messages, a Transport; sums: algorithm of sums that are
         * sent as messages, a SumAlgorithm */
        int transport, sums;
        /* size of a gradient bucket, in MB (10^6 bytes) */
        double bucket_mb;
    } grid;
    struct {
        /* number of steps, of epochs, and of seconds (every_s) between checkpoints; 0: no
         * checkpoints by this key */
        int64_t every_steps, every_epochs;
        double every_s;
        /* number of newest checkpoints to keep; 0: all */
        int64_t keep;
        /* metric of the best evaluation: row number in `metrics` of src/train/eval/best.c */
        int best_metric;
        /* background: true if checkpoints are written while training continues; best: true if the
         * checkpoint of the best evaluation is kept */
        bool background, best;
        /* choice of the checkpoint that a start resumes: a ResumeMode, or RESUME_FILE */
        int resume;
        /* path of the checkpoint if resume is RESUME_FILE */
        char *resume_path;
    } checkpoint;
} Config;

/* A word that a key accepts, as defined by the module to which the key belongs. */
typedef struct ConfigWord {
    /* the word: "adamw" */
    const char *word;
    /* help text of one line */
    const char *help;
    /* keys of the same section that this word uses: "beta1 beta2 eps"; NULL: none */
    const char *uses;
    /* defaults of the keys in `uses` that differ from the option table: "momentum=0.95"; NULL:
     * none */
    const char *defaults;
} ConfigWord;
/* The words of a key. */
typedef struct ConfigWords {
    /* the key: "optim.name"; for the roles of a group "optim.groups.roles" */
    const char *key;
    /* Returns word i. Word 0 is the default of a key that takes one word, except for model.name. If
     * i is past the last word, .word of the result is NULL. */
    ConfigWord (*word)(int i);
    /* if the member `word` is NULL: all words, "auto|shm|mpi", which have no help */
    const char *text;
} ConfigWords;
/* Returns true if the word uses the key `leaf` of its section ("beta1"). If word.word is NULL,
 * returns true for every key. */
bool word_uses(ConfigWord word, const char *leaf);
/* Registers the words of the modules' keys. Call it before anything is parsed. `lists`, [count],
 * must live as long as the program. A second list of the same key replaces the first. A key whose
 * words are not registered accepts only its default. */
void config_use_words(const ConfigWords *lists, int count);
/* Checks the registered words. ERR_BUG names a word that has no help, uses a key that is not in its
 * section, or has a default of a key that it does not use. */
Status config_words_check(void);
/* After config_use_words: checks the rows of all keys and kinds of value. ERR_BUG names the row. */
Status config_rows_check(void);
/* Registers a check of another module, or NULL for none. It is called when all keys have been read
 * and before the rules across keys set further defaults. Its error is reported together with the
 * errors of keys. */
void config_use_check(Status (*check)(const Config *config));

/* Reads the configuration file `path`, applies `count` overrides ("train.batch=64"), sets defaults
 * and checks the rules across keys. If path is NULL, there are only defaults and overrides.
 * ERR_NOINPUT or ERR_IO: the file cannot be opened or read. ERR_CONFIG: a key or a rule is
 * violated. On error *config is NULL. The caller owns *config and frees it with config_free. */
Status config_load(Config **config, const char *path, int count, char *const *overrides);
/* Does what config_load does, but with a text in memory instead of a file. text: NULL if there is
 * none. name: name of the text in messages. */
Status config_parse(Config **config, const char *name, const char *text, int count,
                    char *const *overrides);
void config_free(Config **config);
/* Fails with ERR_CONFIG, for modules that find an error in a ConfigAttr. The message begins with
 * "FILE:LINE:COLUMN: ", or with "command line: " if line is 0. */
Status config_fail(const Config *config, int line, int column, const char *fmt, ...)
    BASE_PRINTF(4, 5);
/* Fails with ERR_CONFIG. The message begins with the place where the key ("train.batch") was set,
 * and its name. */
Status config_fail_key(const Config *config, const char *key, const char *fmt, ...)
    BASE_PRINTF(3, 4);

/* Returns true if the file or the command line sets this key. */
bool config_key_is_set(const Config *config, const char *key);
/* Returns true if the key has its default, also if the file or the command line sets it. */
bool config_key_is_default(const Config *config, const char *key);

/* Returns the resolved configuration as YAML text; config_load makes an equal Config from it. The
 * caller owns the text. */
char *config_text(const Config *config);
/* Returns the value of a key as YAML: "[a, b]". The caller owns the text. */
char *config_key_text(const Config *config, const char *key);
/* Compares two texts of config_text, and returns true if they differ. The first difference is then
 * written to from_x and from_y, buffers of `room` bytes each, as "section.key: value". If a text
 * lacks the key, "no section.key" is written. If the values are lists of lines, the first entries
 * that differ are written: "section.key: - value". */
bool config_difference(const char *x, const char *y, char *from_x, char *from_y, size_t room);

/* Sets the number of channels of a layer in model.widths. */
void config_set_width(Config *config, const char *layer, int64_t channels);
/* If config has no model.widths, copies those of the configuration `from`. Returns true if it has
 * copied any. */
bool config_copy_widths(Config *config, const Config *from);

/* Prints the help of all keys. */
void config_help(FILE *out);
/* Prints lines "TABLE<tab>ROW<tab>MEANING". TABLE "key" has a row for each key. For each key that
 * takes words, the table with the key's name has a row for each word. */
void config_tables(FILE *out);
/* Prints the man page in roff; its part COMMANDS is verbs_roff. */
void config_man(FILE *out, const char *verbs_roff);
/* Prints a completion script for bash. verbs: all verbs, [count]. */
void config_completion(FILE *out, const Verb *const *verbs, int count);

#endif
