/* weft ckpt info: prints the contents of a checkpoint. */
#include "../private.h"

#include "checkpoint.h"

typedef struct InfoOptions {
    bool json;
} InfoOptions;

static const Flag flags[] = {
    {"--json", FLAG_FIELD(InfoOptions, json), .help = "one JSON object per line"},
};

static Status run(int argc, char **argv, const void *options)
{
    const InfoOptions *o = options;
    for (int i = 0; i < argc; ++i) TRY(checkpoint_print(argv[i], stdout, o->json));
    return OK;
}

const Verb verb_ckpt_info = {
    .name = "ckpt info",
    .words = "FILE...",
    .words_min = 1,
    .expects = "a checkpoint file",
    .help = "prints step, epoch, grid, and a hash of each tensor",
    VERB_FLAGS(InfoOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
