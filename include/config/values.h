/* Values of keys of a configuration that are lists or maps: layers, widths, pairs, numbers, and the
 * variables, times and patches of fields. */
#ifndef WEFT_CONFIG_VALUES_H
#define WEFT_CONFIG_VALUES_H

#include "base.h"

/* One `key: value` of a layer in model.layers, as text; the layers module interprets it. */
typedef struct ConfigAttr {
    /* key, and value as text: a list [a, b] is stored as "a,b"; owned */
    char *key, *value;
    /* position in the file, counted from 1: of the value in a ConfigLayer, of the key in
     * ConfigPairs; 0: the value is from the command line */
    int line, column;
} ConfigAttr;
/* One entry of model.layers: `- conv2d: {channels: 32, kernel: 3}` or `- relu`. */
typedef struct ConfigLayer {
    /* kind of layer: "conv2d"; owned */
    char *kind;
    /* position of the kind in the file, counted from 1; 0: it is from the command line */
    int line, column;
    int attr_count;
    /* attributes, [attr_count]; owned */
    ConfigAttr *attr;
} ConfigLayer;

/* One entry of model.widths: the number of channels of a layer. */
typedef struct ConfigWidth {
    /* name of the layer; owned */
    char *layer;
    int64_t channels;
} ConfigWidth;
/* model.widths. */
typedef struct ConfigWidths {
    int count;
    /* [count]; owned */
    ConfigWidth *item;
} ConfigWidths;

/* model.rope_scaling: pairs `key: value` as text, which the module of the key interprets. */
typedef struct ConfigPairs {
    int count;
    /* owned */
    ConfigAttr *item;
} ConfigPairs;

/* A list of numbers. */
typedef struct ConfigList {
    int count;
    /* owned */
    double *value;
} ConfigList;

/* largest number of classes of a target that has labels */
enum { CONFIG_CLASSES_MOST = 256 };
/* One variable of data.variables. */
typedef struct ConfigVariable {
    /* use of the variable, a FieldRole */
    int role;
    /* name of the variable in the files; owned */
    char *name;
    /* coordinates of the selected levels, at most FIELD_LEVELS (data/fields.h); empty: all
     * levels */
    ConfigList levels;
    /* number of classes of a target that consists of labels; 0: the variable consists of numbers */
    int64_t classes;
    /* true: pixels with the value `ignore` have no label */
    bool has_ignore;
    double ignore;
    /* targets: weights in the loss, one for all levels or one for each level; empty: all are 1 */
    ConfigList weights;
    /* position in the file, counted from 1; 0: the variable is from the command line */
    int line, column;
} ConfigVariable;
/* data.variables. */
typedef struct ConfigVariables {
    /* number of entries. The entries may name up to FIELD_VARIABLES (data/fields.h) different
     * variables; field_variables.c of src/data/fields checks this when a set is opened. */
    int count;
    /* [count]; owned */
    ConfigVariable *item;
} ConfigVariables;
/* data.window: offsets in time from a sample's own time, in ascending order. */
typedef struct ConfigWindow {
    /* offsets of the inputs and of the targets, at most FIELD_OFFSETS (data/fields.h) in each list;
     * empty: [0] */
    ConfigList inputs, targets;
    /* is_set: true if an offset other than 0 is set; seconds: true if offsets are in seconds, false
     * if they are in steps of the set's time */
    bool is_set, seconds;
} ConfigWindow;

/* data.train_time or data.test_time: first and last time, as dates of the set's calendar with or
 * without a clock time; owned; NULL: all times. */
typedef struct ConfigTimes {
    char *from, *to;
} ConfigTimes;

/* data.patch: rows and columns of the inputs of a patch; 0: samples are whole fields. */
typedef struct ConfigPatch {
    int64_t rows, columns;
} ConfigPatch;

#endif
