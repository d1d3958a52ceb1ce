/* optim: update rules on flat ranges of the parameter arena, groups of parameters, learning-rate
 * curves, clipping. A rule is a row in a separate file; rules.c lists them. Nothing is collective
 * unless the ranges are sharded over ranks: then updates that need norms of whole tensors are
 * collective on the ranks that share them, and updates of whole tensors on the ranks that have
 * slices of them. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "config.h"
#include "tensor.h"

typedef struct Optim Optim;
typedef struct OptimTable OptimTable;
/* norms of a tensor, pairs of lbfgs, state slots of a rule, at most */
enum { OPTIM_NORMS = 2, OPTIM_HISTORY = 10, OPTIM_SLOTS = 2 * OPTIM_HISTORY + 2 };

/* Role of a parameter in its layer; a value of roles in optim.groups. Embeddings are tables of
 * vectors for tokens or positions; the head is the weight of the last layer before the loss; a
 * table is a sparse one, whose rows are created as ids appear (SparseTable). */
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

/* One whole tensor of the model, whatever part of it this rank has. */
typedef struct OptimTensor {
    /* "layer1.0.conv2.weight"; borrowed; NULL where it is not needed */
    const char *name;
    /* shape in the model's order: out x in, OIHW; ndim 0: a vector of unknown length */
    Shape shape;
    ParamRole role;
    /* true: never updated, so its rule need not support it */
    bool frozen;
} OptimTensor;
/* An update rule with its constants: those of optim's keys, or of a group. */
typedef struct OptimRule {
    const OptimTable *table;
    /* the rule's constants; borrowed from the Config */
    const OptimConfig *constants;
    /* learning rate of the group divided by optim.lr */
    double rate;
    /* state slots that the rule needs with these constants */
    int slots;
    /* true: rule of a bias, to which optim.warmup_bias_lr applies during the warm-up */
    bool bias;
    /* momentum (OptimTable.momentum) of the update that has begun */
    float momentum;
} OptimRule;
/* The rules of a configuration: number 0 has optim's keys, number i those of group i - 1. */
int optim_rule_count(const Config *config);
OptimRule optim_rule(const Config *config, int number);
/* Sets rule[i] to the rule of tensor i: that of the first group that matches, else 0. tensor: all
 * tensors of the model. ERR_CONFIG if a pattern matches no name, a group gets no tensor, or a rule
 * cannot update one of its tensors. */
Status optim_assign(const Config *config, const OptimTensor *tensor, int count, int *rule);
/* Factor of optim.layer_decay on the learning rate, for parameters in no group: depth group
 * `depth_group` of `depth_groups` (layer-wise decay as in timm; Clark et al. 2020, "ELECTRA"). */
double optim_depth_scale(const Config *config, int rule, int depth_group, int depth_groups);

/* One tensor in the arenas. */
typedef struct OptimRange {
    int64_t offset, elements;
    /* true: weight decay applies, as to weights but not to biases and norms; set for all by a
     * rule's decay_all */
    bool decay;
    /* true: the scales of a batch norm, for optim.slim */
    bool channel_scale;
    /* true: a bias, also that of a norm, for optim.warmup_bias_lr */
    bool bias;
    /* true: running statistics, which others change and the optimizer only averages. Such ranges
     * come after all others. */
    bool statistic;
    int rule;
    /* factor on the rule's learning rate; 0 means 1 */
    double lr_scale;
    /* true: sums of squares must not depend on how the tensor is divided (SquareSum); set for all
     * ranges or for none */
    bool exact;
    OptimTensor tensor;
} OptimRange;
/* The part of a range that this rank updates: all of it, or a shard. */
typedef struct OptimPiece {
    /* position in the same units as OptimRange.offset; elements 0: nothing */
    int64_t offset, elements;
    /* first element in the arena of parameters */
    int64_t value;
    /* first element of the gradient in the arena of gradients */
    int64_t gradient;
    /* first element in each state arena, for the slots of the rule */
    int64_t state[OPTIM_SLOTS];
    /* first element of its average */
    int64_t average;
    /* first element of its scratch memory */
    int64_t scratch;
    bool decay;
    /* borrowed from Optim; NULL: running statistics */
    const OptimRule *rule;
    /* borrowed from Optim */
    const OptimTensor *tensor;
} OptimPiece;

/* Ranges sharded over ranks (ZeRO). This rank has elements first[i] .. first[i] + count[i] of range
 * i, and state for these only; first[i] is a multiple of FLAT_CHUNK. A tensor whose rule needs
 * whole tensors is on one rank. value[i] and gradient[i]: first element of the parameters and of
 * the gradient in their arenas. */
typedef struct OptimShard {
    const int64_t *first, *count, *value, *gradient;
    /* Gathers chunk[set * chunks + c], the sum of squares of chunk c (all ranges' chunks in order):
     * on entry the chunks of this rank are set, on return all are. */
    void (*gather)(void *user, double *chunk, int sets);
    /* Completes squares[set * ranges + i], the sum of squares of range i on this rank, by the
     * slices of other tensor-parallel ranks. NULL: there are no slices. */
    void (*join)(void *user, double *squares, int sets);
    void *user;
} OptimShard;

/* Converts between a tensor as it is stored on this rank (a slice, or another layout) and the whole
 * tensor in plain order, in host memory. get is collective on the ranks that have its slices. */
typedef struct OptimWhole {
    void (*get)(void *user, int range, const float *stored, float *plain);
    void (*put)(void *user, int range, const float *plain, float *stored);
    void *user;
} OptimWhole;

/* Completes exact sums of squares, sum[set * ranges + i] of range i on this rank, by the parts of
 * the tensors that other ranks have. Collective on these ranks. */
typedef struct OptimMerge {
    void (*merge)(void *user, SquareSum *sum, int sets);
    void *user;
} OptimMerge;

/* Arguments for one piece; w and g point to its first element. */
typedef struct OptimArgs {
    float *w;
    const float *g;
    /* lr: the rule's learning rate */
    float lr, grad_scale;
    /* the rule's norms of the whole range, in the order of measure */
    const double *norm;
} OptimArgs;
/* State of a row of a sparse table: floats[s] floats of slot s, one slot after the other. */
typedef struct RowState {
    int slots, floats[OPTIM_SLOTS + 1];
    /* names in checkpoints */
    const char *name[OPTIM_SLOTS + 1];
} RowState;
/* Arguments for one row: w and g of `width` floats, and its state, which is zero when the row is
 * new. */
typedef struct OptimRowArgs {
    float *w, *state;
    const float *g;
    int width;
    /* lr: the rule's learning rate */
    float lr, grad_scale;
    /* the rule's weight decay, or 0 */
    float decay;
} OptimRowArgs;
/* An update rule: one const table in a separate file. There are four kinds. Elementwise: update
 * only. Norms of whole tensors: measure names the vectors to be measured, then update. On whole
 * tensors: direction writes an elementwise result to scratch memory, `whole` changes it as one
 * tensor in plain order, update applies it. On all tensors: together. State is always elementwise,
 * so it may lie anywhere. piece->tensor has shape and role. */
struct OptimTable {
    ConfigWord word;
    /* slots of fp32 state per parameter, at most */
    int slots;
    /* offset in OptimConfig of the constant (a double) that optim.warmup_momentum raises: momentum,
     * or beta1; 0: the rule has no momentum */
    size_t momentum;
    /* update also moves the average (optim_average_of), in its pass over the parameters; false: a
     * second pass does */
    bool averages;
    /* names of the slots in checkpoints: "momentum"; "m", "v" */
    const char *slot_name[OPTIM_SLOTS];
    /* slots needed with these constants; NULL: all */
    int (*slots_used)(const OptimConfig *constants);
    /* measure leaves a result for update in the scratch memory */
    bool scratch;
    /* update needs parameters in host memory, so a GPU is refused */
    bool host_memory_only;
    /* norms of each range that update needs; 0: elementwise, so adjacent ranges may be updated as
     * one */
    int norms;
    /* OK, or ERR_CONFIG with the reason why the rule cannot update this tensor with these
     * constants, without file and line. NULL: it updates any tensor, and tables if row_update is
     * set. */
    Status (*check_tensor)(const OptimConfig *constants, const OptimTensor *tensor);
    /* Passes each vector whose norm is needed to optim_add_squares. NULL if norms is 0. */
    void (*measure)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    /* All NULL unless the rule needs whole tensors. x: the tensor in plain order; work: scratch
     * memory of work_floats floats */
    void (*direction)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    void (*whole)(Optim *optim, const OptimPiece *piece, float *x, float *work);
    int64_t (*work_floats)(const OptimTensor *tensor);
    /* Updates all pieces, which are all parameters of the model, whole, and have this rule; NULL:
     * the rule updates pieces one by one */
    void (*together)(Optim *optim, float *params, const float *grads);
    /* NULL: the rule is for rows only, or has together */
    void (*update)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    /* Update of a row of a sparse table, for the rows named by the ids of a step only, which
     * includes weight decay; the arguments are as in update. One thread works on a row. Both are
     * NULL if the rule cannot update rows. */
    RowState (*row_state)(const OptimConfig *constants, int width);
    void (*row_update)(const OptimRule *rule, const OptimRowArgs *args);
};
struct Optim {
    /* table of rule 0 */
    const OptimTable *table;
    /* borrowed */
    const Config *config;
    /* borrowed */
    Backend *backend;
    int rule_count;
    /* the configuration's rules, then a copy for each other learning rate that ranges have with
     * them, [rule_count]; owned */
    OptimRule *rule;
    /* the most state slots of any rule */
    int slots;
    /* state arenas, slot_elements floats each; owned; NULL if unused */
    float *state[OPTIM_SLOTS];
    int64_t slot_elements[OPTIM_SLOTS];
    /* average of the parameters and running statistics on this rank (train.ema), average_elements
     * floats; owned; NULL: there is none */
    float *average;
    int64_t average_elements;
    /* 1 - the average's decay in the update that has begun */
    float average_rate;
    /* scratch memory of the pieces (lamb, and rules on whole tensors); owned */
    float *scratch;
    /* a whole tensor in plain order, then its rule's scratch memory; owned */
    float *whole_floats;
    /* sums of squares per set and chunk, on the host and in the backend's memory; owned */
    double *norms;
    double *partial;
    /* the same as exact sums in the backend's memory, and for each range: on the host and in the
     * backend's memory, [set][range]; owned; NULL if sums are not exact */
    SquareSum *exact_chunk, *exact_host, *exact_range;
    /* sums of squares of whole ranges on the host, [set][range]; owned */
    double *range_squares;
    int64_t scratch_elements, whole_elements;
    /* the most norms per range of any rule */
    int sets;
    /* some rule needs whole tensors */
    bool any_whole;
    /* OptimRange.exact */
    bool exact;
    /* number of chunks of all ranges */
    int64_t chunks;
    int range_count;
    /* range_count plus the number of ranges of running statistics, which come after the others */
    int averaged_count;
    /* ranges, their decay flags completed by config, [averaged_count]; owned */
    OptimRange *range;
    /* part of each range on this rank, [averaged_count]; owned */
    OptimPiece *piece;
    /* index of each range's first chunk among all chunks, and their number, [range_count + 1];
     * owned */
    int64_t *chunk;
    int run_count;
    /* pieces as update gets them, joined where the rule permits, [run_count]; owned */
    OptimPiece *run;
    /* pieces of running statistics, joined where they are adjacent, [statistic_run_count]; owned */
    int statistic_run_count;
    OptimPiece *statistic_run;
    /* gather NULL: nothing is sharded */
    OptimShard share;
    /* get NULL: tensors are stored whole and in plain order */
    OptimWhole whole_io;
    /* merge NULL: this rank has whole tensors */
    OptimMerge merge;
    /* a bit for each state slot that the rule asks for, while its row is checked; else NULL */
    unsigned *asked;
    /* updates begun */
    int64_t step;
    /* the update that has begun is the first one */
    bool first;
    /* learning rate (of rule 0), that of biases, and gradient scale of the update that has begun */
    float lr, bias_lr, scale;
    /* numbers of the current update for queued work, [rule_count], in the backend's memory; owned;
     * NULL if the backend does not record work */
    UpdateNumbers *now;
    /* sums of squares of the ranges, [range_count], in the backend's memory; owned */
    double *sums;
    /* copy of chunk in the backend's memory; owned */
    int64_t *first_chunk;
    /* chunks of the gradients on this rank, whose sums of squares go to partial; in the backend's
     * memory; owned */
    FlatChunk *grad_chunk;
    int64_t grad_chunk_count;
};

/* Makes an optimizer for ranges of whole tensors; ranges are copied. Release with optim_free. */
Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements);
/* Makes an optimizer for this rank's shards. share is copied except for user. */
Status optim_new_shard(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShard *share);
void optim_free(Optim **optim);
/* Called before the first step. */
void optim_use_whole(Optim *optim, OptimWhole whole);
void optim_use_merge(Optim *optim, OptimMerge merge);
/* Sets out[i] to the sum of squares of the gradient of range i, in double: sums per FLAT_CHUNK,
 * added in order, or exact sums. With shards, or with exact sums of slices, each rank measures its
 * part, and all get the same result. */
void optim_grad_squares(Optim *optim, const float *grads, double *out);
/* Rates of an update. lr: of all parameters but biases; bias_lr: of biases; warm: the fraction of
 * the warm-up that is done, 1 after it. */
typedef struct UpdateRates {
    double lr, bias_lr, warm;
} UpdateRates;
/* One update of all pieces on this rank. rates: as from rates_at; grad_scale: factor on the
 * gradients (clipping: limit / norm). optim_begin sets the numbers of the update, optim_update
 * performs it. optim_repeats returns true if optim_update makes the same backend calls from now on,
 * so that they can be captured and replayed. */
void optim_begin(Optim *optim, const UpdateRates *rates, double grad_scale);
void optim_update(Optim *optim, float *params, const float *grads);
bool optim_repeats(const Optim *optim);
/* optim_clip, between optim_begin and optim_update, clips by the norm of all gradients without
 * waiting for the host, if optim_can_clip. All gradients must be on this rank. */
bool optim_can_clip(const Optim *optim);
void optim_clip(Optim *optim, const float *grads, double limit);
/* An update with one rate, after the warm-up. */
void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale);
/* The average of the parameters (train.ema) moves with each update: average += (1 - d) (value -
 * average), where update t has d = ema (1 - exp(-t / ema_ramp)). optim_average_begin sets it to the
 * parameters' values, where a run begins; optim_average_begin_piece does so for one piece.
 * optim_average_swap exchanges the two, for an evaluation, and exchanges them back. params: the
 * arena of parameters. All do nothing without train.ema. */
void optim_average_begin(Optim *optim, const float *params);
void optim_average_begin_piece(Optim *optim, int piece, const float *params);
void optim_average_swap(Optim *optim, float *params);
/* Adds optim.slim * factor * sign(scale) to the gradient of each channel scale on this rank (Liu et
 * al. 2017, "Network slimming", section 3: the subgradient of the sum of their absolute values).
 * Called before gradients are measured or applied. */
void optim_add_slim(Optim *optim, const float *params, float *grads, double factor);
/* Bytes of state on this rank. */
size_t optim_state_bytes(const Optim *optim);
/* Bytes of state, scratch memory, and memory for a whole tensor. */
size_t optim_bytes(const Optim *optim);
/* State slots of the configuration's rule 0; SGD without momentum has none. */
int optim_slots(const Config *config);
/* True if some rule needs norms of whole tensors (lars, lamb). */
bool optim_has_norms(const Config *config);
/* True if rule 0 needs scratch memory, which is as large as a slot of state where ranges are
 * sharded. */
bool optim_scratch(const Config *config);
/* True if state is packed even without shards, because rules differ between tensors or rule 0 needs
 * whole tensors. OptimNeed has the size for each tensor. */
bool optim_packs(const Config *config);
/* Replaces all rules of the configuration by one without state, for a model that is not trained. */
void optim_use_stateless(Config *config);
/* Memory that the update of one tensor needs, for planning. */
typedef struct OptimNeed {
    int slots;
    /* scratch memory as large as a slot, where ranges are sharded */
    bool scratch;
    /* the tensor must be on one rank */
    bool whole;
    /* memory for the whole tensor and the rule's scratch, needed once for the tensor that needs
     * most; one more copy of the tensor as stored is needed in addition */
    size_t whole_bytes;
} OptimNeed;
OptimNeed optim_need(const Config *config, const OptimTensor *tensor, int rule);

/* ERR_BUG, naming the row, if a rule or a curve lacks something or contradicts itself. */
Status optim_check(void);
/* Values of optim.name, optim.lr_schedule, optim.lr_adjust, optim.decay_shape,
 * optim.anneal_strategy and optim.groups.roles. A row's position in its list is the number in
 * Config. */
enum { OPTIM_WORDS = 6 };
extern const ConfigWords optim_words[OPTIM_WORDS];

/* State of the learning rate, as plain bytes in checkpoints. */
typedef struct LrState {
    /* replaces optim.lr from now on, and scales the curve's end and groups' rates in proportion; 0:
     * the configuration's value */
    double lr;
    /* plateau: the best evaluation so far (NaN: none), evaluations since without improvement,
     * number of times that the rate has fallen */
    double best;
    int64_t bad, falls;
} LrState;
/* The state at the start of a run. */
LrState lr_state(void);
/* The value of optim.lr in effect. */
double lr_base(const Config *config, const LrState *state);
/* Position of a run on its learning-rate curve. If train.steps sets the run's length, step and
 * steps count optimizer steps; if train.epochs does, they count data, in steps of the batch size at
 * the start, so they need not be whole numbers once the batch size has changed. */
typedef struct LrSteps {
    /* steps made so far, and the number of steps of the run */
    double step, steps;
    /* in steps of the batch size at the start */
    int64_t steps_per_epoch;
    /* step + data_ahead is the position in the data, in steps of the batch size at the start; 0 if
     * train.epochs sets the run's length */
    double data_ahead;
} LrSteps;
/* Learning rate of a step. Warm-up rises linearly, (step + 1) / warmup; the curve covers the
 * remaining steps. A pure function. */
double lr_at(const Config *config, const LrState *state, const LrSteps *at);
/* All rates of a step. During the warm-up the rate of biases goes linearly from
 * optim.warmup_bias_lr, if that is set, to optim.lr. A pure function. */
UpdateRates rates_at(const Config *config, const LrState *state, const LrSteps *at);
/* Effect on the rate if a resumed run has another end, in words: "the cosine stretches to the new
 * end". Borrowed. */
const char *lr_text_if_end_moves(const Config *config);
/* True if the rate depends on evaluations. */
bool lr_by_evaluations(const Config *config);
/* Notes the value of an evaluation after at->step steps; rises: larger values are better.
 * Evaluations during warm-up are ignored. */
void lr_evaluated(const Config *config, LrState *state, const LrSteps *at, double value,
                  bool rises);
/* ERR_CONFIG if the keys of the curve contradict each other. */
Status lr_check(const Config *config);

#endif
