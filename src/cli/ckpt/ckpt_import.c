/* weft ckpt import: makes a checkpoint from another program's parameters. */
#include "../private.h"

#include "checkpoint.h"

typedef struct ImportOptions {
    const char *out, *key, *description;
    FlagList rename, drop;
    bool force;
} ImportOptions;

static const Flag flags[] = {
    FLAG_OUT(ImportOptions, out, "the checkpoint to write"),
    {"--key", FLAG_FIELD(ImportOptions, key), .value = "NAME",
     .help = "entry of a .pth file that holds the parameters, if the file holds more: model, "
             "ema, ..."},
    {"--hf-config", FLAG_FIELD(ImportOptions, description), .value = "FILE",
     .help = "description of the model by transformers; by default config.json in the same folder"},
    {"--rename", FLAG_FIELD(ImportOptions, rename), .value = "OLD:NEW,...",
     .help = "prefixes of names to replace; the first that matches is used; backbone.: removes "
             "one"},
    {"--drop", FLAG_FIELD(ImportOptions, drop), .value = "GLOB,...",
     .help = "tensors to leave out, by name or pattern, such as buffers that are not parameters"},
    FLAG_FORCE(ImportOptions, force),
};

static Status run(int argc, char **argv, const void *options)
{
    const ImportOptions *o = options;
    CheckpointImport import = {.from = argv[0],
                               .out = o->out,
                               .key = o->key,
                               .description = o->description,
                               .rename = o->rename.word,
                               .rename_count = o->rename.count,
                               .drop = o->drop.word,
                               .drop_count = o->drop.count};
    (void)argc;
    TRY(file_check_writable(o->out, o->force));
    TRY(checkpoint_import(&import));
    log_info("wrote %s: %lld parameters, names and layouts of %s", o->out, (long long)import.values,
             import.family);
    if (import.model) {
        printf("%s", import.model);
        log_info("the lines above describe the model: add them to your CONFIG; it was trained with "
                 "contexts of up to %lld tokens (model.context)",
                 (long long)import.context);
    }
    mem_free(&import.model);
    return OK;
}

const Verb verb_ckpt_import = {
    .name = "ckpt import",
    .words = "FILE.safetensors|FILE.pth",
    .words_min = 1,
    .words_max = 1,
    .expects = "a file of tensors, or the .index.json of several",
    .help = "makes a checkpoint from another program's parameters, for model.init_from, eval and "
            "generate",
    VERB_FLAGS(ImportOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
