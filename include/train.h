/* train: builds a run from a Config and executes it. Begin reading with train_step, which makes one
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
/* Returns the word of an event: "epoch". */
const char *hook_event_word(int event);
enum { TRAIN_WORDS = 5 };
extern const ConfigWords train_words[TRAIN_WORDS];
/* Registers the words that are values of configuration keys, for this module and all modules that
 * it uses. Call it before anything is parsed. Not collective. */
void train_use_words(void);
/* Checks the constant tables of this module and of the modules that it uses: operations, layers,
 * losses, rules, curves, models, formats, families, metrics. ERR_BUG names the first incomplete
 * entry. Called at every start of the program. */
Status train_rows_check(void);

/* Prints the versions of the program and of its libraries, one per line. gpus = true: also loads
 * the libraries for GPUs, which need 100 MB of memory, and prints their versions. Not
 * collective. */
void train_print_versions(FILE *out, bool gpus);

/* Broadcasts rank 0's set; on other ranks the previous content of *set is freed. Each rank owns its
 * set (data_set_fini). Collective. */
void train_bcast_set(const World *world, DataSet *set);
/* Measures mean and standard deviation of each variable of a set of fields. Each rank reads a part
 * of the frames; every rank gets the whole result, whose bits do not depend on the number of ranks
 * or threads. ERR_IO, ERR_DATA. Collective on world. */
Status train_measure_fields(const World *world, const DataSet *set, FieldStats *stats, int threads);

/* Everything that belongs to one run. */
typedef struct Trainer Trainer;

/* Fault of a step. */
typedef enum BadKind {
    BAD_NOTHING,
    /* the loss is NaN or infinite */
    BAD_LOSS,
    /* the loss is far above the losses before it (train.spike) */
    BAD_SPIKE,
    /* a gradient is NaN or infinite */
    BAD_GRADIENT
} BadKind;

/* Estimates for train.grad_noise. square: squared norm of the true gradient; variance: trace of the
 * covariance of a sample's gradient; scale: their quotient variance / square, the gradient noise
 * scale in samples. */
typedef struct GradNoise {
    double square, variance, scale;
} GradNoise;

/* The result of a step, by train_step. */
typedef struct StepResult {
    /* values over the global batch, the same on every rank; in modes geo and async, values over
     * this rank's share of the batch. On a device, loss, top1, top5 and loss_result are those of
     * the step before, so that the host does not wait. In three cases they are those of this step:
     * it is logged, the precision is fp16, or train.on_bad is not stop. */
    double loss, top1, top5, lr;
    /* means of the loss's results 1 and 2 (LossResults) */
    double loss_result[2];
    /* norm of the gradient over all ranks; NaN: it was not computed */
    double grad_norm;
    /* means over the steps since the last logged step; NaN: this step is not logged, or nothing was
     * measured. The scale is also NaN if the noise is so large that the gradient cannot be
     * estimated. */
    GradNoise noise;
    /* true: nothing was updated, because a gradient overflowed or the step was already known to be
     * bad */
    bool skipped;
    /* The first bad step whose statistics arrived during this step. bad_kind: its fault; bad_step:
     * its number; bad_loss: its loss; spike_limit: the largest loss that would be no spike. */
    BadKind bad_kind;
    int64_t bad_step;
    double bad_loss, spike_limit;
    /* true: the step has a line in metrics.jsonl, because it is the first after the loader was
     * opened, the last of the run, or a multiple of train.log_every */
    bool logged;
    /* number of rows of the loss in the zero, one or two steps whose statistics arrived during this
     * step */
    int64_t rows;
    /* true: before a step whose statistics arrived during this step, a rank requested
     * (executor_request) to stop or to save a checkpoint, or had a pending request of the hook */
    bool stop_requested, save_requested, hook_requested;
    /* logged steps: seconds in each phase since the previous logged step, summed over timed_ranks
     * ranks; timed_ranks 0: no times have arrived */
    double summed_phase_s[PHASE_COUNT];
    int timed_ranks;
    /* true: a rank was writing a checkpoint when the last step with known statistics began */
    bool was_saving;
} StepResult;

/* Makes everything that the first step needs: data sets, model, plan, memory, initial parameters.
 * Finds errors in the configuration and the data. *trainer is NULL on error; release it with
 * trainer_free. Collective; all ranks return the same Status. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
/* Makes a trainer that makes no steps, only evaluations and predictions. It has no initial
 * parameters: call train_load next. samples: description of the samples, for a caller that has no
 * data sets; NULL: data sets are opened. checkpoint: path of the file that train_load will load;
 * labels are numbered by the names of its classes. Both are borrowed for the call. */
Status trainer_new_to_load(Trainer **trainer, const Config *config, const World *world,
                           const DataSet *samples, const char *checkpoint);
/* Collective. */
void trainer_free(Trainer **trainer);
/* Arguments of trainer_dry_run. */
typedef struct DryRun {
    /* number of ranks of the planned run */
    int ranks;
    /* model of the GPU (BackendOptions.gpu) */
    const char *gpu;
    /* data set that is used instead of the configuration's files; borrowed; may be NULL */
    const DataSet *data;
    /* number of ranks of a node; 0: all ranks are on one node */
    int node_ranks;
} DryRun;
/* Plans a run of dry_run->ranks ranks in this process: does what trainer_new does, but allocates no
 * memory and makes no communicators or executor. On a machine without a GPU, a plan for GPUs
 * assumes the model dry_run->gpu. trainer_plan returns the plan of stage 0; train_plan_stage makes
 * those of other stages. Not collective. */
Status trainer_dry_run(Trainer **trainer, const Config *config, const World *world,
                       const DryRun *dry_run);
/* Builds the model of a configuration for micro-batches of `samples` samples of the set `train`.
 * The graph is not sliced, fused or planned. test: has 0 samples if there is no test set. The
 * caller owns *graph. Not collective. */
Status train_build_graph(Graph **graph, const Config *config, const DataSet *train,
                         const DataSet *test, int64_t samples);
/* If config has no model.widths, copies them from a checkpoint and logs a line. The checkpoint is
 * `path` or, if that is NULL, the one that the run resumes or starts from. If the file cannot be
 * read, nothing changes; the error is reported when the file is loaded. Collective. */
void train_use_widths(Config *config, const World *world, const char *path);
/* ---- accessors to a trainer's parts, for printing and measuring; all results are borrowed ---- */

const Config *trainer_config(const Trainer *trainer);
const World *trainer_world(const Trainer *trainer);
Backend *trainer_backend(const Trainer *trainer);
/* Returns the model; with grid.tp it has this rank's slices. */
const Graph *trainer_graph(const Trainer *trainer);
const Schedule *trainer_schedule(const Trainer *trainer);
/* Returns the plan of this rank's stage; in a dry run that of stage 0. */
const Plan *trainer_plan(const Trainer *trainer);
/* Returns the node at which each chunk of the model begins, then the number of nodes: stages *
 * chunks + 1 numbers. */
const int *trainer_cuts(const Trainer *trainer);
const Optim *trainer_optim(const Trainer *trainer);
/* Arrays with an entry for each parameter of the graph: the number of its rule (optim_assign), the
 * factor on this rule's learning rate, and the needs of its update. */
const int *trainer_rules(const Trainer *trainer);
const double *trainer_lr_scales(const Trainer *trainer);
const ParamUpdate *trainer_updates(const Trainer *trainer);
const DataSet *trainer_train_set(const Trainer *trainer);
/* Returns the test set; it has 0 samples if there is none. */
const DataSet *trainer_test_set(const Trainer *trainer);
/* Returns the names of the classes, one per line; only on rank 0; NULL: they have no names. */
const char *trainer_classes(const Trainer *trainer);
GridShape trainer_shape(const Trainer *trainer);
/* Sizes and numbers of batches and steps. */
typedef struct TrainSizes {
    /* numbers of samples of a global batch and of a micro-batch */
    int64_t batch, micro_batch;
    /* micro_batches: number of micro-batches of a global batch; micro_batches_local: of one
     * replica, ceil(micro_batches / dp) */
    int micro_batches, micro_batches_local;
    /* number for which a sample counts in reports of throughput: 1, or the number of its tokens */
    int64_t counted_units_per_sample;
    int64_t steps_per_epoch, steps;
} TrainSizes;
TrainSizes trainer_sizes(const Trainer *trainer);
/* Returns the seconds that this rank has waited for its loader so far. */
double trainer_data_wait_s(const Trainer *trainer);
/* From now on, measures the compute stream's waits for sums over replicas in *waits. A call with
 * NULL ends the measurement; until then waits is borrowed. Returns false with one replica, which
 * has no such sums. */
bool trainer_watch_sums(Trainer *trainer, Stopwatch *waits);
/* See executor_time_operations. */
void trainer_time_operations(Trainer *trainer, OperationTimes *times);
/* Makes the update of a step once with the gradients in memory, to measure it. Not for rules with
 * norms, because their update is collective. */
void trainer_update_once(Trainer *trainer, double lr);

/* Plans a stage. The caller owns *plan and frees it before the trainer. */
Status train_plan_stage(const Trainer *trainer, int stage, Plan **plan);
/* Returns a description of the settings of a run on which the times of its operations and updates
 * depend: precision, instruction set, update rules. The caller owns it. */
char *train_settings_text(const Config *config);
/* Calls `run` with a world in which processes have the ranks that grid.rank_map gives them; without
 * this key, with `world`. Returns the status of `run`. The process that has rank 0 logs the map.
 * ERR_CONFIG: the map does not fit, or there are servers. Collective. */
typedef Status TrainRanks(const Config *config, const World *world, void *user);
Status train_with_rank_map(const Config *config, const World *world, TrainRanks *run, void *user);
/* Times of a machine. path: path of their file, for messages; borrowed. median_only: see
 * ForecastInput. */
typedef struct ForecastMachine {
    const Machine *machine;
    const char *path;
    bool median_only;
} ForecastMachine;
/* Forecasts the time of a step. plan: plans of all stages. ERR_CONFIG: as from machine_forecast, or
 * this kind of run cannot be forecast. Not collective. */
Status train_forecast(const Trainer *trainer, const Plan *const *plan, const ForecastMachine *by,
                      Forecast *forecast);
/* Times of reading the training set and of saving a checkpoint, by the machine's rates of files. */
typedef struct FileForecast {
    /* read_bytes: bytes that the first node reads for a step if the training set is read from its
     * files, as in the first epoch; read_s: seconds of reading them; 0: not known */
    double read_bytes, read_s;
    /* save_bytes: bytes of a checkpoint; save_s: seconds in which the node that writes most of it
     * writes its tensors and reads them back; 0: not known */
    double save_bytes, save_s;
} FileForecast;
/* Computes these times. Rows of sparse tables are not known before a run, so the saves of a model
 * with tables are not forecast. Not collective. */
FileForecast train_file_forecast(const Trainer *trainer, const Machine *machine);
/* Sets *seconds, [nodes of the graph], owned by the caller, to the median times of the parts of the
 * operations of this rank's stage; a part that an operation never runs has 0. ERR_CONFIG: as from
 * machine_part_s. Not collective. */
Status train_part_times(const Trainer *trainer, const ForecastMachine *by, PartSeconds **seconds);
/* See executor_pretend. */
void trainer_pretend(Trainer *trainer, const PartSeconds *seconds);
/* Makes the plans of all stages, [stages]. Release them with train_plans_free. */
Status train_plans(const Trainer *trainer, Plan ***plan);
void train_plans_free(const Trainer *trainer, Plan ***plan);
/* Memory of a rank by its plan, in bytes by kind; most kinds are those of Plan. gradients: includes
 * those of deferred updates (grid.mode: stale). data: the loader's micro-batches, and the boxes,
 * unpacked chunks and scratch memory of its threads; with a device only the micro-batches on the
 * device. messages: includes the buffers of sums. program: the graph with the code and objects of
 * its kernels, measured before the memory of other kinds is allocated. all: the sum, without host
 * memory if the rank has a device. */
typedef struct TrainBytes {
    size_t params, gradients, state, activations, cache, workspace, messages, data, program, all;
    /* the average of parameters and running statistics (train.ema) */
    size_t average;
    /* sparse tables: buffers for the ids and rows of a step and, if their number is known, all rows
     * that this rank can own */
    size_t tables;
    /* device memory that is left free for libraries and the driver, in addition to `all`; 0 without
     * a device */
    size_t reserved;
    /* copy in host memory from which checkpoints are written; 0: there is no copy, and training
     * waits for saves */
    size_t checkpoint;
    /* host memory of a run on a device: the loader's memory, slices and messages that are copied
     * through the host, and the copy for checkpoints; 0 without a device */
    size_t host;
} TrainBytes;
TrainBytes train_bytes(const Trainer *trainer, const Plan *plan);
/* Returns a description of the use of TrainBytes.reserved, for messages. Borrowed. */
const char *train_reserved_for(const Trainer *trainer);
/* Returns the bytes of the device that libraries, kernels and CUDA graphs have allocated since the
 * graph was planned, in addition to the plan. Correct only if no other process uses the device; NaN
 * if operations use host memory. */
double trainer_device_unplanned(const Trainer *trainer);
/* A sparse table of the model, for printing a plan. */
typedef struct TrainTable {
    /* borrowed */
    const SparseTable *table;
    const OptimTable *rule;
    /* width: floats of a row's values; state: floats of its optimizer state */
    int width, state;
    /* smallest and largest bytes of a row, with its part of the index, in a large table */
    double row_bytes_min, row_bytes_max;
} TrainTable;
TrainTable train_table(const Trainer *trainer, int table);
/* Return the number of ranks that own rows of the tables, and that request rows. */
int train_table_owners(const Trainer *trainer);
int train_table_workers(const Trainer *trainer);
/* Returns the largest number of bytes of rows that an owner may store, also of tables that grow. */
double train_table_limit(const Trainer *trainer);
/* Computes the number of floats of the dense parameters' values and of their state that servers
 * store in mode async; 0 in other modes. */
void train_server_dense_floats(const Trainer *trainer, int64_t *values, int64_t *states);
/* Returns true if the sums over replicas use MPI messages. */
bool train_sums_by_mpi(const Trainer *trainer);
/* Returns true if NCCL connects the ranks' GPUs or, before set-up has decided this, would connect
 * them if each rank has a GPU. */
bool train_gpus_joined(const Trainer *trainer);
/* Returns the number of micro-batches in the loader of a rank with this plan. */
int train_data_slots(const Trainer *trainer, const Plan *plan);
/* Returns the number of the loader's threads. */
int train_workers(const Trainer *trainer, const DataSet *set);
/* If the loss reads boxes, writes the grid of each of its inputs, and returns the number of grids.
 * Otherwise returns 0. */
int train_box_grids(const Trainer *trainer, BoxGrid grid[BOX_LEVELS]);
/* Memory of this process, in bytes; -1: the kernel does not report it. own_bytes: without file
 * mappings; shared memory is divided by the number of processes that map it. peak_bytes: largest
 * resident size so far, including libraries and shared pages. memory_use first returns free heap
 * memory to the system. */
typedef struct MemoryUse {
    double own_bytes, peak_bytes;
} MemoryUse;
MemoryUse memory_use(void);
/* Returns true if a step's results have the same bits on every grid; otherwise train_bits_limit
 * says on which grids. */
bool train_same_bits(const Trainer *trainer);
/* Returns a text that explains why train_same_bits is false, and on which grids results have the
 * same bits; NULL if it is true. The caller owns the text. */
char *train_bits_limit(const Trainer *trainer);
/* Logs a table with a line for each rank: its place in the grid, its host, the CPUs that it may
 * use, its GPU. With more than 64 ranks it has a line for each host. Collective. */
void train_log_ranks(const Trainer *trainer);
/* If micro-batches do not divide evenly among replicas, returns a text with the number of padding
 * micro-batches and a better size, owned by the caller; else NULL. */
char *train_padding_text(const Trainer *trainer);
/* Returns true if this rank stores a value of its own for the parameter; false if the parameter is
 * on another stage, or uses the value of a parameter of this stage to which it is tied. */
bool train_owns(const Trainer *trainer, int param);
/* Returns true if this rank must set parameters that every replica has. If replicas share the
 * memory of parameters, only the first replica sets them. */
bool train_sets_params(const Trainer *trainer);
/* Returns the norm of the newest step's gradient, the same bits on every grid. Collective. */
double train_grad_norm(Trainer *trainer);
/* Opens the loader at the current position and prepares the first step. Call it before the first
 * step, and before the first step that follows train_load, train_restart or train_repeat_step; at
 * other times it does nothing. Collective; all ranks return the same Status. */
Status train_begin_steps(Trainer *trainer);
/* Makes the next optimizer step. Call train_begin_steps first. A sample that cannot be read ends
 * the job (die_as). Collective; all ranks return the same Status. */
Status train_step(Trainer *trainer, StepResult *result);
/* Repeats forward and backward of the newest step, checks all computed values, and updates nothing.
 * *fault: the first fault on any rank; *loss: loss of the repeated step. Collective; all ranks
 * return the same Status. */
Status train_repeat_step(Trainer *trainer, StepFault *fault, double *loss);
/* Checks that all parameters, running statistics and optimizer states are finite, and that replicas
 * with their own copies have the same values. ERR_DATA names tensor, rank and host. Collective; all
 * ranks return the same Status. */
Status train_check(Trainer *trainer);
/* Does what train_check does, for a check before a save. If there is memory for the save's copy,
 * and no save is using it, also copies the values in the same pass. */
Status train_check_and_copy(Trainer *trainer);
/* Returns true if replicas store the same values, so that train_check can compare them; else sets
 * *why_not to the reason. */
bool train_compares(const Trainer *trainer, const char **why_not);
/* Resets the trainer to the state before the first step, except its parameters and running
 * statistics: call train_load or train_init_params next. Collective. */
void train_restart(Trainer *trainer);
/* Waits for the statistics of the newest step, if they have not arrived, and completes *result with
 * them. Collective. */
void train_step_stats(Trainer *trainer, StepResult *result);
/* Returns a description of the work that CUDA graphs replay, or why they replay none. */
const char *train_captures(const Trainer *trainer);
/* Returns the algorithms that train.cuda_tune has chosen or read, borrowed; NULL if train.cuda_tune
 * is off, on CPUs, and in a plan without a GPU. */
const AlgorithmRecord *train_algorithms(const Trainer *trainer);
/* Further results of an evaluation. Pointers may be NULL. */
typedef struct EvalExtras {
    /* number of rows by true and predicted class, [classes][classes], zeroed by the caller */
    int64_t *confusion;
    /* path of a file in COCO's format of results for the boxes that are found; rank 0 writes it */
    const char *results;
    /* on rank 0, if the model finds boxes: gets COCO's numbers, including those of each class; the
     * caller releases it with coco_result_fini */
    CocoResult *coco;
    /* true: line->picture is set for sets of fields (train.eval_pictures) */
    bool pictures;
} EvalExtras;
/* Evaluates every sample of the set once, with running statistics. The line has the same bits on
 * every rank and for every number of ranks, with two exceptions: its seconds, and its pictures,
 * which only rank 0 has. extras may be NULL. ERR_STOPPED: a rank received a stop request meanwhile.
 * Collective; all ranks return the same Status. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line,
                      const EvalExtras *extras);
/* Finds boxes in the outputs of a detector's network. */
typedef struct DetectorBoxes DetectorBoxes;
typedef struct DetectOptions {
    /* score that a box must exceed */
    double score;
    NmsOptions nms;
    /* true: a cell and anchor may give a box for each class; false: only one for the best class */
    bool all_classes;
} DetectOptions;
/* Makes a DetectorBoxes. Call it on ranks with the loss. The trainer is borrowed. */
DetectorBoxes *detector_boxes_new(const Trainer *trainer);
void detector_boxes_free(DetectorBoxes **boxes);
/* Finds the boxes of row `row` of the micro-batch that was evaluated last, in order of descending
 * score, in pixels of the model's input. *box: [*count], borrowed until the next call. ERR_DATA: an
 * output is not finite. */
Status detector_boxes_find(DetectorBoxes *boxes, int64_t row, const DetectOptions *options,
                           DetectedBox **box, int64_t *count);
/* Converts a box from pixels of the model's input to pixels of the picture, which has width x
 * height pixels, and cuts it at the picture's edges. */
void detect_to_picture(DetectedBox *box, const BoxFit *fit, int width, int height);
/* Returns EvalLine.auc_kind for evaluations with this configuration. */
const char *train_auc_kind(const Config *config);
/* Continuation of a text: `tokens` new tokens after the prompt. */
typedef struct Sampling {
    /* at least one token; borrowed */
    const int32_t *prompt;
    int64_t prompt_count, tokens;
    /* divisor of the logits; 0: always the likeliest token */
    double temperature;
    /* number of likeliest tokens among which tokens are drawn; 0: all */
    int64_t top_k;
    uint64_t seed;
    /* Called with each new token. */
    void (*take)(void *user, int32_t token);
    void *user;
} Sampling;
/* Draws each token from the model's softmax after the last model.context tokens; the same seed
 * gives the same tokens. Requires one rank, data of tokens, a batch of one sample, and a vocabulary
 * that contains the prompt's tokens and has at least top_k tokens. */
Status train_generate(Trainer *trainer, const Sampling *sampling);
/* Computes class probabilities or, for a loss of numbers, numbers. samples: a micro-batch without
 * labels and targets, with ids if the set has them, and arrays of the size of a full micro-batch.
 * result, (rows, train_result_count): the softmax of the outputs; for a loss of one logit z, 1 -
 * sigmoid(z) and sigmoid(z); for a loss of numbers the outputs. Requires one rank and a batch of
 * one micro-batch. ERR_DATA: an output is not finite. ERR_CONFIG: tokens or pixels have labels. */
Status train_predict(Trainer *trainer, const MicroBatch *samples, double *result);
/* Computes the outputs of a detector for samples (as for train_predict), which detector_boxes_find
 * then reads. */
Status train_detect(Trainer *trainer, const MicroBatch *samples);
/* Returns the number of results of train_predict for a sample: the number of classes, 2 for a loss
 * of one logit, or the number of targets. */
int64_t train_result_count(const Trainer *trainer);
/* Prepares a set for a model that is made for the samples of the set `train`: checks that kind,
 * shape and factor (scale) of the samples are the same, and that ids, tokens and columns have the
 * same meaning; sets its mean and deviation to those of `train`. ERR_DATA names the set. */
Status train_prepare_set(DataSet *set, const DataSet *train);
/* Does what train_prepare_set does, for a set to evaluate: also checks that targets have the same
 * number of values, and raises train->ids_per_sample_max to that of the test set, so that buffers
 * have room for its ids. */
Status train_prepare_test_set(DataSet *test, DataSet *train);
/* Sets the mean and deviation of the set to those of `input`, from the checkpoint `path`, or
 * removes them if `input` has none. If the configuration sets others, only warns of a difference.
 * Does nothing if `input` has other channels. Logs a change, unless the set is one of fields and
 * had no mean and deviation. */
void train_use_stats(DataSet *set, const Config *config, const CheckpointInput *input,
                     const char *path);
/* train_save and train_load save and load as checkpoint_save and checkpoint_load. After an error of
 * train_load, load another file or free the trainer. After the load of a checkpoint of step N,
 * training continues with step N + 1. Collective; all ranks return the same Status. */
Status train_save(Trainer *trainer, const char *path);
/* A save in the background, as by checkpoint_save_begin, from a copy of the values if there is
 * memory for it. There may be only one save at a time. The caller owns it and frees it before the
 * trainer. train_save_begin and train_save_next are collective. */
typedef struct TrainSave TrainSave;
typedef struct TrainSaveTo {
    /* path: path of the checkpoint; second_path: path of a second file with the same content
     * (CheckpointIo.second_path), or NULL; borrowed for the call */
    const char *path, *second_path;
    /* may be NULL */
    const CheckpointHooks *hooks;
    /* true: the save makes no copy, so training must wait */
    bool waits;
} TrainSaveTo;
TrainSave *train_save_begin(Trainer *trainer, const TrainSaveTo *to);
/* Allocates and touches the memory of the copy before the first save needs it. Collective. */
void train_make_save_copy(Trainer *trainer);
bool train_save_busy(const TrainSave *save);
/* Returns true if the next call of train_save_next makes ranks send each other parts of tensors,
 * and does not wait for the background thread. The same on all ranks. */
bool train_save_collects(const TrainSave *save);
Status train_save_next(TrainSave *save, bool *done);
/* Returns the seconds that this rank has spent on the save so far, in the background and outside
 * it. */
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
/* Returns true if the last train_load has loaded averages. */
bool trainer_has_averages(const Trainer *trainer);
/* Draws initial parameters and running statistics, or loads those of model.init_from if that is
 * set. ERR_NOINPUT: the file does not exist. ERR_DATA: it is not a valid checkpoint or does not fit
 * the model; the message lists missing, surplus and differently sized tensors, up to 32 of each
 * kind. ERR_CONFIG: model.init_from cannot be used with this configuration. Collective; all ranks
 * return the same Status. */
Status train_init_params(Trainer *trainer);
/* Executes the whole run: resume, steps, evaluations, checkpoints, summary. ERR_STOPPED: a rank
 * received a stop request (stop_wanted); the run then has a checkpoint of its last step.
 * Collective. */
Status train_run(const Config *config, const World *world);
/* Returns text for a message that suggests to start the same command again: it names the option
 * that would prevent resuming, for example ", but without run.fresh,"; "" if there is none. */
const char *train_continue_hint(const Config *config);

#endif
