/* Copies the widths of pruned layers (model.widths) from the configuration in a checkpoint to the
 * configuration of a run or program that uses the checkpoint. */
#include "../trainer.h"

#include <string.h>
#include <unistd.h>

/* On rank 0: returns the run's newest checkpoint, from which the run continues if there is one;
 * else the file of checkpoint.resume or, without it, of model.init_from, if it can be read; else
 * NULL. Owner: the caller. */
static char *find_source(const Config *c)
{
    const char *named = c->model.init_from;
    char *dir = mem_format("%s/%s/checkpoints", c->run.dir, c->run.name);
    char *own = !c->run.fresh && access(dir, R_OK) == 0 ? checkpoint_newest_unverified(dir) : NULL;
    mem_free(&dir);
    if (own) return own;
    if (c->checkpoint.resume == RESUME_FILE) named = c->checkpoint.resume_path;
    return named && *named && access(named, R_OK) == 0 ? mem_text(named) : NULL;
}

/* On rank 0: returns the text of the configuration in a checkpoint if it has widths, else NULL.
 * Owner: the caller. */
static char *read_config_with_widths(const char *path)
{
    CheckpointMeta meta = {0};
    Config *config = NULL;
    char *text = NULL;
    if (checkpoint_read_meta(path, &meta) != OK) return NULL;
    if (*meta.config && config_parse(&config, path, meta.config, 0, NULL) != OK)
        log_warn("%s: model.widths are not used, because its configuration cannot be read: %s",
                 path, fail_message());
    if (config && config->model.widths.count > 0) text = mem_text(meta.config);
    config_free(&config);
    checkpoint_meta_fini(&meta);
    return text;
}

void train_use_widths(Config *config, const World *world, const char *path)
{
    Config *from = NULL;
    char *source = NULL, *text = NULL;
    if (config->model.widths.count > 0) return;
    if (world->rank == 0) source = path ? mem_text(path) : find_source(config);
    if (source) text = read_config_with_widths(source);
    text = world_bcast_text(world, text);
    if (text && config_parse(&from, "model.widths", text, 0, NULL) == OK &&
        config_copy_widths(config, from) && world->rank == 0)
        log_info("model.widths are those of %s: %d layers have fewer channels", source,
                 config->model.widths.count);
    config_free(&from);
    mem_free(&source);
    mem_free(&text);
}
