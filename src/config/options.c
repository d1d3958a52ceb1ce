/* The option table. Its order is that of the help and of the resolved configuration. */
#include "option.h"
#include "schedules.def"

#include <math.h>
#include <string.h>

const Section sections[] = {
    {"run", "The run and where its files go (dir/name)."},
    {"model", "What is trained: a model by name, or a list of layers."},
    {"data", "Data sets in HDF5 and what is done to each sample."},
    {"train", "How long, how much at a time, on what."},
    {"optim", "The update rule and the learning rate's curve."},
    {"grid", "How the ranks share the work."},
    {"checkpoint", "When to save, what to keep, where to resume."},
};
const int section_count = sizeof sections / sizeof sections[0];

#define AT(field)     offsetof(Config, field)
#define RANGE(a, b)   .min = a, .max = b
#define FROM(a)       .min = a, .max = INT64_MAX
#define REAL_FROM(a)  .lo = a, .hi = INFINITY
#define REAL_ABOVE(a) .lo = a, .lo_open = true, .hi = INFINITY
#define SHARE         .lo = 0, .hi = 1, .hi_open = true
#define LENGTH(a)     .min = a
#define MOST          2147483647

/* For each schedule: its word behind a |, its help, and both as a part of the key's help. */
#define SCHEDULE_WORD(id, name, word, least, usual, most, help) "|" word
#define SCHEDULE_LINE(id, name, word, least, usual, most, help) help,
#define SCHEDULE_HELP(id, name, word, least, usual, most, help) "; " word ": " help

static const char *const schedule_lines[] = {SCHEDULES(SCHEDULE_LINE)};

/* clang-format off */
const Option options[] = {
    {"run.name", &kind_text, AT(run.name), "", "the configuration file's name", LENGTH(1),
     .help = "Name of the run; its files go to run.dir/run.name."},
    {"run.seed", &kind_int, AT(run.seed), "1", NULL, FROM(0),
     .help = "Seed of all random numbers: parameters, order of samples, augmentation, dropout."},
    {"run.dir", &kind_text, AT(run.dir), "runs", NULL, LENGTH(1),
     .help = "Folder that holds the folders of runs."},
    {"run.fresh", &kind_bool, AT(run.fresh), "false", NULL,
     .help = "Begin anew: what an earlier run left in the folder is moved to earlier-1 (-2, ...) in it; nothing is deleted. A job that weft run or Slurm starts again resumes."},
    {"run.max_time", &kind_duration, AT(run.max_time), "none", NULL,
     .help = "Stop with a checkpoint and exit code 75 once the program has run so long, as 90s, 30m, 12h, 2d, 12:00:00 or 1-12:00:00; the next start counts anew. none or 0: no limit."},
    {"run.order_log", &kind_text, AT(run.order_log), "", "none", LENGTH(1),
     .help = "grid.mode=async: folder to which each server writes in which order it has answered ranks, for run.replay; a file for each start."},
    {"run.replay", &kind_text, AT(run.replay), "", "none", LENGTH(1),
     .help = "grid.mode=async: folder of run.order_log whose order servers follow, which gives the same bits."},
    {"run.hook", &kind_text, AT(run.hook), "", "none", LENGTH(1),
     .help = "Command that rank 0 runs beside training (sh -c) with a line of JSON on its standard input; on its standard output it may ask to stop, to save, or for another rate: {\"lr\": 0.01}."},
    {"run.hook_on", &kind_flags, AT(run.hook_on), "[]", "all of them",
     .help = "Moments at which run.hook is run."},
    {"run.hook_s", &kind_real, AT(run.hook_s), "30", NULL, .lo = 0.1, .hi = 86400, .unit = "seconds",
     .help = "What run.hook may take; after that it is ended, with all that it has started, and training goes on."},
    {"run.hook_wait", &kind_bool, AT(run.hook_wait), "false", NULL,
     .help = "Training waits for run.hook at the end of an epoch and after an evaluation, so that what it asks for always takes effect at the same step."},
    {"run.heartbeat_s", &kind_real, AT(run.heartbeat_s), "5", NULL, .lo = 0.1, .hi = 600, .unit = "seconds",
     .help = "Time between the signs of life that a run gives in its folder. A start on another host, which cannot ask for its process, takes the folder over after four without one."},
    {"run.trace", &kind_bool, AT(run.trace), "false", NULL,
     .help = "Write trace.json, a time line of rank 0 for Chrome's or Perfetto's trace viewer."},
    {"run.nvtx", &kind_bool, AT(run.nvtx), "false", NULL,
     .help = "Name the trace's spans for NVIDIA's profilers, too (NVTX): nsys profile mpirun -n 2 weft train ..."},

    {"model.name", &kind_text, AT(model.name), "", "none", LENGTH(1),
     .help = "Model by name."},
    {"model.stem", &kind_enum, AT(model.stem), "imagenet", NULL,
     .help = "resnet: first layers for large images (7x7, stride 2, pool) or small ones (3x3)."},
    {"model.classes", &kind_int, AT(model.classes), "0", "as the data set says", RANGE(1, MOST),
     .help = "Classes that the model tells apart."},
    {"model.dropout", &kind_real, AT(model.dropout), "-1", "the model's own", SHARE,
     .help = "Share of activations dropped before the classifier."},
    {"model.hidden", &kind_ints, AT(model.hidden), "[512, 512]", NULL, .lo = 1, .hi = MOST,
     .help = "widths of the hidden layers; of dlrm those of the top."},
    {"model.bottom", &kind_ints, AT(model.bottom), "[]", "the model's own", .lo = 1, .hi = MOST,
     .help = "widths of the bottom's hidden layers; behind them comes one of model.width."},
    {"model.size", &kind_enum, AT(model.size), "own", NULL, .words = LIST_TEXT(GPT_WORDS),
     .help = "a published size, or own: model.layers, width, heads, context and vocab say."},
    {"model.layers", &kind_layers, AT(model.layer), "[]", "none",
     .help = "Layers in order, instead of model.name: - conv2d: {channels: 32, kernel: 3}; gpt2, llama: how many blocks."},
    {"model.widths", &kind_widths, AT(model.widths), "{}", "the model's own",
     .help = "Channels of layers by name, where they have others than the model says: {conv1: 51, layer1.0.conv1: 51}; `weft ckpt shrink` writes them."},
    {"model.width", &kind_int, AT(model.width), "0", "as model.size says", RANGE(1, MOST),
     .help = "width of the vectors between the blocks; resnets: channels of the first stage (64), the others in proportion; mobilenet_v2: of the first layer (32), likewise; models of ids: numbers in a row of a table."},
    {"model.heads", &kind_int, AT(model.heads), "0", "as model.size says", RANGE(1, MOST),
     .help = "attention heads of a block; must divide model.width."},
    {"model.kv_heads", &kind_int, AT(model.kv_heads), "0", "model.heads", RANGE(1, MOST),
     .help = "heads of keys and of values, shared by equal groups of the others; must divide model.heads. 1: multi-query."},
    {"model.ffn", &kind_int, AT(model.ffn), "0", "8/3 of model.width, up to a multiple of 64", RANGE(1, MOST),
     .help = "width of the feed-forward layers, behind their gate."},
    {"model.context", &kind_int, AT(model.context), "0", "1024 with model.size, else 256", RANGE(1, MOST),
     .unit = "tokens", .help = "tokens of a sample; a token data set is cut into samples of so many."},
    {"model.vocab", &kind_int, AT(model.vocab), "0", "as the data set says", RANGE(1, MOST), .unit = "tokens",
     .help = "tokens that the model tells apart; models of ids: rows of a table, which ids share by a hash unless all are below; unset: as the data set says, else as many as ids."},
    {"model.positions", &kind_enum, AT(model.positions), "learned", NULL,
     .help = "how a token's place comes in: a learned vector, or rotated queries and keys."},
    {"model.rotary_base", &kind_real, AT(model.rotary_base), "10000", NULL, .lo = 1, .hi = 1e12,
     .help = "base of the angles that queries and keys are rotated by."},
    {"model.rope_scaling", &kind_pairs, AT(model.rope_scaling), "{}", "none",
     .help = "how the angles change for contexts longer than those of the first training, with the words of Hugging Face's config.json: {rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192}; types: linear, dynamic, llama3, yarn."},
    {"model.window", &kind_int, AT(model.window), "0", "all of them", RANGE(0, INT32_MAX), .unit = "tokens",
     .help = "keys that a query meets: its own and those before it (sliding window)."},
    {"model.window_from", &kind_int, AT(model.window_from), "0", NULL, RANGE(0, MOST),
     .help = "block from which on model.window holds, counted from 0."},
    {"model.qkv_bias", &kind_bool, AT(model.qkv_bias), "false", NULL,
     .help = "queries, keys and values have biases, as in Qwen2."},
    {"model.rms_eps", &kind_real, AT(model.rms_eps), "1e-05", NULL, .lo = 1e-12, .hi = 1,
     .help = "what its norms add to the mean square."},
    {"model.tied", &kind_bool, AT(model.tied), "false", NULL,
     .help = "the head has the embedding's own weight."},
    {"model.init_from", &kind_text, AT(model.init_from), "", "none", LENGTH(1),
     .help = "Checkpoint whose parameters and running statistics the run begins with, at step 0 with a new optimizer. A run that goes on takes its own."},
    {"model.init_fresh", &kind_names, AT(model.init_fresh), "[]", "the last layer, where its size differs",
     .help = "Of init_from: layers or tensors, by name or pattern (fc, layer4.*), that begin anew; what else is missing, left over or of another size is an error."},
    {"model.init_rename", &kind_names, AT(model.init_rename), "[]", NULL,
     .help = "Of init_from: prefixes OLD:NEW of the file's names, the first that fits counts: [\"backbone.:\"] takes one away."},
    {"model.freeze", &kind_names, AT(model.freeze), "[]", "none",
     .help = "Layers or parameters, by name or pattern (conv1, layer1.*, \"[!f]*\"), that are not trained: no gradient, no optimizer state, no messages."},
    {"model.freeze_norm", &kind_enum, AT(model.freeze_norm), "all", NULL,
     .help = "What stays of a batch norm that model.freeze names: all: parameters and running statistics, by which it normalises; affine: the parameters; none: it is trained."},

    {"data.train", &kind_files, AT(data.train), "", "none", LENGTH(1),
     .help = "HDF5 file to train on, or a list of files that are one set: [a.h5, b.h5]."},
    {"data.test", &kind_files, AT(data.test), "", "none", LENGTH(1),
     .help = "HDF5 file to evaluate on, or a list of them."},
    {"data.x", &kind_text, AT(data.x), "/x", NULL, LENGTH(1),
     .help = "Name of the samples' data set inside the files."},
    {"data.y", &kind_text, AT(data.y), "/y", NULL, LENGTH(1),
     .help = "Name of the labels' or targets' data set inside the files."},
    {"data.layout", &kind_enum, AT(data.layout), "nchw", NULL,
     .help = "Order of the dimensions of data.x: channels first or last."},
    {"data.label_base", &kind_int, AT(data.label_base), "0", NULL, RANGE(0, MOST),
     .help = "The label of the first class: 1 where labels count from 1."},
    {"data.augment", &kind_flags, AT(data.augment), "[]", NULL,
     .help = "Random changes to training images: mirror, shifted crop, a square blanked."},
    {"data.crop_pad", &kind_int, AT(data.crop_pad), "4", NULL, RANGE(0, 1024), .unit = "pixels",
     .help = "Padding on each side before the random crop."},
    {"data.cutout_size", &kind_int, AT(data.cutout_size), "8", NULL, RANGE(1, 4096), .unit = "pixels",
     .help = "Side of the square that cutout blanks."},
    {"data.resize", &kind_int, AT(data.resize), "0", "8/7 of data.center_crop for stored files, else none", RANGE(1, 16384), .unit = "pixels",
     .help = "Resample images so that their short side has so many pixels; not where data.random_resized_crop is taken."},
    {"data.random_resized_crop", &kind_int, AT(data.random_resized_crop), "0", "none", RANGE(1, 16384), .unit = "pixels",
     .help = "Training takes a random part of each image (data.crop_scale, data.crop_ratio), resampled to this square."},
    {"data.random_crop", &kind_int, AT(data.random_crop), "0", "none", RANGE(1, 16384), .unit = "pixels",
     .help = "Training takes a square of so many pixels out of each image, after data.resize."},
    {"data.center_crop", &kind_int, AT(data.center_crop), "0", "as the random crop", RANGE(1, 16384), .unit = "pixels",
     .help = "The square in the middle, after data.resize: in evaluation, and in training without a random crop."},
    {"data.crop_scale", &kind_reals, AT(data.crop_scale), "[0.08, 1]", NULL, .lo = 0, .lo_open = true, .hi = 1,
     .help = "data.random_resized_crop: the least and the largest share of the area."},
    {"data.crop_ratio", &kind_reals, AT(data.crop_ratio), "[0.75, 1.3333333333333333]", NULL, .lo = 0, .lo_open = true, .hi = 100,
     .help = "data.random_resized_crop: the least and the largest width by height."},
    {"data.filter", &kind_enum, AT(data.filter), "bilinear", NULL,
     .help = "How images are resampled, as Pillow does to the last bit."},
    {"data.color_jitter", &kind_reals, AT(data.color_jitter), "[]", "none", .lo = 0, .hi = 100,
     .help = "Training changes colours: [brightness, contrast, saturation, hue], 0: not this one; hue up to 0.5."},
    {"data.erasing", &kind_real, AT(data.erasing), "0", "none", .lo = 0, .hi = 1,
     .help = "Training blanks a random rectangle with this probability (RandomErasing)."},
    {"data.mixup", &kind_real, AT(data.mixup), "0", "none", .lo = 0, .hi = 1000,
     .help = "Training mixes the images of a micro-batch in pairs, with weights of Beta(a, a)."},
    {"data.cutmix", &kind_real, AT(data.cutmix), "0", "none", .lo = 0, .hi = 1000,
     .help = "Training pastes a rectangle of another image of the micro-batch, its area of Beta(a, a)."},
    {"data.shuffle", &kind_enum, AT(data.shuffle), "auto", NULL,
     .help = "Order of an epoch: samples drawn from all, or from a window of chunks; auto: chunks where a file is chunked and large."},
    {"data.normalize", &kind_bool, AT(data.normalize), "true", NULL,
     .help = "Take off the mean and divide by the deviation: data.mean and data.std, else the file's own."},
    {"data.scale", &kind_real, AT(data.scale), "0", "1/255 for uint8, else 1", REAL_ABOVE(0),
     .help = "Factor on raw values, before normalizing."},
    {"data.mean", &kind_reals, AT(data.mean), "[]", "the file's own", .lo = -INFINITY, .hi = INFINITY,
     .help = "Mean of the scaled values: one for all channels, or one each."},
    {"data.std", &kind_reals, AT(data.std), "[]", "the file's own", REAL_ABOVE(0),
     .help = "Standard deviation of the scaled values, as many as data.mean has."},
    {"data.prefetch", &kind_int, AT(data.prefetch), "4", NULL, RANGE(2, 4096), .unit = "micro-batches",
     .help = "Micro-batches kept ready by the loader."},
    {"data.workers", &kind_int, AT(data.workers), "0", "half of a rank's cores where images are decoded or resampled, else 1", RANGE(1, 256), .unit = "threads",
     .help = "Threads of a rank that read, decode and augment samples."},

    {"train.epochs", &kind_int, AT(train.epochs), "0", "1 where train.steps is not set", RANGE(1, MOST),
     .help = "Passes over the training data."},
    {"train.steps", &kind_int, AT(train.steps), "0", "as train.epochs says", FROM(1),
     .help = "Optimizer steps, instead of train.epochs."},
    {"train.batch", &kind_int, AT(train.batch), "128", NULL, RANGE(1, MOST), .unit = "samples",
     .help = "Samples in one step, over all ranks."},
    {"train.micro_batch", &kind_int, AT(train.micro_batch), "0", "train.batch's largest divisor up to 32; in grid.mode geo and async up to a rank's share",
     RANGE(1, MOST), .unit = "samples",
     .help = "Samples in one pass through the model; must divide train.batch."},
    {"train.sync_batch_norm", &kind_bool, AT(train.sync_batch_norm), "false", NULL,
     .help = "batch_norm's statistics are over the micro-batches that all replicas have at a time; bits then hold for one number of replicas."},
    {"train.precision", &kind_enum, AT(train.precision), "fp32", NULL,
     .help = "Activations and products; sums and norms are fp32. On GPUs: fp16, and tf32 (factors of 10 bits)."},
    {"train.loss_scale", &kind_real, AT(train.loss_scale), "65536", NULL, .lo = 1, .hi = 16777216,
     .help = "fp16: the loss's first factor, a power of two; an overflow halves it and skips the step."},
    {"train.loss_scale_steps", &kind_int, AT(train.loss_scale_steps), "2000", NULL, RANGE(1, MOST), .unit = "steps",
     .help = "fp16: after so many steps without overflow the factor is doubled."},
    {"train.reproducible", &kind_enum, AT(train.reproducible), "any_grid", NULL,
     .help = "Promise: the same bits on every grid, or only from run to run on this one; today both sum alike."},
    {"train.device", &kind_enum, AT(train.device), "auto", NULL,
     .help = "Where to compute; auto is the CPU in this version, cuda a GPU for each rank."},
    {"train.cpu", &kind_enum, AT(train.cpu), "auto", NULL,
     .help = "Instructions that CPU kernels use, which changes bits; auto: the most that all ranks have (or WEFT_CPU)."},
    {"train.cuda_graphs", &kind_enum, AT(train.cuda_graphs), "auto", NULL,
     .help = "On GPUs, a step's work is recorded once and replayed; the same bits without."},
    {"train.cuda_tune", &kind_text, AT(train.cuda_tune), "off", NULL, LENGTH(1),
     .help = "Algorithms of cuBLASLt and cuDNN on GPUs: off, their own first choice; time, the fastest as timed once before the first step; or a FILE that such a run has written. They change bits, so checkpoints hold them."},
    {"train.loss", &kind_enum, AT(train.loss), "softmax", NULL,
     .help = "Softmax cross-entropy on labels, mean squared error on float targets, or cross-entropy of one logit on labels 0 and 1."},
    {"train.auc", &kind_enum, AT(train.auc), "exact", NULL,
     .help = "area under the ROC curve of evaluations: of all pairs, for which rank 0 takes 16 bytes a sample, or of 4,096 buckets of probabilities."},
    {"train.label_smoothing", &kind_real, AT(train.label_smoothing), "0", NULL, SHARE,
     .help = "share of the target spread over all classes, in training; evaluations take labels as they are."},
    {"train.threads", &kind_int, AT(train.threads), "0", "the least share of the cores that a rank has", RANGE(1, 1024),
     .help = "CPU threads of each rank; part of the numbers, so fix it to compare bits."},
    {"train.eval_every", &kind_int, AT(train.eval_every), "1", NULL, RANGE(0, MOST), .unit = "epochs",
     .help = "Epochs from one evaluation to the next; 0: only at the end."},
    {"train.early_stop", &kind_int, AT(train.early_stop), "0", "never", RANGE(1, MOST), .unit = "evaluations",
     .help = "End the run after so many evaluations in turn without a better checkpoint.best_metric."},
    {"train.early_stop_delta", &kind_real, AT(train.early_stop_delta), "0", NULL, REAL_FROM(0),
     .help = "By how much a value must be better to count for train.early_stop; of shares 0.01 is one point."},
    {"train.log_every", &kind_int, AT(train.log_every), "50", NULL, RANGE(1, MOST), .unit = "steps",
     .help = "Steps from one line of metrics.jsonl to the next."},
    {"train.hang_s", &kind_real, AT(train.hang_s), "300", NULL, REAL_FROM(0), .unit = "seconds",
     .help = "End the job once no rank has gone on for so long in a step; 0: never. Ranks that are stopped or dead end it at once, and those that are behind are named."},
    {"train.memory", &kind_bytes, AT(train.memory), "0", "what the machine has", .lo = 1, .hi = INFINITY,
     .unit = "bytes", .help = "What a rank may use, as 8GB, 500MB or 2GiB; a run that needs more is refused before it starts."},
    {"train.on_bad", &kind_enum, AT(train.on_bad), "stop", NULL,
     .help = "On a NaN, an infinity or a spike of the loss: end (65), skip the step, or go back to the last checkpoint, once."},
    {"train.spike", &kind_real, AT(train.spike), "8", NULL, .lo = 0, .hi = INFINITY, .unit = "deviations",
     .help = "A loss so far above the mean of the last 200 is a spike; 0: none is."},
    {"train.check_every", &kind_int, AT(train.check_every), "100", NULL, RANGE(0, MOST), .unit = "steps",
     .help = "Steps from one look at parameters and state to the next: all finite, and replicas alike? 0: before saves only."},

    {"optim.name", &kind_enum, AT(optim.name), "sgd", NULL, .grouped = true,
     .help = "Update rule."},
    {"optim.lr", &kind_real, AT(optim.lr), "0.01", NULL, REAL_ABOVE(0), .grouped = true,
     .help = "Learning rate, the highest of the curve."},
    {"optim.momentum", &kind_real, AT(optim.momentum), "0", NULL, SHARE, .grouped = true, .constant = true,
     .help = "momentum."},
    {"optim.nesterov", &kind_bool, AT(optim.nesterov), "false", NULL, .grouped = true, .constant = true,
     .help = "Nesterov's form of momentum."},
    {"optim.beta1", &kind_real, AT(optim.beta1), "0.9", NULL, SHARE, .grouped = true, .constant = true,
     .help = "decay of the first moment; where a sign is taken, the momentum's share in it."},
    {"optim.beta2", &kind_real, AT(optim.beta2), "0.999", NULL, SHARE, .grouped = true, .constant = true,
     .help = "decay of the second moment; where a sign is taken, of the momentum."},
    {"optim.eps", &kind_real, AT(optim.eps), "1e-8", NULL, REAL_ABOVE(0), .grouped = true, .constant = true,
     .help = "added to the root that the step is divided by."},
    {"optim.weight_decay", &kind_real, AT(optim.weight_decay), "0", NULL, REAL_FROM(0), .grouped = true,
     .help = "Weight decay; biases and norms are spared unless optim.decay_all."},
    {"optim.decay_all", &kind_bool, AT(optim.decay_all), "false", NULL, .grouped = true,
     .help = "Let biases and norms decay, too."},
    {"optim.clip", &kind_real, AT(optim.clip), "0", NULL, REAL_FROM(0),
     .help = "Largest global norm of the gradient; 0: no clipping."},
    {"optim.slim", &kind_real, AT(optim.slim), "0", NULL, REAL_FROM(0),
     .help = "Times the sign of each batch norm's scale, added to the scale's gradient, so that channels of little use go to 0 (1e-4; `weft ckpt shrink --method slim`)."},
    {"optim.trust", &kind_real, AT(optim.trust), "0.001", NULL, REAL_ABOVE(0), .grouped = true, .constant = true,
     .help = "trust coefficient."},
    {"optim.l1", &kind_real, AT(optim.l1), "0", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "what the sum of gradients must be beyond, or the weight is 0."},
    {"optim.l2", &kind_real, AT(optim.l2), "0", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "how much weights are drawn to 0."},
    {"optim.beta", &kind_real, AT(optim.beta), "1", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "added to the root that the rate is divided by."},
    {"optim.lr_adjust", &kind_enum, AT(optim.lr_adjust), "original", NULL, .grouped = true, .constant = true,
     .help = "factor on the rate of a matrix: sqrt(max(1, rows/columns)), or 0.2 sqrt(max(rows, columns)), for which a rate of adamw will do."},
    {"optim.groups", &kind_groups, AT(optim.group), "[]", "none",
     .help = "Parameters that are updated in another way: - {match: 'h.*.bias', roles: [norm], name: adamw, lr: 1e-3}; of several the first that fits. lr_scale: a factor on the rate."},
    {"optim.layer_decay", &kind_real, AT(optim.layer_decay), "1", NULL, .lo = 0, .lo_open = true, .hi = 1,
     .help = "Factor on the rate for each tier (stem, each block, head) that lies nearer to the data, for what no group names; 1: one rate."},
    {"optim.lr_schedule", &kind_enum, AT(optim.lr_schedule), "constant", NULL,
     .help = "Curve of the learning rate."},
    {"optim.lr_end", &kind_real, AT(optim.lr_end), "0", NULL, REAL_FROM(0),
     .help = "learning rate that a curve leads to: that of the step that would follow the last; of plateau the least one."},
    {"optim.power", &kind_real, AT(optim.power), "1", NULL, REAL_ABOVE(0),
     .help = "exponent."},
    {"optim.gamma", &kind_real, AT(optim.gamma), "0.1", NULL, REAL_ABOVE(0),
     .help = "factor on the learning rate at each milestone, or at each plateau."},
    {"optim.milestones", &kind_reals, AT(optim.milestones), "[]", "none", REAL_ABOVE(0), .unit = "epochs",
     .help = "when the learning rate falls, in rising order."},
    {"optim.patience", &kind_int, AT(optim.patience), "10", NULL, RANGE(0, MOST), .unit = "evaluations",
     .help = "so many in turn without a better checkpoint.best_metric are let pass; the next one lowers the learning rate."},
    {"optim.threshold", &kind_real, AT(optim.threshold), "0.0001", NULL, REAL_FROM(0),
     .help = "share of the best value by which another must be better to count."},
    {"optim.warmup_steps", &kind_int, AT(optim.warmup_steps), "0", "no warm-up", FROM(0), .unit = "steps",
     .help = "Steps in which the learning rate rises linearly to its start."},
    {"optim.warmup_epochs", &kind_real, AT(optim.warmup_epochs), "0", "no warm-up", REAL_FROM(0),
     .unit = "epochs", .help = "The same in epochs, instead of optim.warmup_steps."},

    {"grid.dp", &kind_int, AT(grid.dp), "0", "ranks / (pp * tp)", RANGE(1, 1048576), .unit = "ranks",
     .help = "Data-parallel replicas."},
    {"grid.pp", &kind_int, AT(grid.pp), "1", NULL, RANGE(1, 1048576), .unit = "ranks",
     .help = "Pipeline stages of a replica."},
    {"grid.tp", &kind_int, AT(grid.tp), "1", NULL, RANGE(1, 1048576), .unit = "ranks",
     .help = "Tensor-parallel ranks, which divide dense layers, attention and vocabulary."},
    {"grid.servers", &kind_int, AT(grid.servers), "0", NULL, RANGE(0, 4096), .unit = "ranks",
     .help = "The last ranks, which hold the rows of sparse tables and compute nothing; 0: all ranks share them out."},
    {"grid.mode", &kind_enum, AT(grid.mode), "sync", NULL,
     .help = "How owners of rows and those who compute keep step: sync; stale, updates late by grid.staleness; geo, each by itself for grid.geo_steps; async, as they come."},
    {"grid.geo_steps", &kind_int, AT(grid.geo_steps), "100", NULL, RANGE(1, MOST), .unit = "steps",
     .help = "grid.mode other than sync: steps between borders, where all ranks have one state; geo then adds what each has changed, divided by their number."},
    {"grid.staleness", &kind_int, AT(grid.staleness), "1", NULL, RANGE(0, 64), .unit = "steps",
     .help = "grid.mode=stale: a step's update is made so many steps later, so that no step waits for messages of the one before."},
    {"grid.zero", &kind_enum, AT(grid.zero), "0", NULL,
     .help = "What replicas divide: 0 nothing, 1 optimizer state, 2 and gradients, 3 and parameters."},
    {"grid.pipeline_schedule", &kind_schedule, AT(grid.pipeline_schedule), "1f1b", NULL,
     .words = &SCHEDULES(SCHEDULE_WORD)[1], .word_help = schedule_lines,
     .help = "Order of a stage's work on the micro-batches; the result is the same to the bit" SCHEDULES(SCHEDULE_HELP) "."},
    {"grid.chunks", &kind_int, AT(grid.chunks), "0", "what the schedule has as a rule, 1 or 2", RANGE(1, 1024),
     .help = "Pieces of the model that each stage holds; as many as grid.pipeline_schedule takes."},
    {"grid.cuts", &kind_names, AT(grid.cuts), "[]", "by cost",
     .help = "Where the model is cut: the first layer of each stage's chunk but the first, by name."},
    {"grid.recompute", &kind_enum, AT(grid.recompute), "none", NULL,
     .help = "What is computed again in backward instead of being kept."},
    {"grid.transport", &kind_enum, AT(grid.transport), "auto", NULL,
     .help = "How ranks talk; auto: nccl between GPUs, else shared memory on one node, and MPI."},
    {"grid.sums", &kind_enum, AT(grid.sums), "auto", NULL,
     .help = "How sums by messages go; auto: by halving where that has less to wait for; never other bits."},
    {"grid.bucket_mb", &kind_real, AT(grid.bucket_mb), "4", NULL, REAL_ABOVE(0), .unit = "MB",
     .help = "Gradients summed together, while backward still runs."},

    {"checkpoint.every_steps", &kind_int, AT(checkpoint.every_steps), "0", NULL, FROM(0), .unit = "steps",
     .help = "Steps from one checkpoint to the next; 0: by time alone."},
    {"checkpoint.every_epochs", &kind_int, AT(checkpoint.every_epochs), "0", NULL, FROM(0), .unit = "epochs",
     .help = "Epochs from one checkpoint to the next; 0: by steps and time alone."},
    {"checkpoint.every_s", &kind_real, AT(checkpoint.every_s), "900", NULL, REAL_FROM(0), .unit = "seconds",
     .help = "Seconds from one checkpoint to the next; 0: by steps alone. The last step is always saved."},
    {"checkpoint.keep", &kind_int, AT(checkpoint.keep), "3", NULL, RANGE(0, MOST),
     .help = "Newest good checkpoints kept; 0: all."},
    {"checkpoint.background", &kind_bool, AT(checkpoint.background), "true", NULL,
     .help = "Write checkpoints while training goes on, from a copy, where a rank has memory for it; false: training waits."},
    {"checkpoint.best", &kind_bool, AT(checkpoint.best), "true", NULL,
     .help = "Keep the checkpoint of the best evaluation as best.h5."},
    {"checkpoint.best_metric", &kind_enum, AT(checkpoint.best_metric), "auto", NULL,
     .help = "Figure of an evaluation by which best.h5, train.early_stop and the plateau schedule go; auto: top1 with train.loss softmax, auc with sigmoid, eval_loss with mse and of tokens."},
    {"checkpoint.resume", &kind_resume, AT(checkpoint.resume), "auto", NULL,
     .help = "auto: resume from the run's newest good checkpoint; no: refuse a folder with an earlier run, but a job that weft run or Slurm starts again resumes; PATH: begin from this file, then as auto."},
};
/* clang-format on */
const int option_count = sizeof options / sizeof options[0];

int option_find(const char *key)
{
    for (int i = 0; i < option_count; ++i)
        if (!strcmp(options[i].key, key)) return i;
    return -1;
}

const char *option_leaf(const Option *option)
{
    return strchr(option->key, '.') + 1;
}

bool option_in(const Option *option, const char *section)
{
    size_t length = strlen(section);
    return !strncmp(option->key, section, length) && option->key[length] == '.';
}

void *option_field(const Option *option, Config *config)
{
    return option->offset == OPTION_NO_FIELD ? NULL : (char *)config + option->offset;
}

const void *option_value(const Option *option, const Config *config)
{
    return option->offset == OPTION_NO_FIELD ? NULL : (const char *)config + option->offset;
}

Status option_fallback(const Option *option, Config *config)
{
    Node *node = NULL;
    if (option->kind->list && (*option->fallback == '[' || *option->fallback == '{'))
        TRY(yaml_parse(&node, option->key, option->fallback, strlen(option->fallback)));
    else
        node = node_word(option->fallback);
    Reading reading = {.option = option, .config = config, .fallback = true};
    Status status = option->kind->read(&reading, option_field(option, config), node);
    node_free(&node);
    return status;
}

static char *real_range(const Option *o, bool high, char *out)
{
    if (o->lo == -INFINITY && o->hi == INFINITY) return out;
    if (o->hi == INFINITY)
        snprintf(out, 80, o->lo_open ? "above %g" : "at least %g", o->lo);
    else if (o->hi == MOST)
        snprintf(out, 80, high ? "from %.0f to %.0f" : "at least %.0f", o->lo, o->hi);
    else
        snprintf(out, 80, o->hi_open ? "from %g to below %g" : "from %g to %g", o->lo, o->hi);
    return out;
}

char *option_range(const Option *o, bool high, char *out)
{
    *out = 0;
    if (o->kind == &kind_real || o->kind == &kind_bytes || o->kind == &kind_reals ||
        o->kind == &kind_ints)
        return real_range(o, high, out);
    if (o->kind != &kind_int) return out;
    if (o->min == o->max)
        snprintf(out, 80, "only %lld", (long long)o->min);
    else if (o->max >= MOST && !high)
        snprintf(out, 80, "at least %lld", (long long)o->min);
    else
        snprintf(out, 80, "from %lld to %lld", (long long)o->min, (long long)o->max);
    return out;
}
