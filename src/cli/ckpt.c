/* weft ckpt: what a checkpoint holds, whether it is whole, whether two are the same. */
#include "private.h"

#include "checkpoint.h"

Status verb_ckpt_info(int argc, char **argv)
{
    bool json = false;
    const Flag flags[] = {{"--json", NULL, &json}};
    TRY(flags_take(&argc, argv, flags, 1));
    if (argc == 0) return fail(ERR_USAGE, "a checkpoint file is wanted; --help says more");
    for (int i = 0; i < argc; ++i) TRY(checkpoint_print(argv[i], stdout, json));
    return OK;
}

Status verb_ckpt_check(int argc, char **argv)
{
    TRY(flags_take(&argc, argv, NULL, 0));
    if (argc == 0)
        return fail(ERR_USAGE, "a checkpoint, or a folder of them, is wanted; --help says more");
    if (argc == 1) return checkpoint_check(argv[0], stdout);
    Status worst = OK;
    int bad = 0;
    for (int i = 0; i < argc; ++i) {
        Status status = checkpoint_check(argv[i], stdout);
        if (status == OK) continue;
        printf("not good: %s\n", fail_message());
        if (status > worst) worst = status;
        ++bad;
    }
    return bad == 0 ? OK
                    : fail(worst, "%d of %d names %s not good: see above", bad, argc,
                           bad == 1 ? "is" : "are");
}

Status verb_ckpt_diff(int argc, char **argv)
{
    bool equal = false;
    TRY(flags_take(&argc, argv, NULL, 0));
    if (argc != 2) return fail(ERR_USAGE, "two checkpoint files are wanted; --help says more");
    TRY(checkpoint_diff(argv[0], argv[1], stdout, &equal));
    if (!equal) return fail(ERR_DATA, "%s and %s differ", argv[0], argv[1]);
    return OK;
}
