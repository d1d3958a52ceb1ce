/* The list of update rules, in the order of the help, the default first; and functions that return
 * what the rules of a configuration need. A new rule needs a file with its OptimTable, and a line
 * in the list. */
#include "rules.h"

/* clang-format off: one rule on each line; a new one goes above the last line */
#define RULES(_)                                                                                   \
    _(sgd)                                                                                         \
    _(adam)                                                                                        \
    _(adamw)                                                                                       \
    _(adagrad)                                                                                     \
    _(adagrad_row)                                                                                 \
    _(ftrl)                                                                                        \
    _(lars)                                                                                        \
    _(lamb)                                                                                        \
    _(lion)                                                                                        \
    _(lbfgs)                                                                                       \
    _(muon)
/* clang-format on */

#define DECLARE(name) extern const OptimTable optim_##name;
#define ENTRY(name)   &optim_##name,
#define NUMBER(name)  ROW_##name,

RULES(DECLARE)
static const OptimTable *const rules[] = {RULES(ENTRY)};
enum { RULES(NUMBER) RULE_COUNT };

const ConfigWords optim_words[OPTIM_WORDS] = {
    {"optim.name", .word = optim_rule_word},
    {"optim.lr_schedule", .word = optim_curve_word},
    {"optim.lr_adjust", .text = LIST_TEXT(LR_ADJUST_WORDS)},
    {"optim.decay_shape", .text = LIST_TEXT(DECAY_SHAPE_WORDS)},
    {"optim.anneal_strategy", .text = LIST_TEXT(ANNEAL_WORDS)},
    {"optim.groups.roles", .text = LIST_TEXT(ROLE_WORDS)},
};

const OptimTable *optim_rule_at(int i)
{
    return i < RULE_COUNT ? rules[i] : NULL;
}

ConfigWord optim_rule_word(int i)
{
    return i < RULE_COUNT ? rules[i]->word : (ConfigWord){0};
}

char *optim_row_rules(void)
{
    char *all = mem_text("");
    for (int i = 0; i < RULE_COUNT; ++i) {
        if (!rules[i]->row_update) continue;
        char *longer = mem_format("%s%s%s", all, *all ? ", " : "", rules[i]->word.word);
        mem_free(&all);
        all = longer;
    }
    return all;
}

int optim_rule_count(const Config *config)
{
    return 1 + config->optim.group_count;
}

OptimRule optim_rule(const Config *config, int number)
{
    const OptimConfig *constants =
        number == 0 ? &config->optim : &config->optim.group[number - 1].options;
    const OptimTable *table = rules[constants->name];
    return (OptimRule){.table = table,
                       .constants = constants,
                       .lr_ratio = constants->lr / config->optim.lr,
                       .slots = table->slots_used ? table->slots_used(constants) : table->slots};
}

double optim_momentum_at(const OptimRule *rule, double warm)
{
    const double start = rule->constants->warmup_momentum;
    if (rule->table->momentum_offset == 0) return 0;
    const double momentum = *(const double *)(const void *)((const char *)rule->constants +
                                                            rule->table->momentum_offset);
    return warm < 1 && start > 0 ? start + (momentum - start) * warm : momentum;
}

int optim_slot_count(const Config *config)
{
    return optim_rule(config, 0).slots;
}

/* Selects SGD without momentum. */
static void use_stateless(OptimConfig *keys)
{
    keys->name = 0;
    keys->momentum = 0;
    keys->warmup_momentum = -1;
    keys->nesterov = false;
}
_Static_assert(ROW_sgd == 0, "the default holds no state without momentum");

void optim_use_stateless(Config *config)
{
    use_stateless(&config->optim);
    for (int i = 0; i < config->optim.group_count; ++i)
        use_stateless(&config->optim.group[i].options);
}

bool optim_needs_scratch(const Config *config)
{
    return optim_rule(config, 0).table->scratch == SCRATCH_MEASURE;
}

bool optim_state_is_packed(const Config *config)
{
    return config->optim.group_count > 0 || optim_rule(config, 0).table->whole;
}

bool optim_has_norms(const Config *config)
{
    bool has = false;
    for (int i = 0; i < optim_rule_count(config); ++i)
        has = has || optim_rule(config, i).table->norms > 0;
    return has;
}
