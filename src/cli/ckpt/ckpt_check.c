/* weft ckpt check: verifies the checksums of checkpoints. */
#include "../private.h"

#include "base/escape.h"
#include "checkpoint.h"

static Status run(int argc, char **argv, const void *options)
{
    (void)options;
    if (argc == 1) return checkpoint_check(argv[0], stdout);
    Status worst = OK;
    int bad = 0;
    for (int i = 0; i < argc; ++i) {
        Status status = checkpoint_check(argv[i], stdout);
        if (status == OK) continue;
        text_escape_print(stdout, "not good: %s\n", fail_message());
        if (status > worst) worst = status;
        ++bad;
    }
    return bad == 0 ? OK
                    : fail(worst, "%d of %d arguments %s not good: see above", bad, argc,
                           bad == 1 ? "is" : "are");
}

const Verb verb_ckpt_check = {
    .name = "ckpt check",
    .words = "FILE|FOLDER...",
    .words_min = 1,
    .expects = "a checkpoint, or a folder of them",
    .help = "verifies the checksums of a checkpoint, or of all checkpoints in a run's folder",
    .more = "In a folder (runs/NAME, or checkpoints/ in it) every step-*.h5 and best.h5 is read, "
            "newest first. A bad checkpoint does not end the list. The last line names the "
            "checkpoint that a run resumes from. Exit code: 0 all are good, 65 one is bad, 66 "
            "there are none.",
    .traits = VERB_NO_TRAITS,
    .run = run,
};
