/* Removes a prefix from all names: DistributedDataParallel's "module.", torch.compile's
 * "_orig_mod.", a Lightning module's "model.", or any prefix before the names of a known model. If
 * only some names have a wrapper's prefix, because a part of the model was wrapped, the prefix is
 * removed from these names. Names that would become equal are refused. */
#include "prefix.h"

#include <string.h>

/* Names of tensors in known models, without any prefix. If a file has any such name, no common
 * prefix of all names is removed. */
static const char *const marks[] = {
    "layer1.0.conv1.weight",     "features.0.0.weight", "embed_tokens.weight",
    "model.embed_tokens.weight", "wte.weight",          "transformer.wte.weight",
    "model.0.conv.weight"};
static const char *const wrappers[] = {
    "module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.",
    "model.",  "net.",       "network."};

enum {
    MARKS = (int)(sizeof marks / sizeof *marks),
    WRAPPERS = (int)(sizeof wrappers / sizeof *wrappers)
};

/* Returns true if all names begin with these bytes and continue after them. */
static bool all_begin(const ForeignSet *set, const char *prefix, size_t bytes)
{
    for (int i = 0; i < set->count; ++i)
        if (strncmp(set->tensor[i].name, prefix, bytes) != 0 || !set->tensor[i].name[bytes])
            return false;
    return set->count > 0;
}

/* Returns true if any name, without its first `bytes` bytes, is one of the marks. */
static bool marked(const ForeignSet *set, size_t bytes)
{
    for (int i = 0; i < set->count; ++i)
        for (int k = 0; k < MARKS; ++k)
            if (!strcmp(set->tensor[i].name + bytes, marks[k])) return true;
    return false;
}

/* Returns the length of the prefix before the names of a known model, or 0. */
static size_t known_prefix(const ForeignSet *set)
{
    const char *first = set->tensor[0].name;
    for (const char *dot = strchr(first, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t bytes = (size_t)(dot - first) + 1;
        if (!all_begin(set, first, bytes)) return 0;
        if (marked(set, bytes)) return bytes;
    }
    return 0;
}

/* Returns the length of the wrappers' prefixes that all names share. */
static size_t wrappers_prefix(const ForeignSet *set)
{
    const char *first = set->tensor[0].name;
    size_t bytes = 0;
    for (int i = 0; i < WRAPPERS; ++i) {
        size_t more = strlen(wrappers[i]);
        if (strncmp(first + bytes, wrappers[i], more) != 0 || !all_begin(set, first, bytes + more))
            continue;
        bytes += more;
        i = -1;
    }
    return bytes;
}

/* Prefixes that only wrappers write, and that may be removed from single names. */
static const char *const wrapper_words[] = {"module.", "_orig_mod.", "_forward_module.",
                                            "_fsdp_wrapped_module."};
enum { WRAPPER_WORDS = (int)(sizeof wrapper_words / sizeof *wrapper_words) };

/* Returns the length of the wrappers' prefixes of one name. */
static size_t wrapper_bytes(const char *name)
{
    size_t bytes = 0;
    for (int i = 0; i < WRAPPER_WORDS; ++i) {
        size_t more = strlen(wrapper_words[i]);
        if (strncmp(name + bytes, wrapper_words[i], more) != 0 || !name[bytes + more]) continue;
        bytes += more;
        i = -1;
    }
    return bytes;
}

/* Removes wrappers' prefixes that only some names have. */
static Status strip_some(ForeignSet *set)
{
    const char *word = NULL;
    int found = 0;
    for (int i = 0; i < set->count; ++i)
        if (wrapper_bytes(set->tensor[i].name) > 0 && found++ == 0) word = set->tensor[i].name;
    if (found == 0) return OK;
    log_info("%s: removed '%.*s' and similar prefixes, with which %d of %d names begin", set->path,
             (int)wrapper_bytes(word), word, found, set->count);
    for (int i = 0; i < set->count; ++i) {
        char *name = set->tensor[i].name;
        size_t bytes = wrapper_bytes(name);
        memmove(name, name + bytes, strlen(name + bytes) + 1);
    }
    return foreign_sort(set);
}

Status prefix_strip(ForeignSet *set)
{
    if (set->count == 0) return OK;
    size_t bytes = marked(set, 0) ? 0 : known_prefix(set);
    if (bytes == 0 && !marked(set, 0)) bytes = wrappers_prefix(set);
    if (bytes == 0) return strip_some(set);
    log_info("%s: left out '%.*s', with which every name begins", set->path, (int)bytes,
             set->tensor[0].name);
    for (int i = 0; i < set->count; ++i) {
        char *name = set->tensor[i].name;
        memmove(name, name + bytes, strlen(name + bytes) + 1);
    }
    return strip_some(set);
}
