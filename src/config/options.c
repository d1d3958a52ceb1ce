/* The option table, in the order of the help and of the resolved configuration. */
#include "option.h"
#include "schedules.def"

#include <math.h>
#include <string.h>

const Section sections[] = {
    {"run", "The run and where its files go (dir/name)."},
    {"model", "The model: a built-in one by name, or a list of layers."},
    {"data", "Data sets in HDF5, and the processing of each sample."},
    {"train", "Length of training, batch sizes, device, loss and checks."},
    {"optim", "The update rule and the curve of the learning rate."},
    {"grid", "How the ranks divide the work."},
    {"checkpoint", "When to save, what to keep, where to resume."},
};
const int section_count = sizeof sections / sizeof sections[0];

/* offset of the option's field; ranges of whole and of real numbers; least length of a text in
 * bytes */
#define AT(field)     offsetof(Config, field)
#define RANGE(a, b)   .min = a, .max = b
#define FROM(a)       .min = a, .max = INT64_MAX
#define REAL_FROM(a)  .lo = a, .hi = INFINITY
#define REAL_ABOVE(a) .lo = a, .lo_open = true, .hi = INFINITY
#define FRACTION      .lo = 0, .hi = 1, .hi_open = true
#define MIN_BYTES(a)  .min = a

/* For each schedule: its word behind a |, its help, and both as a part of the key's help. */
#define SCHEDULE_WORD(id, name, word, min, usual, max, help) "|" word
#define SCHEDULE_LINE(id, name, word, min, usual, max, help) help,
#define SCHEDULE_HELP(id, name, word, min, usual, max, help) "; " word ": " help

static const char *const schedule_lines[] = {SCHEDULES(SCHEDULE_LINE)};

/* clang-format off */
const Option options[] = {
    {"run.name", &kind_text, AT(run.name), "", "the configuration file's name", MIN_BYTES(1),
     .help = "Name of the run; its files go to run.dir/run.name."},
    {"run.seed", &kind_int, AT(run.seed), "1", NULL, FROM(0),
     .help = "Seed of all random numbers: parameters, order of samples, augmentation, dropout."},
    {"run.dir", &kind_text, AT(run.dir), "runs", NULL, MIN_BYTES(1),
     .help = "Folder that holds the folders of runs."},
    {"run.fresh", &kind_bool, AT(run.fresh), "false", NULL,
     .help = "Start from the beginning: files of an earlier run in the folder are moved to its subfolder earlier-1 (-2, ...); nothing is deleted. A job that weft run or Slurm restarts resumes all the same."},
    {"run.max_time", &kind_duration, AT(run.max_time), "none", NULL,
     .help = "Stop with a checkpoint and exit code 75 when the program has run for this time, as 90s, 30m, 12h, 2d, 12:00:00 or 1-12:00:00; each start counts from zero. none or 0: no limit."},
    {"run.order_log", &kind_text, AT(run.order_log), "", "none", MIN_BYTES(1),
     .help = "grid.mode=async: folder where each server writes the order in which it answers ranks, for run.replay; one file for each start."},
    {"run.replay", &kind_text, AT(run.replay), "", "none", MIN_BYTES(1),
     .help = "grid.mode=async: folder of an earlier run.order_log; servers answer in the order written there, which gives the same bits."},
    {"run.hook", &kind_text, AT(run.hook), "", "none", MIN_BYTES(1),
     .help = "Command that rank 0 runs (sh -c) while training continues. It reads a line of JSON on its standard input; on its standard output it may request a stop, a checkpoint, or another learning rate: {\"lr\": 0.01}."},
    {"run.hook_on", &kind_flags, AT(run.hook_on), "[]", "all of them",
     .help = "Events that run run.hook."},
    {"run.hook_s", &kind_real, AT(run.hook_s), "30", NULL, .lo = 0.1, .hi = 86400, .unit = "seconds",
     .help = "Time limit of run.hook; after it the command and all processes that it has started are killed, and training continues."},
    {"run.hook_wait", &kind_bool, AT(run.hook_wait), "false", NULL,
     .help = "Training waits for run.hook at the end of an epoch and after an evaluation, so that its requests always take effect at the same step."},
    {"run.heartbeat_s", &kind_real, AT(run.heartbeat_s), "5", NULL, .lo = 0.1, .hi = 600, .unit = "seconds",
     .help = "Time between the heartbeats that a run writes to its folder. A start on another host, which cannot see the process, takes over the folder after four missed heartbeats."},
    {"run.trace", &kind_bool, AT(run.trace), "false", NULL,
     .help = "Write trace.json, a timeline of rank 0 for Chrome's or Perfetto's trace viewer."},
    {"run.map", &kind_bool, AT(run.map), "false", NULL,
     .help = "Print at the start where each rank is: its place in the grid, its host, CPUs and GPU."},
    {"run.machine", &kind_text, AT(run.machine), "", "none", MIN_BYTES(1),
     .help = "File of weft bench machine, from which weft plan forecasts the time of a step; a run compares the forecast with its own time at its end."},
    {"run.nvtx", &kind_bool, AT(run.nvtx), "false", NULL,
     .help = "Give the spans of the trace to NVIDIA's profilers, too (NVTX): nsys profile mpirun -n 2 weft train ..."},

    {"model.name", &kind_text, AT(model.name), "", "none", MIN_BYTES(1),
     .help = "Name of a built-in model."},
    {"model.stem", &kind_enum, AT(model.stem), "imagenet", NULL,
     .help = "resnet: first layers for large images (7x7, stride 2, pool) or small ones (3x3)."},
    {"model.classes", &kind_int, AT(model.classes), "0", "as the data set says", RANGE(1, INT32_MAX),
     .help = "Number of classes."},
    {"model.dropout", &kind_real, AT(model.dropout), "-1", "the model's own", FRACTION,
     .help = "Fraction of activations that are dropped before the classifier."},
    {"model.hidden", &kind_ints, AT(model.hidden), "[512, 512]", NULL, .lo = 1, .hi = INT32_MAX,
     .help = "widths of the hidden layers; for dlrm those of the top network."},
    {"model.activation", &kind_enum, AT(model.activation), "relu", NULL,
     .help = "activation after each hidden layer, or after the convolutions of a block."},
    {"model.bottom", &kind_ints, AT(model.bottom), "[]", "the model's own", .lo = 1, .hi = INT32_MAX,
     .help = "widths of the hidden layers of the bottom network; a layer of model.width follows them."},
    {"model.channels", &kind_ints, AT(model.channels), "[]", "the model's own", .lo = 1, .hi = INT32_MAX,
     .help = "channels of each level, from the whole size to the smallest."},
    {"model.norm", &kind_enum, AT(model.norm), "group", NULL,
     .help = "normalisation after each convolution: group has a group for 8 channels."},
    {"model.pad_mode", &kind_names, AT(model.pad_mode), "[zero]", NULL,
     .help = "values outside a field for 3x3 convolutions: zero, replicate, reflect or circular, one word or one for rows and one for columns: [reflect, circular]."},
    {"model.residual", &kind_bool, AT(model.residual), "false", NULL,
     .help = "a block's input is added to its output."},
    {"model.up", &kind_enum, AT(model.up), "transpose", NULL,
     .help = "how the size is doubled: by a transposed convolution, or by interpolation."},
    {"model.down", &kind_enum, AT(model.down), "max", NULL,
     .help = "how the size is halved: the largest or the mean of four values."},
    {"model.depth_multiple", &kind_real, AT(model.depth_multiple), "0", "the model's own", .lo = 0.01, .hi = 100,
     .help = "factor on the number of times that blocks repeat: yolov5n and yolov5s have 0.33, m 0.67, l 1, x 1.33."},
    {"model.width_multiple", &kind_real, AT(model.width_multiple), "0", "the model's own", .lo = 0.01, .hi = 100,
     .help = "factor on channels, which are rounded up to multiples of 8: yolov5n has 0.25, s 0.5, m 0.75, l 1, x 1.25."},
    {"model.anchors", &kind_reals, AT(model.anchors), "[]", "those of yolov5n", .lo = 1, .hi = 65536, .unit = "pixels",
     .help = "width and height of each anchor of a detector, the same number for each output: [10, 13, 16, 30, 33, 23, ...]."},
    {"model.outputs", &kind_names, AT(model.outputs), "[]", "the last layer, or the model's own",
     .help = "layers of model.layers that the loss reads, for a loss of several outputs (train.loss: yolo): [p3, p4, p5]."},
    {"model.size", &kind_enum, AT(model.size), "own", NULL, .words = LIST_TEXT(GPT_WORDS),
     .help = "a published size, or own: model.layers, width, heads, context and vocab give the size."},
    {"model.layers", &kind_layers, AT(model.layer), "[]", "none",
     .help = "List of layers, in order, instead of model.name: - conv2d: {channels: 32, kernel: 3}; gpt2, llama: number of blocks."},
    {"model.widths", &kind_widths, AT(model.widths), "{}", "the model's own",
     .help = "Channels of single layers, by name, where they differ from the model's: {conv1: 51, layer1.0.conv1: 51}; `weft ckpt shrink` writes them."},
    {"model.width", &kind_int, AT(model.width), "0", "the model's own", RANGE(1, INT32_MAX),
     .help = "width of the vectors between the blocks (llama: 384; gpt2: as model.size says, 384 for own); resnets: channels of the first stage (64), others in proportion; mobilenet_v2: channels of the first layer (32), others in proportion; models of ids: numbers in a row of a table."},
    {"model.heads", &kind_int, AT(model.heads), "0", "the model's own", RANGE(1, INT32_MAX),
     .help = "attention heads of a block (llama: 6; gpt2: as model.size says, 6 for own); must divide model.width."},
    {"model.kv_heads", &kind_int, AT(model.kv_heads), "0", "model.heads", RANGE(1, INT32_MAX),
     .help = "number of heads of keys and of values, each shared by an equal group of query heads; must divide model.heads. 1: multi-query attention."},
    {"model.ffn", &kind_int, AT(model.ffn), "0", "8/3 of model.width, up to a multiple of 64", RANGE(1, INT32_MAX),
     .help = "width of the feed-forward layers, after the gate."},
    {"model.context", &kind_int, AT(model.context), "0", "1024 with model.size, else 256", RANGE(1, INT32_MAX),
     .unit = "tokens", .help = "tokens in a sample; a token data set is cut into samples of this length."},
    {"model.vocab", &kind_int, AT(model.vocab), "0", "as the data set says", RANGE(1, INT32_MAX), .unit = "tokens",
     .help = "number of tokens in the vocabulary; models of ids: rows of each table; a hash maps ids to rows if some ids are larger. Unset: the number that the data set gives, else one row for each id."},
    {"model.positions", &kind_enum, AT(model.positions), "learned", NULL,
     .help = "how positions enter the model: a learned vector for each, or rotated queries and keys."},
    {"model.rotary_base", &kind_real, AT(model.rotary_base), "10000", NULL, .lo = 1, .hi = 1e12,
     .help = "base of the angles by which queries and keys are rotated."},
    {"model.rope_scaling", &kind_pairs, AT(model.rope_scaling), "{}", "none",
     .help = "how the rotation angles change for contexts longer than in the original training, in the terms of Hugging Face's config.json: {rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192}; types: linear, dynamic, llama3, yarn."},
    {"model.window", &kind_int, AT(model.window), "0", "all of them", RANGE(0, INT32_MAX), .unit = "tokens",
     .help = "number of keys that a query attends to: the key at its own position and those before it (sliding window)."},
    {"model.window_from", &kind_int, AT(model.window_from), "0", NULL, RANGE(0, INT32_MAX),
     .help = "first block that uses model.window, counted from 0; must be less than the number of blocks."},
    {"model.qkv_bias", &kind_bool, AT(model.qkv_bias), "false", NULL,
     .help = "queries, keys and values have biases, as in Qwen2."},
    {"model.rms_eps", &kind_real, AT(model.rms_eps), "1e-05", NULL, .lo = 1e-12, .hi = 1,
     .help = "added to the mean square in its norms."},
    {"model.tied", &kind_bool, AT(model.tied), "false", NULL,
     .help = "the head and the embedding share one weight."},
    {"model.init_from", &kind_text, AT(model.init_from), "", "none", MIN_BYTES(1),
     .help = "Checkpoint whose parameters and running statistics a new run starts with, at step 0 and with a new optimizer state. A run that resumes ignores it."},
    {"model.init_fresh", &kind_names, AT(model.init_fresh), "[]", "the last layer, where its size differs",
     .help = "Layers or tensors, by name or pattern (fc, layer4.*), that are initialised anew and not taken from model.init_from; any other tensor that is missing, left over or of another size is an error."},
    {"model.init_rename", &kind_names, AT(model.init_rename), "[]", NULL,
     .help = "Replacements OLD:NEW of prefixes of the names in model.init_from; the first that matches is used: [\"backbone.:\"] removes one."},
    {"model.init_ema", &kind_bool, AT(model.init_ema), "true", NULL,
     .help = "Take the EMA of the parameters in model.init_from (train.ema) if the file has it; false: the parameters themselves."},
    {"model.freeze", &kind_names, AT(model.freeze), "[]", "none",
     .help = "Layers or parameters, by name or pattern (conv1, layer1.*, \"[!f]*\"), that are not trained; they have no gradients, optimizer state or messages."},
    {"model.freeze_norm", &kind_enum, AT(model.freeze_norm), "all", NULL,
     .help = "Which part of a batch norm in model.freeze is frozen: all: the parameters and the running statistics, with which it normalises; affine: only the parameters; none: nothing."},

    {"data.train", &kind_files, AT(data.train), "", "none", MIN_BYTES(1),
     .help = "HDF5 file to train on, or a list of files that together are one data set: [a.h5, b.h5]."},
    {"data.test", &kind_files, AT(data.test), "", "none", MIN_BYTES(1),
     .help = "HDF5 file to evaluate on, or a list of files."},
    {"data.x", &kind_text, AT(data.x), "/x", NULL, MIN_BYTES(1),
     .help = "Name of the HDF5 dataset of the samples in each file."},
    {"data.y", &kind_text, AT(data.y), "/y", NULL, MIN_BYTES(1),
     .help = "Name of the HDF5 dataset of the labels or targets in each file."},
    {"data.layout", &kind_enum, AT(data.layout), "nchw", NULL,
     .help = "Order of the dimensions of data.x: channels first or last."},
    {"data.label_base", &kind_int, AT(data.label_base), "0", NULL, RANGE(0, INT32_MAX),
     .help = "Label of the first class: 1 if labels count from 1."},
    {"data.augment", &kind_flags, AT(data.augment), "[]", NULL,
     .help = "Random changes to training images: flip mirrors, crop shifts after padding, cutout blanks a square."},
    {"data.crop_pad", &kind_int, AT(data.crop_pad), "4", NULL, RANGE(0, 1024), .unit = "pixels",
     .help = "Padding on each side before the random crop."},
    {"data.cutout_size", &kind_int, AT(data.cutout_size), "8", NULL, RANGE(1, 4096), .unit = "pixels",
     .help = "Side of the square that cutout blanks."},
    {"data.resize", &kind_int, AT(data.resize), "0", "8/7 of data.center_crop for stored files, else none", RANGE(1, 16384), .unit = "pixels",
     .help = "Resample images so that the short side has this length; not used together with data.random_resized_crop."},
    {"data.random_resized_crop", &kind_int, AT(data.random_resized_crop), "0", "none", RANGE(1, 16384), .unit = "pixels",
     .help = "Side of the square to which training resamples a random part of each image (data.crop_scale, data.crop_ratio)."},
    {"data.random_crop", &kind_int, AT(data.random_crop), "0", "none", RANGE(1, 16384), .unit = "pixels",
     .help = "Side of the random square that training cuts out of each image, after data.resize."},
    {"data.center_crop", &kind_int, AT(data.center_crop), "0", "as the random crop", RANGE(1, 16384), .unit = "pixels",
     .help = "Side of the square cut from the centre, after data.resize: in evaluation, and in training without a random crop."},
    {"data.crop_scale", &kind_reals, AT(data.crop_scale), "[0.08, 1]", NULL, .lo = 0, .lo_open = true, .hi = 1,
     .help = "Smallest and largest fraction of the area for data.random_resized_crop."},
    {"data.crop_ratio", &kind_reals, AT(data.crop_ratio), "[0.75, 1.3333333333333333]", NULL, .lo = 0, .lo_open = true, .hi = 100,
     .help = "Smallest and largest ratio of width to height for data.random_resized_crop."},
    {"data.letterbox", &kind_int, AT(data.letterbox), "0", "the size of decoded pictures", RANGE(1, 16384), .unit = "pixels",
     .help = "Sets of boxes: side of the square into which a whole picture is resized; its margins are grey."},
    {"data.mosaic", &kind_real, AT(data.mosaic), "0", "none", .lo = 0, .hi = 1,
     .help = "Sets of boxes: probability that training joins four pictures in one input."},
    {"data.affine_scale", &kind_reals, AT(data.affine_scale), "[]", "none", .lo = 0, .lo_open = true, .hi = 100,
     .help = "Sets of boxes: smallest and largest factor by which training enlarges an input around its centre: [0.5, 1.5]."},
    {"data.affine_shift", &kind_real, AT(data.affine_shift), "0", "none", .lo = 0, .hi = 1,
     .help = "Sets of boxes: largest distance by which training shifts an input, as a fraction of its side: 0.1."},
    {"data.filter", &kind_enum, AT(data.filter), "bilinear", NULL,
     .help = "Filter for resampling images; the result equals Pillow's to the last bit."},
    {"data.color_jitter", &kind_reals, AT(data.color_jitter), "[]", "none", .lo = 0, .hi = 100,
     .help = "Strengths of random colour changes in training: [brightness, contrast, saturation, hue]; 0 turns one off; hue is at most 0.5."},
    {"data.erasing", &kind_real, AT(data.erasing), "0", "none", .lo = 0, .hi = 1,
     .help = "Probability that training blanks a random rectangle of an image (RandomErasing)."},
    {"data.mixup", &kind_real, AT(data.mixup), "0", "none", .lo = 0, .hi = 1000,
     .help = "Parameter a of mixup: training mixes pairs of images of a micro-batch, with weights drawn from Beta(a, a)."},
    {"data.cutmix", &kind_real, AT(data.cutmix), "0", "none", .lo = 0, .hi = 1000,
     .help = "Parameter a of cutmix: training pastes a rectangle of another image of the micro-batch; its share of the area is drawn from Beta(a, a)."},
    {"data.shuffle", &kind_enum, AT(data.shuffle), "auto", NULL,
     .help = "Order of the samples in an epoch: full draws from all samples, chunks from a window of HDF5 chunks; auto: chunks if a file is chunked and large."},
    {"data.normalize", &kind_bool, AT(data.normalize), "true", NULL,
     .help = "Subtract the mean and divide by the standard deviation: data.mean and data.std, or those in the file."},
    {"data.scale", &kind_real, AT(data.scale), "0", "1/255 for uint8, else 1", REAL_ABOVE(0),
     .help = "Factor for raw values, before data.normalize."},
    {"data.mean", &kind_reals, AT(data.mean), "[]", "the file's own", .lo = -INFINITY, .hi = INFINITY,
     .help = "Mean of the scaled values: one number for all channels, or one for each."},
    {"data.std", &kind_reals, AT(data.std), "[]", "the file's own", REAL_ABOVE(0),
     .help = "Standard deviation of the scaled values; as many numbers as in data.mean."},
    {"data.variables", &kind_variables, AT(data.variables), "{}", "none",
     .help = "Variables of HDF5 or NetCDF-4 files that are fields: {inputs: [t2m, {name: z, levels: [500, 850]}], static: [orography], targets: [t2m]}; static ones have no time. A target may have a weight in the loss, {name: z, levels: [500, 850], weights: [1, 0.5]}. Without it data.x and data.y are read."},
    {"data.window", &kind_window, AT(data.window), "{}", "{inputs: [0], targets: [0]}",
     .help = "Times of the fields of a sample, as offsets from its own time, with a unit or in steps: {inputs: [-6h, 0h], targets: [6h]}."},
    {"data.train_time", &kind_times, AT(data.train_time), "[]", "all times",
     .help = "First and last time of training with fields, [2001-01-01, 2018-12-31]; all frames of a sample lie between them."},
    {"data.test_time", &kind_times, AT(data.test_time), "[]", "all times",
     .help = "First and last time of the test set of fields, so that data.test may name the files of data.train."},
    {"data.predict", &kind_enum, AT(data.predict), "value", NULL,
     .help = "What the model learns of each target that is an input, too: its value, or its change from the last input."},
    {"data.stats", &kind_text, AT(data.stats), "", "computed at the start", MIN_BYTES(1),
     .help = "File of weft data stats with mean and deviation of each variable and level of a set of fields."},
    {"data.mask", &kind_text, AT(data.mask), "", "all pixels count", MIN_BYTES(1),
     .help = "Variable of the files of a set of fields, with or without a time, of the size of the targets: the weight, 0 to 1, of each pixel in losses and metrics. A pixel whose value is 0 or missing does not count."},
    {"data.prefetch", &kind_int, AT(data.prefetch), "4", NULL, RANGE(2, 4096), .unit = "micro-batches",
     .help = "Micro-batches that the loader prepares ahead."},
    {"data.workers", &kind_int, AT(data.workers), "0", "half of a rank's cores where images are decoded or resampled, else 1", RANGE(1, 256), .unit = "threads",
     .help = "Threads of a rank that read, decode and augment samples."},

    {"train.epochs", &kind_int, AT(train.epochs), "0", "1 where train.steps is not set", RANGE(1, INT32_MAX),
     .help = "Passes over the training data."},
    {"train.steps", &kind_int, AT(train.steps), "0", "as train.epochs says", FROM(1),
     .help = "Optimizer steps, instead of train.epochs."},
    {"train.batch", &kind_int, AT(train.batch), "128", NULL, RANGE(1, INT32_MAX), .unit = "samples",
     .help = "Samples in one step, over all ranks."},
    {"train.micro_batch", &kind_int, AT(train.micro_batch), "0", "train.batch's largest divisor up to 32; in grid.mode geo and async up to a rank's share",
     RANGE(1, INT32_MAX), .unit = "samples",
     .help = "Samples in one pass through the model; must divide train.batch."},
    {"train.sync_batch_norm", &kind_bool, AT(train.sync_batch_norm), "false", NULL,
     .help = "batch_norm computes its statistics over the micro-batches that all replicas process at the same time; equal bits then need the same number of replicas."},
    {"train.precision", &kind_enum, AT(train.precision), "fp32", NULL,
     .help = "Number type of activations and matrix products; sums and norms are fp32. fp16 and tf32 (10-bit mantissa) need GPUs."},
    {"train.loss_scale", &kind_real, AT(train.loss_scale), "65536", NULL, .lo = 1, .hi = 16777216,
     .help = "fp16: initial loss scale, a power of two; an overflow halves it and skips the step."},
    {"train.loss_scale_steps", &kind_int, AT(train.loss_scale_steps), "2000", NULL, RANGE(1, INT32_MAX), .unit = "steps",
     .help = "fp16: the loss scale is doubled after this number of steps without overflow."},
    {"train.reproducible", &kind_enum, AT(train.reproducible), "any_grid", NULL,
     .help = "What is guaranteed: the same bits on every grid, or only between runs on the same grid with the same train.threads, which may send fewer gradients and let oneDNN divide sums among threads."},
    {"train.sum_slices", &kind_int, AT(train.sum_slices), "0", "8; with train.device: cuda 1", RANGE(1, 64),
     .help = "With any_grid, sums that tensor parallelism could divide are cut into this number of slices, a power of two: the largest grid.tp; it changes bits. 1: no slices; grid.tp then changes bits."},
    {"train.device", &kind_enum, AT(train.device), "auto", NULL,
     .help = "Device that computes; auto is the CPU in this version, cuda uses one GPU for each rank."},
    {"train.cpu", &kind_enum, AT(train.cpu), "auto", NULL,
     .help = "Instruction set of the CPU kernels, which changes bits; auto: the largest that all ranks support (or WEFT_CPU); "
             "portable: equal bits on all processors with AVX2."},
    {"train.cuda_graphs", &kind_enum, AT(train.cuda_graphs), "auto", NULL,
     .help = "Record the work of a step on a GPU once and replay it; the bits do not depend on it."},
    {"train.cuda_tune", &kind_text, AT(train.cuda_tune), "off", NULL, MIN_BYTES(1),
     .help = "Choice of cuBLASLt's and cuDNN's algorithms: off: the library's first choice; time: the fastest, timed once before the first step; FILE: the record that such a run has written. The choice changes bits, so checkpoints hold it."},
    {"train.loss", &kind_enum, AT(train.loss), "softmax", NULL,
     .help = "Softmax cross-entropy on labels; mse, l1, huber or charbonnier on targets that are numbers; cross-entropy of one logit on labels 0 and 1; softmax, focal, dice or iou on a label for each pixel; yolo on boxes."},
    {"train.ema", &kind_real, AT(train.ema), "0", "none", FRACTION,
     .help = "Decay of an exponential moving average (EMA) of parameters and running statistics, such as 0.9999; evaluations and best.h5 use it. 0: no average."},
    {"train.ema_ramp", &kind_real, AT(train.ema_ramp), "2000", NULL, REAL_FROM(0), .unit = "updates",
     .help = "The decay of train.ema rises from 0: after update t it is ema (1 - exp(-t / ema_ramp)); 0: it is constant."},
    {"train.auc", &kind_enum, AT(train.auc), "exact", NULL,
     .help = "how evaluations compute the area under the ROC curve: exact, from all pairs, with 16 bytes of memory a sample on rank 0; or from 4,096 buckets of probabilities."},
    {"train.eval_latitude", &kind_bool, AT(train.eval_latitude), "true", NULL,
     .help = "Sets of fields: metrics of evaluations weight each row by the cosine of its latitude, where the rows' coordinate is a latitude."},
    {"train.latitude_weights", &kind_bool, AT(train.latitude_weights), "false", NULL,
     .help = "Sets of fields: the loss weights each row by the cosine of its latitude, as metrics do."},
    {"train.label_smoothing", &kind_real, AT(train.label_smoothing), "0", NULL, FRACTION,
     .help = "fraction of the target that is spread over all classes in training; evaluations use the labels unchanged."},
    {"train.huber_delta", &kind_real, AT(train.huber_delta), "1", NULL, REAL_ABOVE(0),
     .help = "absolute error from which the loss is linear."},
    {"train.charbonnier_eps", &kind_real, AT(train.charbonnier_eps), "0.001", NULL, REAL_ABOVE(0),
     .help = "absolute error below which the loss is nearly quadratic."},
    {"train.focal_gamma", &kind_real, AT(train.focal_gamma), "2", NULL, REAL_FROM(0),
     .help = "exponent of 1 - p, where p is the probability of the label; 0: cross-entropy."},
    {"train.class_weights", &kind_reals, AT(train.class_weights), "[]", "all 1", REAL_FROM(0),
     .help = "weight of each class in the mean over an image's pixels."},
    {"train.rollout", &kind_int, AT(train.rollout), "1", NULL, RANGE(1, 32), .unit = "steps",
     .help = "Sets of fields: the model is applied this number of times, each time to its own outputs; the loss is the mean over all steps."},
    {"train.threads", &kind_int, AT(train.threads), "0", "the smallest number of cores that a rank has", RANGE(1, 1024),
     .help = "CPU threads of each rank; results do not depend on it."},
    {"train.eval_every", &kind_int, AT(train.eval_every), "1", NULL, RANGE(0, INT32_MAX), .unit = "epochs",
     .help = "Epochs between evaluations; 0: only at the end."},
    {"train.early_stop", &kind_int, AT(train.early_stop), "0", "never", RANGE(1, INT32_MAX), .unit = "evaluations",
     .help = "End the run after this number of consecutive evaluations without a better checkpoint.best_metric."},
    {"train.early_stop_delta", &kind_real, AT(train.early_stop_delta), "0", NULL, REAL_FROM(0),
     .help = "Smallest improvement that counts for train.early_stop; for accuracies 0.01 is one percentage point."},
    {"train.log_every", &kind_int, AT(train.log_every), "50", NULL, RANGE(1, INT32_MAX), .unit = "steps",
     .help = "Steps between lines of metrics.jsonl."},
    {"train.hang_s", &kind_real, AT(train.hang_s), "300", NULL, REAL_FROM(0), .unit = "seconds",
     .help = "End the job when no rank has made progress in a step for this time; 0: never. Ranks that are stopped or dead end the job at once; ranks that are behind are named."},
    {"train.memory", &kind_bytes, AT(train.memory), "0", "what the machine has", .lo = 1, .hi = INFINITY,
     .unit = "bytes", .help = "Memory limit of a rank, as 8GB, 500MB or 2GiB; a run that needs more is refused before it starts."},
    {"train.on_bad", &kind_enum, AT(train.on_bad), "stop", NULL,
     .help = "What to do after a NaN, an infinity or a spike of the loss: stop (exit 65), skip the step, or go back to the last checkpoint, once."},
    {"train.spike", &kind_real, AT(train.spike), "8", NULL, .lo = 0, .hi = INFINITY, .unit = "deviations",
     .help = "A loss this far above the mean of the last 200 is a spike; 0: no loss is."},
    {"train.check_every", &kind_int, AT(train.check_every), "100", NULL, RANGE(0, INT32_MAX), .unit = "steps",
     .help = "Steps between checks that parameters and optimizer state are finite and that replicas are equal; 0: only before checkpoints."},

    {"optim.name", &kind_enum, AT(optim.name), "sgd", NULL, .grouped = true,
     .help = "Update rule."},
    {"optim.lr", &kind_real, AT(optim.lr), "0.01", NULL, REAL_ABOVE(0), .grouped = true,
     .help = "Learning rate: the highest value of its curve."},
    {"optim.momentum", &kind_real, AT(optim.momentum), "0", NULL, FRACTION, .grouped = true, .constant = true,
     .help = "momentum factor."},
    {"optim.nesterov", &kind_bool, AT(optim.nesterov), "false", NULL, .grouped = true, .constant = true,
     .help = "use Nesterov momentum."},
    {"optim.beta1", &kind_real, AT(optim.beta1), "0.9", NULL, FRACTION, .grouped = true, .constant = true,
     .help = "decay of the first moment; lion: weight of the momentum in the update."},
    {"optim.beta2", &kind_real, AT(optim.beta2), "0.999", NULL, FRACTION, .grouped = true, .constant = true,
     .help = "decay of the second moment; lion: decay of the momentum."},
    {"optim.eps", &kind_real, AT(optim.eps), "1e-8", NULL, REAL_ABOVE(0), .grouped = true, .constant = true,
     .help = "added to the denominator, a square root, of the update."},
    {"optim.weight_decay", &kind_real, AT(optim.weight_decay), "0", NULL, REAL_FROM(0), .grouped = true,
     .help = "Weight decay; not applied to biases and norms unless optim.decay_all is set."},
    {"optim.decay_all", &kind_bool, AT(optim.decay_all), "false", NULL, .grouped = true,
     .help = "Apply weight decay to biases and norms, too."},
    {"optim.clip", &kind_real, AT(optim.clip), "0", NULL, REAL_FROM(0),
     .help = "Upper limit of the gradient's global norm; 0: no clipping."},
    {"optim.slim", &kind_real, AT(optim.slim), "0", NULL, REAL_FROM(0),
     .help = "Factor of an L1 penalty on the scales of batch norms, which drives unimportant channels to 0 (1e-4; for `weft ckpt shrink --method slim`)."},
    {"optim.trust", &kind_real, AT(optim.trust), "0.001", NULL, REAL_ABOVE(0), .grouped = true, .constant = true,
     .help = "trust coefficient."},
    {"optim.l1", &kind_real, AT(optim.l1), "0", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "L1 penalty: a weight is 0 while the absolute value of its accumulated gradient is at most this."},
    {"optim.l2", &kind_real, AT(optim.l2), "0", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "L2 penalty, which draws weights to 0."},
    {"optim.beta", &kind_real, AT(optim.beta), "1", NULL, REAL_FROM(0), .grouped = true, .constant = true,
     .help = "added to the square root in the denominator of the rate."},
    {"optim.lr_adjust", &kind_enum, AT(optim.lr_adjust), "original", NULL, .grouped = true, .constant = true,
     .help = "factor on the learning rate of a matrix: original: sqrt(max(1, rows/columns)); match_rms: 0.2 sqrt(max(rows, columns)), which suits the learning rates of adamw."},
    {"optim.groups", &kind_groups, AT(optim.group), "[]", "none",
     .help = "Groups of parameters with their own update rule or learning rate: - {match: 'h.*.bias', roles: [norm], name: adamw, lr: 1e-3}; the first group that matches is used. lr_scale: a factor on the learning rate."},
    {"optim.layer_decay", &kind_real, AT(optim.layer_decay), "1", NULL, .lo = 0, .lo_open = true, .hi = 1,
     .help = "Factor on the learning rate per depth group (stem, each block, head), multiplied once more for each group closer to the input; not for parameters of optim.groups. 1: one rate."},
    {"optim.lr_schedule", &kind_enum, AT(optim.lr_schedule), "constant", NULL,
     .help = "Curve of the learning rate."},
    {"optim.lr_end", &kind_real, AT(optim.lr_end), "0", NULL, REAL_FROM(0),
     .help = "learning rate at the end of the curve, reached one step after the last; plateau: the smallest rate."},
    {"optim.power", &kind_real, AT(optim.power), "1", NULL, REAL_ABOVE(0),
     .help = "exponent of the curve."},
    {"optim.gamma", &kind_real, AT(optim.gamma), "0.1", NULL, REAL_ABOVE(0),
     .help = "factor on the learning rate at each milestone or plateau."},
    {"optim.milestones", &kind_reals, AT(optim.milestones), "[]", "none", REAL_ABOVE(0), .unit = "epochs",
     .help = "epochs at which the learning rate falls, in increasing order."},
    {"optim.decay_fraction", &kind_real, AT(optim.decay_fraction), "0.1", NULL, .lo = 0, .lo_open = true, .hi = 1,
     .help = "part of the steps after the warm-up, at their end, in which the learning rate falls."},
    {"optim.decay_shape", &kind_enum, AT(optim.decay_shape), "linear", NULL,
     .help = "how the learning rate falls: on a line; half a cosine; sqrt: 1 - sqrt(x); exponential: by the same factor each step."},
    {"optim.pct_start", &kind_real, AT(optim.pct_start), "0.3", NULL, .lo = 0, .lo_open = true, .hi = 1, .hi_open = true,
     .help = "part of the steps in which the learning rate rises."},
    {"optim.div_factor", &kind_real, AT(optim.div_factor), "25", NULL, REAL_ABOVE(0),
     .help = "the first learning rate is optim.lr divided by this."},
    {"optim.final_div_factor", &kind_real, AT(optim.final_div_factor), "1e4", NULL, REAL_ABOVE(0),
     .help = "the last learning rate is the first one divided by this."},
    {"optim.anneal_strategy", &kind_enum, AT(optim.anneal_strategy), "cos", NULL,
     .help = "how the learning rate rises and falls: half a cosine, or a line."},
    {"optim.patience", &kind_int, AT(optim.patience), "10", NULL, RANGE(0, INT32_MAX), .unit = "evaluations",
     .help = "number of consecutive evaluations without a better checkpoint.best_metric that are allowed; the next one lowers the learning rate."},
    {"optim.threshold", &kind_real, AT(optim.threshold), "0.0001", NULL, REAL_FROM(0),
     .help = "relative improvement of the best value that counts as better."},
    {"optim.warmup_steps", &kind_int, AT(optim.warmup_steps), "0", "no warm-up", FROM(0), .unit = "steps",
     .help = "Steps over which the learning rate rises linearly to its first value."},
    {"optim.warmup_epochs", &kind_real, AT(optim.warmup_epochs), "0", "no warm-up", REAL_FROM(0),
     .unit = "epochs", .help = "Length of the warm-up in epochs, instead of optim.warmup_steps."},
    {"optim.warmup_bias_lr", &kind_real, AT(optim.warmup_bias_lr), "-1", "0, as for other parameters", REAL_FROM(0),
     .help = "Learning rate of biases, also those of norms, where the warm-up begins; it goes linearly to optim.lr."},
    {"optim.warmup_momentum", &kind_real, AT(optim.warmup_momentum), "-1", "no warm-up of the momentum", .lo = 0, .lo_open = true, .hi = 1, .hi_open = true,
     .help = "Momentum (beta1 of adam and its kin, and of lion) where the warm-up begins; it goes linearly to its value."},

    {"grid.dp", &kind_int, AT(grid.dp), "0", "ranks / (pp * tp)", RANGE(1, 1048576), .unit = "ranks",
     .help = "Number of data-parallel replicas."},
    {"grid.pp", &kind_int, AT(grid.pp), "1", NULL, RANGE(1, 1048576), .unit = "ranks",
     .help = "Number of pipeline stages in a replica."},
    {"grid.tp", &kind_int, AT(grid.tp), "1", NULL, RANGE(1, 1048576), .unit = "ranks",
     .help = "Number of tensor-parallel ranks, which divide dense layers, attention and vocabulary."},
    {"grid.servers", &kind_int, AT(grid.servers), "0", NULL, RANGE(0, 4096), .unit = "ranks",
     .help = "Number of servers: the last ranks, which hold the rows of sparse tables and compute nothing. 0: the ranks that compute share the rows."},
    {"grid.mode", &kind_enum, AT(grid.mode), "sync", NULL,
     .help = "When updates of parameters and sparse tables are applied: sync: after each step; stale: grid.staleness steps later; geo: on each rank alone, and combined every grid.geo_steps; async: by servers, as gradients arrive."},
    {"grid.geo_steps", &kind_int, AT(grid.geo_steps), "100", NULL, RANGE(1, INT32_MAX), .unit = "steps",
     .help = "all modes but sync: steps between sync points, where all ranks have the same state; in mode geo the changes of all ranks are added there and divided by the number of ranks."},
    {"grid.staleness", &kind_int, AT(grid.staleness), "1", NULL, RANGE(0, 64), .unit = "steps",
     .help = "grid.mode=stale: number of steps by which an update is delayed, so that no step waits for messages of the step before."},
    {"grid.zero", &kind_enum, AT(grid.zero), "0", NULL,
     .help = "What replicas shard: 0 nothing; 1 optimizer state; 2 gradients, too; 3 parameters, too."},
    {"grid.pipeline_schedule", &kind_schedule, AT(grid.pipeline_schedule), "1f1b", NULL,
     .words = &SCHEDULES(SCHEDULE_WORD)[1], .word_help = schedule_lines,
     .help = "Order of the tasks of a stage; the result is the same to the bit" SCHEDULES(SCHEDULE_HELP) "."},
    {"grid.chunks", &kind_int, AT(grid.chunks), "0", "the usual number of the schedule, 1 or 2", RANGE(1, 1024),
     .help = "Number of model chunks on each stage; grid.pipeline_schedule limits it."},
    {"grid.cuts", &kind_names, AT(grid.cuts), "[]", "by cost",
     .help = "Where the model is cut: names of the first layers of all chunks except the first."},
    {"grid.recompute", &kind_enum, AT(grid.recompute), "none", NULL,
     .help = "Which activations are computed again in backward instead of being kept."},
    {"grid.transport", &kind_enum, AT(grid.transport), "auto", NULL,
     .help = "How ranks communicate; auto: nccl between GPUs, else shared memory within a node and MPI between nodes."},
    {"grid.rank_map", &kind_text, AT(grid.rank_map), "", "the launcher's order", MIN_BYTES(1),
     .help = "Which process plays which rank: auto puts ranks of a node next to each other; or a file of weft topo find --save. No result changes by a bit."},
    {"grid.sums", &kind_enum, AT(grid.sums), "auto", NULL,
     .help = "Algorithm of sums that are sent as messages: all: every rank sends to all others at once; halving: log2 rounds; auto: the one with less waiting. The bits do not depend on it."},
    {"grid.bucket_mb", &kind_real, AT(grid.bucket_mb), "4", NULL, REAL_ABOVE(0), .unit = "MB",
     .help = "Size of a gradient bucket; buckets are summed while backward still runs."},

    {"checkpoint.every_steps", &kind_int, AT(checkpoint.every_steps), "0", NULL, FROM(0), .unit = "steps",
     .help = "Steps between checkpoints; 0: only by time."},
    {"checkpoint.every_epochs", &kind_int, AT(checkpoint.every_epochs), "0", NULL, FROM(0), .unit = "epochs",
     .help = "Epochs between checkpoints; 0: only by steps and time."},
    {"checkpoint.every_s", &kind_real, AT(checkpoint.every_s), "900", NULL, REAL_FROM(0), .unit = "seconds",
     .help = "Seconds between checkpoints; 0: only by steps. The last step is always saved."},
    {"checkpoint.keep", &kind_int, AT(checkpoint.keep), "3", NULL, RANGE(0, INT32_MAX),
     .help = "Number of newest good checkpoints to keep; 0: all."},
    {"checkpoint.background", &kind_bool, AT(checkpoint.background), "true", NULL,
     .help = "Write checkpoints from a copy while training continues, if a rank has memory for the copy; false: training waits."},
    {"checkpoint.best", &kind_bool, AT(checkpoint.best), "true", NULL,
     .help = "Keep the checkpoint of the best evaluation as best.h5."},
    {"checkpoint.best_metric", &kind_enum, AT(checkpoint.best_metric), "auto", NULL,
     .help = "Metric of evaluations that decides best.h5, train.early_stop and the plateau schedule; auto: top1 with train.loss softmax and focal, auc with sigmoid, ap with yolo, eval_loss with other losses and for tokens."},
    {"checkpoint.resume", &kind_resume, AT(checkpoint.resume), "auto", NULL,
     .help = "auto: resume from the run's newest good checkpoint; no: refuse a folder with an earlier run, but a job that weft run or Slurm restarts resumes; PATH: start from this file, then as auto."},
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

bool option_is_in(const Option *option, const char *section)
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

Status option_set_default(const Option *option, Config *config)
{
    Node *node = NULL;
    if (option->kind->list && (*option->default_text == '[' || *option->default_text == '{'))
        TRY(yaml_parse(&node, option->key, option->default_text, strlen(option->default_text)));
    else
        node = node_word(option->default_text);
    Reading reading = {.option = option, .config = config, .is_default = true};
    Status status = option->kind->read(&reading, option_field(option, config), node);
    node_free(&node);
    return status;
}

static char *real_range(const Option *o, bool show_max, char out[RANGE_CHARS])
{
    if (o->lo == -INFINITY && o->hi == INFINITY) return out;
    if (o->hi == INFINITY)
        snprintf(out, RANGE_CHARS, o->lo_open ? "above %g" : "at least %g", o->lo);
    else if (o->lo_open)
        snprintf(out, RANGE_CHARS, o->hi_open ? "above %g and below %g" : "above %g, at most %g",
                 o->lo, o->hi);
    else if (o->hi == INT32_MAX)
        snprintf(out, RANGE_CHARS, show_max ? "from %.0f to %.0f" : "at least %.0f", o->lo, o->hi);
    else
        snprintf(out, RANGE_CHARS, o->hi_open ? "from %g to below %g" : "from %g to %g", o->lo,
                 o->hi);
    return out;
}

char *option_range(const Option *o, bool show_max, char out[RANGE_CHARS])
{
    *out = 0;
    if (o->kind == &kind_real || o->kind == &kind_bytes || o->kind == &kind_reals ||
        o->kind == &kind_ints)
        return real_range(o, show_max, out);
    if (o->kind != &kind_int) return out;
    if (o->min == o->max)
        snprintf(out, RANGE_CHARS, "only %lld", (long long)o->min);
    else if (o->max >= INT32_MAX && !show_max)
        snprintf(out, RANGE_CHARS, "at least %lld", (long long)o->min);
    else
        snprintf(out, RANGE_CHARS, "from %lld to %lld", (long long)o->min, (long long)o->max);
    return out;
}
