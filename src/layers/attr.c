/* Reads, compares and prints attributes of layers, by one table with the field, the type, the
 * effect and the range of each. Values are text, from a configuration's list of layers or from the
 * zoo; callers add file and line to error messages. */
#include "kinds.h"

#include "config/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum AttrType {
    ATTR_UNSET,
    /* int64_t */
    ATTR_COUNT,
    ATTR_INT,
    /* int[2]: height and width */
    ATTR_PAIR,
    /* int[2], or the word same */
    ATTR_PAD,
    /* int[4]: above, below, left and right */
    ATTR_EDGES,
    ATTR_FLOAT,
    ATTR_BOOL,
    /* int: a value of an enum */
    ATTR_WORD,
    /* int[2]: values of an enum, for height and width */
    ATTR_WORD_PAIR,
    /* Anchors: width and height of each */
    ATTR_ANCHORS,
    /* ClassWeights */
    ATTR_WEIGHTS
} AttrType;

/* The effect of another value of an attribute on its layer. */
typedef enum AttrEffect {
    EFFECT_UNSET,
    /* the layer computes another output from the same tensors */
    EFFECT_OUTPUT,
    /* the tensors have another shape; for a layer without tensors, the same as EFFECT_OUTPUT */
    EFFECT_SHAPE,
    /* the layer trains or starts differently; evaluations give the same results */
    EFFECT_TRAINING,
} AttrEffect;

/* One value of an enum. */
typedef struct AttrWord {
    const char *word;
    int value;
} AttrWord;

typedef struct Attr {
    const char *name;
    AttrType type;
    AttrEffect effect;
    /* the field is in LayerSize, not in OpSpec */
    bool in_size;
    /* offset of the field */
    size_t offset;
    double low, high;
    /* high itself is out of range */
    bool high_open;
    /* ATTR_WORD: the values; the last entry has no word */
    const AttrWord *words;
    /* the row is for layers of this operation; OP_NONE: for all others */
    OpKind op;
} Attr;

#define IN_SPEC(field) .offset = offsetof(OpSpec, field)
#define IN_SIZE(field) .in_size = true, .offset = offsetof(LayerSize, field)

static const AttrWord init_words[] = {
    {"uniform", INIT_UNIFORM}, {"uniform_fp16", INIT_UNIFORM_FP16},
    {"he", INIT_HE_NORMAL},    {"normal", INIT_NORMAL},
    {"zero", INIT_ZERO},       {NULL, 0}};
static const AttrWord bag_mode_words[] = {
    {"sum", BAG_SUM}, {"mean", BAG_MEAN}, {"concat", BAG_CONCAT}, {NULL, 0}};
static const AttrWord tables_words[] = {
    {"shared", TABLES_SHARED}, {"each", TABLES_EACH}, {NULL, 0}};
static const AttrWord upsample_words[] = {
    {"nearest", UPSAMPLE_NEAREST}, {"bilinear", UPSAMPLE_BILINEAR}, {NULL, 0}};
#define PAD_ROW(MODE, name) {name, PAD_##MODE},
static const AttrWord pad_words[] = {PAD_MODES(PAD_ROW){NULL, 0}};
#define ROTARY_ROW(ROTARY, name) {name, ROTARY_##ROTARY},
static const AttrWord rotary_words[] = {ROTARY_SCALINGS(ROTARY_ROW){NULL, 0}};
_Static_assert(sizeof init_words / sizeof *init_words == INITS - 1,
               "a word for each initialiser but INIT_ONE, and the end");
_Static_assert(sizeof(RotaryType) == sizeof(int), "words are written as int");
_Static_assert(sizeof(Init) == sizeof(int) && sizeof(BagMode) == sizeof(int) &&
                   sizeof(TableUse) == sizeof(int) && sizeof(PadMode) == sizeof(int) &&
                   sizeof(UpsampleMode) == sizeof(int),
               "words are written as int");

static const Attr table[] = {
    {"pad", ATTR_EDGES, EFFECT_OUTPUT, IN_SPEC(padding.edge), .op = OP_PAD, .low = -1024,
     .high = 1024},
    {"mode", ATTR_WORD_PAIR, EFFECT_OUTPUT, IN_SPEC(padding.mode), .op = OP_PAD,
     .words = pad_words},
    {"mode", ATTR_WORD, EFFECT_OUTPUT, IN_SPEC(upsample), .words = upsample_words,
     .op = OP_UPSAMPLE},
    {"pad", ATTR_PAIR, EFFECT_OUTPUT, IN_SPEC(pad), .op = OP_CONV_TRANSPOSE2D, .low = 0,
     .high = 1024},
    {"width", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(width), .low = 1, .high = INT32_MAX},
    {"channels", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(width), .low = 1, .high = INT32_MAX},
    {"vocab", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(vocab), .low = 1, .high = INT32_MAX},
    {"context", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(vocab), .low = 1, .high = INT32_MAX},
    {"bias", ATTR_BOOL, EFFECT_SHAPE, IN_SIZE(bias)},
    {"affine", ATTR_BOOL, EFFECT_SHAPE, IN_SIZE(affine)},
    {"init", ATTR_WORD, EFFECT_TRAINING, IN_SIZE(init), .words = init_words},
    {"init_std", ATTR_FLOAT, EFFECT_TRAINING, IN_SIZE(init_std), .low = 0, .high = 100},
    {"kernel", ATTR_PAIR, EFFECT_OUTPUT, IN_SPEC(kernel), .low = 1, .high = 1024},
    {"stride", ATTR_PAIR, EFFECT_OUTPUT, IN_SPEC(stride), .low = 1, .high = 1024},
    {"pad", ATTR_PAD, EFFECT_OUTPUT, IN_SPEC(pad), .low = 0, .high = 1024},
    {"pad_mode", ATTR_WORD_PAIR, EFFECT_OUTPUT, IN_SPEC(padding.mode), .words = pad_words},
    {"output_pad", ATTR_PAIR, EFFECT_SHAPE, IN_SPEC(output_pad), .low = 0, .high = 1023},
    {"groups", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(groups), .low = 1, .high = 1048576},
    {"scale", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(scale), .low = 1, .high = UPSAMPLE_SCALE},
    {"align_corners", ATTR_BOOL, EFFECT_OUTPUT, IN_SPEC(align_corners)},
    {"alpha", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(act_factor), .low = 0, .high = 1e6},
    {"slope", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(act_factor), .low = 0, .high = 1e6},
    {"heads", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(heads), .low = 1, .high = 1048576},
    {"kv_heads", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(kv_heads), .low = 1, .high = 1048576},
    {"rotary", ATTR_BOOL, EFFECT_OUTPUT, IN_SPEC(rotary)},
    {"rotary_base", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_base), .low = 1, .high = 1e12},
    {"rope_type", ATTR_WORD, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.type), .words = rotary_words},
    {"rope_factor", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.factor), .low = 1,
     .high = 1e6},
    {"rope_original_max_position_embeddings", ATTR_INT, EFFECT_OUTPUT,
     IN_SPEC(rotary_scaling.original), .low = 1, .high = INT32_MAX},
    {"rope_low_freq_factor", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.low_freq_factor),
     .low = 1e-6, .high = 1e6},
    {"rope_high_freq_factor", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.high_freq_factor),
     .low = 1e-6, .high = 1e6},
    {"rope_beta_fast", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.beta_fast), .low = 1e-6,
     .high = 1e6},
    {"rope_beta_slow", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.beta_slow), .low = 1e-6,
     .high = 1e6},
    {"rope_attention_factor", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.attention_factor),
     .low = 1e-6, .high = 1e6},
    {"rope_mscale", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.mscale), .low = 1e-6,
     .high = 1e6},
    {"rope_mscale_all_dim", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.mscale_all_dim),
     .low = 1e-6, .high = 1e6},
    {"rope_truncate", ATTR_BOOL, EFFECT_OUTPUT, IN_SPEC(rotary_scaling.truncate)},
    {"window", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(window), .low = 1, .high = INT32_MAX},
    {"eps", ATTR_FLOAT, EFFECT_OUTPUT, IN_SPEC(eps), .low = 1e-12, .high = 1},
    {"delta", ATTR_FLOAT, EFFECT_TRAINING, IN_SPEC(delta), .low = 1e-12, .high = 1e12},
    {"momentum", ATTR_FLOAT, EFFECT_TRAINING, IN_SPEC(momentum), .low = 0, .high = 1},
    {"p", ATTR_FLOAT, EFFECT_TRAINING, IN_SPEC(drop), .low = 0, .high = 1, .high_open = true},
    {"fields", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(bag_fields), .low = 1, .high = 65536},
    {"first_field", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(bag_first), .low = 0, .high = 65535},
    {"mode", ATTR_WORD, EFFECT_OUTPUT, IN_SPEC(bag_mode), .words = bag_mode_words},
    {"ids", ATTR_INT, EFFECT_OUTPUT, IN_SPEC(bag_ids), .low = 1, .high = 1048576},
    {"together", ATTR_BOOL, EFFECT_OUTPUT, IN_SPEC(bag_together)},
    {"tables", ATTR_WORD, EFFECT_SHAPE, IN_SIZE(tables), .words = tables_words},
    {"hashed", ATTR_BOOL, EFFECT_OUTPUT, IN_SIZE(hashed)},
    {"classes", ATTR_INT, EFFECT_TRAINING, IN_SPEC(classes), .low = 1, .high = 1048576},
    {"cell", ATTR_INT, EFFECT_TRAINING, IN_SPEC(cell), .low = 1, .high = 640},
    {"anchors", ATTR_ANCHORS, EFFECT_TRAINING, IN_SPEC(anchors), .low = 1, .high = 65536},
    {"gamma", ATTR_FLOAT, EFFECT_TRAINING, IN_SPEC(focus), .low = 0, .high = 100},
    {"class_weights", ATTR_WEIGHTS, EFFECT_TRAINING, IN_SPEC(class_weights), .low = 0,
     .high = 1e12},
    {"image", ATTR_PAIR, EFFECT_TRAINING, IN_SPEC(image), .low = 1, .high = 65536},
    {"smoothing", ATTR_FLOAT, EFFECT_TRAINING, IN_SPEC(smoothing), .low = 0, .high = 1,
     .high_open = true},
};

static const Attr *attr_find(OpKind op, const char *name)
{
    const Attr *found = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i)
        if (strcmp(table[i].name, name) == 0 && (table[i].op == op || table[i].op == OP_NONE))
            if (!found || table[i].op == op) found = &table[i];
    return found;
}

const char *layer_attr_fault(OpKind op, const char *name)
{
    const Attr *attr = attr_find(op, name);
    if (!attr) return "has no row in attr.c";
    const bool word = attr->type == ATTR_WORD || attr->type == ATTR_WORD_PAIR;
    return attr->type == ATTR_UNSET          ? "has no type"
           : attr->effect == EFFECT_UNSET    ? "has no effect"
           : word && !attr->words            ? "has no words"
           : word || attr->type == ATTR_BOOL ? NULL
           : attr->low >= attr->high         ? "has no range"
                                             : NULL;
}

static Status unknown_attr_fail(const LayerKind *kind, const char *key)
{
    char list[512] = "";
    int count = 0;
    for (; kind->attrs && kind->attrs[count]; ++count) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", kind->attrs[count]);
    }
    char *foreign = foreign_text(FOREIGN_ATTR, key);
    if (foreign) {
        fail(ERR_CONFIG, "%s takes no attribute '%s': %s", kind->name, key, foreign);
        mem_free(&foreign);
        return ERR_CONFIG;
    }
    if (!count) return fail(ERR_CONFIG, "%s takes no attribute '%s'", kind->name, key);
    const char *near = text_nearest(key, kind->attrs, count);
    if (near)
        return fail(ERR_CONFIG, "%s takes no attribute '%s'; did you mean '%s'?", kind->name, key,
                    near);
    return fail(ERR_CONFIG, "%s takes no attribute '%s'; it takes %s", kind->name, key, list);
}

/* Reads one whole number from *text, up to a comma or the end. */
static bool read_int(const char **text, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    if (end == *text || errno) return false;
    while (isspace((unsigned char)*end)) ++end;
    *text = end;
    return *end == '\0' || *end == ',';
}

static Status range_fail(const Attr *attr, const char *value)
{
    return fail(ERR_CONFIG, "%s: %s is out of range %g..%g%s", attr->name, value, attr->low,
                attr->high, attr->high_open ? " (exclusive)" : "");
}

static Status set_int(const Attr *attr, const char *value, int64_t *out)
{
    const char *text = value;
    long long n;
    if (!read_int(&text, &n) || *text)
        return fail(ERR_CONFIG, "%s: '%s' is not a whole number", attr->name, value);
    if ((double)n < attr->low || (double)n > attr->high) return range_fail(attr, value);
    *out = n;
    return OK;
}

/* Reads "3", "3,5" and so on, at most `most` numbers, in their range. Sets *count to 0 if the text
 * is something else. */
static Status read_ints(const Attr *attr, const char *value, int most, int *out, int *count)
{
    const char *text = value;
    long long n = 0;
    for (*count = 0; *count < most && read_int(&text, &n); ++text) {
        if ((double)n < attr->low || (double)n > attr->high) return range_fail(attr, value);
        out[(*count)++] = (int)n;
        if (!*text) return OK;
    }
    *count = 0;
    return OK;
}

/* Reads "3" for both directions, or "3,5": height, width. */
static Status set_pair(const Attr *attr, const char *value, int pair[2])
{
    int n[2], count;
    TRY(read_ints(attr, value, 2, n, &count));
    if (count == 0)
        return fail(ERR_CONFIG, "%s: '%s' is neither a whole number nor a pair like [3, 5]",
                    attr->name, value);
    pair[0] = n[0];
    pair[1] = n[count - 1];
    return OK;
}

/* Reads "3" for all sides, "3,5" for height and width, or "1,2,3,4": above, below, left, right. */
static Status set_edges(const Attr *attr, const char *value, int edge[4])
{
    int n[4], count;
    TRY(read_ints(attr, value, 4, n, &count));
    if (count == 0 || count == 3)
        return fail(ERR_CONFIG,
                    "%s: '%s' is no whole number, no pair [height, width] and no list [above, "
                    "below, left, right]",
                    attr->name, value);
    for (int i = 0; i < 4; ++i) edge[i] = n[count == 4 ? i : count == 2 ? i / 2 : 0];
    return OK;
}

static Status set_float(const Attr *attr, const char *value, float *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end || !isfinite(v))
        return fail(ERR_CONFIG, "%s: '%s' is not a number", attr->name, value);
    if (v < attr->low || v > attr->high || (attr->high_open && v >= attr->high))
        return range_fail(attr, value);
    *out = (float)v;
    return OK;
}

static Status set_bool(const Attr *attr, const char *value, bool *out)
{
    *out = strcmp(value, "true") == 0;
    if (*out || strcmp(value, "false") == 0) return OK;
    return fail(ERR_CONFIG, "%s: '%s' is neither true nor false", attr->name, value);
}

/* Finds the first `length` characters of value among the words. */
static Status find_word(const Attr *attr, const char *value, size_t length, int *out)
{
    char all[128] = "";
    for (const AttrWord *w = attr->words; w->word; ++w) {
        size_t used = strlen(all);
        if (strlen(w->word) == length && strncmp(value, w->word, length) == 0) {
            *out = w->value;
            return OK;
        }
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", w->word);
    }
    return fail(ERR_CONFIG, "%s: '%.*s' is none of %s", attr->name, (int)length, value, all);
}

static Status set_word(const Attr *attr, const char *value, int *out)
{
    return find_word(attr, value, strlen(value), out);
}

/* Reads one word for both directions, or two: for height, width. */
static Status set_word_pair(const Attr *attr, const char *value, int out[2])
{
    const size_t first = strcspn(value, ",");
    TRY(find_word(attr, value, first, &out[0]));
    out[1] = out[0];
    if (!value[first]) return OK;
    value += first + 1;
    return set_word(attr, value + strspn(value, " "), &out[1]);
}

/* Reads widths and heights: "10,13, 16,30". */
static Status set_anchors(const Attr *attr, const char *value, Anchors *out)
{
    Anchors read = {0};
    const char *at = value;
    for (int n = 0; *at; ++n) {
        char *end;
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            return fail(ERR_CONFIG, "%s: '%s' is no list of numbers", attr->name, value);
        if (!(v >= attr->low && v <= attr->high)) return range_fail(attr, value);
        if (n == 2 * ANCHORS_MOST)
            return fail(ERR_CONFIG, "%s: more than %d", attr->name, ANCHORS_MOST);
        read.side[n / 2][n % 2] = (float)v;
        read.count = (n + 1) / 2;
        at = *end ? end + 1 : end;
        if (!*at && n % 2 == 0)
            return fail(ERR_CONFIG, "%s: '%s' has a width without a height", attr->name, value);
    }
    *out = read;
    return OK;
}

/* Reads a weight for each class: "1,0.5,2". */
static Status set_weights(const Attr *attr, const char *value, ClassWeights *out)
{
    ClassWeights read = {0};
    for (const char *at = value; *at;) {
        char *end;
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            return fail(ERR_CONFIG, "%s: '%s' is no list of numbers", attr->name, value);
        if (!(v >= attr->low && v <= attr->high)) return range_fail(attr, value);
        if (read.count == CLASS_WEIGHTS_MOST)
            return fail(ERR_CONFIG, "%s: more than %d", attr->name, CLASS_WEIGHTS_MOST);
        read.value[read.count++] = (float)v;
        at = *end ? end + 1 : end;
    }
    *out = read;
    return OK;
}

static Status attr_set(const Attr *attr, const char *value, void *field)
{
    int64_t n;
    switch (attr->type) {
    case ATTR_COUNT:
        return set_int(attr, value, field);
    case ATTR_INT:
        TRY(set_int(attr, value, &n));
        *(int *)field = (int)n;
        return OK;
    case ATTR_PAIR:
        return set_pair(attr, value, field);
    case ATTR_PAD:
        if (strcmp(value, "same") != 0) return set_pair(attr, value, field);
        ((int *)field)[0] = ((int *)field)[1] = PAD_SAME;
        return OK;
    case ATTR_EDGES:
        return set_edges(attr, value, field);
    case ATTR_FLOAT:
        return set_float(attr, value, field);
    case ATTR_BOOL:
        return set_bool(attr, value, field);
    case ATTR_WORD:
        return set_word(attr, value, field);
    case ATTR_WORD_PAIR:
        return set_word_pair(attr, value, field);
    case ATTR_ANCHORS:
        return set_anchors(attr, value, field);
    case ATTR_WEIGHTS:
        return set_weights(attr, value, field);
    case ATTR_UNSET:
        break;
    }
    return fail(ERR_BUG, "attribute %s has no type", attr->name);
}

Status layer_set_attr(const LayerKind *kind, OpSpec *spec, LayerSize *size, const char *key,
                      const char *value)
{
    bool accepted = false;
    for (int i = 0; kind->attrs && kind->attrs[i]; ++i)
        accepted = accepted || strcmp(kind->attrs[i], key) == 0;
    if (!accepted) return unknown_attr_fail(kind, key);
    const Attr *attr = attr_find(kind->op, key);
    if (!attr) return fail(ERR_BUG, "%s: attribute '%s' is not in the table", kind->name, key);
    return attr_set(attr, value,
                    (char *)(attr->in_size ? (void *)size : (void *)spec) + attr->offset);
}

static const char *word_of(const Attr *attr, int value)
{
    const AttrWord *w = attr->words;
    while (w->word && w->value != value) ++w;
    return w->word ? w->word : "";
}

/* Writes an attribute's value as text, as in a configuration. */
static void value_text(const Attr *attr, const void *field, char out[ATTR_VALUE])
{
    const int *n = field;
    out[0] = '\0';
    switch (attr->type) {
    case ATTR_COUNT:
        snprintf(out, ATTR_VALUE, "%lld", (long long)*(const int64_t *)field);
        break;
    case ATTR_INT:
        snprintf(out, ATTR_VALUE, "%d", *n);
        break;
    case ATTR_PAIR:
    case ATTR_PAD:
        snprintf(out, ATTR_VALUE, "[%d, %d]", n[0], n[1]);
        break;
    case ATTR_EDGES:
        snprintf(out, ATTR_VALUE, "[%d, %d, %d, %d]", n[0], n[1], n[2], n[3]);
        break;
    case ATTR_FLOAT:
        /* the fewest digits that give the same float */
        for (int digits = 6; digits <= 9; ++digits) {
            snprintf(out, ATTR_VALUE, "%.*g", digits, (double)*(const float *)field);
            if (strtof(out, NULL) == *(const float *)field) break;
        }
        break;
    case ATTR_BOOL:
        snprintf(out, ATTR_VALUE, "%s", *(const bool *)field ? "true" : "false");
        break;
    case ATTR_WORD:
        snprintf(out, ATTR_VALUE, "%s", word_of(attr, *n));
        break;
    case ATTR_WORD_PAIR:
        snprintf(out, ATTR_VALUE, "[%s, %s]", word_of(attr, n[0]), word_of(attr, n[1]));
        break;
    case ATTR_ANCHORS:
        snprintf(out, ATTR_VALUE, "%d anchors", ((const Anchors *)field)->count);
        break;
    case ATTR_WEIGHTS:
        snprintf(out, ATTR_VALUE, "%d weights", ((const ClassWeights *)field)->count);
        break;
    case ATTR_UNSET:
        break;
    }
}

bool layer_attr_differs(const LayerKind *kind, const OpSpec *const spec[2],
                        const LayerSize *const size[2], AttrDifference *difference)
{
    /* such a layer has other tensors if an attribute of EFFECT_SHAPE differs; a hashed table has
     * the same tensors with any number of rows */
    const bool has_tensors = op_has_values(spec[0]) && !size[0]->hashed && !size[1]->hashed;
    for (int i = 0; kind->attrs && kind->attrs[i]; ++i) {
        const Attr *attr = attr_find(kind->op, kind->attrs[i]);
        if (attr->effect == EFFECT_TRAINING || (attr->effect == EFFECT_SHAPE && has_tensors))
            continue;
        for (int k = 0; k < 2; ++k) {
            /* 0 stands for the default of kv_heads and rotary_base */
            OpSpec s = *spec[k];
            s.kv_heads = attention_kv_heads(&s);
            s.rotary_base = attention_rotary_base(&s);
            const void *values = attr->in_size ? (const void *)size[k] : (const void *)&s;
            value_text(attr, (const char *)values + attr->offset, difference->value[k]);
        }
        difference->name = attr->name;
        if (strcmp(difference->value[0], difference->value[1]) != 0) return true;
    }
    return false;
}
