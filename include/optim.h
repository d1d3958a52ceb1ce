/* optim: update rules on flat ranges of the parameter arena, groups of parameters, learning-rate
 * curves, clipping, and the average of the parameters (train.ema). A rule is a const OptimTable in
 * its own file; rules.c lists the rules. If tensors are divided over ranks, optim_grad_squares and
 * the updates of rules that need norms or whole tensors are collective on the ranks that share a
 * tensor. No other function is collective. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "config.h"
#include "tensor.h"

typedef struct Optim Optim;
typedef struct OptimTable OptimTable;
/* A state slot is one array of optimizer state, with one float per parameter. */
enum {
    /* largest number of norms of a tensor that a rule uses */
    OPTIM_NORMS = 2,
    /* largest number of pairs that lbfgs keeps, see lbfgs.c */
    OPTIM_HISTORY = 10,
    /* largest number of state slots of a rule; lbfgs has this number */
    OPTIM_SLOTS = 2 * OPTIM_HISTORY + 2
};

/* Role of a parameter in its layer, with its word in optim.groups.roles. Embeddings are tables of
 * vectors for tokens or positions; the head is the weight of the last layer before the loss; a
 * table is a sparse table, whose rows are created when their ids first occur (SparseTable). */
#define ROLE_WORDS(W)                                                                              \
    W(PARAM_WEIGHT, "weight")                                                                      \
    W(PARAM_BIAS, "bias")                                                                          \
    W(PARAM_NORM, "norm")                                                                          \
    W(PARAM_EMBEDDING, "embedding") W(PARAM_HEAD, "head") W(PARAM_SPARSE_TABLE, "table")
typedef enum ParamRole { ROLE_WORDS(LIST_CONSTANT) } ParamRole;
/* Values of optim.lr_adjust, a constant of muon. */
#define LR_ADJUST_WORDS(W) W(LR_ADJUST_ORIGINAL, "original") W(LR_ADJUST_MATCH_RMS, "match_rms")
typedef enum LrAdjust { LR_ADJUST_WORDS(LIST_CONSTANT) } LrAdjust;
/* Words of optim.decay_shape and optim.anneal_strategy. */
#define DECAY_SHAPE_WORDS(W)                                                                       \
    W(DECAY_LINEAR, "linear")                                                                      \
    W(DECAY_COSINE, "cosine") W(DECAY_SQRT, "sqrt") W(DECAY_EXPONENTIAL, "exponential")
typedef enum DecayShape { DECAY_SHAPE_WORDS(LIST_CONSTANT) } DecayShape;
#define ANNEAL_WORDS(W) W(ANNEAL_COS, "cos") W(ANNEAL_LINEAR, "linear")
typedef enum AnnealStrategy { ANNEAL_WORDS(LIST_CONSTANT) } AnnealStrategy;

/* A tensor of the model. It describes the whole tensor even if this rank has only a part of it. */
typedef struct OptimTensor {
    /* for example "layer1.0.conv2.weight"; borrowed; may be NULL */
    const char *name;
    /* shape in plain order: out x in, OIHW. A sparse table has (rows, width), with 1 for rows if
     * their number is not limited. */
    Shape shape;
    ParamRole role;
    /* true: the tensor is never updated, and its rule need not support it */
    bool frozen;
} OptimTensor;
/* An update rule with its constants, from optim's keys or from those of a group. */
typedef struct OptimRule {
    const OptimTable *table;
    /* the rule's constants; borrowed from the Config */
    const OptimConfig *constants;
    /* learning rate of the rule divided by optim.lr; 1 for rule 0 */
    double lr_ratio;
    /* number of state slots that the rule needs with these constants */
    int slots;
    /* true: this is a copy of the rule for biases, to which optim.warmup_bias_lr applies during the
     * warm-up */
    bool for_biases;
    /* momentum of the rule in the current update, which optim_begin sets: the constant at
     * OptimTable.momentum_offset, in a warm-up the warm-up's value; 0 if the rule has no
     * momentum */
    float momentum;
} OptimRule;
/* optim_rule_count returns the number of rules of a configuration, optim_rule returns a rule. Rule
 * 0 has the keys of optim, rule i the keys of group i - 1. */
int optim_rule_count(const Config *config);
OptimRule optim_rule(const Config *config, int number);
/* Sets rule_numbers[i] to the number of the rule of tensor i: the rule of the first group that
 * matches, or 0 if no group matches. tensor: all `count` tensors of the model. ERR_CONFIG: a
 * pattern matches no name, a group gets no tensor, a rule cannot update one of its tensors, there
 * are groups and a rule that updates all tensors together, or the keys of the warm-up contradict
 * the rules. */
Status optim_assign(const Config *config, const OptimTensor *tensor, int count, int *rule_numbers);
/* Returns the factor by optim.layer_decay on the learning rate of parameters in depth group
 * `depth_group` of `depth_groups` groups; 1 for the rules of groups (rule > 0). Layer-wise decay as
 * in timm (Clark et al. 2020, "ELECTRA"). */
double optim_depth_scale(const Config *config, int rule, int depth_group, int depth_groups);

/* One tensor in the arenas of parameters and gradients. offset, elements: its first float and its
 * number of floats there. */
typedef struct OptimRange {
    int64_t offset, elements;
    /* true: weight decay applies. The caller sets it for weights, not for biases and norms; a rule
     * with decay_all sets it for all. */
    bool decay;
    /* true: channel scales of a batch norm, to which optim.slim applies */
    bool channel_scale;
    /* true: a bias (of a norm, too), to which optim.warmup_bias_lr applies */
    bool bias;
    /* true: running statistics. The forward pass changes them, the optimizer only averages them
     * (train.ema). Such ranges come after all others. */
    bool statistic;
    /* number of the tensor's rule, as set by optim_assign */
    int rule;
    /* factor on the rule's learning rate; 0 means 1 */
    double lr_scale;
    /* true: sums of squares are exact (SquareSum), so they do not depend on how the tensor is
     * divided. All ranges have the same value. */
    bool exact;
    OptimTensor tensor;
} OptimRange;
/* The part of a range that this rank updates: the whole range, or a shard. It has an offset in each
 * arena. Offsets and elements count floats. */
typedef struct OptimPiece {
    /* offset: OptimRange.offset plus the index of the piece's first element in the range; elements:
     * number of elements, 0 if this rank updates nothing of the range */
    int64_t offset, elements;
    /* offsets in the arenas of parameters and of gradients */
    int64_t value_offset, grad_arena_offset;
    /* offset in the arena of each state slot (Optim.state) that the rule uses */
    int64_t state[OPTIM_SLOTS];
    /* offset in Optim.average */
    int64_t average_offset;
    /* offset in Optim.scratch */
    int64_t scratch_offset;
    /* UpdatePiece.copy (optim_use_copies) */
    void *copy;
    /* true: weight decay applies (OptimRange.decay) */
    bool decay;
    /* rule of the range, borrowed from Optim; NULL for running statistics, which have no rule */
    const OptimRule *rule;
    /* tensor of the range, borrowed from Optim */
    const OptimTensor *tensor;
} OptimPiece;

/* The shards of this rank (ZeRO). Entry i of each array belongs to range i. This rank updates
 * elements first[i] .. first[i] + count[i] - 1 of the range, and has state only for these. first[i]
 * is a multiple of FLAT_CHUNK. A tensor whose rule needs whole tensors is on one rank. */
typedef struct OptimShard {
    /* value_offset, grad_arena_offset: offsets of element first[i] in the arenas of parameters and
     * of gradients */
    const int64_t *first, *count, *value_offset, *grad_arena_offset;
    /* Gathers sums of squares of `sets` norms: chunk[set * chunks + c] is the sum of chunk c for
     * norm number `set`, where `chunks` is the number of chunks of all ranges, in order. On entry
     * the sums of this rank's shards are set; on return all sums are set. */
    void (*gather)(void *user, double *chunk, int sets);
    /* Adds up the sums of the slices of the tensor-parallel group: squares[set * ranges + i] is the
     * sum of squares of range i for norm number `set`. On entry it covers this rank's slice, on
     * return all slices. The member is NULL if tensors are not sliced. */
    void (*join)(void *user, double *squares, int sets);
    void *user;
} OptimShard;

/* Converts range number `range` between its form on this rank (a slice, or another layout),
 * `stored`, and the whole tensor in plain order, `plain`, in host memory. get is collective on the
 * ranks that have slices of the tensor. */
typedef struct OptimWhole {
    void (*get)(void *user, int range, const float *stored, float *plain);
    void (*put)(void *user, int range, const float *plain, float *stored);
    void *user;
} OptimWhole;

/* Adds up exact sums of squares over ranks: sum[i] is the sum of range first + i, for i < count. On
 * entry it covers this rank's part of the range, on return the whole tensor. Collective on the
 * ranks that share tensors. */
typedef struct OptimMerge {
    void (*merge)(void *user, SquareSum *sum, int first, int count);
    void *user;
} OptimMerge;

/* Arguments for one piece; w and g point to its first element. */
typedef struct OptimArgs {
    /* w: parameters; g: their gradients */
    float *w;
    const float *g;
    /* lr: the rule's learning rate; grad_scale: factor on the gradient */
    float lr, grad_scale;
    /* norm[set]: norm, over the whole range, of the vector that measure passed to optim_add_squares
     * with this norm number */
    const double *norm;
} OptimArgs;
/* Layout of the state of a row of a sparse table: the slots in order, slot s with floats[s]
 * floats. */
typedef struct RowState {
    int slots, floats[OPTIM_SLOTS + 1];
    /* names of the slots in checkpoints */
    const char *name[OPTIM_SLOTS + 1];
} RowState;
/* Arguments for one row. w: values; g: gradient; both have `width` floats. state: optimizer state,
 * zero when the row is new. */
typedef struct OptimRowArgs {
    float *w, *state;
    const float *g;
    int width;
    /* lr: the rule's learning rate; grad_scale: factor on the gradient */
    float lr, grad_scale;
    /* weight decay of the rule; 0: none */
    float decay;
} OptimRowArgs;
/* How a rule uses the scratch memory of a piece (optim_scratch_of). Value 0 of this enum and of the
 * next one: the table does not set the field, an error. */
typedef enum OptimScratch {
    SCRATCH_UNSET,
    SCRATCH_UNUSED,
    SCRATCH_MEASURE,   /* measure leaves a result for update there */
    SCRATCH_DIRECTION, /* direction leaves a result for whole and update there */
} OptimScratch;
/* The devices on which a rule works. */
typedef enum OptimDevices {
    DEVICES_UNSET,
    DEVICES_ALL,
    DEVICES_CPU, /* the rule needs parameters in host memory, so a run on a GPU is refused */
} OptimDevices;
/* An update rule: one const table in its own file. The functions of each kind, in the order of
 * their calls:
 *  - elementwise rules: update, or update_pieces if the backends have a function for it.
 *  - rules with norms: measure, which passes each vector whose norm is needed to optim_add_squares;
 *    then update.
 *  - rules on whole tensors: direction, which writes an elementwise result to the scratch memory;
 *    whole, which changes this result as one tensor in plain order; update, which applies it.
 *  - rules on all tensors at the same time: update_all.
 *  - rules for rows of sparse tables: row_state and row_update. A rule with update may have these
 *    two as well.
 * State slots are always elementwise, so that they can be sharded; the state of a row need not
 * be. */
struct OptimTable {
    ConfigWord word;
    /* largest number of state slots that the rule needs with any constants */
    int slots;
    /* offset in OptimConfig of the rule's momentum (a double): of momentum, or of beta1. A warm-up
     * from optim.warmup_momentum ends at this value. 0: the rule has no momentum. */
    size_t momentum_offset;
    /* names of the slots in checkpoints: "momentum"; or "m" and "v" */
    const char *slot_name[OPTIM_SLOTS];
    /* Returns the number of slots needed with these constants. The member is NULL if it is always
     * .slots. */
    int (*slots_used)(const OptimConfig *constants);
    OptimScratch scratch;
    OptimDevices devices;
    /* number of norms of each range that update needs; 0: one call of update may cover adjacent
     * ranges */
    int norms;
    /* Returns OK, or ERR_CONFIG with the reason why the rule cannot update this tensor with these
     * constants; the caller adds file and line to the message. The member is NULL if the rule can
     * update any tensor, and sparse tables if row_update is set. */
    Status (*check_tensor)(const OptimConfig *constants, const OptimTensor *tensor);
    /* Passes each vector whose norm is needed to optim_add_squares. NULL if norms is 0. */
    void (*measure)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    /* The members direction, whole and work_floats are NULL for rules that do not need whole
     * tensors. x: the tensor in plain order; work: scratch memory of work_floats floats. */
    void (*direction)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    void (*whole)(Optim *optim, const OptimPiece *piece, float *x, float *work);
    int64_t (*work_floats)(const OptimTensor *tensor);
    /* A rule has one of the next three members, or none if it is only for rows. update: updates one
     * piece, whose average (train.ema) a second pass moves. update_pieces: updates `count` pieces
     * of the rule, an entry of Optim.rule, moves their averages and writes their copies; m and v of
     * a piece are its parts of state slots 0 and 1. update_all: updates all parameters of the
     * model, undivided; all have this rule. */
    void (*update)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    void (*update_pieces)(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count);
    void (*update_all)(Optim *optim, float *params, const float *grads);
    /* row_state returns the layout of a row's state. row_update updates one row of a sparse table,
     * with weight decay. It is called only for rows whose ids occur in the step and, in mode async,
     * for pieces of dense parameters (src/table/async.c). Each call runs on one thread. Both are
     * NULL if the rule cannot update rows. */
    RowState (*row_state)(const OptimConfig *constants, int width);
    void (*row_update)(const OptimRule *rule, const OptimRowArgs *args);
};
/* An optimizer: its rules, its state, and the ranges that it updates. */
struct Optim {
    /* table of rule 0 */
    const OptimTable *table;
    /* both borrowed */
    const Config *config;
    Backend *backend;
    int rule_count;
    /* rules of the configuration, then copies with other learning rates (lr_scale, or for biases
     * during the warm-up), [rule_count]; owned */
    OptimRule *rule;
    /* largest number of state slots of a rule */
    int slots;
    /* state[s]: arena of state slot s, slot_elements[s] floats; owned; NULL: it is not used */
    float *state[OPTIM_SLOTS];
    int64_t slot_elements[OPTIM_SLOTS];
    /* average of parameters and statistics, average_elements floats; owned; NULL: no train.ema */
    float *average;
    int64_t average_elements;
    /* 1 - the average's decay in the update that has begun */
    float average_rate;
    /* scratch memory, for lamb and rules on whole tensors, scratch_elements floats; owned */
    float *scratch;
    /* a whole tensor in plain order, then its rule's work, whole_elements floats; owned */
    float *whole_buffer;
    /* sums of squares on the host, [norm number][chunk]; owned */
    double *chunk_squares;
    /* the same sums in the backend's memory; owned */
    double *partial;
    /* exact sums of squares; owned; NULL: sums are not exact. exact_chunk: [norm number][chunk], in
     * the backend's memory; exact_host: [norm number][range], on the host; exact_range: [norm
     * number][range], in the backend's memory. */
    SquareSum *exact_chunk, *exact_host, *exact_range;
    /* sums of squares of whole ranges on the host, [norm number][range]; owned */
    double *range_squares;
    int64_t scratch_elements, whole_elements;
    /* largest number of norms of a range that a rule needs */
    int norm_count;
    /* true: some rule needs whole tensors */
    bool needs_whole_tensors;
    /* true: OptimRange.exact is set for all ranges */
    bool exact;
    /* number of chunks of all ranges */
    int64_t chunks;
    int range_count;
    /* range_count plus the number of ranges of running statistics, which come last */
    int averaged_count;
    /* copies of the ranges, with decay also set by decay_all, [averaged_count]; owned */
    OptimRange *range;
    /* part of each range on this rank, [averaged_count]; owned */
    OptimPiece *piece;
    /* index of each range's first chunk, then the number of chunks, [range_count + 1]; owned */
    int64_t *chunk;
    int joined_count;
    /* pieces as update gets them: adjacent ones joined if possible, [joined_count]; owned */
    OptimPiece *joined;
    /* memory for the arguments of update_pieces, [joined_count]; owned */
    UpdatePiece *update_piece;
    int joined_statistic_count;
    /* pieces of running statistics, adjacent ones joined, [joined_statistic_count]; owned */
    OptimPiece *joined_statistic;
    /* shard.gather is NULL if nothing is sharded */
    OptimShard shard;
    /* type of the copies (optim_use_copies); DTYPE_F32: there are none */
    DType copy_type;
    /* whole_io.get is NULL if tensors are stored whole and in plain order */
    OptimWhole whole_io;
    /* merge.merge is NULL if this rank has whole tensors */
    OptimMerge merge;
    /* while row_check.c checks the rule: records what the rule uses; else NULL */
    struct OptimUses *uses;
    /* number of updates begun */
    int64_t step;
    /* true: the update that has begun is the first one */
    bool is_first_update;
    /* lr, bias_lr: learning rates of rule 0 and of biases in the update that has begun; scale:
     * factor on the gradients */
    float lr, bias_lr, scale;
    /* numbers of the current update, which queued work reads, [rule_count], in the backend's
     * memory; owned; NULL if the backend does not record work */
    UpdateNumbers *numbers;
    /* sums of squares of the ranges, [range_count], in the backend's memory; owned */
    double *sums;
    /* Optim.chunk in the backend's memory; owned */
    int64_t *first_chunk;
    /* chunks of the gradients on this rank, whose sums of squares go to `partial`,
     * [grad_chunk_count], in the backend's memory; owned */
    FlatChunk *grad_chunk;
    int64_t grad_chunk_count;
};

/* Makes an optimizer for ranges of whole tensors, range[0 .. count - 1], which are copied.
 * arena_elements: floats of the parameter arena. Release with optim_free. */
Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements);
/* Makes an optimizer for this rank's shards. The arrays of `shard` are read during the call only;
 * shard->user is borrowed. Release with optim_free. */
Status optim_new_shard(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShard *shard);
void optim_free(Optim **optim);
/* optim_use_whole sets how whole tensors are converted, optim_use_merge how exact sums of squares
 * are added up over ranks. Call both before the first step. The argument is copied; its `user` is
 * borrowed. */
void optim_use_whole(Optim *optim, OptimWhole whole);
void optim_use_merge(Optim *optim, OptimMerge merge);
/* optim_use_copies: from the next update on, updates also write the parameters of range i to
 * copy[i], rounded to the 16-bit type `type`, for i < range_count; NULL: nowhere. The array is read
 * during the call only. optim_can_copy returns whether this is possible: all rules have
 * update_pieces, nothing is sharded, and the memory is not the host's. */
bool optim_can_copy(const Optim *optim);
void optim_use_copies(Optim *optim, void *const *copy, DType type);
/* Sets out[i] to the sum of squares of the gradient of range i, in double: sums of FLAT_CHUNK
 * elements that are added in order, or exact sums. If ranges are sharded, every rank gets the sums
 * of all shards. If tensors are sliced over the tensor-parallel group, exact sums cover all slices,
 * and other sums cover this rank's slice. */
void optim_grad_squares(Optim *optim, const float *grads, double *out);
/* Rates of an update. lr: learning rate of all parameters except biases; bias_lr: learning rate of
 * biases; warm: fraction of the warm-up that is done, 1 after it. */
typedef struct UpdateRates {
    double lr, bias_lr, warm;
} UpdateRates;
/* Both make one update of all pieces on this rank: optim_begin sets its numbers, optim_update
 * performs it. rates: result of rates_at; grad_scale: factor on the gradients (clipping: limit /
 * norm). optim_repeats returns true if optim_update makes the same backend calls from now on, so
 * that they can be captured and replayed. */
void optim_begin(Optim *optim, const UpdateRates *rates, double grad_scale);
void optim_update(Optim *optim, float *params, const float *grads);
bool optim_repeats(const Optim *optim);
/* optim_clip clips by the norm of all gradients without waiting for the host. Call it between
 * optim_begin and optim_update, and only if optim_can_clip returns true. All gradients must be on
 * this rank. */
bool optim_can_clip(const Optim *optim);
void optim_clip(Optim *optim, const float *grads, double limit);
/* Calls optim_begin and optim_update with one rate for all parameters, as after the warm-up. */
void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale);
/* The average of the parameters (train.ema) moves with each update: average += (1 - d) (value -
 * average), where update t has d = ema (1 - exp(-t / ema_ramp)) with the keys of train.
 * optim_average_begin sets the average to the parameters' values at the start of a run;
 * optim_average_begin_piece does so for one piece. optim_average_swap exchanges average and
 * parameters, before an evaluation and again after it. params: the arena of parameters. Without
 * train.ema these functions do nothing. */
void optim_average_begin(Optim *optim, const float *params);
void optim_average_begin_piece(Optim *optim, int piece, const float *params);
void optim_average_swap(Optim *optim, float *params);
/* Adds optim.slim * factor * sign(scale) to the gradient of each channel scale on this rank (Liu et
 * al. 2017, "Network slimming", section 3: the subgradient of the sum of their absolute values).
 * Call it before gradients are measured or applied. */
void optim_add_slim(Optim *optim, const float *params, float *grads, double factor);
/* Returns the bytes of the state slots on this rank. */
size_t optim_state_bytes(const Optim *optim);
/* Returns the bytes of state slots, average, scratch memory, and memory for a whole tensor. */
size_t optim_bytes(const Optim *optim);
/* Returns the number of state slots of the configuration's rule 0; SGD without momentum has 0. */
int optim_slot_count(const Config *config);
/* Returns true if some rule needs norms of whole tensors (lars, lamb). */
bool optim_has_norms(const Config *config);
/* Returns true if measure of rule 0 needs scratch memory. If ranges are sharded, this memory is as
 * large as a state slot. */
bool optim_needs_scratch(const Config *config);
/* Returns true if state is packed even without shards, because rules differ between tensors or rule
 * 0 needs whole tensors. The number of slots of each tensor is then in its OptimNeed. */
bool optim_state_is_packed(const Config *config);
/* Replaces all rules of the configuration by SGD without momentum, which has no state, for a model
 * that is not trained. */
void optim_use_stateless(Config *config);
/* Memory that the update of one tensor needs, for planning. */
typedef struct OptimNeed {
    /* number of state slots */
    int slots;
    /* true: measure needs scratch memory, as large as a state slot if ranges are sharded */
    bool needs_scratch;
    /* true: the tensor must be on one rank */
    bool is_uncut;
    /* bytes for the tensor in plain order and for the rule's work on it (Optim.whole_buffer). They
     * are allocated once, for the tensor that needs the most. In addition Optim.scratch has a copy
     * of the stored tensor. */
    size_t whole_bytes;
} OptimNeed;
OptimNeed optim_need(const Config *config, const OptimTensor *tensor, int rule);

/* Checks the const tables of all rules and curves. ERR_BUG, with the name of the rule or curve: a
 * table is incomplete or contradicts itself. */
Status optim_check(void);
/* Words of optim.name, optim.lr_schedule, optim.lr_adjust, optim.decay_shape, optim.anneal_strategy
 * and optim.groups.roles. Config stores a word as its position in its list. */
enum { OPTIM_WORDS = 6 };
extern const ConfigWords optim_words[OPTIM_WORDS];

/* State of the learning rate, as plain bytes in checkpoints. */
typedef struct LrState {
    /* learning rate that replaces optim.lr from now on, and scales the curve's end,
     * optim.warmup_bias_lr and the rates of groups in proportion; 0: optim.lr is in effect */
    double lr;
    /* curve plateau. best: best value of an evaluation so far, NaN before the first;
     * bad_evaluations: number of evaluations without improvement since the best one or the last
     * fall; falls: number of times that the rate has fallen */
    double best;
    int64_t bad_evaluations, falls;
} LrState;
/* Returns the state at the start of a run. */
LrState lr_state_initial(void);
/* Returns the value of optim.lr that is in effect. */
double lr_base(const Config *config, const LrState *state);
/* Position of a run on its learning-rate curve. If train.steps sets the length of the run, `step`
 * and `steps` count optimizer steps. If train.epochs sets it, they count data, in steps of the
 * batch size at the start; they may then be fractions once the batch size has changed. */
typedef struct LrSteps {
    /* step: number of steps made so far; steps: number of steps of the run */
    double step, steps;
    /* length of an epoch, in steps of the batch size at the start */
    int64_t steps_per_epoch;
    /* step + data_ahead is the position in the data, in steps of the batch size at the start; 0 if
     * train.epochs sets the length of the run */
    double data_ahead;
} LrSteps;
/* Returns the learning rate of a step. It rises linearly in the warm-up, (step + 1) / warmup; the
 * curve covers the steps after that. A pure function. */
double lr_at(const Config *config, const LrState *state, const LrSteps *at);
/* Returns all rates of a step. During the warm-up the rate of biases changes linearly from
 * optim.warmup_bias_lr, if that is set, to optim.lr. A pure function. */
UpdateRates rates_at(const Config *config, const LrState *state, const LrSteps *at);
/* Returns the effect on the rate if a resumed run has another end, in words: "the cosine stretches
 * to the new end". Borrowed. */
const char *lr_text_if_end_moves(const Config *config);
/* Returns true if the rate depends on evaluations. */
bool lr_depends_on_evaluations(const Config *config);
/* Records the value of an evaluation after at->step steps, unless it is during the warm-up or the
 * curve does not depend on evaluations. larger_is_better: true if larger values are better. */
void lr_evaluated(const Config *config, LrState *state, const LrSteps *at, double value,
                  bool larger_is_better);
/* Checks the keys of the curve. ERR_CONFIG: they contradict each other. */
Status lr_check(const Config *config);

#endif
