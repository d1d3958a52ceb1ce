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
    if (argc == 0) return fail(ERR_USAGE, "a checkpoint file is wanted; --help says more");
    for (int i = 0; i < argc; ++i) TRY(checkpoint_check(argv[i], stdout));
    return OK;
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
