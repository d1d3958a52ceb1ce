/* Reads rotary scaling and sliding windows from a description, in all spellings. The base is
 * rope_theta; the scaling is the object rope_scaling or rope_parameters, with a member type or
 * rope_type. The base may also be a member of that object. */
#include "hf_model.h"

#include <string.h>

/* A type of rotary scaling. */
typedef struct Scaling {
    const char *type;
    /* members of rope_scaling that the type uses, in the order in which weft writes them */
    struct {
        const char *name;
        /* true: the type is refused without the member (but yarn's factor may also follow from the
         * original context) */
        bool needed;
    } member[9];
} Scaling;

static const char ORIGINAL[] = "original_max_position_embeddings";

static const Scaling scalings[] = {
    {"linear", {{"factor", true}}},
    {"dynamic", {{"factor", true}}},
    {"llama3", {{"factor", true}, {"low_freq_factor", true}, {"high_freq_factor", true}}},
    {"yarn",
     {{"factor", true},
      {"beta_fast", false},
      {"beta_slow", false},
      {"attention_factor", false},
      {"mscale", false},
      {"mscale_all_dim", false},
      {"truncate", false}}},
};

/* Returns a member of `object`, which is rope_scaling or rope_parameters, or NULL if the member is
 * absent or null. */
static const HfField *member(HfFields *f, const HfField *object, const char *name)
{
    if (!object) return NULL;
    char *path = mem_format("%s.%s", object->name, name);
    const HfField *field = hf_value(f, path);
    mem_free(&path);
    return field;
}

static Status find_object(HfFields *f, const HfField **object)
{
    const HfField *old = hf_value(f, "rope_scaling"), *new = hf_value(f, "rope_parameters");
    *object = old ? old : new;
    if (old && new) return hf_refuse(f, old, "rope_parameters is given, too: keep one of the two");
    if (*object) TRY(hf_check_kind(f, *object, HF_OBJECT));
    for (int i = 0; *object && i < f->count; ++i) {
        const size_t chars = strlen((*object)->name);
        if (f->field[i].kind == HF_OBJECT &&
            strncmp(f->field[i].name, (*object)->name, chars) == 0 &&
            f->field[i].name[chars] == '.')
            return hf_refuse(f, &f->field[i],
                             "weft rotates the heads of all blocks in the same way");
    }
    return OK;
}

static Status read_base(HfModel *m, HfFields *f, const HfField *object)
{
    const HfField *inner = member(f, object, "rope_theta"), *outer = hf_value(f, "rope_theta");
    m->rotary_base = 10000;
    if (inner || outer) TRY(hf_number(f, inner ? inner : outer, &m->rotary_base));
    if (m->rotary_base < 1 || m->rotary_base > 1e12)
        return hf_refuse(f, inner ? inner : outer, "expected a number from 1 to 1e12");
    const HfField *part = member(f, object, "partial_rotary_factor");
    double share = 1;
    if (part) TRY(hf_number(f, part, &share));
    return share == 1 ? OK : hf_refuse(f, part, "weft rotates whole heads");
}

/* Reads the original context length. For type dynamic it is always max_position_embeddings; for
 * other types a field outside of the object takes precedence over a member of the object. */
static Status read_original(const HfModel *m, HfFields *f, const HfField *object, const char *type,
                            int64_t *original)
{
    const HfField *inner = member(f, object, ORIGINAL), *outer = hf_value(f, ORIGINAL);
    *original = m->context;
    if (strcmp(type, "dynamic") == 0 || (!inner && !outer)) return OK;
    TRY(hf_count(f, outer ? outer : inner, original));
    return *original > 0 ? OK : hf_refuse(f, outer ? outer : inner, "expected at least 1");
}

static Status put_members(HfModel *m, HfFields *f, const HfField *object, const Scaling *s,
                          FILE *out)
{
    int64_t original;
    TRY(read_original(m, f, object, s->type, &original));
    fprintf(out, "{rope_type: %s", s->type);
    for (int i = 0; s->member[i].name; ++i) {
        const HfField *field = member(f, object, s->member[i].name);
        double number = 1;
        const bool truth = strcmp(s->member[i].name, "truncate") == 0;
        if (!field && i == 0 && strcmp(s->type, "yarn") == 0 && original != m->context) {
            fprintf(out, ", factor: %.17g", (double)m->context / (double)original);
            continue;
        }
        if (!field && s->member[i].needed)
            return hf_refuse(f, object, "%s needs %s", s->type, s->member[i].name);
        if (!field) continue;
        TRY(truth ? hf_check_kind(f, field, HF_BOOL) : hf_number(f, field, &number));
        if (strcmp(s->member[i].name, "factor") == 0 && number < 1)
            return hf_refuse(f, field, "expected at least 1");
        /* a member that is 0 counts as absent */
        if (number == 0) continue;
        fprintf(out, ", %s: %s", s->member[i].name, field->value);
    }
    if (strcmp(s->type, "linear") != 0) fprintf(out, ", %s: %lld", ORIGINAL, (long long)original);
    fputc('}', out);
    return OK;
}

/* Reads rope_type, or its old name `type`; if both are present, they must agree. *type is NULL if
 * neither is present. */
static Status read_rope_type(HfFields *f, const HfField *object, const HfField **type)
{
    const HfField *new = member(f, object, "rope_type"), *old = member(f, object, "type");
    *type = new ? new : old;
    if (new) TRY(hf_check_kind(f, new, HF_TEXT));
    if (old) TRY(hf_check_kind(f, old, HF_TEXT));
    if (!new || !old || strcmp(new->value, old->value) == 0) return OK;
    return hf_refuse(f, old, "%s is %s: keep the field with which the model was trained", new->name,
                     new->value);
}

Status hf_rope_read(HfModel *m, HfFields *f)
{
    const HfField *object, *type;
    TRY(find_object(f, &object));
    TRY(read_base(m, f, object));
    TRY(read_rope_type(f, object, &type));
    (void)member(f, object, "finetuned");
    if (!object || !type || strcmp(type->value, "default") == 0) {
        (void)hf_find(f, ORIGINAL);
        if (object && !type && member(f, object, "factor"))
            return hf_refuse(f, object, "it has a factor and no rope_type");
        return OK;
    }
    const Scaling *s = scalings;
    const Scaling *end = scalings + sizeof scalings / sizeof *scalings;
    while (s < end && strcmp(s->type, type->value) != 0) ++s;
    if (s == end) return hf_refuse(f, type, "weft has default, linear, dynamic, llama3 and yarn");
    size_t bytes = 0;
    FILE *out = open_memstream(&m->rope_scaling, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    Status st = put_members(m, f, object, s, out);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return st;
}

/* ---- windows ---- */

/* Checks that the entries of layer_types are full, ..., full, sliding, ..., sliding. *from: index
 * of the first block with a window, or m->layers if there is none. */
static Status read_layer_types(const HfModel *m, HfFields *f, const HfField *list, int64_t *from)
{
    static const char full[] = "full_attention", sliding[] = "sliding_attention";
    int64_t count = 0;
    bool fits = true;
    TRY(hf_check_kind(f, list, HF_LIST));
    *from = m->layers;
    for (const char *at = list->value; fits && *at; ++count) {
        const size_t chars = strcspn(at, ",");
        const bool slides = chars == sizeof sliding - 1 && strncmp(at, sliding, chars) == 0;
        fits = slides || (chars == sizeof full - 1 && strncmp(at, full, chars) == 0);
        if (slides && *from == m->layers) *from = count;
        fits = fits && (slides || *from == m->layers);
        at += chars + (at[chars] == ',');
    }
    if (fits && count == m->layers) return OK;
    return hf_refuse(f, list, "weft has first blocks of %s, then blocks of %s, %lld in all", full,
                     sliding, (long long)m->layers);
}

/* Reads the size of the window in use into m->window, 0 for no window. A size of 0 in the
 * description also means no window, as in other programs; transformers would mask all keys, so that
 * its loss is NaN. */
static Status read_size(HfModel *m, HfFields *f, const char *type)
{
    const bool qwen2 = strcmp(type, "qwen2") == 0, llama = strcmp(type, "llama") == 0;
    const HfField *size = hf_find(f, "sliding_window"), *use = hf_value(f, "use_sliding_window");
    const bool counted = size && size->kind != HF_NULL;
    bool used = !qwen2 && !llama;
    m->window = llama || size ? 0 : 4096;
    if (counted) TRY(hf_count(f, size, &m->window));
    if (use) TRY(hf_bool(f, use, &used));
    if (llama && used) return hf_refuse(f, use, "llama has no window");
    if (llama && m->window > 0 && !use) return hf_refuse(f, size, "llama has no window");
    if (!llama && !qwen2 && !used && m->window > 0)
        return hf_refuse(f, use, "%s has the window of sliding_window, or of 4096 tokens", type);
    if (used && counted && m->window == 0)
        log_warn("%s: sliding_window is 0, which stands for no window here, as null does", f->path);
    if (!used) m->window = 0;
    return OK;
}

Status hf_window_read(HfModel *m, HfFields *f, const char *type)
{
    const bool qwen2 = strcmp(type, "qwen2") == 0;
    const HfField *first = hf_value(f, "max_window_layers"), *list = hf_value(f, "layer_types");
    int64_t from = qwen2 ? 28 : 0, listed = m->layers;
    TRY(read_size(m, f, type));
    if (first && qwen2) TRY(hf_count(f, first, &from));
    if (list) TRY(read_layer_types(m, f, list, &listed));
    if (list && listed < m->layers && m->window == 0)
        return hf_refuse(f, list, "but no sliding_window is in use");
    if (list && !qwen2 && m->window > 0 && listed > 0)
        return hf_refuse(f, list, "%s has the window in all blocks", type);
    if (list && qwen2) from = listed;
    if (m->window == 0 || from >= m->layers) m->window = from = 0;
    m->window_from = from;
    return OK;
}
