/* Renames and drops tensors by --rename and --drop (rename.h). */
#include "rename.h"

#include <fnmatch.h>
#include <string.h>

Status foreign_rename(ForeignSet *set, char *const *rename, int count)
{
    for (int k = 0; k < count; ++k)
        if (!strchr(rename[k], ':'))
            return fail(ERR_USAGE, "--rename %s: expected OLD:NEW, such as backbone.:", rename[k]);
    bool *matched = mem_new((size_t)count + 1);
    for (int i = 0; i < set->count; ++i) {
        ForeignTensor *t = &set->tensor[i];
        for (int k = 0; k < count; ++k) {
            const char *from = rename[k];
            const size_t chars = strcspn(from, ":");
            if (strncmp(t->name, from, chars) != 0) continue;
            char *name = mem_format("%s%s", from + chars + 1, t->name + chars);
            mem_free(&t->name);
            t->name = name;
            matched[k] = true;
            break;
        }
    }
    Status st = OK;
    for (int k = 0; st == OK && k < count; ++k)
        if (!matched[k])
            st = fail(ERR_DATA, "%s: no tensor's name begins as --rename %s says", set->path,
                      rename[k]);
    mem_free(&matched);
    return st == OK && count ? foreign_sort(set) : st;
}

Status foreign_drop(ForeignSet *set, char *const *pattern, int count)
{
    for (int k = 0; k < count; ++k) {
        int left = 0;
        for (int i = 0; i < set->count; ++i) {
            ForeignTensor *t = &set->tensor[i];
            if (fnmatch(pattern[k], t->name, 0) == 0)
                mem_free(&t->name);
            else
                set->tensor[left++] = *t;
        }
        const bool matched = left < set->count;
        set->count = left;
        if (!matched)
            return fail(ERR_DATA, "%s: holds no tensor whose name fits --drop %s", set->path,
                        pattern[k]);
    }
    return set->count > 0 ? OK : fail(ERR_DATA, "%s: --drop leaves no tensor", set->path);
}
