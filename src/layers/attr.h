/* A row of the table of attributes (attr.c), and functions that read and write their values as text
 * (attr_value.c). */
#ifndef WEFT_LAYERS_ATTR_H
#define WEFT_LAYERS_ATTR_H

#include "layers.h"

/* The type of the field that an attribute sets, and the form of its text. */
typedef enum AttrType {
    /* not set: refused by layer_attr_fault */
    ATTR_UNSET,
    /* int64_t: "32" */
    ATTR_COUNT,
    /* int: "3" */
    ATTR_INT,
    /* int[2], height and width: "3" for both, or "3,5" */
    ATTR_PAIR,
    /* the same as ATTR_PAIR, or the word "same", which becomes PADDING_SAME */
    ATTR_PAD,
    /* int[4], the edges above, below, left and right: "1", "1,2" for height and width, or
     * "1,2,3,4" */
    ATTR_EDGES,
    /* float */
    ATTR_FLOAT,
    /* bool: "true" or "false" */
    ATTR_BOOL,
    /* int: the value of a word (AttrWord) */
    ATTR_WORD,
    /* int[2], the values of words for height and width: "zero" for both, or "circular,zero" */
    ATTR_WORD_PAIR,
    /* Anchors: width and height of each anchor, "10,13,16,30" */
    ATTR_ANCHORS,
    /* ClassWeights: "1,0.5,2" */
    ATTR_WEIGHTS
} AttrType;

/* How a layer changes if an attribute has another value. Here "tensors" are the layer's parameters
 * and the rows of its tables. */
typedef enum AttrEffect {
    EFFECT_UNSET,
    /* the layer computes another output from the same tensors */
    EFFECT_OUTPUT,
    /* the tensors have another shape; in a layer without tensors the same as EFFECT_OUTPUT */
    EFFECT_SHAPE,
    /* training or initial values change, but with the same tensors the model's outputs are the
     * same */
    EFFECT_TRAINING,
} AttrEffect;

/* A word that an attribute accepts, and the constant of an enum that it stands for. */
typedef struct AttrWord {
    const char *word;
    int value;
} AttrWord;

typedef struct Attr {
    const char *name;
    AttrType type;
    AttrEffect effect;
    /* true: the field is in LayerSize, not in OpSpec */
    bool in_layer_size;
    /* offset of the field in its struct, in bytes */
    size_t offset;
    /* numbers: the smallest (low) and the largest (high) value; other types: 0 */
    double low, high;
    /* true: `high` itself is out of range */
    bool high_open;
    /* ATTR_WORD, ATTR_WORD_PAIR: the accepted words; the last entry has the word NULL */
    const AttrWord *words;
    /* the row is for layers with this operation. OP_NONE: it is for all layers whose operation has
     * no row of its own with this name. */
    OpKind op;
} Attr;

/* Reads a value into its field. ERR_CONFIG: the text is no value of the attribute's type, or the
 * value is out of range; the message begins with the attribute's name, and the field may have
 * changed. */
Status attr_read(const Attr *attr, const char *value, void *field);
/* Writes the value of a field to `out`, as it would be written in a configuration. For anchors and
 * class weights it writes only how many there are. */
void attr_write(const Attr *attr, const void *field, char out[ATTR_VALUE]);

#endif
