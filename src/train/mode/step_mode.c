/* The table of modes, and checks of the options that they exclude. */
#include "step_mode.h"

#include "local_steps.h"

static const StepMode *const modes[] = {
    [UPDATE_SYNC] = &mode_sync,
    [UPDATE_STALE] = &mode_stale,
    [UPDATE_GEO] = &mode_geo,
    [UPDATE_ASYNC] = &mode_async,
};

const StepMode *step_mode(const Config *config, bool tables)
{
    if (tables && config->grid.mode == UPDATE_SYNC) return &mode_sync_tables;
    return modes[config->grid.mode];
}

Status step_mode_row_check(const char *word, const StepMode *mode)
{
    const bool alone = mode->ranks == STEP_RANKS_ALONE;
    const RowSlot slots[] = {
        ROW_SLOT(mode, ranks),
        ROW_SLOT(mode, forward_backward),
        ROW_SLOT(mode, update),
        ROW_SLOT_IF(mode, free, mode->make != NULL),
        ROW_SLOT_IF(mode, after_update, alone || mode->after_update),
    };
    return ROW_SLOTS_CHECK("mode", word, slots);
}

Status step_modes_check(void)
{
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); ++i) {
        TRY(row_check("mode", update_mode_names[i], modes[i] ? NULL : "has no row in step_mode.c"));
        TRY(step_mode_row_check(update_mode_names[i], modes[i]));
        const bool agree = update_mode_is_local((UpdateMode)i) == step_mode_is_local(modes[i]);
        TRY(row_check("mode", update_mode_names[i],
                      agree ? NULL : ".ranks contradicts update_mode_is_local"));
    }
    return step_mode_row_check("sync with tables", &mode_sync_tables);
}

/* An option that a mode other than sync excludes. */
typedef struct ExcludedOption {
    /* true: the configuration sets the option */
    bool is_set;
    const char *key;
    /* end of the message, after the key */
    const char *why;
} ExcludedOption;

Status step_mode_check(const Trainer *t)
{
    const Config *c = t->config;
    const bool local = step_mode_is_local(t->mode), async = t->mode == &mode_async;
    const ExcludedOption excluded[] = {
        {c->train.on_bad != ON_BAD_STOP, "train.on_bad", "only stop is possible in this grid.mode"},
        {c->checkpoint.every_steps % c->grid.geo_steps != 0, "checkpoint.every_steps",
         "checkpoints are written at sync points: set a multiple of grid.geo_steps"},
        {local && c->grid.servers == 0, "grid.mode",
         "needs servers that store the tables: set grid.servers"},
        {local && t->shape.pp > 1, "grid.pp",
         "in this grid.mode each rank has the whole model: set 1"},
        {local && t->shape.tp > 1, "grid.tp",
         "in this grid.mode each rank has the whole model: set 1"},
        {local && c->grid.zero > 0, "grid.zero",
         "in this grid.mode each rank has a copy of all parameters: set 0"},
        {async && c->optim.warmup_bias_lr >= 0, "optim.warmup_bias_lr",
         "servers update all parameters with one learning rate: remove it"},
        {async && c->optim.warmup_momentum > 0, "optim.warmup_momentum",
         "servers update with a constant momentum: remove it"},
        {local && c->optim.clip > 0, "optim.clip",
         "in this grid.mode no gradient is summed over all ranks: set 0"},
    };
    if (t->mode != &mode_async && (*c->run.order_log || *c->run.replay))
        return config_fail_key(c, *c->run.replay ? "run.replay" : "run.order_log",
                               "only grid.mode: async has an order of requests");
    if (c->grid.mode == UPDATE_SYNC) return OK;
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; ++i)
        if (excluded[i].is_set) return config_fail_key(c, excluded[i].key, "%s", excluded[i].why);
    if (local) TRY(local_steps_check(t));
    return t->mode->check ? t->mode->check(t) : OK;
}
