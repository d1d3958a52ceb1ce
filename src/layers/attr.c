/* Reads and compares attributes of layers. One table has the field, the type, the effect and the
 * range of each attribute. Values are text, from model.layers or from a model of the zoo. Error
 * messages have no file and line; callers add them, or the layer's name. */
#include "attr.h"
#include "kinds.h"

#include "config/foreign.h"

#include <string.h>

#define IN_SPEC(field) .offset = offsetof(OpSpec, field)
#define IN_SIZE(field) .in_layer_size = true, .offset = offsetof(LayerSize, field)

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
/* INIT_UNSET and INIT_ONE have no word, and the last row is the end */
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
    {"vocab", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(rows), .low = 1, .high = INT32_MAX},
    {"context", ATTR_COUNT, EFFECT_SHAPE, IN_SIZE(rows), .low = 1, .high = INT32_MAX},
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
    {"full", ATTR_BOOL, EFFECT_OUTPUT, IN_SPEC(bidirectional)},
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

/* Returns the row of an attribute for layers with the operation `op`, else the row for all layers,
 * else NULL. */
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

Status layer_set_attr(const LayerKind *kind, OpSpec *spec, LayerSize *size, const char *key,
                      const char *value)
{
    bool accepted = false;
    for (int i = 0; kind->attrs && kind->attrs[i]; ++i)
        accepted = accepted || strcmp(kind->attrs[i], key) == 0;
    if (!accepted) return unknown_attr_fail(kind, key);
    const Attr *attr = attr_find(kind->op, key);
    if (!attr) return fail(ERR_BUG, "%s: attribute '%s' is not in the table", kind->name, key);
    return attr_read(attr, value,
                     (char *)(attr->in_layer_size ? (void *)size : (void *)spec) + attr->offset);
}

bool layer_find_difference(const LayerKind *kind, const OpSpec *const spec[2],
                           const LayerSize *const size[2], AttrDifference *difference)
{
    /* true: attributes with EFFECT_SHAPE are not compared, because another value changes the shapes
     * of the layer's tensors, which the caller compares. Layers with hashed tables are an
     * exception: vocab does not change the shape of their rows. */
    const bool shapes_show_size = op_has_values(spec[0]) && !size[0]->hashed && !size[1]->hashed;
    for (int i = 0; kind->attrs && kind->attrs[i]; ++i) {
        const Attr *attr = attr_find(kind->op, kind->attrs[i]);
        if (attr->effect == EFFECT_TRAINING || (attr->effect == EFFECT_SHAPE && shapes_show_size))
            continue;
        for (int k = 0; k < 2; ++k) {
            /* 0 means a default in these two fields: write the default */
            OpSpec s = *spec[k];
            s.kv_heads = attention_kv_heads(&s);
            s.rotary_base = attention_rotary_base(&s);
            const void *values = attr->in_layer_size ? (const void *)size[k] : (const void *)&s;
            attr_write(attr, (const char *)values + attr->offset, difference->value[k]);
        }
        difference->name = attr->name;
        if (strcmp(difference->value[0], difference->value[1]) != 0) return true;
    }
    return false;
}
