/* train: builds everything from a Config, and the step. Read train_step and you have read the
 * program. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "checkpoint.h"
#include "observe.h"
#include "optim.h"
#include "pipeline.h"
#include "table.h"

/* The words of checkpoint.resume, which takes a path, too (RESUME_FILE). */
#define RESUME_WORDS(W) W(RESUME_AUTO, "auto") W(RESUME_NO, "no")
typedef enum ResumeMode { RESUME_WORDS(LIST_CONSTANT) } ResumeMode;
/* and of train.on_bad */
#define ON_BAD_WORDS(W) W(ON_BAD_STOP, "stop") W(ON_BAD_SKIP, "skip") W(ON_BAD_ROLLBACK, "rollback")
typedef enum OnBad { ON_BAD_WORDS(LIST_CONSTANT) } OnBad;
/* and of run.hook_on, a bit each */
#define HOOK_WORDS(W)                                                                              \
    W(HOOK_EPOCH, "epoch")                                                                         \
    W(HOOK_EVALUATION, "evaluation") W(HOOK_CHECKPOINT, "checkpoint") W(HOOK_END, "end")
typedef enum HookMoment { HOOK_WORDS(LIST_CONSTANT) HOOK_MOMENTS } HookMoment;
const char *hook_moment_word(int moment);
enum { TRAIN_WORDS = 5 };
extern const ConfigWords train_words[TRAIN_WORDS];
/* Gives config the words of all modules up to this one. Before anything is parsed; not
 * collective. */
void train_use_words(void);

/* Everything one run is made of. */
typedef struct Trainer Trainer;

/* What is wrong with a step: its loss is no number or infinite, or far above those before it, or so
 * a gradient. */
typedef enum Bad { BAD_NOTHING, BAD_LOSS, BAD_SPIKE, BAD_GRADIENT } Bad;

typedef struct StepResult {
    /* Over the global batch, the same on every rank. On a device loss and shares are those of the
     * step before, so that the host does not wait, but where the step is logged or in fp16. */
    double loss, top1, top5, lr;
    /* Likewise; NaN where it is not known, for nobody asked. */
    double grad_norm;
    /* A gradient overflowed, or the step was known to be bad: nothing was updated. */
    bool skipped;
    /* Of the steps that have become known by this one; which one, the loss, and what it may be. */
    Bad bad;
    int64_t bad_step;
    double bad_loss, most;
    /* First, last, or train.log_every says so: the step has a line in metrics.jsonl. */
    bool logged;
    /* Of the steps that have become known by this one: none, one or two. */
    int64_t rows;
    /* Any rank asked, by executor_ask before them. */
    bool stop_asked, save_asked, wish_asked;
    /* Was any rank busy with a save when the last step that has become known was begun? */
    bool saving;
} StepResult;

/* Sets everything up to just before the first step: data sets, model, plan, memory, initial
 * parameters. What is wrong with the configuration or the data is found here. NULL on error. Owner:
 * the caller. Collective; all ranks agree. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
/* The same without parameters: train_load is called next, or train_init_params. samples, borrowed
 * for the call: what the caller's own are, where it computes without data sets; NULL: with them.
 * checkpoint, likewise: what train_load will be given, whose classes labels then are. */
Status trainer_new_to_load(Trainer **trainer, const Config *config, const World *world,
                           const DataSet *samples, const char *checkpoint);
/* Collective. */
void trainer_free(Trainer **trainer);
typedef struct DryRun {
    int ranks;
    /* See BackendOptions. */
    const char *gpu;
    /* Borrowed: instead of what the configuration's files hold; may be NULL. */
    const DataSet *data;
} DryRun;
/* As trainer_new, but for ranks of which this process is none: everything that is decided before a
 * step, and no memory, communicator or executor. Where there is no GPU, a plan for one is made for
 * a model of GPU that the backend knows. trainer_plan is stage 0's; train_plan_stage makes any
 * stage's. Not collective. */
Status trainer_dry_run(Trainer **trainer, const Config *config, const World *world,
                       const DryRun *only);
/* The model of a configuration, for so many samples of train; whole, neither fused nor planned.
 * test: without samples where there is none. Owner: the caller. Not collective. */
Status train_model(Graph **graph, const Config *config, const DataSet *train, const DataSet *test,
                   int64_t samples);
/* Where config has no model.widths: those of the checkpoint `path`, or, where that is NULL, of the
 * file that the run begins with or has come to; a line says so. A file that cannot be read changes
 * nothing: who loads it says why. Collective. */
void train_take_widths(Config *config, const World *world, const char *path);
/* ---- what a trainer is made of, for those who print or measure it; borrowed, all ---- */

const Config *trainer_config(const Trainer *trainer);
const World *trainer_world(const Trainer *trainer);
Backend *trainer_backend(const Trainer *trainer);
/* The model; with grid.tp this rank's slices of it. */
const Graph *trainer_graph(const Trainer *trainer);
const Schedule *trainer_schedule(const Trainer *trainer);
/* Of this rank's stage; of a dry run, of stage 0. */
const Plan *trainer_plan(const Trainer *trainer);
/* Nodes where the chunks of the model begin, and the end: stages * chunks + 1 of them. */
const int *trainer_cuts(const Trainer *trainer);
const Optim *trainer_optim(const Trainer *trainer);
/* One a parameter of the graph: the number of its rule, see optim_assign; a factor on the rate that
 * it has by that; what its update needs. */
const int *trainer_rules(const Trainer *trainer);
const double *trainer_lr_scales(const Trainer *trainer);
const ParamUpdate *trainer_updates(const Trainer *trainer);
const DataSet *trainer_train_set(const Trainer *trainer);
/* Without samples where there is none. */
const DataSet *trainer_test_set(const Trainer *trainer);
/* Names of the classes on rank 0, a line each; NULL: there are none. */
const char *trainer_classes(const Trainer *trainer);
GridShape trainer_shape(const Trainer *trainer);
/* How much a step is, and how many there are. */
typedef struct TrainSizes {
    /* Samples of a step, over all replicas, and of a micro-batch. */
    int64_t batch, micro_batch;
    /* Micro-batches of a step, and of a replica: ceil(micros / dp). */
    int micros, micros_local;
    /* Rows of the loss in a sample: 1, or the sample's tokens. */
    int64_t rows_per_sample;
    int64_t steps_per_epoch, steps;
} TrainSizes;
TrainSizes trainer_sizes(const Trainer *trainer);
/* Seconds that this rank has waited for its loader so far. */
double trainer_data_wait_s(const Trainer *trainer);
/* From now on the watch counts the compute stream's waits for sums over replicas; NULL: none does.
 * Nothing with one replica. The watch is borrowed until then. Returns whether it counts. */
bool trainer_watch_sums(Trainer *trainer, Stopwatch *waits);
/* The optimizer's part of a step, with whatever gradients there are: to measure it. Not for rules
 * that need norms, which are collective. */
void trainer_update_once(Trainer *trainer, double lr);

/* Owner: the caller, who frees it before the trainer. */
Status train_plan_stage(const Trainer *trainer, int stage, Plan **plan);
/* What one rank that runs a plan holds, by kind, in bytes: the plan's own, the loader's
 * micro-batches, what messages of sums are kept in, and what is there before any of it: the graph
 * with the code and objects of its kernels, as measured. */
typedef struct TrainBytes {
    size_t params, gradients, state, activations, cache, workspace, messages, data, program, all;
    /* Of sparse tables: what a step's ids and rows lie in, and this rank's rows, all that there can
     * be where that is known. */
    size_t tables;
    /* Bytes of a device beside `all`, kept free for what libraries and the driver will take and
     * nobody can plan; 0 without a device. */
    size_t reserved;
    /* The copy that checkpoints are written from; 0: saving blocks. Always the host's. */
    size_t checkpoint;
    /* Beside a device: the loader's micro-batches, slices and messages that go this way, and that
     * copy; else 0. */
    size_t host;
} TrainBytes;
TrainBytes train_bytes(const Trainer *trainer, const Plan *plan);
/* Purpose of TrainBytes.reserved, in words. Borrowed */
const char *train_reserved_for(const Trainer *trainer);
/* Bytes that libraries, kernels and recorded graphs have taken of the device since the graph was
 * planned, beside what the plan counts. Right for a rank whose device nobody else uses; NaN where
 * memory is the host's. */
double trainer_device_beside(const Trainer *trainer);
/* A sparse table of the model, as a plan shows it. */
typedef struct TrainTable {
    /* borrowed */
    const SparseTable *table;
    const OptimTable *rule;
    /* numbers of a row, of its state; bytes of a row with its place in the index, where there are
     * many: at least and at most */
    int width, state;
    double row_least, row_most;
} TrainTable;
TrainTable train_table(const Trainer *trainer, int table);
/* Ranks that own rows, and those that ask for them. */
int train_table_owners(const Trainer *trainer);
int train_table_askers(const Trainer *trainer);
/* What an owner may have of rows, of growing tables, too. */
double train_table_limit(const Trainer *trainer);
/* Mode async: floats of values and state of what servers have beside the tables. Else 0. */
void train_table_dense(const Trainer *trainer, int64_t *values, int64_t *states);
/* Do replicas' sums go by messages? */
bool train_sums_by_mpi(const Trainer *trainer);
/* Does NCCL join the ranks' GPUs? Before ranks know: would it, with a GPU for each. */
bool train_joined(const Trainer *trainer);
/* Micro-batches of data that the loader of a rank that runs this plan keeps. */
int train_data_slots(const Trainer *trainer, const Plan *plan);
/* And its threads. */
int train_workers(const Trainer *trainer, const DataSet *set);
/* Memory of this process that no file backs, shared memory divided by those who share it, and the
 * most that it ever had, libraries and shared pages included; -1 where the kernel does not say.
 * Heap that is free is given back first. */
typedef struct MemoryUse {
    double own_bytes, peak_bytes;
} MemoryUse;
MemoryUse memory_use(void);
/* Have a step's results the same bits on every grid? Else for this number of replicas only. */
bool train_bits_hold(const Trainer *trainer);
/* Why not, and where they do; NULL: they have. Owner: the caller. */
char *train_bits_limit(const Trainer *trainer);
/* Where replicas cannot share micro-batches evenly: how many are padding, and what would be better.
 * NULL: none are. Owner: the caller. */
char *train_padding(const Trainer *trainer);
/* Does this rank hold a value of the parameter, as its own? A parameter tied to another one here is
 * that one. */
bool train_owns(const Trainer *trainer, int param);
/* Does this rank write parameters that all replicas are to have? Of replicas that share their
 * memory the first one does. */
bool train_sets_params(const Trainer *trainer);
/* Norm of the last step's gradient, the same bits on every grid. Collective. */
double train_grad_norm(Trainer *trainer);
/* The next optimizer step; the first one opens the loader, which may fail. After that a sample that
 * cannot be read ends the job (die_as). Collective; all ranks agree. */
Status train_step(Trainer *trainer, StepResult *result);
/* The passes of the last step once more, with all that they compute looked at; nothing is updated.
 * *fault: the first that all ranks have found; *loss: of this time. Collective; all ranks agree. */
Status train_repeat_step(Trainer *trainer, StepFault *fault, double *loss);
/* Are all parameters, running statistics and optimizer states finite, and the same on all replicas
 * that have memory of their own? ERR_DATA that names tensor, rank and host where they are not.
 * Collective; all ranks agree. */
Status train_check(Trainer *trainer);
/* The same before a save: what is looked at is copied for it at once, where there is a copy that no
 * save is written from now. */
Status train_check_and_copy(Trainer *trainer);
/* Do replicas have anything that they can compare? Else why not, in words. */
bool train_compares(const Trainer *trainer, const char **why_not);
/* As trainer_new_to_load left it: before the first step. Collective. */
void train_restart(Trainer *trainer);
/* Waits for the statistics of the last step, where they are not in result yet. Collective. */
void train_step_stats(Trainer *trainer, StepResult *result);
/* What of a step is recorded and replayed, or why nothing is, in words. */
const char *train_captures(const Trainer *trainer);
/* The algorithms that train.cuda_tune has chosen or read; NULL where it is off, on CPUs, and where
 * a plan without a GPU cannot know them. Borrowed */
const AlgorithmRecord *train_algorithms(const Trainer *trainer);
/* One pass over set, every sample once, with running statistics. The same line on every rank, the
 * same bits on every number of ranks. confusion: classes x classes counts, [true][predicted],
 * zeroed by the caller; NULL: not wanted. ERR_STOPPED: a rank was asked to stop meanwhile.
 * Collective; all ranks agree. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line, int64_t *confusion);
/* EvalLine.auc_kind of its evaluations. */
const char *train_auc_kind(const Config *config);
/* A text that goes on: `tokens` new ones behind the prompt. */
typedef struct Sampling {
    /* Borrowed; at least one token. */
    const int32_t *prompt;
    int64_t prompt_count, tokens;
    /* Logits are divided by it; 0: always the likeliest token. */
    double temperature;
    /* Only the so many likeliest; 0: all. */
    int64_t top_k;
    uint64_t seed;
    /* Called with each new token. */
    void (*take)(void *user, int32_t token);
    void *user;
} Sampling;
/* Draws each token from the model's softmax behind the last model.context ones; the same seed, the
 * same tokens. The trainer is alone, its data are tokens, its batch is one sample; its model has
 * the prompt's tokens, and top_k of them. */
Status train_generate(Trainer *trainer, const Sampling *sampling);
/* Shares of a micro-batch's samples, with ids where the set has them and without labels; its arrays
 * have room for a whole one: share, (rows, train_shares), is the softmax of what the model says, or
 * of a loss of one logit what is left and its sigmoid. The trainer is alone, its batch is one
 * micro-batch. ERR_DATA where the model gives no numbers. */
Status train_predict(Trainer *trainer, const Batch *samples, double *share);
int64_t train_shares(const Trainer *trainer);
/* Makes another set one for a model of train's samples, scaled as they are. ERR_DATA that names the
 * set where its samples are others. */
Status train_take_set(DataSet *set, const DataSet *train);
/* train_take_set for a set to evaluate on: its targets are alike, too, and train's buffers have
 * room for the test set's ids. */
Status train_take_test_set(DataSet *test, DataSet *train);
/* Mean and deviation of the set become those of a checkpoint's samples, where the file keeps them
 * and keys of the configuration do not say others; a line says which it is. */
void train_take_stats(DataSet *set, const Config *config, const CheckpointInput *is,
                      const char *path);
/* As checkpoint_save and checkpoint_load, tensor by tensor at once: after an error another file is
 * to be loaded, or the trainer freed. After a load the next step is the one after the checkpoint's;
 * params_only: without the optimizer's state, for evaluation. Collective; all ranks agree. */
Status train_save(Trainer *trainer, const char *path);
/* As checkpoint_save_begin and what follows it: beside training, where there is memory for a copy.
 * One at a time. Owner: the caller, who frees it before the trainer. */
typedef struct TrainSave TrainSave;
typedef struct TrainSaveTo {
    /* borrowed for the call; also: a second name (CheckpointIo) or NULL */
    const char *path, *also;
    /* may be NULL */
    const CheckpointHooks *hooks;
    /* without a copy */
    bool waits;
} TrainSaveTo;
TrainSave *train_save_begin(Trainer *trainer, const TrainSaveTo *to);
/* Where that copy will lie, made and touched before the first save needs it. Collective. */
void train_make_room(Trainer *trainer);
bool train_save_busy(const TrainSave *save);
/* Is the next call of train_save_next one of those that put whole tensors together, for which no
 * thread is waited? The same on all ranks. */
bool train_save_collects(const TrainSave *save);
Status train_save_next(TrainSave *save, bool *done);
/* What this rank has spent on it so far, beside training or not. */
double train_save_seconds(const TrainSave *save);
void train_save_free(TrainSave **save);
Status train_load(Trainer *trainer, const char *path, bool params_only);
/* Initial parameters and running statistics, in place of which come those of model.init_from where
 * it is set. ERR_NOINPUT: no such file; ERR_DATA: not a good checkpoint, or one that does not fit,
 * with all that is missing, left over or of another size; ERR_CONFIG. Collective; all ranks agree.
 */
Status train_init_params(Trainer *trainer);
/* The whole run: resume, steps, evaluations, checkpoints, summary. ERR_STOPPED: a rank was asked to
 * stop (stop_wanted), and it ended early, with a checkpoint of every step made. Collective. */
Status train_run(const Config *config, const World *world);
/* What of the command would not go on from what the run has: ", but without run.fresh," behind
 * "start the same command again"; "": nothing. */
const char *train_leave_out(const Config *config);

#endif
