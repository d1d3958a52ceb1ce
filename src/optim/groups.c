/* Assigns rules to parameters. Refuses patterns and groups that match nothing, because parameters
 * whose name is mistyped in a pattern would silently get another rule. */
#include "rules.h"

#include <fnmatch.h>
#include <math.h>

static bool matches(const OptimGroup *group, const OptimTensor *tensor)
{
    bool named = group->match_count == 0;
    if (group->roles && !(group->roles & 1 << tensor->role)) return false;
    for (int i = 0; i < group->match_count && !named; ++i)
        named = fnmatch(group->match[i], tensor->name, 0) == 0;
    return named;
}

/* Returns the number of the tensor's rule: i + 1 for the first group i that matches, else 0. */
static int rule_of(const Config *config, const OptimTensor *tensor)
{
    for (int g = 0; g < config->optim.group_count; ++g)
        if (matches(&config->optim.group[g], tensor)) return g + 1;
    return 0;
}

static Status check_pattern(const Config *config, const OptimGroup *group, const char *pattern,
                            const OptimTensor *tensor, int count)
{
    for (int i = 0; i < count; ++i)
        if (fnmatch(pattern, tensor[i].name, 0) == 0) return OK;
    return config_fail(
        config, group->line, group->column,
        "optim.groups: '%s' matches no parameter; `weft plan --json` lists the names, such "
        "as %s",
        pattern, count ? tensor[0].name : "none");
}

/* Fails unless every pattern of group g matches a tensor and at least one tensor has the group's
 * rule. rule_numbers: number of each tensor's rule. */
static Status check_group(const Config *config, int g, const OptimTensor *tensor, int count,
                          const int *rule_numbers)
{
    const OptimGroup *group = &config->optim.group[g];
    for (int i = 0; i < group->match_count; ++i)
        TRY(check_pattern(config, group, group->match[i], tensor, count));
    for (int i = 0; i < count; ++i)
        if (rule_numbers[i] == g + 1) return OK;
    return config_fail(
        config, group->line, group->column,
        "optim.groups: group %d has no parameter: it matches none, or only parameters that "
        "an earlier group has",
        g + 1);
}

static Status check_tensor(const OptimRule *rule, const OptimTensor *tensor)
{
    const OptimTable *table = rule->table;
    if (tensor->role != PARAM_SPARSE_TABLE || table->row_update)
        return table->check_tensor ? table->check_tensor(rule->constants, tensor) : OK;
    char *row_rules = optim_row_rules();
    fail(ERR_CONFIG,
         "%s cannot update the rows of a sparse table, and %s is one: put tables into a group of a "
         "rule that can (%s), as {roles: table, name: adagrad_row, lr: 0.01}",
         table->word.word, tensor->name, row_rules);
    mem_free(&row_rules);
    return ERR_CONFIG;
}

/* Fails unless the rule can update the tensor. The message has file and line of optim.name (for
 * rule 0) or of the group (for other rules). */
static Status check_rule(const Config *config, const OptimTensor *tensor, int rule_number)
{
    OptimRule assigned = optim_rule(config, rule_number);
    if (check_tensor(&assigned, tensor) == OK) return OK;
    char *why = mem_text(fail_message());
    Status status =
        rule_number == 0
            ? config_fail_key(config, "optim.name", "%s", why)
            : config_fail(config, config->optim.group[rule_number - 1].line,
                          config->optim.group[rule_number - 1].column, "optim.groups: %s", why);
    mem_free(&why);
    return status;
}

/* Refuses groups if one of the rules updates all parameters together. */
static Status check_together(const Config *config)
{
    for (int i = 0; i < optim_rule_count(config) && config->optim.group_count > 0; ++i) {
        const OptimTable *table = optim_rule(config, i).table;
        if (!table->update_all) continue;
        return config_fail(
            config, config->optim.group[0].line, config->optim.group[0].column,
            "optim.groups: %s updates all parameters together: remove the groups, or "
            "choose another rule",
            table->word.word);
    }
    return OK;
}

Status optim_assign(const Config *config, const OptimTensor *tensor, int count, int *rule_numbers)
{
    TRY(warmup_check(config));
    TRY(check_together(config));
    for (int i = 0; i < count; ++i) rule_numbers[i] = rule_of(config, &tensor[i]);
    for (int g = 0; g < config->optim.group_count; ++g)
        TRY(check_group(config, g, tensor, count, rule_numbers));
    for (int i = 0; i < count; ++i)
        if (!tensor[i].frozen) TRY(check_rule(config, &tensor[i], rule_numbers[i]));
    return OK;
}

double optim_depth_scale(const Config *config, int rule, int depth_group, int depth_groups)
{
    return rule > 0 ? 1 : pow(config->optim.layer_decay, depth_groups - 1 - depth_group);
}
