/* A row of the table of attributes (attr.c), and functions that read and write their values as text
 * (attr_value.c). */
#ifndef WEFT_LAYERS_ATTR_H
#define WEFT_LAYERS_ATTR_H

#include "layers.h"

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

/* The effect of another value of an attribute on its layer. "Tensors" are the layer's parameters
 * and table rows. */
typedef enum AttrEffect {
    EFFECT_UNSET,
    /* the layer computes another output from the same tensors */
    EFFECT_OUTPUT,
    /* the tensors have another shape; for a layer without tensors, the same as EFFECT_OUTPUT */
    EFFECT_SHAPE,
    /* the layer trains or starts differently, or is a loss; the model's outputs are the same */
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
    /* true: the field is in LayerSize, not in OpSpec */
    bool in_size;
    /* offset of the field */
    size_t offset;
    /* smallest and largest value of numbers; 0 and 0 for other types */
    double low, high;
    /* true: high itself is out of range */
    bool high_open;
    /* ATTR_WORD, ATTR_WORD_PAIR: the values; the last entry has no word */
    const AttrWord *words;
    /* operation of the layers that the row is for; OP_NONE for all layers whose operation has no
     * row for this name */
    OpKind op;
} Attr;

/* Reads a value into its field. If the text is no value of the attribute's type, or out of range,
 * returns ERR_CONFIG, with a message that begins with the attribute's name; the field may have
 * changed then. */
Status attr_read(const Attr *attr, const char *value, void *field);
/* Writes the value of a field as text, as in a configuration; of anchors and class weights, only
 * their number. */
void attr_write(const Attr *attr, const void *field, char out[ATTR_VALUE]);

#endif
