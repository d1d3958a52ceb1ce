/* Checks the const tables of update rules and learning-rate curves. optim_check is called at every
 * start of the program. optim_slots_check, which runs a rule's update, is called when an optimizer
 * is made, for each of its rules. */
#include "curves.h"
#include "rules.h"

/* Returns a text that says what is wrong with the state of a rule; NULL: nothing. */
static const char *state_lacks(const OptimTable *t)
{
    for (int i = 0; i < OPTIM_SLOTS; ++i)
        if ((i < t->slots) != (t->slot_name[i] != NULL))
            return ".slots is not the number of names in .slot_name";
    if (!t->row_state != !t->row_update) return ".row_state and .row_update go together";
    if (!t->row_state) return NULL;
    const OptimConfig constants = {0};
    const RowState row = t->row_state(&constants, 1);
    if (row.slots < 0 || row.slots > OPTIM_SLOTS + 1) return ".row_state: too many slots";
    for (int i = 0; i < row.slots; ++i)
        if (!row.name[i] || row.floats[i] < 1) return ".row_state: a slot has no name or no floats";
    return NULL;
}

Status optim_rule_check(const OptimTable *t)
{
    const OptimConfig constants = {0};
    const bool whole = t->whole && t->direction && t->work_floats && t->norms == 0;
    const bool none = !t->whole && !t->direction && !t->work_floats;
    const char *lacks =
        !t->word.help ? ".word.help is not given"
        : !t->scratch ? ".scratch is not given"
        : !t->devices ? ".devices is not given"
        : !t->update && !t->row_update && !t->update_all && !t->update_pieces
            ? ".update is not given"
        : t->update_all && (t->update || t->row_update || t->norms > 0 || !none)
            ? ".update_all goes without .update, .row_update, .norms and .whole"
        : t->slots < 0 || t->slots > OPTIM_SLOTS ? ".slots is above OPTIM_SLOTS"
        : t->update_pieces && (t->update || t->update_all || t->norms > 0 || !none)
            ? ".update_pieces goes without .update, .update_all, .norms and .whole"
        : t->update_pieces && t->slots > 2       ? ".update_pieces goes with at most two .slots"
        : t->norms < 0 || t->norms > OPTIM_NORMS ? ".norms is above OPTIM_NORMS"
        : (t->norms > 0) != (t->measure != NULL) ? ".norms and .measure go together"
        : !whole && !none     ? ".direction, .whole and .work_floats go together, without .norms"
        : whole && !t->update ? ".update is not given"
        : whole != (t->scratch == SCRATCH_DIRECTION)
            ? ".direction and SCRATCH_DIRECTION go together"
        : t->scratch == SCRATCH_MEASURE && !t->measure
            ? ".scratch is SCRATCH_MEASURE only with .measure"
        : t->slots_used && t->slots_used(&constants) > t->slots ? ".slots_used is above .slots"
                                                                : state_lacks(t);
    return row_check("optimizer", t->word.word, t->word.word ? lacks : ".word is not given");
}

/* Returns a text that says how a rule's fields contradict what its functions use; NULL: they do
 * not. */
static const char *uses_lack(const OptimTable *t, const OptimUses *uses)
{
    return uses->scratch && t->scratch == SCRATCH_UNUSED
               ? ".scratch is SCRATCH_UNUSED, but the rule uses the scratch memory"
           : !uses->scratch && t->scratch != SCRATCH_UNUSED
               ? ".scratch is not SCRATCH_UNUSED, but the rule uses no scratch memory"
           : uses->each && t->devices != DEVICES_CPU
               ? ".devices is not DEVICES_CPU, but optim_each needs parameters in host memory"
               : NULL;
}

enum { CHECK_FLOATS = 16 };

/* Runs update_pieces on a piece whose state and average are 0. The state slots that the rule has,
 * and the average, must then differ from 0; a slot that it does not have must still be 0. */
static Status check_update_pieces(const OptimTable *t, Backend *backend)
{
    float w[CHECK_FLOATS], g[CHECK_FLOATS], slot[2][CHECK_FLOATS] = {0},
                                            average[CHECK_FLOATS] = {0};
    for (int i = 0; i < CHECK_FLOATS; ++i) w[i] = g[i] = 1;
    const OptimConfig constants = {.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 1};
    OptimRule rule = {
        .table = t, .constants = &constants, .lr_ratio = 1, .slots = t->slots, .momentum = 0.5f};
    OptimUses uses = {0};
    Optim optim = {.table = t,
                   .backend = backend,
                   .rule_count = 1,
                   .rule = &rule,
                   .uses = &uses,
                   .step = 1,
                   .is_first_update = true,
                   .lr = 0.5f,
                   .scale = 1,
                   .average_rate = 0.5f};
    const UpdatePiece piece = {
        .w = w, .g = g, .m = slot[0], .v = slot[1], .average = average, .n = CHECK_FLOATS};
    t->update_pieces(&optim, &rule, &piece, 1);
    for (int s = 0; s < 2; ++s)
        if ((s < t->slots) != (slot[s][0] != 0))
            return fail(ERR_BUG, "optimizer %s: .slots is %d, but update_pieces uses %s slot %d",
                        t->word.word, t->slots, s < t->slots ? "no" : "state", s);
    return row_check("optimizer", t->word.word,
                     average[0] == 0 ? "update_pieces does not move the average"
                                     : uses_lack(t, &uses));
}

Status optim_slots_check(const OptimTable *t, Backend *backend)
{
    if (!backend->table->host_memory) return OK;
    if (t->update_pieces) return check_update_pieces(t, backend);
    if (!t->update && !t->update_all) return OK;
    enum { FLOATS = CHECK_FLOATS };
    OptimUses uses = {0};
    float w[FLOATS] = {0}, g[FLOATS] = {0};
    double sums[OPTIM_NORMS] = {0}, norm[OPTIM_NORMS] = {1, 1};
    int64_t chunk[2] = {0};
    OptimConfig constants = {.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 1};
    OptimRule rule = {.table = t, .constants = &constants, .lr_ratio = 1, .slots = t->slots};
    OptimTensor tensor = {.name = "check", .shape = shape_of(2, 1, 1, 1, 1)};
    OptimRange range = {.tensor = tensor};
    OptimPiece piece = {.decay = true, .rule = &rule, .tensor = &tensor};
    Optim optim = {.table = t,
                   .backend = backend,
                   .rule_count = 1,
                   .rule = &rule,
                   .uses = &uses,
                   .scratch = w,
                   .partial = sums,
                   .chunk_squares = sums,
                   .range_count = 1,
                   .range = &range,
                   .piece = &piece,
                   .chunk = chunk,
                   .step = 1,
                   .lr = 1,
                   .scale = 1};
    OptimArgs args = {.w = w, .g = g, .lr = 1, .grad_scale = 1, .norm = norm};
    if (t->measure) t->measure(&optim, &piece, &args);
    if (t->direction) t->direction(&optim, &piece, &args);
    if (t->update_all)
        t->update_all(&optim, w, g);
    else
        t->update(&optim, &piece, &args);
    for (int slot = 0; slot < OPTIM_SLOTS; ++slot)
        if ((slot < t->slots) != (uses.slots >> slot & 1))
            return fail(ERR_BUG, "optimizer %s: .slots is %d, but update uses %s slot %d",
                        t->word.word, t->slots, slot < t->slots ? "no" : "state", slot);
    return row_check("optimizer", t->word.word, uses_lack(t, &uses));
}

Status curve_check(const Curve *curve)
{
    const char *lacks = !curve->word.help      ? ".word.help is not given"
                        : !curve->if_end_moves ? ".if_end_moves is not given"
                        : !curve->rate         ? ".rate is not given"
                                               : NULL;
    return row_check("curve", curve->word.word, curve->word.word ? lacks : ".word is not given");
}

Status optim_check(void)
{
    for (int i = 0; optim_rule_at(i); ++i) TRY(optim_rule_check(optim_rule_at(i)));
    for (int i = 0; optim_curve_at(i); ++i) TRY(curve_check(optim_curve_at(i)));
    return OK;
}
