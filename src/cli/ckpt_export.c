/* weft ckpt export: a checkpoint's parameters for other programs. */
#include "private.h"

#include "checkpoint.h"

#include <unistd.h>

typedef struct ExportOptions {
    const char *out;
    bool force;
} ExportOptions;

static const Flag flags[] = {
    {"-o", FLAG_FIELD(ExportOptions, out), .value = "OUT", .required = true,
     .help = "the safetensors file to write"},
    {"--force", FLAG_FIELD(ExportOptions, force), .help = "write over a file that is there"},
};

static Status run(int argc, char **argv, const void *options)
{
    const ExportOptions *o = options;
    int tensors = 0;
    const char *family = "";
    (void)argc;
    if (!o->force && access(o->out, F_OK) == 0)
        return fail(ERR_USAGE, "%s: is there already; --force writes over it", o->out);
    TRY(checkpoint_export(argv[0], o->out, &tensors, &family));
    log_info("wrote %s: %d tensors, names and layouts of %s", o->out, tensors, family);
    return OK;
}

const Verb verb_ckpt_export = {
    .name = "ckpt export",
    .words = "FILE",
    .least = 1,
    .most = 1,
    .expects = "a checkpoint",
    .help = "its parameters and running statistics as safetensors, for other programs",
    VERB_FLAGS(ExportOptions, flags),
    .run = run,
};
