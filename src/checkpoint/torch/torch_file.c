/* Files of torch.save (.pth, .pt, .bin; PyTorch 1.6 and later): a zip archive with a pickle,
 * data.pkl, and one member for each storage. The pickle is read as a tree (pickle.c); no code is
 * run.
 *
 *     {"epoch": 3, "model": {"conv1.weight": tensor, ...}, "optimizer": {...}, "best_acc": tensor}
 *                   group: a dictionary of tensors; one group is the parameters */
#include "torch_tensor.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { PICKLE_BYTES = 64 << 20, GROUPS = 64, DEPTH = 8 };

/* Refuses a file that torch can read and weft does not, with the command that converts the file. */
static Status refuse_with_line(const char *path, const char *why)
{
    return fail(
        ERR_DATA,
        "%s. If you trust the file, write it again: python3 -c \"import torch; m = "
        "torch.load('%s', map_location='cpu', weights_only=False); m = m.get('state_dict', "
        "m.get('model', m)) if isinstance(m, dict) else m; m = m if isinstance(m, dict) else "
        "m.state_dict(); torch.save({k: v if not torch.is_tensor(v) else v.dequantize() if "
        "v.is_quantized else v.to_dense() for k, v in m.items()}, 'new.pth')\"",
        why, path);
}

/* ---- groups ---- */

/* A dictionary of tensors. */
typedef struct Group {
    /* keys that lead to the dictionary, joined by dots; "." for the outermost dictionary; owned */
    char *path;
    /* index of the dictionary in Pickle.value */
    int dict;
    /* number of its tensors */
    int tensors;
} Group;
typedef struct Groups {
    /* true: only dictionaries with a weight are groups; false: every dictionary with a tensor is a
     * group */
    bool weights;
    int count;
    Group group[GROUPS];
    /* true for each value of the pickle that has been visited, [pickle.count]; owned */
    bool *seen;
} Groups;

static const PickleValue *value_at(const TorchFile *torch, int i)
{
    return &torch->pickle.value[i];
}

/* Returns the text of a pickle's value if it is a valid name of a tensor, or NULL. Owner: the
 * caller. */
static char *name_text(const PickleValue *key)
{
    if (key->kind != PICKLE_TEXT || key->bytes < 1 || key->bytes > FOREIGN_NAME_BYTES) return NULL;
    char *name = mem_format("%.*s", (int)key->bytes, key->text);
    bool good = (int64_t)strlen(name) == key->bytes;
    for (const unsigned char *c = (unsigned char *)name; good && *c; c += utf8_bytes(c))
        good = utf8_bytes(c) > 0 && !iscntrl(*c);
    if (!good) mem_free(&name);
    return name;
}

static void add_group(const TorchFile *torch, Groups *groups, int dict, const char *path)
{
    const PickleValue *v = value_at(torch, dict);
    int tensors = 0, weights = 0;
    TorchCall call;
    for (int i = 1; i < v->count; i += 2) {
        if (!torch_tensor_call(torch, v->item[i], &call)) continue;
        ++tensors;
        weights += torch_tensor_is_weight(torch, &call);
    }
    if ((groups->weights ? weights : tensors) == 0 || groups->count == GROUPS) return;
    groups->group[groups->count++] = (Group){mem_text(*path ? path : "."), dict, tensors};
}

/* Adds a dictionary and the dictionaries inside it. Only text keys are followed, because keys that
 * are numbers belong to an optimizer. */
static void find_groups(const TorchFile *torch, Groups *groups, int dict, const char *path,
                        int depth)
{
    const PickleValue *v = value_at(torch, dict);
    if (v->kind != PICKLE_DICT || groups->seen[dict] || depth == DEPTH) return;
    groups->seen[dict] = true;
    add_group(torch, groups, dict, path);
    for (int i = 0; i < v->count; i += 2) {
        char *key = value_at(torch, v->item[i + 1])->kind == PICKLE_DICT
                        ? name_text(value_at(torch, v->item[i]))
                        : NULL;
        if (!key) continue;
        char *inner = mem_format("%s%s%s", path, *path ? "." : "", key);
        find_groups(torch, groups, v->item[i + 1], inner, depth + 1);
        mem_free(&inner);
        mem_free(&key);
    }
}

static void groups_fini(Groups *groups)
{
    for (int i = 0; i < groups->count; ++i) mem_free(&groups->group[i].path);
    mem_free(&groups->seen);
    groups->count = 0;
}

/* Finds the groups with a weight. If there is none, finds the groups with any tensor. */
static void groups_init(const TorchFile *torch, Groups *groups)
{
    for (int weights = 1; weights >= 0; --weights) {
        *groups = (Groups){.weights = weights,
                           .seen = mem_new((size_t)torch->pickle.count * sizeof(bool))};
        find_groups(torch, groups, torch->pickle.root, "", 0);
        if (groups->count > 0) return;
        groups_fini(groups);
    }
}

/* Returns "model (62 tensors), ema (62 tensors)", all groups but `without`. Owner: the caller. */
static char *groups_text(const Groups *groups, const Group *without)
{
    char *all = mem_text("");
    for (int i = 0; i < groups->count; ++i) {
        const Group *g = &groups->group[i];
        if (g == without) continue;
        char *longer = mem_format("%s%s%.200s (%d tensor%s)", all, *all ? ", " : "", g->path,
                                  g->tensors, g->tensors == 1 ? "" : "s");
        mem_free(&all);
        all = longer;
    }
    return all;
}

static const Group *group_named(const Groups *groups, const char *path)
{
    for (int i = 0; i < groups->count; ++i)
        if (!strcmp(groups->group[i].path, path)) return &groups->group[i];
    return NULL;
}

/* Returns the only group whose name is not an optimizer's. If there is no such group or more than
 * one, returns the only group with a usual name for parameters, or NULL. */
static const Group *obvious_group(const Groups *groups)
{
    static const char *const usual[] = {"state_dict", "model_state_dict", "model", "module"};
    const Group *only = NULL, *named = NULL;
    int others = 0, names = 0;
    for (int i = 0; i < groups->count; ++i) {
        if (fnmatch("*optim*", groups->group[i].path, 0) == 0) continue;
        only = &groups->group[i];
        ++others;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; ++i) {
        const Group *g = group_named(groups, usual[i]);
        if (g) named = g, ++names;
    }
    if (others == 1) return only;
    return names == 1 ? named : NULL;
}

static Status choose_group(const TorchFile *torch, const Groups *groups, const Group **chosen)
{
    const char *path = torch->file->path, *key = torch->set->key;
    if (groups->count == 0)
        return fail(ERR_DATA, "%s: holds no dictionary of tensors: save the model's state_dict()",
                    path);
    *chosen = key ? group_named(groups, key) : obvious_group(groups);
    char *all = groups_text(groups, *chosen);
    Status st = OK;
    if (!*chosen && key)
        st = fail(ERR_USAGE, "%s: --key %s: there is no such group of tensors; there are %s", path,
                  key, all);
    else if (!*chosen)
        st = fail(
            ERR_DATA,
            "%s: which group of tensors are the parameters is not clear: choose one with --key: %s",
            path, all);
    else if (groups->count > 1 || strcmp((*chosen)->path, ".") != 0)
        log_info("%s: took '%s' (%d tensors)%s%s", path, (*chosen)->path, (*chosen)->tensors,
                 *all ? "; other choices of --key: " : "", all);
    mem_free(&all);
    return st;
}

/* ---- tensors ---- */

static Status add_tensor(TorchFile *torch, const PickleValue *key, const TorchCall *call)
{
    char *name = name_text(key);
    if (!name)
        return fail(ERR_DATA, "%s: a tensor's name is no text of 1 to %d printable bytes",
                    torch->file->path, FOREIGN_NAME_BYTES);
    ForeignTensor *t = foreign_new_tensor(torch->set);
    if (!t) {
        mem_free(&name);
        return fail(ERR_DATA, "%s: more than %d tensors", torch->file->path, FOREIGN_TENSORS);
    }
    t->name = name;
    return torch_tensor_fill(torch, call, t);
}

static Status add_group_tensors(TorchFile *torch, const Group *group)
{
    const PickleValue *v = value_at(torch, group->dict);
    int others = 0;
    for (int i = 0; i < v->count; i += 2) {
        TorchCall call;
        if (torch_tensor_call(torch, v->item[i + 1], &call))
            TRY(add_tensor(torch, value_at(torch, v->item[i]), &call));
        else
            ++others;
    }
    if (others)
        log_info("%s: left out %d value%s in addition to the tensors", torch->file->path, others,
                 others == 1 ? "" : "s");
    return OK;
}

/* ---- the file ---- */

/* Returns the member FOLDER/data.pkl and sets torch->folder; returns NULL if there is no such
 * member. */
static ZipMember *find_pickle(TorchFile *torch)
{
    for (int i = 0; i < torch->zip.count; ++i) {
        ZipMember *m = &torch->zip.member[i];
        const char *slash = strchr(m->name, '/');
        if (!slash || strcmp(slash, "/data.pkl") != 0) continue;
        torch->folder = mem_format("%.*s", (int)(slash - m->name), m->name);
        return m;
    }
    return NULL;
}

static ZipMember *find_in_folder(const TorchFile *torch, const char *leaf)
{
    char *name = mem_format("%s/%s", torch->folder, leaf);
    ZipMember *m = zip_find(&torch->zip, name);
    mem_free(&name);
    return m;
}

static Status check_byte_order(const TorchFile *torch)
{
    uint8_t *order = NULL;
    ZipMember *m = find_in_folder(torch, "byteorder");
    if (!m) return OK;
    Status st = zip_read(&torch->zip, m, 64, &order);
    if (st == OK && strcmp((const char *)order, "little") != 0)
        st = fail(ERR_DATA,
                  "%s: was written on a machine with the other byte order (%.16s): load it with "
                  "torch and save it again",
                  torch->file->path, (const char *)order);
    mem_free(&order);
    return st;
}

static Status read_pickle(TorchFile *torch, ZipMember *member, uint8_t **bytes)
{
    TRY(zip_read(&torch->zip, member, PICKLE_BYTES, bytes));
    Status st =
        pickle_read(&torch->pickle, torch->file->path, torch_names, *bytes, (size_t)member->bytes);
    if (st == OK || !torch->pickle.refused_as_unsafe) return st;
    char *why = mem_text(fail_message());
    st = refuse_with_line(torch->file->path, why);
    mem_free(&why);
    return st;
}

static Status add_all(TorchFile *torch, ZipMember *pickle, uint8_t **bytes)
{
    Groups groups = {0};
    const Group *chosen = NULL;
    if (find_in_folder(torch, "constants.pkl"))
        return fail(ERR_DATA,
                    "%s: is a TorchScript archive, which holds a program: load it with "
                    "torch.jit.load, and torch.save its state_dict()",
                    torch->file->path);
    TRY(check_byte_order(torch));
    TRY(read_pickle(torch, pickle, bytes));
    groups_init(torch, &groups);
    Status st = choose_group(torch, &groups, &chosen);
    if (st == OK) st = add_group_tensors(torch, chosen);
    groups_fini(&groups);
    return st;
}

static Status add_torch(ForeignSet *set, ForeignFile *file)
{
    TorchFile torch = {.set = set, .file = file};
    uint8_t *bytes = NULL;
    Status st = zip_open(&torch.zip, file);
    ZipMember *pickle = st == OK ? find_pickle(&torch) : NULL;
    if (st == OK && !pickle)
        st = fail(ERR_DATA, "%s: is a zip file without data.pkl: torch.save has not written it",
                  file->path);
    if (st == OK) st = add_all(&torch, pickle, &bytes);
    pickle_fini(&torch.pickle);
    zip_close(&torch.zip);
    mem_free(&torch.folder);
    mem_free(&bytes);
    return st;
}

/* Recognizes a zip file. A safetensors file begins with an arbitrary length, which may look like a
 * zip's first bytes; but its ninth byte is '{', which a zip's is not. */
static bool begins_zip(const uint8_t *head, size_t bytes)
{
    return bytes > 8 && head[8] != '{' &&
           (!memcmp(head, "PK\003\004", 4) || !memcmp(head, "PK\005\006", 4));
}

const ForeignFormat foreign_format_torch = {
    .name = "pth",
    .help = "FILE.pth, .pt, .bin, as torch.save has written them since PyTorch 1.6",
    .begins = begins_zip,
    .add = add_torch,
};

/* Recognizes files of PyTorch before 1.6, which are several pickles, and before 0.2, which are a
 * tar file. */
static bool begins_pickle(const uint8_t *head, size_t bytes)
{
    bool pickle = bytes > 8 && head[8] != '{' && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
    return pickle || (bytes > 262 && !memcmp(head + 257, "ustar", 5));
}

static Status refuse_pickle(ForeignSet *set, ForeignFile *file)
{
    (void)set;
    char *why = mem_format("%s: is a bare pickle, as PyTorch before 1.6 wrote, and is not read",
                           file->path);
    Status st = refuse_with_line(file->path, why);
    mem_free(&why);
    return st;
}

const ForeignFormat foreign_format_pickle = {
    .name = "old pth",
    .help = "files of PyTorch before 1.6 and other bare pickles: refused, with the command that "
            "converts them",
    .begins = begins_pickle,
    .add = refuse_pickle,
};
