/* train: builds a run from a Config and executes it. Start reading at train_step, which makes one
 * optimizer step. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "checkpoint.h"
#include "machine.h"
#include "observe.h"
#include "optim.h"
#include "pipeline.h"
#include "table.h"

/* Values of checkpoint.resume, which may also be a path (RESUME_FILE). */
#define RESUME_WORDS(W) W(RESUME_AUTO, "auto") W(RESUME_NO, "no")
typedef enum ResumeMode { RESUME_WORDS(LIST_CONSTANT) } ResumeMode;
/* Values of train.on_bad. */
#define ON_BAD_WORDS(W) W(ON_BAD_STOP, "stop") W(ON_BAD_SKIP, "skip") W(ON_BAD_ROLLBACK, "rollback")
typedef enum OnBad { ON_BAD_WORDS(LIST_CONSTANT) } OnBad;
/* Values of run.hook_on, one bit each. */
#define HOOK_WORDS(W)                                                                              \
    W(HOOK_EPOCH, "epoch")                                                                         \
    W(HOOK_EVALUATION, "evaluation") W(HOOK_CHECKPOINT, "checkpoint") W(HOOK_END, "end")
typedef enum HookEvent { HOOK_WORDS(LIST_CONSTANT) HOOK_EVENTS } HookEvent;
const char *hook_event_word(int event);
enum { TRAIN_WORDS = 5 };
extern const ConfigWords train_words[TRAIN_WORDS];
/* Registers the words of this module and of all modules that it uses. Call it before anything is
 * parsed. Not collective. */
void train_use_words(void);
/* Checks the constant tables of this module and of the modules that it uses: operations, layers,
 * losses, rules, curves, models, formats, families, metrics. ERR_BUG: an entry is incomplete; the
 * message names the first such entry. Called at every start of the program. */
Status train_rows_check(void);

/* Prints the versions of the program and of its libraries, one per line. gpus = true: also loads
 * the libraries for GPUs, which need 100 MB of memory, and prints their versions. Not
 * collective. */
void train_print_versions(FILE *out, bool gpus);

/* Broadcasts rank 0's set. Each rank owns its set (data_set_fini); on other ranks the set's
 * previous content is freed. Collective. */
void train_bcast_set(const World *world, DataSet *set);
/* Measures mean and deviation of each variable of a set of fields. Each rank reads a part of the
 * frames; every rank gets the whole result. The bits of the result do not depend on the number of
 * ranks or threads. ERR_IO, ERR_DATA. Collective on world. */
Status train_measure_fields(const World *world, const DataSet *set, FieldStats *stats, int threads);

/* Everything that belongs to one run. */
typedef struct Trainer Trainer;

/* Fault of a step. */
typedef enum Bad {
    BAD_NOTHING,
    /* the loss is NaN or infinite */
    BAD_LOSS,
    /* the loss is far above the losses before it (train.spike) */
    BAD_SPIKE,
    /* a gradient is NaN or infinite */
    BAD_GRADIENT
} Bad;

/* Estimates of the squared norm of the true gradient, of the trace of the covariance of a sample's
 * gradient, and their quotient, the gradient noise scale in samples (train.grad_noise). */
typedef struct GradNoise {
    double square, variance, scale;
} GradNoise;

typedef struct StepResult {
    /* Values over the global batch, the same on every rank; in modes geo and async, values over
     * this rank's share of the batch. On a device, loss, top1, top5 and column belong to the step
     * before, so that the host need not wait. They belong to this step if it is logged, if the
     * precision is fp16, or if train.on_bad is not stop. */
    double loss, top1, top5, lr;
    /* means of the loss's columns 1 and 2 (LossColumns) */
    double column[2];
    /* Norm of the gradient over all ranks; NaN if it was not computed. */
    double grad_norm;
    /* Means over the steps since the last logged step; NaN: this step is not logged, or nothing was
     * measured. The scale is also NaN if the noise is so large that the gradient cannot be
     * estimated. */
    GradNoise noise;
    /* True: nothing was updated, because a gradient overflowed or the step was already known to be
     * bad. */
    bool skipped;
    /* The first bad step whose statistics arrived during this step: the kind of fault, the step's
     * number, its loss, and the largest loss that would not have been a spike. */
    Bad bad;
    int64_t bad_step;
    double bad_loss, most;
    /* True: the step has a line in metrics.jsonl, because it is the first after the loader was
     * opened, the last of the run, or a multiple of train.log_every. */
    bool logged;
    /* Rows of the loss in the steps whose statistics arrived during this step. These are zero, one
     * or two steps. */
    int64_t rows;
    /* True: a rank made a request before one of the steps whose statistics arrived
     * (executor_request): to stop (stop_requested), or to save a checkpoint (save_requested); or a
     * request of the hook is pending (hook_requested). */
    bool stop_requested, save_requested, hook_requested;
    /* For a logged step: seconds in each phase since the previous logged step, summed over `timed`
     * ranks. timed 0: no times have arrived. */
    double phase_s[PHASE_COUNT];
    int timed;
    /* True: when the last step whose statistics arrived began, a rank was still writing a
     * checkpoint. */
    bool saving;
} StepResult;

/* Makes everything that the first step needs: data sets, model, plan, memory, initial parameters.
 * Finds errors in the configuration and the data. *trainer is NULL on error. Owner: the caller.
 * Collective; all ranks return the same Status. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
/* Does the same for a trainer that makes no steps, only evaluations and predictions, and without
 * initial parameters: call train_load next. samples: describes the samples of a caller that has no
 * data sets; NULL: data sets are opened. checkpoint: the file that train_load will load; labels are
 * numbered by the names of its classes. Both are borrowed for the call. */
Status trainer_new_to_load(Trainer **trainer, const Config *config, const World *world,
                           const DataSet *samples, const char *checkpoint);
/* Collective. */
void trainer_free(Trainer **trainer);
typedef struct DryRun {
    /* number of ranks of the planned run */
    int ranks;
    /* model of the GPU, see BackendOptions */
    const char *gpu;
    /* used in place of the configuration's files; may be NULL; borrowed */
    const DataSet *data;
    /* number of ranks of a node; 0: all ranks are on one node */
    int node_ranks;
} DryRun;
/* Plans a run of only->ranks ranks in this process: like trainer_new, but allocates no memory and
 * makes no communicators or executor. On a machine without a GPU, a plan for GPUs assumes the model
 * only->gpu. trainer_plan returns stage 0's plan; train_plan_stage makes those of other stages. Not
 * collective. */
Status trainer_dry_run(Trainer **trainer, const Config *config, const World *world,
                       const DryRun *only);
/* Builds the model of a configuration for micro-batches of `samples` samples of the set train. The
 * graph is not cut into slices, fused or planned. test has 0 samples if there is no test set.
 * Owner: the caller. Not collective. */
Status train_model(Graph **graph, const Config *config, const DataSet *train, const DataSet *test,
                   int64_t samples);
/* If config has no model.widths, copies them from the checkpoint `path` or, if that is NULL, from
 * the checkpoint that the run resumes or starts from, and logs a line. If the file cannot be read,
 * nothing changes; the error is reported when the file is loaded. Collective. */
void train_take_widths(Config *config, const World *world, const char *path);
/* ---- accessors to a trainer's parts, for printing and measuring; all results are borrowed ---- */

const Config *trainer_config(const Trainer *trainer);
const World *trainer_world(const Trainer *trainer);
Backend *trainer_backend(const Trainer *trainer);
/* The model; with grid.tp it has this rank's slices. */
const Graph *trainer_graph(const Trainer *trainer);
const Schedule *trainer_schedule(const Trainer *trainer);
/* Plan of this rank's stage; in a dry run, of stage 0. */
const Plan *trainer_plan(const Trainer *trainer);
/* Nodes where the chunks of the model begin, then the node count: stages * chunks + 1 numbers. */
const int *trainer_cuts(const Trainer *trainer);
const Optim *trainer_optim(const Trainer *trainer);
/* Arrays with an entry for each parameter of the graph: the number of its rule (optim_assign), the
 * factor by which this rule multiplies the learning rate, and the needs of its update. */
const int *trainer_rules(const Trainer *trainer);
const double *trainer_lr_scales(const Trainer *trainer);
const ParamUpdate *trainer_updates(const Trainer *trainer);
const DataSet *trainer_train_set(const Trainer *trainer);
/* The test set has 0 samples if there is none. */
const DataSet *trainer_test_set(const Trainer *trainer);
/* Names of the classes, one per line; only on rank 0; NULL: there are none. */
const char *trainer_classes(const Trainer *trainer);
GridShape trainer_shape(const Trainer *trainer);
/* Size and number of steps. */
typedef struct TrainSizes {
    /* Samples of a global batch and of a micro-batch. */
    int64_t batch, micro_batch;
    /* Micro-batches of a global batch, and of one replica: ceil(micros / dp). */
    int micros, micros_local;
    /* Units of a sample that throughput is counted in: 1, or the number of the sample's tokens. */
    int64_t rows_per_sample;
    int64_t steps_per_epoch, steps;
} TrainSizes;
TrainSizes trainer_sizes(const Trainer *trainer);
/* Seconds that this rank has waited for its loader so far. */
double trainer_data_wait_s(const Trainer *trainer);
/* From this call on, measures the compute stream's waits for sums over replicas in *waits. NULL
 * ends the measurement. waits is borrowed until then. Returns false with one replica, which has no
 * such sums. */
bool trainer_watch_sums(Trainer *trainer, Stopwatch *waits);
/* See executor_time_operations. */
void trainer_time_operations(Trainer *trainer, OperationTimes *times);
/* Runs the optimizer's part of a step once on the gradients in memory, to measure it. Not for rules
 * with norms, because their update is collective. */
void trainer_update_once(Trainer *trainer, double lr);

/* Plans a stage. Owner: the caller, who frees the plan before the trainer. */
Status train_plan_stage(const Trainer *trainer, int stage, Plan **plan);
/* Describes the settings of a run on which the times of its operations and updates depend:
 * precision, instruction set, update rules. Owner: the caller. */
char *train_setup(const Config *config);
/* Calls `run` with a world in which processes have the ranks that grid.rank_map gives them; without
 * this key, with `world`. Returns the status of `run`. The process that has rank 0 logs the map.
 * ERR_CONFIG: the map does not fit, or there are servers. Collective. */
typedef Status TrainRanks(const Config *config, const World *world, void *user);
Status train_in_places(const Config *config, const World *world, TrainRanks *run, void *user);
/* Times of a machine, and the path of their file for messages; borrowed. median_only: see
 * ForecastOf. */
typedef struct ForecastBy {
    const Machine *machine;
    const char *path;
    bool median_only;
} ForecastBy;
/* Forecasts the time of a step. plan: the plans of all stages. ERR_CONFIG: as from
 * machine_forecast, or this kind of run cannot be forecast. Not collective. */
Status train_forecast(const Trainer *trainer, const Plan *const *plan, const ForecastBy *by,
                      Forecast *forecast);
/* Times of reading the training set and of saving a checkpoint, by the machine's rates of files. */
typedef struct FileForecast {
    /* bytes that the first node reads for a step, if the training set is read from its files, as in
     * the first epoch; seconds of reading them; 0: not known */
    double read_bytes, read_s;
    /* bytes of a checkpoint; seconds in which the node that writes most of it writes its tensors
     * and reads them back; 0: not known */
    double save_bytes, save_s;
} FileForecast;
/* Forecasts both. Rows of sparse tables are not known before a run, so the saves of a model with
 * tables are not forecast. Not collective. */
FileForecast train_file_forecast(const Trainer *trainer, const Machine *machine);
/* Median times of the parts of the operations of this rank's stage; the time of a part that an
 * operation never runs is 0. seconds: [nodes of the graph]; owner: the caller. ERR_CONFIG: as from
 * machine_part_s. Not collective. */
Status train_part_times(const Trainer *trainer, const ForecastBy *by, PartSeconds **seconds);
/* See executor_pretend. */
void trainer_pretend(Trainer *trainer, const PartSeconds *seconds);
/* Makes the plans of all stages, [stages]. Release them with train_plans_free. */
Status train_plans(const Trainer *trainer, Plan ***plan);
void train_plans_free(const Trainer *trainer, Plan ***plan);
/* Memory of a rank that runs a plan, in bytes by kind. Most kinds are those of the plan. gradients:
 * includes those of deferred updates (grid.mode: stale). data: the loader's micro-batches, and the
 * boxes, unpacked chunks and scratch memory of its threads; with a device only the micro-batches on
 * the device. messages: includes the buffers of sums. program: the graph with the code and objects
 * of its kernels, measured before other kinds are allocated. all: the sum, without host memory if
 * the rank has a device. */
typedef struct TrainBytes {
    size_t params, gradients, state, activations, cache, workspace, messages, data, program, all;
    /* average of parameters and running statistics (train.ema) */
    size_t average;
    /* Sparse tables: buffers for the ids and rows of a step, and, if their number is known, the
     * rows that this rank owns, as if all of them existed. */
    size_t tables;
    /* Bytes of a device, in addition to `all`, that are left free for libraries and the driver; 0
     * without a device. */
    size_t reserved;
    /* Copy in host memory from which checkpoints are written; 0: there is no copy, and training
     * waits for saves. */
    size_t checkpoint;
    /* Host memory of a run on a device: the loader's memory, slices and messages that are copied
     * through the host, and the copy for checkpoints; 0 without a device. */
    size_t host;
} TrainBytes;
TrainBytes train_bytes(const Trainer *trainer, const Plan *plan);
/* Describes the use of TrainBytes.reserved, for messages. Borrowed. */
const char *train_reserved_for(const Trainer *trainer);
/* Bytes of the device that libraries, kernels and CUDA graphs have allocated since the graph was
 * planned, in addition to the plan. Correct only if no other process uses the device; NaN if
 * operations use host memory. */
double trainer_device_unplanned(const Trainer *trainer);
/* A sparse table of the model, for printing a plan. */
typedef struct TrainTable {
    /* borrowed */
    const SparseTable *table;
    const OptimTable *rule;
    /* width, state: floats of a row's values and of its optimizer state. row_least, row_most: least
     * and most bytes of a row, with its part of the index, in a large table. */
    int width, state;
    double row_least, row_most;
} TrainTable;
TrainTable train_table(const Trainer *trainer, int table);
/* Number of ranks that own rows of the tables, and number of ranks that request rows. */
int train_table_owners(const Trainer *trainer);
int train_table_workers(const Trainer *trainer);
/* Most bytes of rows that an owner may store, including tables that grow. */
double train_table_limit(const Trainer *trainer);
/* Floats of dense parameters' values and state that servers store in mode async; 0 in other
 * modes. */
void train_table_dense(const Trainer *trainer, int64_t *values, int64_t *states);
/* Returns true if the sums over replicas use MPI messages. */
bool train_sums_by_mpi(const Trainer *trainer);
/* Returns true if NCCL connects the ranks' GPUs. Before set-up has decided this, returns true if
 * NCCL would connect them, provided that each rank has a GPU. */
bool train_gpus_joined(const Trainer *trainer);
/* Number of micro-batches in the loader of a rank that runs this plan. */
int train_data_slots(const Trainer *trainer, const Plan *plan);
/* Number of the loader's threads. */
int train_workers(const Trainer *trainer, const DataSet *set);
/* Writes the grids of the inputs of a loss for boxes, and returns their number; 0: another loss. */
int train_box_grids(const Trainer *trainer, BoxGrid grid[BOX_LEVELS]);
/* Memory of this process, in bytes. own_bytes: without file mappings; shared memory is divided by
 * the number of processes that map it. peak_bytes: largest resident size so far, including
 * libraries and shared pages. -1 if the kernel does not report it. memory_use returns free heap
 * memory to the system first. */
typedef struct MemoryUse {
    double own_bytes, peak_bytes;
} MemoryUse;
MemoryUse memory_use(void);
/* Returns true if a step's results have the same bits on every grid; otherwise train_bits_limit
 * says on which grids. */
bool train_same_bits(const Trainer *trainer);
/* Explains why train_same_bits is false, and on which grids results have the same bits; NULL if
 * train_same_bits is true. Owner: the caller. */
char *train_bits_limit(const Trainer *trainer);
/* Logs a table with a line for each rank: its place in the grid, its host, the CPUs that it may
 * use, its GPU. With more than 64 ranks the table has a line for each host. Collective. */
void train_log_ranks(const Trainer *trainer);
/* If micro-batches do not divide evenly among replicas, returns a text with the number of padding
 * micro-batches and a better size; else NULL. Owner: the caller. */
char *train_padding(const Trainer *trainer);
/* Returns true if this rank stores a separate value for the parameter. False if the parameter is on
 * another stage, or uses the value of a parameter of this stage to which it is tied. */
bool train_owns(const Trainer *trainer, int param);
/* Returns true if this rank must set parameters that every replica has. If replicas share the
 * memory of parameters, only the first replica sets them. */
bool train_sets_params(const Trainer *trainer);
/* Returns the norm of the last step's gradient, the same bits on every grid. Collective. */
double train_grad_norm(Trainer *trainer);
/* Opens the loader at the current position and prepares the first step. Call it before the first
 * step, and before the next step after train_load, train_restart or train_repeat_step; at other
 * times it does nothing. Collective; all ranks return the same Status. */
Status train_begin_steps(Trainer *trainer);
/* Makes the next optimizer step, after train_begin_steps. A sample that cannot be read ends the job
 * (die_as). Collective; all ranks return the same Status. */
Status train_step(Trainer *trainer, StepResult *result);
/* Repeats forward and backward of the last step, checks all computed values, and updates nothing.
 * *fault: the first fault on any rank; *loss: loss of the repeated step. Collective; all ranks
 * return the same Status. */
Status train_repeat_step(Trainer *trainer, StepFault *fault, double *loss);
/* Checks that all parameters, running statistics and optimizer states are finite, and that replicas
 * which store their own copies have the same values. Otherwise returns ERR_DATA with a message that
 * names tensor, rank and host. Collective; all ranks return the same Status. */
Status train_check(Trainer *trainer);
/* train_check before a save: also copies the values to the memory for saves in the same pass, if
 * there is such memory and no running save uses it. */
Status train_check_and_copy(Trainer *trainer);
/* Returns true if replicas store the same values, so that train_check can compare them; else sets
 * *why_not to the reason. */
bool train_compares(const Trainer *trainer, const char **why_not);
/* Resets the trainer to the state before the first step, except its parameters and running
 * statistics: call train_load or train_init_params next. Collective. */
void train_restart(Trainer *trainer);
/* Completes result with the statistics of the last step if they have not arrived yet; waits for
 * them. Collective. */
void train_step_stats(Trainer *trainer, StepResult *result);
/* Describes which work is captured in CUDA graphs and replayed, or why no work is. */
const char *train_captures(const Trainer *trainer);
/* Algorithms that train.cuda_tune has chosen or read; NULL if train.cuda_tune is off, on CPUs, and
 * in a plan without a GPU. Borrowed. */
const AlgorithmRecord *train_algorithms(const Trainer *trainer);
/* Further results of an evaluation. Pointers may be NULL. */
typedef struct EvalExtras {
    /* counts [true][predicted], classes x classes, zeroed by the caller */
    int64_t *confusion;
    /* path of a file in COCO's format of results, with the found boxes; rank 0 writes it */
    const char *results;
    /* on rank 0, if the model finds boxes, receives COCO's numbers, including those of each class;
     * the caller releases it with coco_result_fini */
    CocoResult *coco;
    /* true: for sets of fields, line->picture is set (train.eval_pictures) */
    bool pictures;
} EvalExtras;
/* Evaluates every sample of set once, with running statistics. Except for its seconds, and its
 * pictures, which only rank 0 has, the line is the same on every rank, with the same bits for every
 * number of ranks. extras may be NULL. Returns ERR_STOPPED if a rank received a stop request during
 * the evaluation. Collective; all ranks return the same Status. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line,
                      const EvalExtras *extras);
/* Finds boxes in the outputs of a detector's network. */
typedef struct DetectorBoxes DetectorBoxes;
typedef struct DetectOptions {
    /* only boxes with a larger score are found */
    double score;
    NmsOptions nms;
    /* true: a cell and anchor may give a box for each class; false: only for the best class */
    bool all_classes;
} DetectOptions;
/* Call it on ranks with the loss. Borrows the trainer. */
DetectorBoxes *detector_boxes_new(const Trainer *trainer);
void detector_boxes_free(DetectorBoxes **boxes);
/* Finds the boxes of row `row` of the micro-batch that was evaluated last. The boxes are in order
 * of descending score, in pixels of the model's input. *box: [*count], borrowed until the next
 * call. ERR_DATA: an output is not finite. */
Status detector_boxes_find(DetectorBoxes *boxes, int64_t row, const DetectOptions *options,
                           DetectedBox **box, int64_t *count);
/* Converts a box from pixels of the model's input to pixels of the picture, which has width x
 * height pixels, and cuts it at the picture's edges. */
void detect_to_picture(DetectedBox *box, const BoxFit *fit, int width, int height);
/* Value of EvalLine.auc_kind in evaluations of this configuration. */
const char *train_auc_kind(const Config *config);
/* Continuation of a text: `tokens` new tokens after the prompt. */
typedef struct Sampling {
    /* at least one token; borrowed */
    const int32_t *prompt;
    int64_t prompt_count, tokens;
    /* divisor of the logits; 0: the likeliest token is always taken */
    double temperature;
    /* tokens are drawn among the top_k likeliest ones; 0: among all */
    int64_t top_k;
    uint64_t seed;
    /* called with each new token */
    void (*take)(void *user, int32_t token);
    void *user;
} Sampling;
/* Draws each token from the model's softmax after the last model.context tokens; the same seed
 * gives the same tokens. Requires one rank, data of tokens, a batch of one sample, and a vocabulary
 * that contains the prompt's tokens and has at least top_k tokens. */
Status train_generate(Trainer *trainer, const Sampling *sampling);
/* Computes class probabilities. samples: a micro-batch without labels, with ids if the set has
 * them; its arrays have the size of a full micro-batch. probability, (rows,
 * train_probability_count): the softmax of the outputs; for a loss of one logit z, 1 - sigmoid(z)
 * and sigmoid(z). Requires one rank and a batch of one micro-batch. Returns ERR_DATA if an output
 * is not finite, ERR_CONFIG if samples have a label for each token or pixel. */
Status train_predict(Trainer *trainer, const Batch *samples, double *probability);
/* Computes the outputs of a detector for samples as in train_predict; detector_boxes_find reads the
 * outputs. */
Status train_detect(Trainer *trainer, const Batch *samples);
/* Number of probabilities of a sample: the number of classes, or 2 for a loss of one logit. */
int64_t train_probability_count(const Trainer *trainer);
/* Prepares a set for a model that is made for train's samples: checks that kind, shape and factor
 * (scale) of the samples are the same, and that ids, tokens and columns have the same meaning; sets
 * its mean and deviation to train's. Returns ERR_DATA with a message that names the set. */
Status train_take_set(DataSet *set, const DataSet *train);
/* train_take_set for a set to evaluate on: also checks that targets have as many numbers, and
 * raises train->id_most to the test set's, so that buffers have space for its ids. */
Status train_take_test_set(DataSet *test, DataSet *train);
/* Sets the data set's mean and deviation to those in a checkpoint (input, of the file `path`), if
 * the file has them and the configuration does not set others. Logs a line if they differ from the
 * set's, except if the set is one of fields and had no mean and deviation. */
void train_take_stats(DataSet *set, const Config *config, const CheckpointInput *input,
                      const char *path);
/* train_save and train_load save and load like checkpoint_save and checkpoint_load. After an error
 * of train_load, load another file or free the trainer. After a load, the next step is the step
 * after the checkpoint's. Collective; all ranks return the same Status. */
Status train_save(Trainer *trainer, const char *path);
/* A save in the background, like checkpoint_save_begin, from a copy of the values if there is
 * memory for it. Only one save may run at a time. Owner: the caller, who frees it before the
 * trainer. */
typedef struct TrainSave TrainSave;
typedef struct TrainSaveTo {
    /* path: path of the checkpoint; also: a second name for the same file (see CheckpointIo), or
     * NULL; borrowed for the call */
    const char *path, *also;
    /* may be NULL */
    const CheckpointHooks *hooks;
    /* true: save without a copy, so that training must wait */
    bool waits;
} TrainSaveTo;
TrainSave *train_save_begin(Trainer *trainer, const TrainSaveTo *to);
/* Allocates and touches the memory of the copy before the first save needs it. Collective. */
void train_make_save_copy(Trainer *trainer);
bool train_save_busy(const TrainSave *save);
/* Returns true if the next call of train_save_next is collective: it assembles whole tensors and
 * does not wait for the background thread. The same on all ranks. */
bool train_save_collects(const TrainSave *save);
Status train_save_next(TrainSave *save, bool *done);
/* Seconds that this rank has spent on the save so far, in the background and outside it. */
double train_save_seconds(const TrainSave *save);
void train_save_free(TrainSave **save);
/* The part of a checkpoint that train_load loads. */
typedef enum TrainLoad {
    /* everything, for a run that resumes */
    LOAD_RUN,
    /* parameters and running statistics, for evaluation */
    LOAD_PARAMS,
    /* the averages of parameters and running statistics (train.ema) if the file has them, otherwise
     * the same as LOAD_PARAMS */
    LOAD_AVERAGES
} TrainLoad;
Status train_load(Trainer *trainer, const char *path, TrainLoad what);
/* True if the last train_load has loaded averages. */
bool trainer_has_averages(const Trainer *trainer);
/* Draws initial parameters and running statistics, or loads those of model.init_from if that is
 * set. Returns ERR_NOINPUT if the file does not exist; ERR_DATA if it is not a valid checkpoint or
 * does not fit the model, with a list of missing, superfluous and differently sized tensors, up to
 * 32 of each kind; ERR_CONFIG if model.init_from cannot be used with this configuration.
 * Collective; all ranks return the same Status. */
Status train_init_params(Trainer *trainer);
/* Executes the whole run: resume, steps, evaluations, checkpoints, summary. Returns ERR_STOPPED if
 * a rank received a stop request (stop_wanted); the run then has a checkpoint of its last step.
 * Collective. */
Status train_run(const Config *config, const World *world);
/* Text for a message that suggests to start the same command again: names the option that would
 * prevent resuming, for example ", but without run.fresh,"; "" if there is none. */
const char *train_leave_out(const Config *config);

#endif
