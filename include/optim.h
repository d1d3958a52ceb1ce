/* optim: update rules on flat ranges of the parameter table, groups of parameters, learning-rate
 * curves, clipping. A rule is a row in a file of its own; rules.c lists them. Not collective, but
 * where the ranges are shared out: then what needs whole tensors' norms is collective on those who
 * share, and what needs whole tensors on those who have their slices. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "config.h"
#include "tensor.h"

typedef struct Optim Optim;
typedef struct OptimTable OptimTable;
enum { OPTIM_NORMS = 2, OPTIM_SLOTS = 2 };

/* What a parameter is to its layer: a word of roles in optim.groups. Embeddings are tables of
 * vectors, of tokens or of positions; the head is the weight of the last layer before the loss; a
 * table is a sparse one, whose rows are made as ids come (SparseTable). */
#define ROLE_WORDS(W)                                                                              \
    W(PARAM_WEIGHT, "weight")                                                                      \
    W(PARAM_BIAS, "bias")                                                                          \
    W(PARAM_NORM, "norm")                                                                          \
    W(PARAM_EMBEDDING, "embedding") W(PARAM_HEAD, "head") W(PARAM_TABLE, "table")
typedef enum ParamRole { ROLE_WORDS(LIST_CONSTANT) } ParamRole;
/* The words of optim.lr_adjust, a constant of muon. */
#define LR_ADJUST_WORDS(W) W(LR_ADJUST_ORIGINAL, "original") W(LR_ADJUST_MATCH_RMS, "match_rms")
typedef enum LrAdjust { LR_ADJUST_WORDS(LIST_CONSTANT) } LrAdjust;

/* One tensor as the model has it, whole, whatever this rank has of it. */
typedef struct OptimTensor {
    /* "layer1.0.conv2.weight"; borrowed, NULL where nobody asks */
    const char *name;
    /* in the model's own order: out x in, OIHW; ndim 0: a vector that nobody knows more of */
    Shape shape;
    ParamRole role;
    /* not updated: its rule may be one that could not */
    bool frozen;
} OptimTensor;
/* Who updates some of the parameters, and how: optim's own keys, or those of a group. */
typedef struct OptimRule {
    const OptimTable *table;
    /* its constants; borrowed from the Config */
    const OptimConfig *is;
    /* its learning rate in parts of optim.lr's */
    double rate;
    /* of state that it holds with these constants */
    int slots;
} OptimRule;
/* Rules of a configuration: number 0 is optim's own, number i that of group i - 1. */
int optim_rule_count(const Config *config);
OptimRule optim_rule(const Config *config, int number);
/* rule[i]: the number of the rule of tensor i: the first group's that fits, else 0. ERR_CONFIG
 * where a pattern matches no name, a group is chosen by no tensor, or a rule cannot update what it
 * is given. tensor: all of the model's. */
Status optim_assign(const Config *config, const OptimTensor *tensor, int count, int *rule);
/* optim.layer_decay's factor on the rate of what no group names: of tier `tier` of so many (timm's
 * layer-wise decay; Clark et al. 2020, "ELECTRA"). */
double optim_tier_scale(const Config *config, int rule, int tier, int tiers);

/* One tensor in the arenas. */
typedef struct OptimRange {
    int64_t offset, elements;
    /* weights do, biases and norms do not; a rule's decay_all counts, too */
    bool decay;
    /* a batch norm's scales: optim.slim */
    bool channel_scale;
    int rule;
    /* on the rate that its rule gives it; 0: 1 */
    double lr_scale;
    OptimTensor tensor;
} OptimRange;
/* What of a range is updated here: all of it, or this rank's share. */
typedef struct OptimPiece {
    /* elements 0: nothing */
    int64_t offset, elements;
    /* where it begins in the arena of parameters, */
    int64_t value;
    /* its gradient in that of gradients, */
    int64_t gradient;
    /* its state in each state arena (of the rule's slots), */
    int64_t state[OPTIM_SLOTS];
    /* and its scratch */
    int64_t scratch;
    bool decay;
    /* borrowed from Optim */
    const OptimRule *rule;
    /* likewise */
    const OptimTensor *tensor;
} OptimPiece;

/* Ranges shared out over ranks (ZeRO): elements first[i] .. first[i] + count[i] of range i are this
 * rank's; first[i] is a multiple of FLAT_CHUNK. Of a tensor whose rule wants it whole it is all or
 * nothing. State is held for these alone. value[i], gradient[i]: where they and their gradient
 * begin. */
typedef struct OptimShard {
    const int64_t *first, *count, *value, *gradient;
    /* chunk[set * chunks + c]: sum of squares of chunk c of all ranges' chunks, of which this rank
     * has written its own. Brings the others'. */
    void (*gather)(void *user, double *chunk, int sets);
    /* squares[set * ranges + i]: sum of squares of range i as far as it is here. Adds the slices
     * that others have. NULL: there are none. */
    void (*join)(void *user, double *squares, int sets);
    void *user;
} OptimShard;

/* How a tensor comes whole and in plain order from how it is stored here, host memory, and goes
 * back: what of it is here. get is collective on the ranks that have its slices. */
typedef struct OptimWhole {
    void (*get)(void *user, int range, const float *stored, float *plain);
    void (*put)(void *user, int range, const float *plain, float *stored);
    void *user;
} OptimWhole;

/* of one piece: w and g point to where it begins */
typedef struct OptimArgs {
    float *w;
    const float *g;
    /* lr: of its rule */
    float lr, grad_scale;
    /* Of the whole range: the rule's norms, in the order in which measure gives them. */
    const double *norm;
} OptimArgs;
/* State of a row of a sparse table: so many floats of slot s, slot behind slot. */
typedef struct RowState {
    int slots, floats[OPTIM_SLOTS + 1];
    /* as checkpoints name them */
    const char *name[OPTIM_SLOTS + 1];
} RowState;
/* One row: w, g of `width`, and its state; all zero when the row is new. */
typedef struct OptimRowArgs {
    float *w, *state;
    const float *g;
    int width;
    /* lr: of its rule */
    float lr, grad_scale;
    /* its rule's weight decay, or 0 */
    float decay;
} OptimRowArgs;
/* One const table a rule, in a file of its own. A rule works element by element (update alone); or
 * with norms of whole tensors (measure says of what, then update); or on whole tensors: direction
 * leaves what is to be changed in the scratch, element by element, `whole` changes it as a whole
 * tensor in plain order, update takes it from the scratch. State is elementwise always, so that it
 * may lie anywhere. piece->tensor says shape and role. */
struct OptimTable {
    ConfigWord word;
    /* fp32 state per parameter, where all of it is used */
    int slots;
    /* as checkpoints name it: "momentum"; "m", "v" */
    const char *slot_name[OPTIM_SLOTS];
    /* slots that these constants need; NULL: all */
    int (*held)(const OptimConfig *is);
    /* measure leaves something for update */
    bool scratch;
    /* works in host memory only */
    bool host;
    /* of each range, for its update. 0: neighbouring ranges may be updated as one */
    int norms;
    /* OK, or ERR_CONFIG that says what the rule cannot update with these constants, without a
     * place. NULL: anything goes, tables where there is row_update */
    Status (*takes)(const OptimConfig *is, const OptimTensor *tensor);
    /* Hands what the norms are of to optim_squares. NULL where norms is 0. */
    void (*measure)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    /* NULL, all three, where it does not want whole tensors. x: the tensor, plain; work: so many
     * floats of scratch */
    void (*direction)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    void (*whole)(Optim *optim, const OptimPiece *piece, float *x, float *work);
    int64_t (*work_floats)(const OptimTensor *tensor);
    /* NULL: it is for rows only */
    void (*update)(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
    /* Rows of sparse tables, each by itself, and only those that a step's ids name: so does weight
     * decay, which row_update takes as update does. One thread works on a row. NULL, both: it
     * cannot. */
    RowState (*row_state)(const OptimConfig *is, int width);
    void (*row_update)(const OptimRule *rule, const OptimRowArgs *args);
};
struct Optim {
    /* of rule 0 */
    const OptimTable *table;
    /* borrowed */
    const Config *config;
    /* borrowed */
    Backend *backend;
    int rule_count;
    /* owned; those of the configuration, then one for each other rate that ranges have with them */
    OptimRule *rule;
    /* of state that some rule holds */
    int slots;
    /* owned arenas, slot_elements floats each; NULL if unused */
    float *state[OPTIM_SLOTS];
    int64_t slot_elements[OPTIM_SLOTS];
    /* owned; of lamb, and of whole tensors */
    float *scratch;
    /* owned: a whole tensor in plain order, and its rule's scratch */
    float *whole_floats;
    /* owned, host; partial: the same in the backend's memory */
    double *norms;
    double *partial;
    /* owned: of whole ranges, [set][range] */
    double *range_squares;
    int64_t scratch_elements, whole_elements;
    /* norms that some rule wants */
    int sets;
    /* a rule wants whole tensors */
    bool any_whole;
    /* of all ranges */
    int64_t chunks;
    int range_count;
    /* owned; decay already says what config wants */
    OptimRange *range;
    /* owned; one a range */
    OptimPiece *piece;
    /* owned; one a range, and the end: its first among all ranges' chunks */
    int64_t *chunk;
    int run_count;
    /* owned; what updates run over: pieces, joined where the rule allows */
    OptimPiece *run;
    /* gather NULL: nothing is shared out */
    OptimShard share;
    /* get NULL: what is stored is whole and plain */
    OptimWhole whole_io;
    /* updates begun */
    int64_t step;
    /* the step that has begun is the first one */
    bool first;
    /* of it */
    float lr, scale;
    /* Owned: [rule], the same where queued work reads them; NULL where nothing is queued. */
    UpdateNumbers *now;
    /* owned, in the backend's memory: the ranges' squares */
    double *sums;
    /* owned, likewise: as chunk */
    int64_t *first_chunk;
    /* owned, likewise: chunks of the gradients that this rank has; their sums of squares go to
     * partial */
    FlatChunk *grad_chunk;
    int64_t grad_chunk_count;
};

/* ranges are copied. Owner: the caller. */
Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements);
/* The same for this rank's share, which is copied but for user. */
Status optim_new_shard(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShard *share);
void optim_free(Optim **optim);
/* before the first step */
void optim_use_whole(Optim *optim, OptimWhole whole);
/* out[i] = sum of squares of the gradient of range i: per FLAT_CHUNK, chunks added in order, in
 * double. Shared out: from each rank's own part of the gradient; the same on all of them. */
void optim_grad_squares(Optim *optim, const float *grads, double *out);
/* One step on all that is updated here. lr as lr_at gives it; grad_scale multiplies gradients first
 * (clipping: clip/norm). optim_begin tells the step's numbers, optim_update does it, with the same
 * calls at every step but the first where optim_repeats. */
void optim_begin(Optim *optim, double lr, double grad_scale);
void optim_update(Optim *optim, float *params, const float *grads);
bool optim_repeats(const Optim *optim);
/* Between the two: clips by the norm of all gradients, without the host, where that can be. All of
 * them are here. */
bool optim_can_clip(const Optim *optim);
void optim_clip(Optim *optim, const float *grads, double limit);
void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale);
/* Adds optim.slim, times factor, times the sign of each channel scale that is updated here to its
 * gradient (Liu et al. 2017, "Network slimming", section 3: the subgradient of the sum of their
 * absolute values). Before gradients are measured or applied. */
void optim_add_slim(Optim *optim, const float *params, float *grads, double factor);
/* of state, held here */
size_t optim_state_bytes(const Optim *optim);
/* with scratch, and room for a whole tensor */
size_t optim_bytes(const Optim *optim);
/* State per parameter that config's own rule holds: of SGD none without momentum. */
int optim_slots(const Config *config);
/* Does an update need the norms of whole tensors (lars, lamb)? */
bool optim_has_norms(const Config *config);
/* Does it need as much scratch as a slot of state, where the ranges are shared out? */
bool optim_scratch(const Config *config);
/* Does state lie close together even where nothing is shared out, because tensors differ in their
 * rules, or some are wanted whole? Then OptimNeed says what each takes. */
bool optim_packs(const Config *config);
/* Makes all rules of the configuration such as hold no state: for a model that is not trained. */
void optim_hold_nothing(Config *config);
/* What planning needs to know of one tensor's update. */
typedef struct OptimNeed {
    int slots;
    /* as large as a slot, where ranges are shared out */
    bool scratch;
    /* one rank has it all */
    bool whole;
    /* For it, once for the tensor that needs most: plain order and the rule's scratch; beside it
     * one more as it is stored. */
    size_t whole_bytes;
} OptimNeed;
OptimNeed optim_need(const Config *config, const OptimTensor *tensor, int rule);

/* Words of optim.name and optim.lr_schedule, and so the numbers that stand for them. Another rule
 * or curve: a file, or a row. With them the words of both lists above. */
enum { OPTIM_WORDS = 4 };
extern const ConfigWords optim_words[OPTIM_WORDS];

/* What of a run so far its learning rates depend on; plain bytes, kept in checkpoints. */
typedef struct LrState {
    /* what optim.lr is from now on: the curve, its end and groups' rates in proportion; 0: as the
     * configuration says */
    double lr;
    /* plateau: the best evaluation that counted, NaN: none; those since; how often the rate fell */
    double best;
    int64_t bad, falls;
} LrState;
/* Of a run that begins. */
LrState lr_state(void);
/* optim.lr as it is now */
double lr_base(const Config *config, const LrState *state);
/* Position of a run on its learning rate's curve. step and steps are whole numbers unless the batch
 * size was changed on the way. */
typedef struct LrSteps {
    /* the step, 0-based, out of steps */
    double step, steps;
    int64_t steps_per_epoch;
    /* step + data_ahead is the place in the data, of which steps_per_epoch are an epoch */
    double data_ahead;
} LrSteps;
/* Learning rate of that step. Warm-up rises linearly, (step+1)/warmup; the curve runs over what is
 * left. A pure function. */
double lr_at(const Config *config, const LrState *state, const LrSteps *of);
/* Effect on the rate where a run is made longer or shorter, in words: "the cosine stretches to the
 * new end". Borrowed. */
const char *lr_longer_text(const Config *config);
/* Does the rate depend on evaluations? */
bool lr_by_evaluations(const Config *config);
/* An evaluation after at->step steps gave that value, of which more (rises) or less is better.
 * Those of the warm-up do not count. */
void lr_evaluated(const Config *config, LrState *state, const LrSteps *at, double value,
                  bool rises);
/* ERR_CONFIG where the curve has no use for what its keys say. */
Status lr_check(const Config *config);

#endif
