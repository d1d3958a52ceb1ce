/* weft ckpt diff: compares two checkpoints. */
#include "../private.h"

#include "checkpoint.h"

static Status run(int argc, char **argv, const void *options)
{
    bool equal = false;
    (void)argc;
    (void)options;
    TRY(checkpoint_diff(argv[0], argv[1], stdout, &equal));
    return equal ? OK : fail(ERR_DATA, "%s and %s differ", argv[0], argv[1]);
}

const Verb verb_ckpt_diff = {
    .name = "ckpt diff",
    .words = "FILE FILE",
    .words_min = 2,
    .words_max = 2,
    .expects = "two checkpoint files",
    .help = "names the first difference of two checkpoints; exit 65 if there is one",
    .traits = VERB_NO_TRAITS,
    .run = run,
};
